"""The rule that makes the book trustworthy: every number that the prose quotes is printed or asserted.

A quoted number is one of three or more digits, a decimal, a percentage, a multiple (`5x`, `5-fold`), a power
(`10^6`, `1e6`) or one with a large unit (`7B`, `10Gb`), in prose, a table, inline code, a formula, a caption
or an alt text. It counts as backed when, separators removed and powers worked out, it stands in an output of
the same chapter, in an `assert`, in a literal of a cell that the page shows, or in the header's
`bookkit: numbers:`, the list of what is told and not measured.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from bookkit import text
from bookkit.check.manuscript import (
    Manuscript,
    Page,
    Problem,
    blank,
    captions,
    line_of,
    option_line,
    parsed,
    prose,
    texts_of,
)

SEPARATOR = r"(?:[ \u00a0\u2009\u202f,_]|\\,|\{,\}|&nbsp;|&thinsp;)"
GROUPED = rf"\d{{1,3}}(?P<separator>{SEPARATOR})\d{{3}}(?:(?P=separator)\d{{3}})*(?!\d)"
TIMES = r"(?:\u00d7|x\b|\\times\b|[- ]?fold\b)"
NUMBER = rf"(?:{GROUPED}|\d+)(?:\.\d+)?"
RAISED = "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"  # -0123456789 as superscripts
POWER = (
    r"(?:[eE](?P<scientific>[+-]?\d{1,2})(?!\w)|\^\{?(?P<exponent>-?\d{1,3})\}?(?!\w)|"
    rf"(?P<raised>{RAISED[0]}?[{RAISED[1:]}]{{1,3}}))"
)
UNIT = r"(?:ms|ns|us|\u00b5s|s|min|h|d|st|nd|rd|px|pt|em|th|USD|EUR|W|x|fold|[kMG]?Hz)\b"
SCALE = r"(?:[kKMGTP]i?[bB]?|[BT]|bn|mn)\b"  # 7B and 10Gb are large numbers
QUOTED = re.compile(
    rf"(?<![\w.#])(?<![A-Za-z]-)(?P<number>{NUMBER})(?!\.\d)"
    rf"(?:{POWER}|(?P<scale>{SCALE}))?"
    rf"(?P<percent>\s?\\?%)?(?P<times>{TIMES}(?!\d)|\s{TIMES}(?!\s?\d))?(?=[^\w]|{UNIT}|\Z)"
)
POWERED = re.compile(rf"(?<![\w.])(?P<number>\d+(?:\.\d+)?){POWER}")
TO_DIGITS = str.maketrans(RAISED, "-0123456789")
CHAIN = re.compile(rf"(?<![\d.]){GROUPED}(?:\.\d+)?")
PLAIN = re.compile(r"\d+(?:\.\d+)?")

# What stands in prose without being read as a quantity.
NOT_QUOTED = tuple(
    re.compile(pattern)
    for pattern in (
        r"\]\([^)\s]*\)",  # the target of a link
        r"<?https?://[^\s>)]*",
        r"\[[^\]\n]*@[^\]]*\]",  # a citation with its pages
        r"@[A-Za-z][\w:.-]*",
        r"\{[^{}\n]*[#.][A-Za-z][^{}\n]*\}",  # attributes
        r"<[A-Za-z/][^>]*>",
        r"\b\d+(?:\.\d+){2,}",  # a version
        r"\b\d{4}-\d{2}(?:-\d{2})?\b",  # a date
        r"\b(?:19|20)\d\d[\u2013-](?:19|20)\d\d\b",  # years
        r"(?i:\b(?:sections?|chapters?|parts?|exercises?|figures?|tables?|steps?|pages?|lines?|python|quarto|"
        r"version|rfc|pep|iso|draft)|§§?)[ \u00a0]?\d+(?:\.\d+)*",
    )
)
YEAR = re.compile(r"19\d\d|20[0-3]\d")
BEFORE_A_YEAR = re.compile(
    r"(?:\b(?:in|since|from|until|by|before|after|around|early|late|mid|year|spring|summer|autumn|winter|"
    r"January|February|March|April|May|June|July|August|September|October|November|December)[ \u00a0-]|"
    r"(?:\b[A-Z][\w.-]*|al\.|[*_\"\u201d])\)? \(|\b[A-Z][\w-]*, |al\., |© ?|[\u2013-])$"
)
# A year ends its phrase, or goes on as in `in 2023 the`; `in 2000 tokens` counts tokens.
AFTER_A_YEAR = re.compile(
    r"\Z|\s*(?:[^\w\s]|\Z)|\s+(?:and|or|to|on|by|as|the|a|an|it|they|he|she|we|with|was|is|were|had|has|when|"
    r"for|that|which|but|showed|there|this|[A-Z]\w*)\b"
)


@dataclass(frozen=True)
class Quote:
    """A number that prose quotes: where, as it is written, and in the one form in which numbers are
    compared.
    """

    start: int
    written: str
    value: str


def numbers_are_backed(manuscript: Manuscript) -> Iterator[Problem]:
    """Every number the prose quotes is printed by, or asserted in, the same chapter."""
    for page in manuscript.pages:
        if page.notebook is None and page.chapter.is_executed:
            continue  # every number would be reported, and that nothing is built is another rule's to say
        known = evidence(page)
        for line, quote in quotes_of(page):
            if quote.value not in known:
                yield page.problem(
                    line,
                    f"{quote.written} is quoted, and no cell of the chapter prints or asserts it",
                    "Print or assert it, correct it, or, when it is told and not measured, list it in the "
                    f'header: bookkit: {{numbers: ["{quote.written}"]}}',
                )


def quotes_of(page: Page) -> Iterator[tuple[int, Quote]]:
    """Every quoted number of a page with its line."""
    for cell in page.text.cells:
        if cell.kind == "markdown":
            yield from ((line_of(cell, quote.start), quote) for quote in quoted(prose(cell.source)))
        for key, caption in captions(cell):
            yield from ((option_line(cell, key), quote) for quote in quoted(caption))


def quoted(source: str) -> Iterator[Quote]:
    """The quantities in a piece of prose that need backing."""
    for pattern in NOT_QUOTED:
        source = blank(pattern, source)
    for found in QUOTED.finditer(source):
        if _is_quantity(found) and not _is_year(found, source):
            yield Quote(found.start(), found[0].strip(), _value(found))


def canonical(number: str) -> str:
    """A number without separators, leading zeros and trailing zeros of its fraction: `9 999.50` is 9999.5."""
    whole, _, fraction = re.sub(r"[^\d.]", "", number).partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")


def numbers_in(source: str) -> set[str]:
    """Every number that a text can be read as holding, in canonical form.

    `54 142 229` may be three numbers or a large one: all readings count.
    """
    found = {canonical(number) for number in PLAIN.findall(source)}
    found |= {_value(power) for power in POWERED.finditer(source)}
    for chain in CHAIN.finditer(source):
        groups = re.split(SEPARATOR, chain[0])
        for start in range(len(groups)):
            found |= {canonical("".join(groups[start:end])) for end in range(start + 2, len(groups) + 1)}
    return found


def evidence(page: Page) -> set[str]:
    """The numbers that a page may quote."""
    known = {value for number in page.chapter.numbers for value in _listed(number)}
    for executed in page.executed:
        for output in executed.outputs:
            for shown in texts_of(output):
                known |= numbers_in(shown)
    for cell in page.code:
        known |= code_numbers(cell)
    return known


def code_numbers(cell: text.Cell) -> set[str]:
    """The numbers among a cell's literals, docstrings left out; of a hidden cell only those in its
    asserts.
    """
    tree = parsed(cell)
    if cell.options.get("echo") is False or cell.options.get("include") is False:
        return {
            number for node in ast.walk(tree) if isinstance(node, ast.Assert) for number in _literals(node)
        }
    return set(_literals(tree))


def _listed(number: str) -> set[str]:
    """The value that an entry of the header's list stands for, as prose would be read."""
    return {quote.value for quote in quoted(number)} or {canonical(number)}


