"""Notebooks are plain JSON that other tools accept, and are stale exactly when their content says so."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toy import edit_notebook, replace, snapshot

from bookkit import book, build, notebook, tangle
from bookkit.errors import BookError
from bookkit.inputs import Sources
from bookkit.notebook import Standing, State


def standing(root: Path, name: str) -> Standing:
    loaded = book.load(root)
    return build.stand(loaded.find(name), Sources(loaded))


def states(root: Path) -> dict[str, State]:
    loaded = book.load(root)
    sources = Sources(loaded)
    return {chapter.title: build.stand(chapter, sources).state for chapter in loaded.chapters}


ALL_FRESH = {
    "01-numbers": State.FRESH,
    "02-words": State.FRESH,
    "03-both": State.FRESH,
    "solutions/01-numbers": State.FRESH,
}


def test_a_built_book_is_fresh_whatever_its_files_times_are(built_book: Path) -> None:
    for i, path in enumerate(sorted(built_book.rglob("*.*"))):
        os.utime(path, (i, 1000 - i))
    assert states(built_book) == ALL_FRESH


def test_a_book_without_notebooks_is_not_built(toy_book: Path) -> None:
    assert standing(toy_book, "both").state is State.MISSING


@pytest.mark.parametrize(
    "old, new",
    [
        ("A word is shouted in capitals.", "A word is shouted in capital letters."),
        ("## In use {#sec-words-use}", "## In good use {#sec-words-use}"),
        (": A word before and after", ": A word, before and after"),
    ],
)
def test_new_prose_makes_only_its_chapter_need_a_rewrite(built_book: Path, old: str, new: str) -> None:
    replace(built_book / "chapters/02-words.md", old, new)
    assert states(built_book) == ALL_FRESH | {"02-words": State.TEXT}


@pytest.mark.parametrize("option", ['fig-cap: "How does', 'fig-alt: "A straight'])
def test_captions_and_alt_texts_need_a_rewrite_only(built_book: Path, option: str) -> None:
    replace(built_book / "chapters/01-numbers.md", option, option + " then")
    assert states(built_book) == ALL_FRESH | {"01-numbers": State.TEXT}


def test_a_figures_label_is_an_input_because_it_salts_the_picture(built_book: Path) -> None:
    replace(built_book / "chapters/01-numbers.md", "#| label: fig-numbers-line", "#| label: fig-numbers-ray")
    assert states(built_book) == ALL_FRESH | {"01-numbers": State.STALE}


def test_a_comment_in_an_unsaved_cell_makes_only_its_chapter_stale(built_book: Path) -> None:
    replace(built_book / "chapters/02-words.md", "# any word will do", "# nearly any word will do")
    assert states(built_book) == ALL_FRESH | {"02-words": State.STALE}
    assert standing(built_book, "words").reasons == ("its code changed",)


def test_a_changed_module_makes_those_stale_that_import_it(built_book: Path) -> None:
    replace(built_book / "toykit/words.py", "mark.", "mark!")
    assert states(built_book) == ALL_FRESH | {"03-both": State.STALE}
    assert standing(built_book, "both").reasons == ("toykit/words.py changed",)


def test_a_module_imported_by_an_imported_module_counts(built_book: Path) -> None:
    replace(built_book / "chapters/03-both.md", "from toykit.words import shout\n", "")
    replace(built_book / "chapters/03-both.md", "shout(word)", "word")
    helper = built_book / "toykit/helper.py"
    helper.write_text("from .deep import d\n", encoding="utf-8")
    (built_book / "toykit/deep.py").write_text("d = 1\n", encoding="utf-8")
    replace(
        built_book / "chapters/03-both.md", "print(double_shout", "import toykit.helper\nprint(double_shout"
    )
    before = standing(built_book, "both").parts
    replace(built_book / "toykit/deep.py", "d = 1", "d = 2")
    after = standing(built_book, "both").parts
    assert {name for name in after if before[name] != after[name]} == {"toykit/deep.py"}


def test_a_heading_in_a_module_is_no_input_of_those_that_import_it(built_book: Path) -> None:
    replace(built_book / "toykit/words.py", "§ Words", "§ All words")
    assert states(built_book) == ALL_FRESH


def test_a_chapters_title_is_no_input_of_those_that_import_its_module(built_book: Path) -> None:
    replace(built_book / "chapters/02-words.md", "# Words {#sec-words}", "# Loud words {#sec-words}")
    tangle.run(book.load(built_book))
    assert '"""Loud words."""' in (built_book / "toykit/words.py").read_text(encoding="utf-8")
    assert states(built_book) == ALL_FRESH | {"02-words": State.TEXT}


def test_a_line_of_a_string_that_looks_like_a_mark_is_an_input(built_book: Path) -> None:
    path = built_book / "chapters/02-words.md"
    template = 'MARKS = """\\\n# %% chapters/02-words.md § one\n"""\n\n\ndef shout'
    replace(path, "def shout", template)
    build.run(book.load(built_book), render=False)
    replace(path, "§ one", "§ two")
    tangle.run(book.load(built_book))
    assert states(built_book) == ALL_FRESH | {"02-words": State.STALE, "03-both": State.STALE}


