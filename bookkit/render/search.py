"""What a page says, in plain text: for the search index, and for the one sentence that introduces it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

SILENT = {"script", "style", "svg", "annotation", "annotation-xml", "button"}
BLOCKS = {"p", "li", "pre", "td", "th", "h1", "h2", "h3", "h4", "figcaption", "summary", "div", "tr"}
HEADINGS = {"h1", "h2", "h3"}
SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z])")


@dataclass
class Section:
    """A heading with the text below it, up to the next heading."""

    id: str
    title: str = ""
    text: str = ""


@dataclass
class Reading:
    """A page's sections in order, and its first paragraph."""

    sections: list[Section] = field(default_factory=list)
    opening: str = ""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.reading = Reading()
        self.id = ""
        self.silent = 0
        self.heading = False
        self.paragraph: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag in SILENT:
            self.silent += 1
        elif tag == "section":
            self.id = dict(attrs).get("id") or ""
        elif tag in HEADINGS:
            self.heading = True
            self.reading.sections.append(Section(self.id))
        elif tag == "p" and not self.reading.opening:
            self.paragraph = []
        self._space(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in SILENT:
            self.silent -= 1
        elif tag in HEADINGS:
            self.heading = False
        elif tag == "p" and self.paragraph is not None:
            self.reading.opening = _flat("".join(self.paragraph))
            self.paragraph = None
        self._space(tag)

    def handle_data(self, data: str) -> None:
        if self.silent:
            return
        if self.paragraph is not None:
            self.paragraph.append(data)
        if self.reading.sections:
            section = self.reading.sections[-1]
            if self.heading:
                section.title += data
            else:
                section.text += data

    def _space(self, tag: str) -> None:
        if tag in BLOCKS and self.reading.sections and not self.heading:
            self.reading.sections[-1].text += " "


def _flat(value: str) -> str:
    return " ".join(value.split())


def read(body: str) -> Reading:
    """Take a page's text apart by its headings."""
    reader = _Reader()
    reader.feed(body)
    reader.close()
    for section in reader.reading.sections:
        section.title, section.text = _flat(section.title), _flat(section.text)
    return reader.reading


def opening(reading: Reading, longest: int = 200) -> str:
    """The first sentences of the page's first paragraph that fit, at least a part of the first one."""
    taken = ""
    for sentence in SENTENCE.split(reading.opening):
        if taken and len(taken) + len(sentence) >= longest:
            break
        taken = f"{taken} {sentence}".strip()
    return taken if len(taken) <= longest else taken[:longest].rsplit(" ", 1)[0] + " …"


def index_script(readings: Mapping[str, tuple[str, Reading]]) -> str:
    """The index as a plain script, which a page can load from a disk too. Page address → (title, reading).

    It calls `bookSearch(pages)`, a page being [address, title, [[section id, title, text], …]].
    """
    pages = [
        [href, title, [[section.id, section.title, section.text] for section in reading.sections]]
        for href, (title, reading) in readings.items()
    ]
    data = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    return "bookSearch(" + data.replace("</", "<\\/") + ");\n"
