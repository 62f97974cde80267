"""What makes the book trustworthy: rules over texts, notebooks, modules and figures. Nothing executes or
writes.

Each rule is a function from the manuscript to problems; `RULES` gives them their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from bookkit.book import Book
from bookkit.check import built, form, labels, numbers, outputs, portable
from bookkit.check.manuscript import Manuscript, Problem, Rule, from_error, gather
from bookkit.errors import BookError

__all__ = ["RULES", "Manuscript", "Problem", "Rule", "run"]

RULES: Mapping[str, Rule] = {
    "readable": built.everything_is_readable,
    "configuration": form.configuration_is_safe,
    "fresh": built.notebooks_are_fresh,
    "module": built.modules_match_chapters,
    "figure": built.figures_are_exported,
    "header": form.headers_are_complete,
    "title": form.pages_have_one_title,
    "option": form.options_come_first,
    "option-name": form.options_are_known,
    "tag": form.code_is_hidden_by_options,
    "semicolon": form.results_are_not_hidden_by_semicolons,
    "div": form.divs_close_in_their_cell,
    "bibliography": form.bibliography_is_for_html,
    "browser": form.nothing_needs_a_browser,
    "caption": form.figures_have_caption_and_alt,
    "question": form.captions_ask,
    "label": labels.labels_have_prefixes,
    "label-twice": labels.labels_are_unique,
    "reference": labels.references_resolve,
    "link": labels.links_resolve,
    "picture": outputs.labels_show_what_they_name,
    "picture-width": outputs.pictures_fit_a_phone,
    "picture-id": outputs.pictures_share_no_id,
    "count": outputs.cells_are_executed,
    "compared": outputs.outputs_are_compared,
    "once": outputs.outputs_arrive_once,
    "error": outputs.errors_are_meant,
    "portable": portable.outputs_are_portable,
    "clean": outputs.outputs_are_clean,
    "control": outputs.texts_are_clean,
    "number": numbers.numbers_are_backed,
}


def run(book: Book) -> list[Problem]:
    """Everything that is wrong with the book, in its order: by page, then by line, then by rule."""
    manuscript = gather(book)
    found = [
        replace(problem, rule=name) for name, rule in RULES.items() for problem in _applied(rule, manuscript)
    ]
    order = {page.chapter.source: place for place, page in enumerate(manuscript.pages)}
    last = len(order)
    return sorted(
        dict.fromkeys(found),
        key=lambda problem: (order.get(problem.path, last), problem.path, problem.line or 0),
    )


def _applied(rule: Rule, manuscript: Manuscript) -> Iterator[Problem]:
    """What a rule finds; a file that it cannot read is a problem as well, and not the end of the check."""
    try:
        yield from rule(manuscript)
    except BookError as error:
        yield from_error(manuscript.book, error)
