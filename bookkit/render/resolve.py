"""What one page says of another: cross references, links between chapters, and everything amiss with them."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bookkit import files
from bookkit.book import Book
from bookkit.errors import BookError, raise_all
from bookkit.render.fragments import Fragment, located, no_source
from bookkit.render.sources import Page

NAMES = {
    "fig": "Figure",
    "tbl": "Table",
    "eq": "Equation",
    "lst": "Listing",
    "sec": "Section",
    "chapter": "Chapter",
}
BIB_KEY = re.compile(r"^\s*@\w+\s*[{(]\s*([^\s,]+)\s*,", re.MULTILINE)


@dataclass(frozen=True)
class Label:
    """A target of cross references. `kind` is a key of NAMES; `number` is "" where nothing is numbered."""

    id: str
    kind: str
    number: str
    title: str
    page: Page

    def name(self, bare: bool = False) -> str:
        """How a sentence calls it: "Figure 5.1", "5.1" when bare; its title when it has no number."""
        if not self.number:
            return self.title
        return self.number if bare else f"{NAMES[self.kind]}\N{NO-BREAK SPACE}{self.number}"


@dataclass(frozen=True)
class Index:
    """Every label, and every page with its identifiers."""

    labels: Mapping[str, Label]
    fragments: Mapping[str, Fragment]  # by the path of the page's text without suffix

    def page_of(self, target: str) -> Fragment | None:
        """The page that a path to a text or a notebook (from the book's root) means."""
        return self.fragments.get(_stem(target))


def _stem(target: str) -> str:
    return PurePosixPath(posixpath.normpath(target)).with_suffix("").as_posix()


def index(book: Book, fragments: Sequence[Fragment]) -> Index:
    """The labels and pages of the whole book.

    Raises BookError (all that there are, in one) for a label used twice, a reference, link or citation that
    leads nowhere, a picture that is missing or has no alt text, and a page with several titles.
    """
    labels: dict[str, Label] = {}
    errors: list[BookError] = []
    for fragment in fragments:
        for each in fragment.facts["labels"]:
            label = Label(each["id"], each["kind"], each["number"], each["title"], fragment.page)
            if label.id in labels:
                errors.append(_duplicate(label, labels[label.id]))
            labels.setdefault(label.id, label)
    pages = {_stem(fragment.page.chapter.source): fragment for fragment in fragments}
    found = Index(labels, pages)
    keys = _bibliography_keys(book)
    errors += [error for fragment in fragments for error in _problems(book, found, fragment, keys)]
    raise_all(list({str(error): error for error in errors}.values()))
    return found


def _duplicate(label: Label, first: Label) -> BookError:
    message = f"the label `{label.id}` is used twice, first in {first.page.chapter.source}"
    if label.page is first.page:
        message = f"the label `{label.id}` is used twice in this chapter"
    return located(label.page, message, label.id, "A label is unique in the whole book: rename one of them.")


def _bibliography_keys(book: Book) -> set[str]:
    if book.bibliography is None:
        return set()
    return set(BIB_KEY.findall(files.read_text(book.bibliography)))


def _problems(book: Book, found: Index, fragment: Fragment, keys: set[str]) -> Iterator[BookError]:
    page, facts = fragment.page, fragment.facts
    for each in facts["problems"]:
        yield located(page, each["message"], each["needle"])
    for label in facts["refs"]:
        if label not in found.labels:
            hint = _close(label, found.labels)
            yield located(page, f"@{label} refers to nothing: no such label", f"@{label}", hint)
    for key in facts["cites"]:
        if key not in keys:
            yield no_source(page, key, keys)
    for link in facts["links"]:
        yield from _dead_link(found, page, link)
    for anchor in set(facts["anchors"]) - set(facts["ids"]):
        yield located(page, f"a link to #{anchor}, which this page does not have", f"#{anchor}")
    for asset in facts["assets"]:
        if asset not in fragment.manuscript.pictures and not (book.root / normalised(asset)).is_file():
            yield located(page, f"the picture {normalised(asset)} does not exist", Path(asset).name)
    if len(facts["titles"]) > 1:
        second = facts["titles"][1]
        yield located(page, f"a second title, `# {second}`", second, "A chapter has one: make it `##`.")


def _close(name: str, known: Mapping[str, Label]) -> str | None:
    close = difflib.get_close_matches(name, list(known), n=2, cutoff=0.6)
    return f"Did you mean @{' or @'.join(close)}?" if close else None


def _dead_link(found: Index, page: Page, link: str) -> Iterator[BookError]:
    target, _, anchor = link.partition("#")
    name = PurePosixPath(target).name
    there = found.page_of(target)
    if there is None:
        yield located(page, f"a link to {posixpath.normpath(target)}, which is no page of the book", name)
    elif anchor and anchor not in there.facts["ids"]:
        source = there.page.chapter.source
        yield located(page, f"a link to #{anchor}, which {source} does not have", f"#{anchor}")


def normalised(path: str) -> str:
    """A path from the book's root without `..` in the middle."""
    return posixpath.normpath(path)
