"""The book as one document: EPUB, and PDF through Typst.

Pages are converted to Pandoc's JSON one by one, as for the site, joined here, and written by one more Pandoc
run. Nothing in the result depends on the day or the machine: a fixed identifier, `SOURCE_DATE_EPOCH`, Typst's
own fonts and those that Matplotlib carries.
"""

from __future__ import annotations

import json
import os
import posixpath
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bookkit.book import Book
from bookkit.errors import BookError
from bookkit.render import resolve
from bookkit.render.fragments import STYLE, THEME, WARNING, Fragment, convert, run_pandoc
from bookkit.render.resolve import Index
from bookkit.render.site import authors_of
from bookkit.render.sources import Page

if TYPE_CHECKING:
    import typst

EPOCH = "315532800"  # 1980-01-01, the first day that a ZIP file can note
Json = Any


def build(book: Book, pages: Sequence[Page], kind: str) -> dict[str, bytes]:
    """The one file of the format "epub" or "pdf", by its name. Raises BookError for what does not resolve."""
    target = "epub" if kind == "epub" else "typst"
    fragments = convert(book, pages, target)
    index = resolve.index(book, fragments)
    document = json.dumps(_joined(book, fragments, index, target), ensure_ascii=False)
    with tempfile.TemporaryDirectory(prefix="bookkit-") as name:
        folder = Path(name)
        _write_pictures(book, fragments, folder)
        _write_facts(book, folder)
        make = _epub if kind == "epub" else _pdf
        return {f"{file_stem(book)}.{kind}": make(book, document, folder)}


def file_stem(book: Book) -> str:
    """What EPUB and PDF are called: the book's title, as Quarto spells it in a file name."""
    words = "".join(sign if sign.isalnum() else " " for sign in book.title).split()
    return "-".join(words) or "book"


def _write_pictures(book: Book, fragments: Sequence[Fragment], folder: Path) -> None:
    for fragment in fragments:
        for asset in fragment.facts["assets"]:
            path = resolve.normalised(asset)
            content = fragment.manuscript.pictures.get(path)
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content if content is not None else (book.root / path).read_bytes())


def _write_facts(book: Book, folder: Path) -> None:
    facts = {"title": book.title, "subtitle": book.subtitle, "author": authors_of(book)}
    (folder / "book.json").write_text(json.dumps(facts), encoding="utf-8")


# Joining


def _joined(book: Book, fragments: Sequence[Fragment], index: Index, target: str) -> Json:
    """One Pandoc document of all pages, with a page of its own for each part and the sources at the end."""
    blocks: list[Json] = []
    part = ""
    whole: dict[str, Json] = {}
    for fragment in fragments:
        whole = json.loads(fragment.body)
        if fragment.page.chapter.part not in ("", part):
            part = fragment.page.chapter.part
            blocks.append(_part(part, target))
        blocks += [_resolved(block, index) for block in whole["blocks"]]
    if any(fragment.facts["cites"] for fragment in fragments):
        blocks += [_header("References", "references"), {"t": "Div", "c": [["refs", [], []], []]}]
    return whole | {"blocks": blocks, "meta": _meta(book)}


def _part(title: str, target: str) -> Json:
    if target == "typst":
        return {"t": "RawBlock", "c": ["typst", f"#part-page({json.dumps(title, ensure_ascii=False)})"]}
    return _header(title, "")


def _header(title: str, identifier: str) -> Json:
    words: list[Json] = []
    for word in title.split():
        words += [{"t": "Space"}, {"t": "Str", "c": word}]
    return {"t": "Header", "c": [1, [identifier, ["unnumbered"], []], words[1:]]}


def _meta(book: Book) -> Json:
    values = {
        "title": book.title,
        "subtitle": book.subtitle,
        "author": authors_of(book),
        "lang": str(book.config.get("lang", "en")),
        "identifier": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'bookkit:{book.title}')}",
    }
    return {key: {"t": "MetaString", "c": value} for key, value in values.items() if value}


