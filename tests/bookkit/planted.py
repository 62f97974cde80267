"""Faults to plant in the built toy book, each with the rule of `bookkit check` that must find it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toy import edit_notebook, replace

Seed = Callable[[Path], None]
NUMBERS, WORDS, BOTH = (f"chapters/{name}.md" for name in ("01-numbers", "02-words", "03-both"))
SOLUTION = "chapters/solutions/01-numbers.md"
FIGURE = '#| label: fig-numbers-line\n#| fig-cap: "How does the double grow?"\n'
ALT = '#| fig-alt: "A straight line from the lower left to the upper right."\n'


@dataclass(frozen=True)
class Planted:
    """A fault: how it is planted, the rule that must find it, in which file, and words of its message.

    `also` are rules that rightly report its consequences; "fresh" always may.
    """

    seed: Seed
    rule: str
    path: str
    words: str
    also: tuple[str, ...] = ()


def edited(path: str, old: str, new: str) -> Seed:
    """A passage of a file replaced."""
    return lambda root: replace(root / path, old, new)


def added(path: str, more: str) -> Seed:
    """Something written at the end of a file."""

    def seed(root: Path) -> None:
        with (root / path).open("a", encoding="utf-8", newline="\n") as file:
            file.write(more)

    return seed


def in_notebook(change: Callable[[list[dict[str, Any]]], None], path: str = NUMBERS) -> Seed:
    """The code cells of a notebook changed as another program would."""

    def seed(root: Path) -> None:
        def change_code(notebook: dict[str, Any]) -> None:
            change([cell for cell in notebook["cells"] if cell["cell_type"] == "code"])

        edit_notebook((root / path).with_suffix(".ipynb"), change_code)

    return seed


def printed(text: str) -> Seed:
    """`text` instead of the 42 that the second code cell of the first chapter prints."""

    def change(code: list[dict[str, Any]]) -> None:
        code[1]["outputs"][0]["text"] = ["42 ", text, "\n"]

    return in_notebook(change)


def showing(data: dict[str, str], path: str = NUMBERS, place: int = 1) -> Seed:
    """Another display of a code cell, beside the printed 42 unless told otherwise."""

    def change(code: list[dict[str, Any]]) -> None:
        code[place]["outputs"].append({"output_type": "display_data", "metadata": {}, "data": data})

    return in_notebook(change, path)


def failing(code: list[dict[str, Any]]) -> None:
    error = {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["KeyError: 'x'"]}
    code[1]["outputs"].append(error)


def uncounted(code: list[dict[str, Any]]) -> None:
    code[1]["execution_count"] = None


def renumbered(code: list[dict[str, Any]]) -> None:
    code[1]["execution_count"] = 7


def without_svg(code: list[dict[str, Any]]) -> None:
    code[2]["outputs"] = []


def with_default_plain_text(code: list[dict[str, Any]]) -> None:
    code[2]["outputs"][0]["data"]["text/plain"] = "<Figure size 640x480 with 1 Axes>"


def prose_tagged(root: Path) -> None:
    """A tag on the first Markdown cell of the first chapter's notebook."""

    def change(notebook: dict[str, Any]) -> None:
        notebook["cells"][0]["metadata"] = {"tags": ["remove-cell"]}

    edit_notebook((root / NUMBERS).with_suffix(".ipynb"), change)


def ignored(code: list[dict[str, Any]]) -> None:
    code[1]["source"] = ["# NBVAL_IGNORE_OUTPUT\n", "print(double(21))"]


def changed(code: list[dict[str, Any]]) -> None:
    code[1]["source"] = ["print(double(22))"]


def code(source: str) -> Seed:
    """Another cell at the end of the second chapter."""
    return added(WORDS, f"\n```python\n{source}\n```\n")


def both(*seeds: Seed) -> Seed:
    """Several changes that are one fault together."""

    def seed(root: Path) -> None:
        for each in seeds:
            each(root)

    return seed


