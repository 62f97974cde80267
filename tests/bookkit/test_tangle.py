"""Saved cells become a module, whole and in order; what cannot is refused before anything is written."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from toy import HEADER, replace, snapshot

from bookkit import book, tangle
from bookkit.errors import BookError


def chapter_of(*cells: str, title: str = "# Words {#sec-words}") -> str:
    return f"{HEADER}\n{title}\n\n" + "".join(f"```python\n{cell}\n```\n\n" for cell in cells)


def write_words(root: Path, *cells: str) -> None:
    """Give the toy book's second chapter these code cells."""
    (root / "chapters/02-words.md").write_text(chapter_of(*cells), encoding="utf-8")


def tangled(root: Path, *cells: str) -> str:
    """The module that these cells make."""
    write_words(root, *cells)
    tangle.run(book.load(root), [book.load(root).find("words")])
    return (root / "toykit/words.py").read_text(encoding="utf-8")


def loaded(root: Path, *cells: str) -> ModuleType:
    """The same, imported."""
    tangled(root, *cells)
    spec = importlib.util.spec_from_file_location("words", root / "toykit/words.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refusal(root: Path, *cells: str) -> BookError:
    """The error for these cells; nothing may have been written."""
    write_words(root, *cells)
    before = snapshot(root)
    with pytest.raises(BookError) as caught:
        tangle.run(book.load(root))
    assert snapshot(root) == before
    return caught.value


def line_of(root: Path, passage: str) -> int:
    lines = (root / "chapters/02-words.md").read_text(encoding="utf-8").splitlines()
    return lines.index(passage) + 1


def test_a_module_has_title_imports_public_names_and_marked_blocks(toy_book: Path) -> None:
    tangle.run(book.load(toy_book))
    lines = (toy_book / "toykit/both.py").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Built by bookkit from chapters/03-both.md. Edit the chapter, not this file."
    assert lines[2:13] == [
        '"""Both."""',
        "",
        "from toykit.numbers import double",
        "from toykit.words import shout",
        "",
        '__all__ = ["double_shout"]',
        "",
        "",
        "# %% chapters/03-both.md § Both",
        "",
        "",
    ]


def test_blocks_are_marked_by_heading_and_not_by_line(toy_book: Path) -> None:
    before = tangled(toy_book, "# @save\nx = 1")
    replace(
        toy_book / "chapters/02-words.md", "# Words {#sec-words}", "# Words {#sec-words}\n\nMore\n\nprose."
    )
    assert tangle.run(book.load(toy_book), check=True) == [
        "toykit/numbers.py",
        "toykit/both.py",
    ]
    assert "# %% chapters/02-words.md § Words\n" in before


def test_cells_keep_their_order_and_every_definition(toy_book: Path) -> None:
    module = loaded(
        toy_book, "# @save\ndef a():\n    return 1\n\n\ndef b():\n    return 2", "# @save\nc = a() + b()"
    )
    assert (module.a(), module.b(), module.c) == (1, 2, 3)


def test_unsaved_cells_stay_out(toy_book: Path) -> None:
    assert "secret" not in tangled(toy_book, "# @save\nx = 1", "secret = 2")


def test_decorators_long_signatures_and_strings_in_column_0_are_whole(toy_book: Path) -> None:
    module = loaded(
        toy_book,
        "# @save\nimport functools",
        '# @save\n@functools.cache\ndef f(\n    a,\n    b=2,\n):\n    return """\nzero\n""", a, b',
        "# @save\ndef after():\n    return 'kept'",
    )
    assert module.f(1) == ("\nzero\n", 1, 2)
    assert module.f.cache_info().hits == 0
    assert module.after() == "kept"


def test_names_inside_strings_are_not_exported(toy_book: Path) -> None:
    module = loaded(toy_book, '# @save\nTEXT = """\ndef ghost():\n    pass\n# @save\nspectre = 1\n"""')
    assert module.__all__ == ["TEXT"]


def test_all_lists_classes_functions_async_functions_constants_and_decorated_names(toy_book: Path) -> None:
    module = loaded(
        toy_book,
        "# @save\nimport functools\nfrom typing import Any",
        "# @save\nclass C:\n    inner = 1\n\n    def method(self): ...",
        "# @save\nasync def coroutine(): ...",
        "# @save\n@functools.cache\ndef cached(): ...",
        "# @save\nLIMIT: int = 3\nJSON = Any\nLOW, HIGH = 0, 9\n_private = 1\n\n\ndef _hidden(): ...",
    )
    assert sorted(module.__all__) == ["C", "HIGH", "JSON", "LIMIT", "LOW", "cached", "coroutine"]


def test_all_lists_what_the_top_level_binds_in_the_end(toy_book: Path) -> None:
    module = loaded(
        toy_book,
        "# @save\nfor number in (1, 2):\n    last = number\nwith open(__file__) as handle:\n    first = 1",
        "# @save\nhandle.close()\nif (length := len('ab')) > 1:\n    long = [(deep := i) for i in 'a']",
        "# @save\ntry:\n    tried = 1\nexcept* OSError as problem:\n    failed = 2",
        "# @save\nscratch = 7\ndel scratch\nkey = lambda x: (y := x)",
    )
    always = ["deep", "first", "handle", "key", "last", "length", "long", "number", "tried"]
    assert module.__all__ == sorted([*always, "failed"])


def test_a_cell_that_sets_all_itself_is_refused(toy_book: Path) -> None:
    error = refusal(toy_book, '# @save\nx = 1\n__all__ = ["x"]')
    assert "sets `__all__`" in str(error)
    assert error.line == line_of(toy_book, '__all__ = ["x"]')


def test_future_imports_come_first_and_imports_are_merged(toy_book: Path) -> None:
    module = tangled(
        toy_book,
        "# @save\nfrom collections.abc import Sequence\n\nx: Sequence[int] = []",
        "# @save\nfrom __future__ import annotations\n\nimport os\n"
        "from collections.abc import Mapping, Sequence\n\ny: Mapping[str, Sequence[int]] = {}\nz = os.sep",
    )
    code = [line for line in module.splitlines() if "import" in line]
    assert code == [
        "from __future__ import annotations",
        "import os",
        "from collections.abc import Mapping, Sequence",
    ]
    assert ast.parse(module)


def test_imports_that_only_unsaved_cells_use_are_left_out(toy_book: Path) -> None:
    module = tangled(toy_book, "# @save\nimport json, os\n\nx = json.dumps(1)", "os.getcwd()")
    assert "import json\n" in module and "os" not in module.split("__all__")[0].split("import json")[1]


def test_an_import_inside_a_function_stays_there(toy_book: Path) -> None:
    assert "    import json\n" in tangled(toy_book, "# @save\ndef f():\n    import json\n\n    return json")


def test_a_cell_can_be_saved_to_another_module(toy_book: Path) -> None:
    write_words(toy_book, "# @save\ndef shout(w):\n    return w", "# @save extras\nx = 1")
    assert "toykit/extras.py" in tangle.run(book.load(toy_book))
    extras = (toy_book / "toykit/extras.py").read_text(encoding="utf-8")
    assert "x = 1" in extras and "# %% chapters/02-words.md § Words" in extras
    assert "x = 1" not in (toy_book / "toykit/words.py").read_text(encoding="utf-8")


def test_a_module_beside_the_chapters_own_is_titled_by_the_heading_above_its_first_cell(
    toy_book: Path,
) -> None:
    chapter = chapter_of("# @save\nx = 1") + "## Odds and ends {#sec-words-odds}\n\n"
    chapter += "```python\n# @save extras\ny = 2\n```\n"
    (toy_book / "chapters/02-words.md").write_text(chapter, encoding="utf-8")
    tangle.run(book.load(toy_book))
    assert '"""Words."""' in (toy_book / "toykit/words.py").read_text(encoding="utf-8")
    assert '"""Odds and ends."""' in (toy_book / "toykit/extras.py").read_text(encoding="utf-8")


def test_generated_modules_please_ruff_and_mypy(toy_book: Path) -> None:
    tangle.run(book.load(toy_book))
    for command in ("ruff check toykit", "ruff format --check toykit", "mypy --strict toykit"):
        done = subprocess.run(
            [sys.executable, "-m", *command.split()], cwd=toy_book, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout


def test_tangling_twice_changes_nothing_and_runs_no_formatter(
    toy_book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(tangle.run(book.load(toy_book))) == 3
    monkeypatch.setattr(tangle, "_ruff", lambda *_: pytest.fail("an unchanged module was generated"))
    assert tangle.run(book.load(toy_book)) == []


def test_only_the_changed_module_is_written(toy_book: Path) -> None:
    tangle.run(book.load(toy_book))
    replace(toy_book / "chapters/02-words.md", 'word.upper() + "!"', 'word.upper() + "!!"')
    assert tangle.run(book.load(toy_book)) == ["toykit/words.py"]


def test_check_names_what_would_change_and_writes_nothing(toy_book: Path) -> None:
    before = snapshot(toy_book)
    assert tangle.run(book.load(toy_book), check=True) == [
        "toykit/numbers.py",
        "toykit/words.py",
        "toykit/both.py",
    ]
    assert snapshot(toy_book) == before


def test_modification_times_play_no_part(toy_book: Path) -> None:
    tangle.run(book.load(toy_book))
    os.utime(toy_book / "toykit/words.py", (0, 0))
    assert tangle.run(book.load(toy_book), check=True) == []
    replace(toy_book / "chapters/02-words.md", '"!"', '"?"')
    os.utime(toy_book / "chapters/02-words.md", (0, 0))
    assert tangle.run(book.load(toy_book), check=True) == ["toykit/words.py"]


# One test for each kind of refusal. Each names file, line, cell and the way out.


@pytest.mark.parametrize("magic", ["%matplotlib inline", "!ls", "%%time", "x = !ls", "print?", "y = %pwd"])
def test_a_magic_in_a_saved_cell_is_refused(toy_book: Path, magic: str) -> None:
    error = refusal(toy_book, "x = 1", f"# @save\n{magic}\nx = 2")
    assert "magic" in str(error)
    assert (error.path, error.cell) == ("chapters/02-words.md", 3)
    assert error.line == line_of(toy_book, magic)
    assert error.hint


@pytest.mark.parametrize(
    "code",
    [
        "await f()",
        "async with f() as x:\n    pass",
        "async for x in f():\n    pass",
        "y = [x async for x in f()]",
    ],
)
def test_a_top_level_await_in_a_saved_cell_is_refused(toy_book: Path, code: str) -> None:
    error = refusal(toy_book, f"# @save\nasync def f(): ...\n\n\n{code}")
    assert "top-level `await`" in str(error)
    assert error.line == line_of(toy_book, code.splitlines()[0])


def test_an_await_in_an_async_function_is_fine(toy_book: Path) -> None:
    assert "await g()" in tangled(toy_book, "# @save\nasync def g(): ...\n\n\nasync def f():\n    await g()")


@pytest.mark.parametrize(
    "code", ["def f(:", "x = = 1", "return 1", "class C:\npass", 'x = "open', "nonlocal x"]
)
def test_a_syntax_error_is_refused_at_its_line(toy_book: Path, code: str) -> None:
    error = refusal(toy_book, f"# @save\nx = 1\n{code}")
    assert "syntax error" in str(error)
    first = line_of(toy_book, code.splitlines()[0])
    assert error.line in (first, first + 1)


def test_a_name_that_the_module_lacks_is_refused_with_the_cell_that_makes_it(toy_book: Path) -> None:
    error = refusal(toy_book, "task = 1", "# @save\ndef f():\n    return task")
    assert "`task` is used here, but module words neither defines nor imports it" in str(error)
    assert error.line == line_of(toy_book, "    return task")
    assert error.cell == 3
    assert error.hint and "and is not saved" in error.hint


def test_an_import_that_only_an_unsaved_cell_makes_is_missed(toy_book: Path) -> None:
    error = refusal(toy_book, "import json", "# @save\ndef f():\n    return json.dumps(1)")
    assert "`json`" in str(error)


@pytest.mark.parametrize(
    "code",
    [
        "print(len([]), __name__, __file__)",
        "squares = [i * j for i in range(3) for j in range(i)]",
        "class C:\n    a = 1\n    b = [a]\n\n    def m(self) -> 'C':\n        return __class__()",
        "def f():\n    global g\n    g = 1\n    return g",
        "def f():\n    n = 0\n\n    def inner():\n        nonlocal n\n        n += 1\n\n    return inner",
        "try:\n    pass\nexcept ValueError as problem:\n    print(problem)",
        "if (n := 3) > 2:\n    print(n)",
        "def f(x):\n    match x:\n        case {'a': a, **rest}:\n            return a, rest\n"
        "        case [b, *c] as d:\n            return b, c, d",
        "def f():\n    return later()\n\n\ndef later(): ...",
        "f = lambda a, *b, c=1, **d: (a, b, c, d)",
        "with open('x') as handle:\n    pass\nfor line in ():\n    print(line)\nprint(handle)",
    ],
)
def test_names_are_resolved_as_python_does(toy_book: Path, code: str) -> None:
    tangled(toy_book, f"# @save\n{code}")


@pytest.mark.parametrize(
    "code, name",
    [
        ("def f(x: Missing): ...", "Missing"),
        ("from __future__ import annotations\n\n\ndef f() -> Missing: ...", "Missing"),
        ("@missing\ndef f(): ...", "missing"),
        ("x = [i for i in range(3)]\ny = i", "i"),
        ("class C:\n    a = 1\n\n    def m(self):\n        return a", "a"),
        ("def f(x=missing): ...", "missing"),
        ("def f():\n    return missing", "missing"),
    ],
)
def test_names_that_python_would_not_find_are_refused(toy_book: Path, code: str, name: str) -> None:
    assert f"`{name}`" in str(refusal(toy_book, f"# @save\n{code}"))


@pytest.mark.parametrize(
    "first, second",
    [
        ("def f(): ...", "def f(): ..."),
        ("class f: ...", "async def f(): ..."),
        ("f = 1", "f: int = 2"),
        ("from json import dumps as f", "def f(): ..."),
        ("from json import loads", "from pickle import loads"),
    ],
)
def test_a_name_defined_twice_is_refused_with_both_places(toy_book: Path, first: str, second: str) -> None:
    error = refusal(toy_book, f"# @save\n{first}", f"# @save\n{second}\nprint()")
    assert "is defined twice in module words" in str(error)
    assert error.cell == 3
    first_line = (toy_book / "chapters/02-words.md").read_text(encoding="utf-8").splitlines().index(first) + 1
    assert f"chapters/02-words.md:{first_line}" in str(error)


def test_overloads_and_repeated_imports_are_no_doubles(toy_book: Path) -> None:
    cell = "# @save\nfrom typing import overload\n\n\n@overload\ndef f(x: int) -> int: ...\n@overload\n"
    tangled(
        toy_book,
        cell + "def f(x: str) -> str: ...\ndef f(x):\n    return x",
        "# @save\nfrom typing import overload",
    )


def test_an_import_from_a_later_chapter_is_refused(toy_book: Path) -> None:
    error = refusal(toy_book, "# @save\nfrom toykit.both import double_shout\n\nx = double_shout")
    assert "imports both, which comes from the later chapter chapters/03-both.md" in str(error)
    assert error.line == line_of(toy_book, "from toykit.both import double_shout")


def test_an_import_circle_is_refused(toy_book: Path) -> None:
    error = refusal(
        toy_book,
        "# @save\nfrom toykit.extras import e\n\n\ndef shout(w):\n    return e",
        "# @save extras\nfrom toykit.words import shout\n\ne = shout",
    )
    assert "circle: words → extras → words" in str(error)
    assert error.line == line_of(toy_book, "from toykit.extras import e")


def test_a_chapters_file_that_names_no_module_is_refused_where_it_saves(toy_book: Path) -> None:
    (toy_book / "chapters/02-words.md").rename(toy_book / "chapters/02-class.md")
    replace(toy_book / "_quarto.yml", "02-words.ipynb", "02-class.ipynb")
    with pytest.raises(BookError, match="'class' is no module name") as caught:
        tangle.run(book.load(toy_book))
    assert caught.value.hint and "module: NAME" in caught.value.hint


def test_a_star_import_is_refused(toy_book: Path) -> None:
    assert "import *" in str(refusal(toy_book, "# @save\nfrom json import *"))


def test_an_import_that_shares_its_line_is_refused(toy_book: Path) -> None:
    assert "shares its line" in str(refusal(toy_book, "# @save\nimport json; x = json"))


def test_a_save_above_an_option_is_refused(toy_book: Path) -> None:
    assert "above a `#|` option" in str(refusal(toy_book, "# @save\n#| echo: false\nx = 1"))


def test_a_saved_cell_of_a_solution_is_refused(toy_book: Path) -> None:
    replace(toy_book / "chapters/solutions/01-numbers.md", "```python\n", "```python\n# @save\n")
    with pytest.raises(BookError, match="a solution saves nothing"):
        tangle.run(book.load(toy_book))


def test_all_faults_are_told_at_once_and_no_module_is_written(toy_book: Path) -> None:
    replace(toy_book / "chapters/01-numbers.md", "return DOUBLE * number", "return DOUBLE *")
    error = refusal(toy_book, "# @save\n%magic")
    assert "chapters/01-numbers.md" in str(error) and "chapters/02-words.md" in str(error)


def test_a_chapter_that_was_not_asked_for_may_be_unfinished(toy_book: Path) -> None:
    replace(toy_book / "chapters/01-numbers.md", "return DOUBLE * number", "return DOUBLE *")
    assert tangled(toy_book, "# @save\nx = 1")


def test_a_file_that_was_not_generated_is_never_replaced(toy_book: Path) -> None:
    (toy_book / "toykit/words.py").write_text("mine = 1\n", encoding="utf-8")
    before = snapshot(toy_book)
    with pytest.raises(BookError, match=r"toykit/words\.py: was not generated"):
        tangle.run(book.load(toy_book))
    assert snapshot(toy_book) == before


@pytest.mark.parametrize("force", [False, True])
def test_a_module_edited_by_hand_is_refused_with_the_difference_and_its_owner(
    toy_book: Path, force: bool
) -> None:
    tangle.run(book.load(toy_book))
    replace(toy_book / "toykit/words.py", 'upper() + "!"', 'upper() + "?"')
    replace(toy_book / "chapters/01-numbers.md", "DOUBLE = 2", "DOUBLE = 1 + 1")
    before = snapshot(toy_book)
    with pytest.raises(BookError, match=r"toykit/words\.py: was edited by hand") as caught:
        tangle.run(book.load(toy_book), force=force)
    assert snapshot(toy_book) == before
    told = str(caught.value)
    assert '-    return word.upper() + "!"' in told and '+    return word.upper() + "?"' in told
    assert "belongs to chapters/02-words.md § Words" in told
    assert "delete toykit/words.py" in told


def test_the_owner_of_an_edit_is_the_block_it_stands_in(toy_book: Path) -> None:
    write_words(toy_book, "# @save\nx = 1")
    path = toy_book / "chapters/02-words.md"
    path.write_text(
        path.read_text() + "## Later {#sec-l}\n\n```python\n# @save\ny = 2\n```\n", encoding="utf-8"
    )
    tangle.run(book.load(toy_book), [book.load(toy_book).find("words")])
    replace(toy_book / "toykit/words.py", "y = 2", "y = 3")
    with pytest.raises(BookError, match=r"belongs to chapters/02-words\.md § Later"):
        tangle.run(book.load(toy_book), [book.load(toy_book).find("words")])


def test_an_edit_that_the_chapter_then_makes_too_is_accepted(toy_book: Path) -> None:
    tangle.run(book.load(toy_book))
    replace(toy_book / "toykit/words.py", 'upper() + "!"', 'upper() + "?"')
    replace(toy_book / "chapters/02-words.md", 'word.upper() + "!"', 'word.upper() + "?"')
    assert tangle.run(book.load(toy_book)) == ["toykit/words.py"]
    assert tangle.run(book.load(toy_book)) == []


def test_a_generated_module_that_no_chapter_makes_any_more_is_named(toy_book: Path) -> None:
    write_words(toy_book, "# @save extras\nx = 1", "# @save\ndef shout(w): ...")
    tangle.run(book.load(toy_book))
    write_words(toy_book, "# @save\ndef shout(w): ...")
    assert tangle.plan(book.load(toy_book)).orphans == (toy_book / "toykit/extras.py",)
