"""The HTML site: every fragment in the one page template, with what surrounds it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import PurePosixPath
from urllib.parse import quote

from bookkit.book import Book
from bookkit.render import highlight, resolve, search
from bookkit.render.fragments import THEME, Fragment, convert
from bookkit.render.resolve import Index
from bookkit.render.sources import Page

SCHEME = re.compile(r'(href|src)="(xref|page|asset):([^"]*)"(\s+class="xref"></a>)?')
EMPTY_HEADER = re.compile(r"<th(\s[^>]*)?></th>")  # a table's empty corner heads nothing
COMMENT = re.compile(r"^\s*/\*.*?\*/", re.DOTALL | re.MULTILINE)
AROUND = re.compile(r"\s*([{};,])\s*|(?<=:)\s+")  # none of these stands in a text of the style sheet
PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
MARK = (
    '<svg class="mark" viewBox="0 0 24 24" aria-hidden="true"><path d="M19.5 12a7.5 7.5 0 1 1-2.2-5.3"/>'
    '<path d="M19.8 2.8v4.4h-4.4"/><circle cx="12" cy="12" r="2.2"/></svg>'
)
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#1f7a8c" '
    'stroke-width="2.6" stroke-linecap="round" stroke-linejoin="round">'
    '<path d="M19.5 12a7.5 7.5 0 1 1-2.2-5.3"/><path d="M19.8 2.8v4.4h-4.4"/>'
    '<circle cx="12" cy="12" r="1.6" fill="#1f7a8c"/></svg>'
)
Contents = dict[str, bytes]


def build(book: Book, pages: Sequence[Page]) -> Contents:
    """Every file of the site by its path in it. Raises BookError for whatever does not resolve."""
    fragments = convert(book, pages, "html")
    index = resolve.index(book, fragments)
    bodies = {each.page.href: _resolved(each, index) for each in fragments}
    readings = {href: search.read(body) for href, body in bodies.items()}
    bodies = {href: highlight.colour_blocks(body) for href, body in bodies.items()}
    template = (THEME / "page.html").read_text(encoding="utf-8")
    contents: Contents = {}
    for fragment in fragments:
        fields = _fields(book, fragment, fragments, bodies, readings)
        page = PLACEHOLDER.sub(lambda found, fields=fields: fields[found[1]], template)  # type: ignore[misc]
        contents[fragment.page.href] = page.encode()
    titled = {each.page.href: (_full_title(each), readings[each.page.href]) for each in fragments}
    contents["search-index.js"] = search.index_script(titled).encode()
    return contents | _theme() | _attachments(book, fragments)


def _theme() -> Contents:
    return {f"theme/{name}": _packed(name).encode() for name in ("book.css", "book.js", "search.js")}


def _packed(name: str) -> str:
    """A theme file without comments on lines of their own, without indentation and, in a style sheet, without
    the blanks around punctuation.
    """
    lines = COMMENT.sub("", (THEME / name).read_text(encoding="utf-8")).splitlines()
    kept = (line.strip() for line in lines)
    packed = "\n".join(line for line in kept if line and not line.startswith("//")) + "\n"
    return AROUND.sub(r"\1", packed).replace(";}", "}\n") if name.endswith(".css") else packed


def _attachments(book: Book, fragments: Sequence[Fragment]) -> Contents:
    """Pictures and notebooks, at the paths where the book has them."""
    found: Contents = {}
    for fragment in fragments:
        found |= fragment.manuscript.pictures
        for asset in fragment.facts["assets"]:
            path = resolve.normalised(asset)
            found[path] = found[path] if path in found else (book.root / path).read_bytes()
        if fragment.page.notebook:
            found[fragment.page.notebook] = (book.root / fragment.page.notebook).read_bytes()
    return found


# A page's own text


def _resolved(fragment: Fragment, index: Index) -> str:
    """The fragment's HTML with every reference and link leading somewhere."""
    here = fragment.page

    def target(found: re.Match[str]) -> str:
        attribute, scheme, rest, is_reference = found.groups()
        if scheme == "asset":
            return f'{attribute}="{_relative(here.href, resolve.normalised(rest))}"'
        if scheme == "page":
            return f'{attribute}="{_page_link(here, rest, index)}"'
        label = index.labels[rest.removesuffix("?bare")]
        link = f'href="{_anchor(here, label.page, label.id)}"'
        return (
            f'{link} class="xref">{escape(label.name(rest.endswith("?bare")))}</a>' if is_reference else link
        )

    return EMPTY_HEADER.sub(r"<td\1></td>", SCHEME.sub(target, fragment.body))