def written(path: str, content: str) -> Seed:
    """A file with this content."""

    def seed(root: Path) -> None:
        (root / path).write_text(content, encoding="utf-8")

    return seed


def removed(path: str) -> Seed:
    return lambda root: (root / path).unlink()


def copied(path: str, target: str) -> Seed:
    def seed(root: Path) -> None:
        (root / target).write_bytes((root / path).read_bytes())

    return seed


def answer(text: str) -> Seed:
    """A sentence of the first chapter, "The answer is 42.", with another answer."""
    return edited(NUMBERS, "The answer is 42.", f"The answer is {text}.")


def with_tag(tag: str) -> Seed:
    return edited(NUMBERS, "```python\nprint(double(21))", f'```python tags=["{tag}"]\nprint(double(21))')


def tagged(tag: str) -> Seed:
    """The printing cell with a tag, in text and notebook."""
    return both(with_tag(tag), in_notebook(lambda code: code[1].update(metadata={"tags": [tag]})))


SVG = '<svg xmlns="http://www.w3.org/2000/svg"><g id="clip"><path d="M0 0"/></g></svg>'
PICTURE = {"image/svg+xml": SVG, "text/plain": "x"}
DATED = {"image/svg+xml": "<svg><metadata><date>2026-03-01</date></metadata></svg>", "text/plain": "x"}
MOMENT = "2026-11-29T21:46:55.721867"
TABLE_AGAIN = "\n| a |\n|---|\n| b |\n\n: Again {#tbl-words-shouted}\n"
MODULE = "toykit/numbers.py"
LINE = "figures/numbers-line.svg"
INDEX = "figures/index.json"
WORDS_BUILT = "chapters/02-words.ipynb"
KERNEL = "  kernelspec: {display_name: Python 3, language: python, name: python3}\n"
CAPTION = '#| fig-cap: "How does the double grow?"\n'
FORMAT = "format_name: markdown}"
VERSION = "format_name: markdown, format_version: '1.3'}"
LISTED = "        - chapters/02-words.ipynb\n"
H1 = "# Words {#sec-words}"
LABEL = "label: fig-numbers-line"

BUILT = {
    "a sentence changed since the build": Planted(
        edited(WORDS, "shouted in capitals", "shouted, in capitals"), "fresh", WORDS, "notebook differ"
    ),
    "code changed since the build": Planted(
        edited(WORDS, "# any word will do", "# any other word"), "fresh", WORDS, "stale notebook: its code"
    ),
    "a cell edited in the notebook": Planted(in_notebook(changed), "fresh", NUMBERS, "edited notebook"),
    "both edited": Planted(both(in_notebook(changed), answer("forty-two")), "fresh", NUMBERS, "both edited"),
    "no notebook": Planted(removed(WORDS_BUILT), "fresh", WORDS, "has no notebook"),
    "an output edited": Planted(printed("and more"), "fresh", NUMBERS, "not those of the build"),
    "a notebook that is none": Planted(
        written(WORDS_BUILT, "{}"), "readable", WORDS_BUILT, "not a notebook", ("figure",)
    ),
    "a listed chapter that does not exist": Planted(
        edited("_quarto.yml", LISTED, LISTED + LISTED.replace("02-words", "04-x")),
        "readable",
        "_quarto.yml",
        "lists chapters/04-x.md",
    ),
    "a saved cell changed since the build": Planted(
        edited(NUMBERS, "return DOUBLE * number", "return number * DOUBLE"),
        "module",
        MODULE,
        "saved cells make",
    ),
    "a module edited by hand": Planted(
        edited(MODULE, "return DOUBLE * number", "return number + number"), "module", MODULE, "edited by hand"
    ),
    "a module that no chapter makes any more": Planted(
        copied("toykit/words.py", "toykit/old.py"), "module", "toykit/old.py", "no chapter saves cells"
    ),
    "a saved cell with a name nobody defines": Planted(
        edited(WORDS, "return word.upper()", "return word.upper() + MARK"), "module", WORDS, "`MARK` is used"
    ),
    "one path digit changed in an SVG": Planted(
        edited(LINE, "M1 2L5 10", "M1 2L5 11"), "figure", LINE, "differs from the output"
    ),
    "a figure not exported": Planted(removed(LINE), "figure", LINE, "is missing"),
    "an index that lists less": Planted(written(INDEX, "{}\n"), "figure", INDEX, "differs from"),
    "no index": Planted(removed(INDEX), "figure", INDEX, "is missing"),
    "an index that is none": Planted(written(INDEX, "["), "figure", INDEX, "not the index"),
    "rendering may execute": Planted(
        edited("_quarto.yml", "enabled: false", "enabled: true"), "configuration", "_quarto.yml", "execute"
    ),
    "a bibliography that does not exist": Planted(
        removed("references.bib"), "configuration", "_quarto.yml", "references.bib", ("reference",)
    ),
    "a bibliography that is not UTF-8": Planted(
        lambda root: (root / "references.bib").write_bytes(b"\xff"),
        "reference",
        "references.bib",
        "is not UTF-8",
    ),
    "no language": Planted(
        edited("_quarto.yml", "lang: en\n", ""), "configuration", "_quarto.yml", "language"
    ),
}

