"""Labelled figures become files: exact, complete, and never at the cost of a file of somebody else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bookkit import book, export, files
from bookkit.errors import BookError

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0L1 {y}"/></svg>'
LINE = "numbers-line.svg"


def cell(label: str, *pictures: str, caption: str = "How much?", alt: str = "A line.") -> dict[str, Any]:
    source = f'#| label: {label}\n#| fig-cap: "{caption}"\n#| fig-alt: "{alt}"\ndraw()'
    outputs = [
        {"output_type": "display_data", "metadata": {}, "data": {"image/svg+xml": svg, "text/plain": label}}
        for svg in pictures
    ]
    return {"cell_type": "code", "source": source, "outputs": outputs, "execution_count": 1, "metadata": {}}


def execute(root: Path, *cells: dict[str, Any], name: str = "01-numbers") -> None:
    """Write a notebook as an execution would leave it."""
    notebook = {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (root / f"chapters/{name}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")


def export_all(root: Path, **options: Any) -> list[str]:
    return export.run(book.load(root), **options)


def figures_of(root: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted((root / "figures").iterdir())}


@pytest.fixture
def root(toy_book: Path) -> Path:
    """The toy book with one executed figure, exported."""
    execute(toy_book, cell("fig-numbers-line", SVG.format(y=2)))
    export_all(toy_book)
    return toy_book


def test_a_labelled_figure_is_exported_under_its_label_without_the_prefix(root: Path) -> None:
    assert figures_of(root)[LINE] == SVG.format(y=2) + "\n"
    assert json.loads(figures_of(root)["index.json"]) == {
        "fig-numbers-line": {
            "file": LINE,
            "chapter": "chapters/01-numbers.md",
            "caption": "How much?",
            "alt": "A line.",
        }
    }


def test_the_toy_book_is_exported_when_it_is_built(built_book: Path) -> None:
    assert set(figures_of(built_book)) == {LINE, "index.json"}
    assert export_all(built_book) == []


def test_exporting_again_changes_nothing_and_says_so(root: Path) -> None:
    before = figures_of(root)
    assert export_all(root) == []
    assert figures_of(root) == before


def test_check_names_what_would_change_and_writes_nothing(root: Path) -> None:
    execute(root, cell("fig-numbers-line", SVG.format(y=3)), cell("fig-numbers-new", SVG.format(y=4)))
    before = figures_of(root)
    assert export_all(root, check=True) == [
        "figures/index.json",
        "figures/numbers-line.svg",
        "figures/numbers-new.svg",
    ]
    assert figures_of(root) == before


def test_one_changed_digit_in_a_file_is_noticed_and_mended(root: Path) -> None:
    path = root / "figures" / LINE
    path.write_text(path.read_text().replace("L1 2", "L1 3"))
    assert export_all(root, check=True) == ["figures/numbers-line.svg"]
    export_all(root)
    assert "L1 2" in path.read_text()


def test_a_label_that_is_gone_takes_its_file_along(root: Path) -> None:
    execute(root, cell("fig-numbers-other", SVG.format(y=2)))
    changed = export_all(root)
    assert "figures/numbers-line.svg" in changed
    assert set(figures_of(root)) == {"index.json", "numbers-other.svg"}


def test_a_file_that_was_not_exported_stays(root: Path) -> None:
    (root / "figures/by-hand.svg").write_text("<svg/>")
    execute(root)
    export_all(root)
    assert set(figures_of(root)) == {"by-hand.svg", "index.json"}


def test_a_file_in_the_way_that_was_not_exported_is_refused(root: Path) -> None:
    (root / "figures/numbers-new.svg").write_text("<svg/>")
    execute(root, cell("fig-numbers-line", SVG.format(y=5)), cell("fig-numbers-new", SVG.format(y=4)))
    before = figures_of(root)
    with pytest.raises(BookError, match=r"figures/numbers-new\.svg: is in the way"):
        export_all(root)
    assert figures_of(root) == before


def test_the_figures_of_a_chapter_whose_notebook_is_missing_stay(root: Path) -> None:
    before = figures_of(root)
    (root / "chapters/01-numbers.ipynb").unlink()
    assert export_all(root) == []
    assert figures_of(root) == before


def test_further_outputs_of_a_cell_are_numbered(root: Path) -> None:
    execute(root, cell("fig-numbers-line", SVG.format(y=2), SVG.format(y=3)))
    export_all(root)
    assert set(figures_of(root)) == {LINE, "numbers-line-2.svg", "index.json"}


def test_chosen_labels_change_alone(root: Path) -> None:
    execute(root, cell("fig-numbers-line", SVG.format(y=8)), cell("fig-numbers-new", SVG.format(y=9)))
    assert export_all(root, labels=["numbers-new"]) == ["figures/index.json", "figures/numbers-new.svg"]
    assert "L1 2" in figures_of(root)[LINE]
    assert set(json.loads(figures_of(root)["index.json"])) == {"fig-numbers-line", "fig-numbers-new"}


def test_the_index_follows_the_order_of_the_book(root: Path) -> None:
    execute(root, cell("fig-words-a", SVG.format(y=1)), name="02-words")
    execute(root, cell("fig-numbers-z", SVG.format(y=1)), cell("fig-numbers-b", SVG.format(y=1)))
    export_all(root)
    index = json.loads(figures_of(root)["index.json"])
    assert list(index) == ["fig-numbers-z", "fig-numbers-b", "fig-words-a"]


def test_an_unknown_label_is_refused_with_the_nearest_known(root: Path) -> None:
    with pytest.raises(BookError, match=r"no executed cell has the label 'fig-numbers-lime'") as refusal:
        export_all(root, labels=["numbers-lime"])
    assert refusal.value.hint == "Did you mean fig-numbers-line?"


def test_an_unknown_label_before_the_first_execution_says_what_to_do(toy_book: Path) -> None:
    with pytest.raises(BookError) as refusal:
        export_all(toy_book, labels=["numbers-line"])
    assert "bookkit execute" in (refusal.value.hint or "")


def test_a_label_used_twice_is_refused_with_both_places(root: Path) -> None:
    execute(root, cell("fig-numbers-line", SVG.format(y=1)), name="02-words")
    with pytest.raises(
        BookError, match=r"chapters/02-words\.md: the label fig-numbers-line .* chapters/01-numbers"
    ):
        export_all(root)


@pytest.mark.parametrize("content", ["{", "[]", '{"fig-a": 3}', '"text"'])
def test_a_broken_index_is_named_and_left(root: Path, content: str) -> None:
    (root / "figures/index.json").write_text(content)
    with pytest.raises(BookError, match=r"index\.json: is not the index of figures"):
        export_all(root)
    assert (root / "figures/index.json").read_text() == content


def test_without_an_index_a_figure_that_changed_is_not_called_foreign(root: Path) -> None:
    (root / "figures/index.json").unlink()
    execute(root, cell("fig-numbers-line", SVG.format(y=5)))
    with pytest.raises(BookError, match=r"figures/index\.json: is missing") as refusal:
        export_all(root)
    assert "version control" in (refusal.value.hint or "")
    assert set(figures_of(root)) == {LINE}


def test_a_missing_index_is_written_again_when_every_figure_is_as_it_would_be(root: Path) -> None:
    before = figures_of(root)
    (root / "figures/index.json").unlink()
    assert export_all(root) == ["figures/index.json"]
    assert figures_of(root) == before


@pytest.mark.parametrize("label", ["fig-a/b", "fig-../../x", "fig-a b", "fig-ä"])
def test_a_label_that_cannot_name_a_file_is_refused(root: Path, label: str) -> None:
    execute(root, cell(label, SVG.format(y=5)))
    with pytest.raises(BookError, match=r"01-numbers\.md: cell 1: the label .* cannot be the name"):
        export_all(root)


def test_an_index_cannot_make_it_remove_a_file_elsewhere(root: Path) -> None:
    (root / "figures/index.json").write_text('{"fig-x": {"file": "../references.bib"}}')
    (root / "figures" / LINE).unlink()
    export_all(root)
    assert (root / "references.bib").exists()


def test_a_full_disk_leaves_every_file_whole(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = figures_of(root)
    execute(root, cell("fig-numbers-line", SVG.format(y=7)))

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", refuse)
    with pytest.raises(BookError, match=r"cannot be written: No space left on device"):
        export_all(root)
    assert figures_of(root) == before


def test_a_folder_that_cannot_be_written_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(root, cell("fig-numbers-line", SVG.format(y=7)))

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files.tempfile, "mkstemp", refuse)
    with pytest.raises(BookError, match=r"numbers-line\.svg: cannot be written: Permission denied"):
        export_all(root)


def test_a_notebook_that_is_none_is_named(root: Path) -> None:
    (root / "chapters/02-words.ipynb").write_text("[]")
    with pytest.raises(BookError, match=r"02-words\.ipynb: is not a notebook"):
        export_all(root)


def test_an_option_that_is_not_yaml_is_named(root: Path) -> None:
    broken = cell("fig-numbers-line", SVG.format(y=7))
    broken["source"] = "#| label: fig-numbers-line\n#| fig-cap: How: many?\n"
    execute(root, broken)
    with pytest.raises(BookError, match=r"01-numbers\.ipynb:2: cell 1: the `#\|` options"):
        export_all(root)


def test_interrupted_after_the_index_the_next_export_finishes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(root, cell("fig-numbers-line", SVG.format(y=7)), cell("fig-numbers-new", SVG.format(y=9)))
    with monkeypatch.context() as patch:
        replace, done = os.replace, []

        def stop_after_the_first(source: str, target: str) -> None:
            if done:
                raise KeyboardInterrupt
            done.append(target)
            replace(source, target)

        patch.setattr(files.os, "replace", stop_after_the_first)
        with pytest.raises(KeyboardInterrupt):
            export_all(root)
    export_all(root)
    assert set(figures_of(root)) == {LINE, "numbers-new.svg", "index.json"}
    assert export_all(root) == []


def test_interrupted_before_the_index_a_figure_that_goes_is_no_orphan(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(root, cell("fig-numbers-other", SVG.format(y=2)))
    for interrupted in (1, 2):
        with monkeypatch.context() as patch:
            stop_at(patch, interrupted)
            with pytest.raises(KeyboardInterrupt):
                export_all(root)
        listed = {entry["file"] for entry in json.loads(figures_of(root)["index.json"]).values()}
        assert set(figures_of(root)) - {"index.json"} <= listed
    export_all(root)
    assert set(figures_of(root)) == {"index.json", "numbers-other.svg"}


def stop_at(patch: pytest.MonkeyPatch, step: int) -> None:
    """Interrupt before the `step`th time that a file is removed or put into its place."""
    steps = iter(range(1, 100))

    def interrupted(action: Any) -> Any:
        def act(*arguments: Any, **options: Any) -> Any:
            if next(steps) == step:
                raise KeyboardInterrupt
            return action(*arguments, **options)

        return act

    patch.setattr(files.os, "replace", interrupted(os.replace))
    patch.setattr(Path, "unlink", interrupted(Path.unlink))