def test_a_module_beside_the_chapter_is_an_input(built_book: Path) -> None:
    replace(built_book / "chapters/02-words.md", "# any word will do", "import helper")
    helper = built_book / "chapters/helper.py"
    helper.write_text("import deeper\n", encoding="utf-8")
    (built_book / "chapters/deeper.py").write_text("d = 1\n", encoding="utf-8")
    assert {"chapters/helper.py", "chapters/deeper.py"} <= standing(built_book, "words").parts.keys()


def test_a_declared_data_file_is_an_input(built_book: Path) -> None:
    replace(
        built_book / "chapters/02-words.md", "---\njupyter", "---\nbookkit: {data: [data/*.json]}\njupyter"
    )
    data = built_book / "data/a.json"
    data.parent.mkdir()
    data.write_text("1", encoding="utf-8")
    assert standing(built_book, "words").reasons == ("it now depends on data/a.json",)
    before = standing(built_book, "words").parts["data/a.json"]
    data.write_text("2", encoding="utf-8")
    assert standing(built_book, "words").parts["data/a.json"] != before


@pytest.mark.parametrize("pattern", ["data/*.json", "/etc/passwd", "", "**.txt", "../book/index.md"])
def test_a_data_pattern_that_matches_no_file_of_the_book_is_refused(built_book: Path, pattern: str) -> None:
    header = f'---\nbookkit: {{data: ["{pattern}"]}}\njupyter'
    replace(built_book / "chapters/02-words.md", "---\njupyter", header)
    with pytest.raises(BookError, match="no file matches it"):
        standing(built_book, "words")


def test_a_file_that_an_imported_module_names_beside_itself_is_an_input(built_book: Path) -> None:
    (built_book / "toykit/theme").mkdir()
    (built_book / "toykit/theme/style.txt").write_text("blue", encoding="utf-8")
    module = built_book / "toykit/__init__.py"
    module.write_text('from pathlib import Path\nS = Path(__file__).parent / "theme" / "style.txt"\n')
    assert "toykit/theme/style.txt" in standing(built_book, "both").parts


def test_the_pin_of_an_imported_package_is_an_input_and_others_are_not(built_book: Path) -> None:
    replace(built_book / "constraints.txt", "matplotlib==3.10.0", "matplotlib==3.11.0")
    assert states(built_book) == ALL_FRESH
    replace(built_book / "constraints.txt", "ipython==9.0.0", "ipython==9.1.0")
    assert states(built_book) == ALL_FRESH | {"01-numbers": State.STALE}
    assert standing(built_book, "numbers").reasons == ("constraints.txt: ipython changed",)


def test_installed_versions_are_recorded_and_make_nothing_stale(built_book: Path) -> None:
    path = built_book / "chapters/01-numbers.ipynb"
    record = notebook.recorded(notebook.load(path))
    assert set(record) == {"text", "outputs", "inputs", "parts", "python", "packages"}
    assert record["packages"].keys() == {"ipython"}

    def other_machine(content: dict[str, Any]) -> None:
        content["metadata"]["bookkit"] |= {"python": "3.99", "packages": {"ipython": "0.1"}}

    edit_notebook(path, other_machine)
    assert states(built_book) == ALL_FRESH


def test_saving_in_jupyter_without_running_changes_nothing(built_book: Path) -> None:
    def saved(content: dict[str, Any]) -> None:
        content["metadata"]["language_info"]["version"] = "3.11.7"
        content["cells"][0]["metadata"] = {"scrolled": True, "jp-MarkdownHeadingCollapsed": True}
        content["cells"].append({"cell_type": "markdown", "id": "x", "metadata": {}, "source": []})

    edit_notebook(built_book / "chapters/01-numbers.ipynb", saved)
    assert states(built_book) == ALL_FRESH