FORM = {
    "a header without the text's format": Planted(
        edited(WORDS, ", format_name: markdown}", "}"), "header", WORDS, "Jupytext Markdown"
    ),
    "a version in the header": Planted(edited(WORDS, FORMAT, VERSION), "header", WORDS, "format_version"),
    "a header without a kernel": Planted(edited(WORDS, KERNEL, ""), "header", WORDS, "no kernel"),
    "a title in the header": Planted(
        edited(WORDS, "jupyter:\n", "title: Words\njupyter:\n"), "header", WORDS, "has a title"
    ),
    "two H1": Planted(added(WORDS, "\n# Once more {#sec-words-more}\n"), "title", WORDS, "a second H1"),
    "an underlined H1": Planted(added(WORDS, "\nOnce more\n=========\n"), "title", WORDS, "a second H1"),
    "an H1 in an output": Planted(showing({"text/markdown": "# Big"}), "title", NUMBERS, "holds an H1"),
    "no H1": Planted(edited(WORDS, H1, "#" + H1), "title", WORDS, "has no H1", ("module",)),
    "an H1 without an id": Planted(edited(WORDS, H1, "# Words"), "title", WORDS, "no id", ("reference",)),
    "an H1 below other text": Planted(edited(WORDS, H1, f"Hello.\n\n{H1}"), "title", WORDS, "not the first"),
    "an option below a comment": Planted(
        edited(NUMBERS, FIGURE, "# a comment\n" + FIGURE),
        "option",
        NUMBERS,
        "below other lines",
        ("reference",),
    ),
    "an option below the marker": Planted(
        edited(NUMBERS, "# @save\nDOUBLE", "# @save\n#| echo: false\nDOUBLE"),
        "readable",
        NUMBERS,
        "stands above a `#|` option",
        ("reference", "module", "link"),
    ),
    "an option that does not exist": Planted(
        edited(NUMBERS, "#| fig-alt:", "#| fig-alternative:"),
        "option-name",
        NUMBERS,
        "no option is called fig-alternative",
        ("caption",),
    ),
    "a switch that is a text": Planted(
        edited(WORDS, "# any word will do", '#| echo: "no"\n# any'), "option-name", WORDS, "echo is 'no'"
    ),
    "an option that is not YAML": Planted(
        edited(NUMBERS, CAPTION, "#| fig-cap: How: grow?\n"),
        "readable",
        NUMBERS,
        "options",
        ("reference", "module", "link"),
    ),
    "a hiding tag": Planted(with_tag("hide-input"), "tag", NUMBERS, "hide-input hides nothing"),
    "a tag on Markdown": Planted(prose_tagged, "tag", NUMBERS, "a tag on Markdown: remove-cell"),
    "a trailing semicolon": Planted(
        edited(WORDS, 'shout("toy")\n', 'shout("toy");  # hidden\n'), "semicolon", WORDS, "trailing `;`"
    ),
    "a div that spans cells": Planted(
        edited(NUMBERS, "warning}\n", "warning}\n\n\n"), "div", NUMBERS, "this div does not close"
    ),
    "a div that closes twice": Planted(
        edited(NUMBERS, "a square.\n:::", "a square.\n:::\n:::"), "div", NUMBERS, "does not open"
    ),
    "a backtick fence": Planted(
        added(WORDS, "\n```bash\nls\n```\n"),
        "readable",
        WORDS,
        "turn backtick fences into cells",
        ("reference", "module"),
    ),
    "an OJS block": Planted(added(WORDS, "\n~~~{ojs}\nx = 1\n~~~\n"), "browser", WORDS, "a ojs cell"),
    "a bibliography for every format": Planted(
        added(WORDS, "\n::: {#refs}\n:::\n"), "bibliography", WORDS, "not for HTML only"
    ),
}