def _relative(start: str, target: str) -> str:
    """The address of one file of the site as another one, `start`, has to spell it."""
    return quote(posixpath.relpath(target, posixpath.dirname(start) or "."))


def _anchor(here: Page, there: Page, anchor: str) -> str:
    return f"#{anchor}" if here is there else f"{_relative(here.href, there.href)}#{anchor}"


def _page_link(here: Page, target: str, index: Index) -> str:
    path, _, anchor = target.partition("#")
    there = index.page_of(path)
    assert there is not None  # resolve.index has seen to it
    link = _relative(here.href, there.page.href)
    return f"{link}#{anchor}" if anchor else link


# What surrounds it


def _fields(
    book: Book,
    fragment: Fragment,
    fragments: Sequence[Fragment],
    bodies: Mapping[str, str],
    readings: Mapping[str, search.Reading],
) -> dict[str, str]:
    """The template's fields for one page."""
    href = fragment.page.href
    at = fragments.index(fragment)
    before = fragments[at - 1] if at else None
    after = fragments[at + 1] if at + 1 < len(fragments) else None
    is_start = href == "index.html"
    main = _with_tools(fragment, bodies[href])
    if is_start:
        main = _hero(book, fragments) + main + _cards(href, fragments, readings)
    toc = _toc(fragment)
    return {
        "lang": escape(str(book.config.get("lang", "en"))),
        "head_title": escape(book.title if is_start else f"{_full_title(fragment)} · {book.title}"),
        "title": escape(book.title),
        "subtitle": f" · {escape(book.subtitle)}" if book.subtitle else "",
        "description": escape(search.opening(readings[href])),
        "favicon": "data:image/svg+xml," + quote(ICON, safe=" =:/'"),
        "root": "../" * href.count("/"),
        "class": "start" if is_start else "page",
        "mark": MARK,
        "links": _head_links(href, before, after),
        "contents": _contents(href, fragments),
        "main": main + _turn(href, before, after),
        "toc": toc,
        "toc_button": _TOC_BUTTON if toc else "",
    }


def _title(fragment: Fragment) -> str:
    titles = fragment.facts["titles"]
    return str(titles[0]) if titles else fragment.page.chapter.name.replace("-", " ").capitalize()


def _full_title(fragment: Fragment) -> str:
    number = fragment.page.number
    return f"{number} {_title(fragment)}" if number else _title(fragment)


def _shown_title(fragment: Fragment) -> str:
    number = fragment.page.number
    prefix = f'<span class="number">{number}</span> ' if number else ""
    return f"{prefix}<span>{escape(_title(fragment))}</span>"


def _head_links(href: str, before: Fragment | None, after: Fragment | None) -> str:
    pairs = (("prev", before), ("next", after))
    return "\n".join(
        f'<link rel="{rel}" href="{_relative(href, each.page.href)}">' for rel, each in pairs if each
    )


def _contents(href: str, fragments: Sequence[Fragment]) -> str:
    """The list of all pages by parts. A part of solutions is folded unless one of them is being read."""
    out = ['<ol class="tree">']
    for part, group in groupby(fragments, key=lambda each: each.page.chapter.part):
        members = list(group)
        items = [_contents_item(href, each) for each in members]
        if not part:
            out += items
            continue
        folded = all(each.page.chapter.is_solution for each in members)
        is_open = not folded or any(each.page.href == href for each in members)
        out.append(
            f'<li class="part"><details{" open" if is_open else ""}><summary>{escape(part)}</summary><ol>'
        )
        out += [*items, "</ol></details></li>"]
    return "\n".join([*out, "</ol>"])