def _resolved(value: Json, index: Index) -> Json:
    """The same piece of a document with every link and picture pointing at something in it."""
    if isinstance(value, list):
        return [_resolved(each, index) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("t") == "Link":
        return _link(value, index)
    if value.get("t") == "Image" and value["c"][2][0].startswith("asset:"):
        attributes, words, (source, title) = value["c"]
        path = resolve.normalised(source.removeprefix("asset:"))
        return {"t": "Image", "c": [attributes, _resolved(words, index), [path, title]]}
    return {key: _resolved(each, index) for key, each in value.items()}


def _link(value: Json, index: Index) -> Json:
    attributes, words, (url, title) = value["c"]
    scheme, _, rest = url.partition(":")
    words = _resolved(words, index)
    if scheme == "xref":
        label = index.labels[rest.removesuffix("?bare")]
        words = [{"t": "Str", "c": label.name(rest.endswith("?bare"))}]
        url = f"#{label.id}"
    elif scheme == "page":
        url = f"#{_anchor(rest, index)}"
    return {"t": "Link", "c": [attributes, words, [url, title]]}


def _anchor(target: str, index: Index) -> str:
    """Where a link to another page leads when all pages are one document: the anchor, or the page's title."""
    path, _, anchor = target.partition("#")
    there = index.page_of(posixpath.normpath(path))
    assert there is not None  # resolve.index has seen to it
    return anchor or str(there.facts.get("top", ""))


# Writing


def _citations(book: Book) -> Iterator[str]:
    if book.bibliography:
        yield from (
            "--citeproc",
            "--metadata=link-citations=true",
            f"--csl={STYLE}",
            f"--bibliography={book.bibliography.resolve()}",
        )


def _epub(book: Book, document: str, folder: Path) -> bytes:
    cover, result = folder / "cover.png", folder / "book.epub"
    cover.write_bytes(_typeset(THEME / "cover.typ", folder, "png"))
    arguments = ["-f", "json", "-t", "epub3", "--mathml", "--toc", "--toc-depth=2", "--split-level=1"]
    arguments += [f"--css={THEME / 'epub.css'}", f"--epub-cover-image={cover}", *_citations(book)]
    _pandoc([*arguments, "-o", str(result)], document, folder)
    return result.read_bytes()


def _pdf(book: Book, document: str, folder: Path) -> bytes:
    arguments = ["-f", "json", "-t", "typst", "--wrap=none", f"--template={THEME / 'book.typ'}"]
    typst = _pandoc([*arguments, *_citations(book)], document, folder)
    source = folder / "book.typ"
    source.write_text(typst, encoding="utf-8")
    return _typeset(source, folder, "pdf")


def _pandoc(arguments: Sequence[str], document: str, folder: Path) -> str:
    environment = {"SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", EPOCH)}
    output, log = run_pandoc(arguments, document, folder, environment)
    warnings = WARNING.findall(log)
    if warnings:
        raise BookError(f"pandoc warns: {' '.join(warnings[0].split())}")
    return output


def _typeset(source: Path, folder: Path, kind: str) -> bytes:
    """A Typst source as PDF or PNG. Raises BookError with Typst's own message."""
    try:
        import typst
    except ImportError as error:
        raise BookError("typst is not installed", hint='Run: python -m pip install -e ".[book]"') from error
    inside = folder / source.name
    if inside != source:
        inside.write_bytes(source.read_bytes())
    compiler = typst.Compiler(root=folder, font_paths=_font_paths(), ignore_system_fonts=True)
    try:
        made = _compiled(compiler, inside, kind)
    except (RuntimeError, ValueError) as error:
        raise BookError(f"typst cannot set {source.name}: {error}") from error
    assert isinstance(made, bytes)
    return made


def _compiled(compiler: typst.Compiler, source: Path, kind: str) -> object:
    if kind == "pdf":
        return compiler.compile(source, format="pdf", timestamp=0)
    return compiler.compile(source, format="png", ppi=144)


def _font_paths() -> list[str]:
    """The fonts that Matplotlib carries: DejaVu, in which it and Mermaid measure the figures' words."""
    import importlib.util

    found = importlib.util.find_spec("matplotlib")
    folders = found.submodule_search_locations if found else None
    return [str(Path(folder) / "mpl-data" / "fonts" / "ttf") for folder in folders or []]