def _literals(tree: ast.AST) -> Iterator[str]:
    """The numbers in all constants and powers of two constants below a node, except in texts that stand as a
    statement.
    """
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(ast.Constant(int(base)), ast.Pow(), ast.Constant(int(exponent))):
                yield _power(str(base), exponent)
    for node in _walk_values(tree):
        if isinstance(node.value, str | bytes):
            yield from numbers_in(node.value if isinstance(node.value, str) else node.value.decode("latin-1"))
        elif isinstance(node.value, int | float) and not isinstance(node.value, bool):
            yield from numbers_in(
                format(node.value, "f") if isinstance(node.value, float) else str(node.value)
            )


def _walk_values(tree: ast.AST) -> Iterator[ast.Constant]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Constant):
            if not isinstance(tree, ast.Expr):
                yield child
        else:
            yield from _walk_values(child)


def _value(found: re.Match[str]) -> str:
    """A number in canonical form, its power worked out: 1e6, 10^6 and 10\N{SUPERSCRIPT SIX} are 1000000."""
    number, scientific = canonical(found["number"]), found["scientific"]
    if scientific:
        return canonical(format(Decimal(number).scaleb(int(scientific)), "f"))
    exponent = found["exponent"] or (found["raised"] or "").translate(TO_DIGITS)
    return _power(number, int(exponent)) if exponent else number


def _power(number: str, exponent: int) -> str:
    """A power in canonical form; 0 for one too large or small to be written out."""
    if number == "0" or abs(exponent) > 999:
        return "0"
    if number.isdigit() and exponent >= 0:
        return str(int(number) ** exponent)
    return canonical(format(Decimal(number) ** exponent, "f"))


def _is_quantity(found: re.Match[str]) -> bool:
    """Whether a number is one of three or more digits, a decimal, a percentage, a multiple, a large unit."""
    marks = ("percent", "times", "scale", "scientific", "exponent", "raised")
    written = found["number"]
    return any(found[mark] for mark in marks) or "." in written or len(re.sub(r"\D", "", written)) >= 3


def _is_year(found: re.Match[str], source: str) -> bool:
    """`in 2023`, `Yao (2023)`, `Yao et al., 2023`, and neither `2 023`, `2048` nor `in 2023 tokens`."""
    before, after = source[max(0, found.start() - 24) : found.start()], source[found.end() :]
    is_bare = YEAR.fullmatch(found[0].strip()) is not None
    return is_bare and bool(BEFORE_A_YEAR.search(before)) and bool(AFTER_A_YEAR.match(after))