def other_output(content: dict[str, Any]) -> None:
    content["cells"][3]["outputs"][0]["text"] = ["43\n"]


def other_count(content: dict[str, Any]) -> None:
    content["cells"][3]["execution_count"] = 17


def no_count(content: dict[str, Any]) -> None:
    content["cells"][1]["execution_count"] = None


def run_with_an_empty_cell_below(content: dict[str, Any]) -> None:
    other_count(content)
    empty = {
        "cell_type": "code",
        "id": "x",
        "metadata": {},
        "source": [],
        "outputs": [],
        "execution_count": None,
    }
    content["cells"].append(empty)


@pytest.mark.parametrize("change", [other_output, other_count, no_count, run_with_an_empty_cell_below])
def test_a_notebook_that_a_reader_ran_and_saved_is_to_be_executed(
    built_book: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    edit_notebook(built_book / "chapters/01-numbers.ipynb", change)
    assert states(built_book) == ALL_FRESH | {"01-numbers": State.STALE}
    assert standing(built_book, "numbers").reasons == ("its outputs are not those of the build",)


def new_code(content: dict[str, Any]) -> None:
    content["cells"][3]["source"] = ["print(double(20))"]


def new_prose(content: dict[str, Any]) -> None:
    content["cells"][4]["source"] = ["The answer is 40."]


def new_tag(content: dict[str, Any]) -> None:
    content["cells"][3]["metadata"]["tags"] = ["raises-exception"]


def new_picture(content: dict[str, Any]) -> None:
    content["cells"][4]["attachments"] = {"image.png": {"image/png": "iVBORw0KGgo="}}


@pytest.mark.parametrize(
    "change, cell",
    [
        (new_code, "cell 4: print"),
        (new_prose, "cell 5: The answer"),
        (new_tag, "cell 4: print"),
        (new_picture, "cell 5: The answer"),
    ],
)
def test_a_notebook_edited_by_hand_is_known_with_its_cells(
    built_book: Path, change: Callable[[dict[str, Any]], None], cell: str
) -> None:
    edit_notebook(built_book / "chapters/01-numbers.ipynb", change)
    found = standing(built_book, "numbers")
    assert found.state is State.EDITED
    assert [reason.startswith(cell) for reason in found.reasons] == [True]


def test_a_cell_that_was_deleted_is_named_with_its_line(built_book: Path) -> None:
    edit_notebook(built_book / "chapters/01-numbers.ipynb", lambda content: content["cells"].pop(4))
    assert standing(built_book, "numbers").reasons == ("cell 5 (line 28) is gone",)


def test_both_edited_is_a_conflict_until_they_agree(built_book: Path) -> None:
    edit_notebook(built_book / "chapters/01-numbers.ipynb", new_prose)
    replace(built_book / "chapters/01-numbers.md", "The answer is 42.", "The answer is 41.")
    assert standing(built_book, "numbers").state is State.CONFLICT
    replace(built_book / "chapters/01-numbers.md", "The answer is 41.", "The answer is 40.")
    assert standing(built_book, "numbers").state is State.TEXT


def test_a_notebook_of_another_origin_is_never_overwritten(toy_book: Path) -> None:
    foreign = {"cells": [{"cell_type": "markdown", "metadata": {}, "source": "mine"}], "metadata": {}}
    path = toy_book / "chapters/01-numbers.ipynb"
    path.write_text(json.dumps(foreign | {"nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    assert standing(toy_book, "numbers").state is State.CONFLICT


def test_a_rewritten_notebook_keeps_its_outputs_and_is_fresh(built_book: Path) -> None:
    replace(
        built_book / "chapters/01-numbers.md",
        "# Numbers {#sec-numbers}\n",
        "# Numbers {#sec-numbers}\n\nNew.\n\n",
    )
    built = notebook.load(built_book / "chapters/01-numbers.ipynb")
    assert notebook.rewrite(standing(built_book, "numbers"))
    after = notebook.load(built_book / "chapters/01-numbers.ipynb")
    assert notebook.outputs_of(after) == notebook.outputs_of(built)
    assert notebook.recorded(after) == notebook.recorded(built) | {"text": notebook.cells_digest(after)}
    sources = [cell["source"] for cell in after["cells"][:2]]
    assert sources == ["# Numbers {#sec-numbers}\n\nNew.", "A number is doubled by adding it to itself."]
    assert states(built_book) == ALL_FRESH


def test_notebooks_are_valid_and_laid_out_as_jupyter_writes_them(built_book: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    for chapter in book.load(built_book).chapters:
        content = chapter.notebook.read_text(encoding="utf-8")
        parsed = nbformat.reads(content, as_version=4)
        nbformat.validate(parsed)
        assert nbformat.writes(parsed) + "\n" == content
        assert notebook.dumps(notebook.load(chapter.notebook)) == content


def test_notebooks_hold_nothing_of_one_machine(built_book: Path) -> None:
    for chapter in book.load(built_book).chapters:
        content = notebook.load(chapter.notebook)
        code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
        assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
        assert [cell["id"] for cell in content["cells"]] == [
            f"{chapter.title.replace('/', '-')}-{i:03d}" for i in range(1, len(content["cells"]) + 1)
        ]
        assert "version" not in content["metadata"]["language_info"]
        assert all(not cell["metadata"] for cell in content["cells"])
        text = chapter.notebook.read_bytes()
        assert b"\r" not in text and str(built_book).encode() not in text


NO_NOTEBOOKS = [
    "",
    "{",
    "[]",
    '{"cells": 1}',
    '{"cells": [{}]}',
    '{"cells": [{"cell_type": "markdown", "source": 5}]}',
    '{"cells": [{"cell_type": "markdown", "source": "a", "metadata": null}]}',
    '{"cells": [{"cell_type": "code", "source": "a", "metadata": {"tags": 5}}]}',
    '{"cells": [], "metadata": null}',
    "<<<<<<< HEAD\n",
]


@pytest.mark.parametrize("content", NO_NOTEBOOKS)
def test_a_file_that_is_no_notebook_is_refused_and_kept(built_book: Path, content: str) -> None:
    path = built_book / "chapters/01-numbers.ipynb"
    path.write_text(content, encoding="utf-8")
    before = snapshot(built_book)
    with pytest.raises(BookError, match="is not a notebook"):
        build.run(book.load(built_book), render=False)
    assert snapshot(built_book) == before


def stream(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def test_streams_are_merged_by_name_and_keep_their_place_between_displays() -> None:
    shown = {"output_type": "display_data", "data": {"text/plain": "x"}, "metadata": {}}
    outputs = [stream("stderr", "e"), stream("stdout", "a"), stream("stderr", "f"), stream("stdout", "b")]
    assert notebook.normalised([*outputs, shown, stream("stdout", "c")], 1) == [
        stream("stdout", "ab"),
        stream("stderr", "ef"),
        shown,
        stream("stdout", "c"),
    ]


def test_colours_and_carriage_returns_are_not_stored() -> None:
    assert notebook.normalised([stream("stdout", "\x1b[1;31mred\x1b[0m\r\n")], 1) == [
        stream("stdout", "red\n")
    ]


def test_a_result_has_its_cells_count() -> None:
    result = {
        "output_type": "execute_result",
        "data": {"text/plain": "1"},
        "metadata": {},
        "execution_count": 99,
    }
    assert notebook.normalised([result], 4)[0]["execution_count"] == 4


def test_a_traceback_keeps_its_last_line_only() -> None:
    error = {
        "output_type": "error",
        "ename": "ValueError",
        "evalue": "no",
        "traceback": ["\x1b[31m/home/me/x.py"],
    }
    assert notebook.normalised([error], 1)[0]["traceback"] == ["ValueError: no"]


def test_json_outputs_are_kept_as_they_are() -> None:
    shown = {"output_type": "display_data", "data": {"application/json": {"a": ["1", "2"]}}, "metadata": {}}
    kept = notebook.normalised([shown], 1)
    built = {"cells": [{"cell_type": "code", "source": "x", "outputs": kept}], "metadata": {}}
    assert json.loads(notebook.dumps(built))["cells"][0]["outputs"][0]["data"] == shown["data"]


def test_ids_fit_the_format_whatever_the_files_name() -> None:
    import re
    from types import SimpleNamespace

    chapter = SimpleNamespace(title="solutions/" + "long name é " * 9)
    made = notebook.cell_id(chapter, SimpleNamespace(number=7))  # type: ignore[arg-type]
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", made)