LABELS = {
    "a duplicate label": Planted(added(WORDS, TABLE_AGAIN), "label-twice", WORDS, f"{WORDS}:"),
    "a heading's id used twice": Planted(
        added(BOTH, "\n## Again {#sec-words-use}\n"), "label-twice", BOTH, f"{WORDS}:"
    ),
    "a label without prefix": Planted(
        edited(NUMBERS, LABEL, "label: numbers-line"), "label", NUMBERS, "no prefix", ("reference",)
    ),
    "a section's id without prefix": Planted(
        edited(WORDS, "{#sec-words-use}", "{#words-use}"), "label", WORDS, "no prefix"
    ),
    "a figure named after another chapter": Planted(
        edited(NUMBERS, LABEL, "label: fig-words-line"), "label", NUMBERS, "not named after", ("reference",)
    ),
    "an unresolved reference": Planted(
        added(WORDS, "\nSee @fig-nowhere.\n"), "reference", WORDS, "@fig-nowhere refers to no label"
    ),
    "an unresolved reference in a caption": Planted(
        edited(NUMBERS, "double grow?", "double grow, beside @fig-nowhere?"),
        "reference",
        NUMBERS,
        "@fig-nowhere",
    ),
    "an unresolved reference in an output": Planted(
        showing({"text/markdown": "as in @tbl-nowhere"}), "reference", NUMBERS, "@tbl-nowhere"
    ),
    "a missing citation": Planted(
        added(WORDS, "\nSee [@euler1749].\n"), "reference", WORDS, "in no bibliography"
    ),
    "a link to no file": Planted(added(WORDS, "\n[more](09-x.ipynb)\n"), "link", WORDS, "to no file"),
    "a picture pasted into a notebook": Planted(
        added(WORDS, "\n![a line](attachment:image.png)\n"), "link", WORDS, "pasted into a notebook"
    ),
    "a label with a slash": Planted(
        edited(NUMBERS, LABEL, LABEL + "/x"), "label", NUMBERS, "cannot be the name of a file", ("reference",)
    ),
    "a link to no label": Planted(
        edited(NUMBERS, "numbers-twice", "numbers-thrice"), "link", NUMBERS, "to no label of"
    ),
    "an image that does not exist": Planted(added(WORDS, "\n![a line](no.svg)\n"), "link", WORDS, "no.svg"),
    "no alt text": Planted(edited(NUMBERS, ALT, ""), "caption", NUMBERS, "has no fig-alt"),
    "an empty alt text": Planted(
        edited(NUMBERS, ALT, '#| fig-alt: " "\n'), "caption", NUMBERS, "has no fig-alt"
    ),
    "no caption": Planted(edited(NUMBERS, CAPTION, ""), "caption", NUMBERS, "has no fig-cap"),
    "an image without alt text": Planted(
        added(WORDS, "\n![](../figures/numbers-line.svg)\n"), "caption", WORDS, "without alt text"
    ),
    "a table label without a caption": Planted(
        edited(WORDS, ": A word before and after {#tbl", ": {#tbl"), "caption", WORDS, "without a caption"
    ),
    "a caption that asks nothing": Planted(
        edited(NUMBERS, "How does the double grow?", "The double."), "question", NUMBERS, "asks no question"
    ),
}