def _contents_item(href: str, fragment: Fragment) -> str:
    current = ' aria-current="page"' if fragment.page.href == href else ""
    link = _relative(href, fragment.page.href)
    return f'<li><a href="{link}"{current}>{_shown_title(fragment)}</a></li>'


_TOC_BUTTON = (
    '<button type="button" class="tool only-medium" popovertarget="toc" aria-label="On this page">'
    '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M4 5h12M7 10h9M7 15h9"/></svg></button>'
)


def _toc(fragment: Fragment) -> str:
    """The page's own contents; nothing for a page with a single section."""
    headings = [each for each in fragment.facts["headings"] if each["level"] in (2, 3)]
    if len(headings) < 2:
        return ""
    items = [
        f'<li class="level{each["level"]}"><a href="#{escape(each["id"])}">{escape(each["title"])}</a></li>'
        for each in headings
    ]
    return "\n".join(
        [
            '<nav id="toc" class="toc" popover aria-label="On this page">',
            '<p class="toc-title">On this page</p><ol>',
            *items,
            "</ol></nav>",
        ]
    )


def _with_tools(fragment: Fragment, body: str) -> str:
    """The page with a line below its title: the part it stands in, and the notebook to take home."""
    page = fragment.page
    if not page.notebook:
        return body
    name = PurePosixPath(page.notebook).name
    tools = f'<p class="chapter-tools"><a href="{quote(name)}" download>Download this notebook</a></p>'
    return body.replace("</h1>", f"</h1>\n{tools}", 1)


def _turn(href: str, before: Fragment | None, after: Fragment | None) -> str:
    """Links to the pages before and after."""
    pairs = (("prev", "Previous", before), ("next", "Next", after))
    links = [
        f'<a class="{rel}" rel="{rel}" href="{_relative(href, each.page.href)}">'
        f'<span class="way">{way}</span><span class="where">{_shown_title(each)}</span></a>'
        for rel, way, each in pairs
        if each
    ]
    return f'<nav class="turn" aria-label="Previous and next page">{"".join(links)}</nav>' if links else ""


# The start page


def _hero(book: Book, fragments: Sequence[Fragment]) -> str:
    first = next((each for each in fragments if each.page.number), None)
    start = (
        f'<a class="button" href="{_relative("index.html", first.page.href)}">Start reading</a>'
        if first
        else ""
    )
    subtitle = f'<p class="hero-subtitle">{escape(book.subtitle)}</p>' if book.subtitle else ""
    authors = f'<p class="hero-authors">{escape(author)}</p>' if (author := authors_of(book)) else ""
    return (
        f'<div class="hero">{MARK}<p class="hero-title">{escape(book.title)}</p>{subtitle}{authors}'
        f'<p class="hero-links">{start}<a class="button quiet" href="#chapters">All chapters</a></p></div>\n'
    )


def authors_of(book: Book) -> str:
    """The authors that `_quarto.yml` names, as a sentence would; "" without any."""
    value = book.config["book"].get("author", [])
    names = [str(each.get("name", "")) if isinstance(each, dict) else str(each) for each in _listed(value)]
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _cards(href: str, fragments: Sequence[Fragment], readings: Mapping[str, search.Reading]) -> str:
    """Every numbered chapter with its opening words."""
    out = ['<section id="chapters" class="chapters"><h2>The chapters</h2>']
    for part, group in groupby(fragments, key=lambda each: each.page.chapter.part):
        members = [each for each in group if each.page.number]
        if members:
            heading = [f"<h3>{escape(part)}</h3>"] if part else []
            out += [*heading, '<ol class="cards">', *_card_items(href, members, readings), "</ol>"]
    return "\n".join([*out, "</section>\n"])


def _card_items(
    href: str, members: Sequence[Fragment], readings: Mapping[str, search.Reading]
) -> Iterator[str]:
    for each in members:
        words = escape(search.opening(readings[each.page.href], 150))
        link = _relative(href, each.page.href)
        yield (
            f'<li><a href="{link}"><span class="number">{each.page.number}</span>'
            f'<span class="card-title">{escape(_title(each))}</span></a><p>{words}</p></li>'
        )