OUTPUTS = {
    "a figure without SVG": Planted(
        in_notebook(without_svg), "picture", NUMBERS, "shows no SVG", ("figure",)
    ),
    "a picture without a label": Planted(showing(PICTURE), "picture", NUMBERS, "no `fig-` label"),
    "a figure told in matplotlib's words": Planted(
        in_notebook(with_default_plain_text), "clean", NUMBERS, "matplotlib's own text", ("picture",)
    ),
    "a picture too wide for a phone": Planted(
        showing({"image/svg+xml": '<svg id="w" width="601pt"></svg>', "text/plain": "x"}),
        "picture-width",
        NUMBERS,
        "601pt wide",
        ("picture",),
    ),
    "two pictures that share an id": Planted(
        both(showing(PICTURE), showing(PICTURE, SOLUTION, 0)),
        "picture-id",
        SOLUTION,
        f"has the id clip, as one of {NUMBERS}",
        ("picture",),
    ),
    "a PNG output": Planted(showing({"image/png": "iVBORw0KGgo="}), "compared", NUMBERS, "image/png"),
    "a tag that skips the comparison": Planted(
        tagged("nbval-ignore-output"), "compared", NUMBERS, "not to compare"
    ),
    "a comment that skips the comparison": Planted(
        in_notebook(ignored), "compared", NUMBERS, "not to compare"
    ),
    "a display that changes later": Planted(
        code('display(1, display_id="x")'), "once", WORDS, "display changes an output"
    ),
    "an update of a display": Planted(
        code('from IPython import display\ndisplay.update_display(2, display_id="x")'),
        "once",
        WORDS,
        "update_display changes",
    ),
    "an output taken back": Planted(code("clear_output(wait=True)"), "once", WORDS, "clear_output changes"),
    "the output of a shell command": Planted(code('os.system("ls")'), "once", WORDS, "what os.system writes"),
    "the output of another process": Planted(
        code('subprocess.run(["ls"], check=True)'), "once", WORDS, "subprocess.run writes goes around"
    ),
    "a null execution count": Planted(in_notebook(uncounted), "count", NUMBERS, "count is null instead of 2"),
    "a count out of order": Planted(in_notebook(renumbered), "count", NUMBERS, "count is 7 instead of 2"),
    "an error without its tag": Planted(in_notebook(failing), "error", NUMBERS, "output is an error"),
    "a tag without its error": Planted(tagged("raises-exception"), "error", NUMBERS, "raises nothing"),
    "colour codes": Planted(printed("\x1b[31mred\x1b[0m"), "clean", NUMBERS, "colour codes"),
    "a control character in an output": Planted(printed("bell\x07"), "clean", NUMBERS, "character U+0007"),
    "a line that is overwritten": Planted(printed("50 %\r100 %"), "clean", NUMBERS, "character U+000D"),
    "a control character in a picture": Planted(
        showing({"image/svg+xml": '<svg id="w" class="\x0b"></svg>', "text/plain": "x"}),
        "clean",
        NUMBERS,
        "character U+000B",
        ("picture",),
    ),
    "a control character in a text": Planted(
        added(WORDS, "\nA bell\x07.\n"), "control", WORDS, "character U+0007"
    ),
    "an absolute path": Planted(printed("/home/ann/book/x.py"), "portable", NUMBERS, "/home/ann"),
    "a path of another system": Planted(printed("C:\\Users\\ann"), "portable", NUMBERS, "absolute path"),
    "an address": Planted(
        printed("<X at 0x7f3a5c0d1e80>"), "portable", NUMBERS, "an address: 0x7f3a5c0d1e80"
    ),
    "a process id": Planted(printed("ipykernel_4711 warned"), "portable", NUMBERS, "a process id"),
    "a port": Planted(printed("served on 127.0.0.1:54321"), "portable", NUMBERS, "a network address"),
    "a date": Planted(printed("made 2026-03-01"), "portable", NUMBERS, "a date: 2026-03-01"),
    "a date in words": Planted(printed("made 1 March 2026"), "portable", NUMBERS, "a date: 1 March 2026"),
    "a time": Planted(printed("made 09:31"), "portable", NUMBERS, "a time: 09:31"),
    "a date in American order": Planted(
        printed("made 11/29/2026"), "portable", NUMBERS, "a date: 11/29/2026"
    ),
    "a date in German order": Planted(printed("made 29.11.2026"), "portable", NUMBERS, "a date: 29.11.2026"),
    "the date of an ISO moment": Planted(printed(MOMENT), "portable", NUMBERS, "a date: 2026-11-29"),
    "the time of an ISO moment": Planted(printed(MOMENT), "portable", NUMBERS, "a time: 21:46:55.721867"),
    "a time of day by the half": Planted(printed("at 9:31 pm"), "portable", NUMBERS, "a time: 9:31"),
    "a time stamp": Planted(printed("at 1795988815.72"), "portable", NUMBERS, "a time stamp: 1795988815.72"),
    "an address of IPv6": Planted(printed("on fe80::1"), "portable", NUMBERS, "a network address: fe80::1"),
    "a hardware address": Planted(
        printed("card 02:42:ac:11:00:02"), "portable", NUMBERS, "a network address: 02:42:ac:11:00:02"
    ),
    "this machine by its name for itself": Planted(
        printed("served on localhost"), "portable", NUMBERS, "a network address: localhost"
    ),
    "a path of a container": Planted(printed("'/app/x'"), "portable", NUMBERS, "path: /app/x"),
    "a path of a volume": Planted(printed("in /data/books/x.md"), "portable", NUMBERS, "/data/books/x.md"),
    "a path of a Mac": Planted(printed("/Applications/A.app"), "portable", NUMBERS, "path: /Applications"),
    "a date inside a picture": Planted(showing(DATED), "portable", NUMBERS, "a date", ("picture",)),
}

QUOTED = {
    "a number that no cell prints": Planted(answer("4 242"), "number", NUMBERS, "4 242 is quoted"),
    "a decimal that no cell prints": Planted(answer("4.2"), "number", NUMBERS, "4.2 is quoted"),
    "a percentage that no cell prints": Planted(answer("43 %"), "number", NUMBERS, "43 % is quoted"),
    "a multiple that no cell prints": Planted(answer("43x"), "number", NUMBERS, "43x is quoted"),
    "a power that no cell prints": Planted(answer("1e6"), "number", NUMBERS, "1e6 is quoted"),
    "a large unit that no cell prints": Planted(answer("43B"), "number", NUMBERS, "43B is quoted"),
    "a number that looks like a year": Planted(answer("(2048)"), "number", NUMBERS, "2048 is quoted"),
    "a number in inline code": Planted(answer("`double(500)`"), "number", NUMBERS, "500 is quoted"),
    "a number in a formula": Planted(answer(r"$9\,999$"), "number", NUMBERS, r"9\,999 is quoted"),
    "a number in a caption": Planted(
        edited(NUMBERS, "double grow?", "double grow up to 1 000?"), "number", NUMBERS, "1 000 is quoted"
    ),
    "a number in an alt text": Planted(
        edited(NUMBERS, "A straight line", "A line of 300 points"), "number", NUMBERS, "300 is quoted"
    ),
    "a number in a table": Planted(
        edited(WORDS, "| toy  | TOY!    |", "| toy  | 12.5    |"), "number", WORDS, "12.5 is quoted"
    ),
    "a number in the preface": Planted(
        added("index.md", "\nIt holds 300 pages.\n"), "number", "index.md", "300 is quoted"
    ),
}

PLANTED = BUILT | FORM | LABELS | OUTPUTS | QUOTED
