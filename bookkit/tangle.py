"""Saved cells to modules: every `# @save` cell of a chapter, in order, as one importable file.

Nothing is written before everything is validated, and nothing that this tool did not generate is ever
replaced. A generated file begins with two short digests: of the cells it came from, so that an unchanged
module costs nothing, and of its own body, so that an edit made in it is noticed.
"""

from __future__ import annotations

import ast
import difflib
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bookkit import files, text
from bookkit.book import Book, Chapter
from bookkit.errors import BookError, raise_all

FORMAT = 1  # raised when the same cells are to give another module
HEADER = re.compile(r"^# Built by bookkit from (?P<source>\S+)\. Edit the chapter, not this file\.$")
DIGESTS = re.compile(r"^# bookkit: cells (?P<cells>[0-9a-f]{12}), body (?P<body>[0-9a-f]{12})$")
BLOCK = "# %% "
LITERAL = (ast.Constant, ast.JoinedStr)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Saved:
    """A saved cell: where it stands, the heading above it, and its code with the marker line blanked."""

    chapter: Chapter
    cell: text.Cell
    heading: str

    @property
    def code(self) -> str:
        """The source with its `#|` and `# @save` lines emptied, so that line numbers are the cell's."""
        lines = self.cell.source.split("\n")
        first = next(i for i, line in enumerate(lines) if line.strip() and not line.startswith("#|"))
        return "\n".join([""] * (first + 1) + lines[first + 1 :])

    def error(self, message: str, line: int, hint: str | None = None) -> BookError:
        """An error at a 1-based line of the cell."""
        return BookError(
            message,
            path=self.chapter.source,
            line=self.cell.line + line - 1,
            cell=self.cell.number,
            hint=hint,
        )


@dataclass(frozen=True)
class Module:
    """One module to be: its name, file, the chapter that owns it, and the saved cells it is made of."""

    name: str
    path: Path
    owner: Chapter
    title: str
    cells: tuple[Saved, ...]

    @property
    def digest(self) -> str:
        """Of all that the generated file depends on."""
        cells = [[saved.chapter.source, saved.heading, saved.code.strip("\n")] for saved in self.cells]
        return files.digest([FORMAT, self.name, self.owner.source, self.title, cells], 12)


@dataclass(frozen=True)
class Plan:
    """What tangling would do: the text of every module that changes, and generated files nothing saves to."""

    texts: Mapping[Path, text.Text]
    changed: Mapping[Path, str]
    orphans: tuple[Path, ...]


def run(
    book: Book, chapters: Sequence[Chapter] = (), *, check: bool = False, force: bool = False
) -> list[str]:
    """Write the modules of `chapters` (all without any) and return the paths that changed, or would
    (`check`).

    Raises BookError, before anything is written, for a cell that cannot be saved and for a module edited by
    hand.
    """
    made = plan(book, chapters, force=force)
    if not check:
        apply(made)
    return [path.relative_to(book.root).as_posix() for path in made.changed]


def apply(made: Plan) -> None:
    """Write a plan's modules, each in one step."""
    for path, content in made.changed.items():
        files.write_text(path, content)


def plan(book: Book, chapters: Sequence[Chapter] = (), *, force: bool = False) -> Plan:
    """Validate the saved cells and generate the modules whose cells changed, writing nothing."""
    texts = {chapter.path: text.read(chapter.path) for chapter in book.chapters}
    modules = collect(book, texts)
    wanted = {chapter.path for chapter in chapters or book.chapters}
    chosen = [module for module in modules if any(saved.chapter.path in wanted for saved in module.cells)]
    behind = [module for module in chosen if force or not _is_current(module)]
    raise_all([error for module in behind for error in _faults(module)])
    raise_all(_import_faults(book, modules, chosen))
    errors: list[BookError] = []
    changed: dict[Path, str] = {}
    for module in behind:
        try:
            content = _generated(book, module)
        except BookError as error:
            errors.append(error)
            continue
        if content is not None:
            changed[module.path] = content
    raise_all(errors)
    return Plan(texts, changed, _orphans(book, modules))


def collect(book: Book, texts: Mapping[Path, text.Text]) -> list[Module]:
    """Every module that the chapters' saved cells make, in the order of their owners."""
    cells: dict[str, list[Saved]] = {}
    titles: dict[str, str] = {}
    for chapter in book.chapters:
        for saved in _saved_cells(chapter, texts[chapter.path]):
            cells.setdefault(_module_name(saved), []).append(saved)
        titles[chapter.source] = _title(texts[chapter.path]) or chapter.name
    modules = [_module(book, name, saved, titles) for name, saved in cells.items()]
    return sorted(modules, key=lambda module: book.chapters.index(module.owner))


def _module(book: Book, name: str, cells: Sequence[Saved], titles: Mapping[str, str]) -> Module:
    owner = next((chapter for chapter in book.chapters if chapter.module == name), cells[0].chapter)
    title = titles[owner.source] if owner.module == name else cells[0].heading
    return Module(name, book.root / book.package / f"{name}.py", owner, title, tuple(cells))


def _saved_cells(chapter: Chapter, chapter_text: text.Text) -> Iterator[Saved]:
    heading = chapter.name
    for cell in chapter_text.cells:
        if cell.kind == "markdown":
            heading = text.heading(cell) or heading
        elif cell.save is not None:
            yield Saved(chapter, cell, heading)


def _module_name(saved: Saved) -> str:
    name = saved.cell.save or saved.chapter.module
    if saved.chapter.is_solution or name is None:
        raise saved.error(
            "a solution saves nothing", 1, "Take `# @save` out, or move the cell to the chapter."
        )
    if not text.is_module_name(name):
        hint = "Name it in the chapter's header: bookkit: {module: NAME}"
        raise saved.error(f"{name!r} is no module name", 1, hint)
    if name == "__init__":
        raise saved.error("__init__.py is written by hand", 1, "Save the cell to a module of its own.")
    return name


def _title(chapter_text: text.Text) -> str | None:
    """The text of the chapter's first H1."""
    for cell in chapter_text.cells:
        if cell.kind == "markdown":
            for line in text.outside_fences(cell.source.splitlines()):
                if line.startswith("# "):
                    return text.plain_heading(line[2:])
    return None


# Validation of cells


def _faults(module: Module) -> list[BookError]:
    """What is wrong with the module's cells one by one, and with the names they define together."""
    trees: list[tuple[Saved, ast.Module]] = []
    errors: list[BookError] = []
    for saved in module.cells:
        try:
            tree = _parse(saved)
            _refuse_star_and_shared_lines(saved, tree)
            _refuse_own_all(saved, tree)
        except BookError as error:
            errors.append(error)
        else:
            trees.append((saved, tree))
    return errors + _doubled(module, trees)


def _parse(saved: Saved) -> ast.Module:
    """The cell's syntax tree. Raises BookError for a magic, a top-level `await`, any syntax error."""
    try:
        compile(saved.code, "cell", "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _syntax_error(saved, error) from error
    except ValueError as error:
        raise saved.error(f"cannot be read as Python: {error}", 1) from error
    return ast.parse(saved.code)


def _syntax_error(saved: Saved, error: SyntaxError) -> BookError:
    line = error.lineno or 1
    if _is_magic(saved.code):
        return saved.error(
            "a magic or a shell command in a saved cell",
            _magic_line(saved.code, line),
            "A module is plain Python: move it to a cell without `# @save`.",
        )
    try:
        compile(saved.code, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError:
        return saved.error(f"syntax error: {error.msg}", line, "The cell does not run either: mend it there.")
    return saved.error(
        "a top-level `await` in a saved cell",
        line,
        "Only a notebook has a running loop: put it in an async function, or in a cell without `# @save`.",
    )


def _is_magic(code: str) -> bool:
    """Whether IPython reads the code otherwise than Python does."""
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        changed: str = TransformerManager().transform_cell(code)  # type: ignore[no-untyped-call]
        ast.parse(changed)
    except SyntaxError:
        return False
    return "get_ipython()" in changed and "get_ipython()" not in code


def _magic_line(code: str, default: int) -> int:
    """The first line that starts as magics do; `default` when it cannot be told."""
    for number, line in enumerate(code.split("\n"), start=1):
        if line.lstrip().startswith(("%", "!", "?")) or line.rstrip().endswith("?"):
            return number
    return default


def _refuse_star_and_shared_lines(saved: Saved, tree: ast.Module) -> None:
    ends: dict[int, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            raise saved.error(
                "`import *` in a saved cell hides where names come from",
                node.lineno,
                "Import the names one by one.",
            )
        neighbour = ends.get(node.lineno)
        if neighbour and (_is_import(node) or _is_import(neighbour)):
            raise saved.error(
                "an import shares its line with other code", node.lineno, "Give it its own line."
            )
        ends[node.end_lineno or node.lineno] = node


def _refuse_own_all(saved: Saved, tree: ast.Module) -> None:
    for node in tree.body:
        if "__all__" in dict(_changes(node)):
            raise saved.error(
                "sets `__all__`, which is made from the public names that the cells define",
                node.lineno,
                "Take it out; a name that begins with _ is not listed.",
            )


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _doubled(module: Module, trees: Sequence[tuple[Saved, ast.Module]]) -> list[BookError]:
    """A name defined twice in one module, or imported from two places, or both."""
    seen: dict[str, tuple[Saved, int, str]] = {}
    errors = []
    for saved, tree in trees:
        for name, line, origin in _bindings(tree):
            first = seen.setdefault(name, (saved, line, origin))
            if first[:2] != (saved, line) and not (origin and origin == first[2]):
                errors.append(_doubled_error(module, name, first, saved, line))
    return errors


def _doubled_error(
    module: Module, name: str, first: tuple[Saved, int, str], saved: Saved, line: int
) -> BookError:
    place = f"{first[0].chapter.source}:{first[0].cell.line + first[1] - 1}"
    return saved.error(
        f"`{name}` is defined twice in module {module.name}; the first is at {place}",
        line,
        "Rename one, or do not save one of the two cells.",
    )


def _bindings(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """The names that the top level binds: (name, line, origin), origin being empty for a definition."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield _bound_name(node, alias), node.lineno, _origin(node, alias)
        elif isinstance(node, Definition):
            if not _is_overload(node):
                yield node.name, node.lineno, ""
        else:
            for name in _assigned(node):
                yield name, node.lineno, ""


def _bound_name(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    return alias.asname or (alias.name.split(".")[0] if isinstance(node, ast.Import) else alias.name)


def _origin(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    if isinstance(node, ast.Import):
        return alias.name if alias.asname else alias.name.split(".")[0]
    return f"{'.' * node.level}{node.module or ''}:{alias.name}"


def _is_overload(node: Definition) -> bool:
    """`@overload` and `@f.register` repeat a name on purpose."""
    marks = [mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list]
    names = [mark.attr if isinstance(mark, ast.Attribute) else getattr(mark, "id", "") for mark in marks]
    return "overload" in names or "register" in names


def _assigned(node: ast.stmt) -> Iterator[str]:
    """The names that a top-level assignment or type alias binds."""
    if isinstance(node, ast.Assign):
        targets: list[ast.expr] = node.targets
    elif isinstance(node, ast.AnnAssign) or type(node).__name__ == "TypeAlias":
        targets = [node.target if isinstance(node, ast.AnnAssign) else node.name]  # type: ignore[attr-defined]
    else:
        return
    for target in targets:
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id


def _public_names(trees: Sequence[ast.Module]) -> list[str]:
    """The names for `__all__`: what the module's own code binds in the end, imports and `_names` aside."""
    names: set[str] = set()
    for tree in trees:
        for name, is_bound in _changes(tree):
            (names.add if is_bound else names.discard)(name)
    return sorted(name for name in names if not name.startswith("_"))


def _changes(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Every name that top-level code binds (True) or deletes (False), in order; inner scopes keep theirs."""
    if isinstance(node, Definition):
        yield node.name, True
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id, isinstance(node.ctx, ast.Store)
    elif not isinstance(node, ast.Lambda):
        inner = node.target if isinstance(node, ast.comprehension) else None
        for child in ast.iter_child_nodes(node):
            if child is not inner:
                yield from _changes(child)


# Imports between modules


def _import_faults(book: Book, modules: Sequence[Module], chosen: Sequence[Module]) -> list[BookError]:
    """Imports of a later chapter's module, and circles."""
    order = {module.name: book.chapters.index(module.owner) for module in modules}
    graph = {module.name: _module_imports(book, module) for module in modules}
    errors = []
    for module in chosen:
        for name, (saved, line) in graph[module.name].items():
            if name in order and order[name] > order[module.name]:
                errors.append(_later_error(modules, name, saved, line))
    return errors or [_circle_error(graph, circle) for circle in _circles(graph, [m.name for m in chosen])]


def _later_error(modules: Sequence[Module], name: str, saved: Saved, line: int) -> BookError:
    owner = next(module.owner for module in modules if module.name == name)
    return saved.error(
        f"imports {name}, which comes from the later chapter {owner.source}",
        line,
        "A chapter's module uses earlier chapters only: move the code, or the chapter.",
    )


def _circle_error(graph: Mapping[str, Mapping[str, tuple[Saved, int]]], circle: Sequence[str]) -> BookError:
    saved, line = graph[circle[0]][circle[1]]
    return saved.error(
        f"modules import each other in a circle: {' → '.join(circle)}",
        line,
        "Move what both need into one of them.",
    )


def _module_imports(book: Book, module: Module) -> dict[str, tuple[Saved, int]]:
    """The package's modules that a module imports, each with the cell and line of the first import."""
    found: dict[str, tuple[Saved, int]] = {}
    for saved in module.cells:
        try:
            tree = ast.parse(saved.code)
        except (SyntaxError, ValueError):
            continue  # a chapter that was not asked for may be unfinished
        for name, line in package_imports(tree, book.package):
            found.setdefault(name, (saved, line))
    return found


def package_imports(tree: ast.AST, package: str) -> Iterator[tuple[str, int]]:
    """The names of `package`'s modules that the code imports anywhere, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package if node.level else ""
            full = ".".join(part for part in (base, node.module or "") if part)
            names = [full, *(f"{full}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == package and len(parts) > 1:
                yield parts[1], node.lineno


def _circles(graph: Mapping[str, Mapping[str, object]], names: Sequence[str]) -> list[list[str]]:
    """The first circle through one of `names`, as the names along it; empty without one."""
    for name in names:
        if path := _path_back(graph, name, [name]):
            return [path]
    return []


def _path_back(graph: Mapping[str, Mapping[str, object]], goal: str, path: list[str]) -> list[str]:
    for name in graph.get(path[-1], {}):
        if name == goal:
            return [*path, goal]
        if name not in path and name in graph and (found := _path_back(graph, goal, [*path, name])):
            return found
    return []


# Generation


@dataclass(frozen=True)
class _Draft:
    """An unformatted module, and for each of its lines the saved cell and the cell's line it came from."""

    lines: tuple[str, ...]
    origin: Mapping[int, tuple[Saved, int]]

    @property
    def source(self) -> str:
        return "\n".join(self.lines) + "\n"


def _is_current(module: Module) -> bool:
    """Whether the file is as these cells made it: then they were valid, and nothing is to be written."""
    if not module.path.exists():
        return False
    content = files.read_text(module.path)
    digests = _digests(content)
    return digests is not None and digests[0] == module.digest and is_intact(content)


def _generated(book: Book, module: Module) -> str | None:
    """The module's new text, or None when the file on disk is that already.

    Raises BookError for a file that was not generated or was edited since, and for a name the module lacks.
    """
    current = files.read_text(module.path) if module.path.exists() else None
    new = _render(book, module)
    if current is not None and not is_intact(current) and body(current) != body(new):
        raise _edited(book, module, current, new)
    return None if new == current else new


def is_generated(content: str) -> bool:
    """Whether a file says that this tool wrote it."""
    return HEADER.match(content.split("\n", 1)[0]) is not None


def is_intact(content: str) -> bool:
    """Whether a generated file is as this tool wrote it."""
    digests = _digests(content)
    return digests is not None and digests[1] == files.digest(body(content), 12)


def body(content: str) -> str:
    """A generated file without its two header lines; any other file whole."""
    return content.split("\n", 2)[2] if _digests(content) else content


def code_of(content: str, tree: ast.Module) -> str:
    """A module, parsed as `tree`, without what a generated one says about its chapter's headings.

    Its users depend neither on the title in its docstring nor on the marks between its blocks. A line that
    looks like a mark and stands inside a string is code.
    """
    if not is_generated(content):
        return content
    strings = {
        number for node in ast.walk(tree) if isinstance(node, LITERAL) for number in _line_numbers(node)
    }
    title = set(_line_numbers(tree.body[0])) if ast.get_docstring(tree) else set()
    numbered = enumerate(content.split("\n"), start=1)
    kept = [
        line
        for number, line in numbered
        if number not in title and (not line.startswith(BLOCK) or number in strings)
    ]
    return body("\n".join(kept))


def _digests(content: str) -> tuple[str, str] | None:
    lines = content.split("\n", 2)
    match = DIGESTS.match(lines[1]) if len(lines) == 3 and is_generated(content) else None
    return (match["cells"], match["body"]) if match else None


def _render(book: Book, module: Module) -> str:
    draft = _draft(module)
    _refuse_unknown_names(book, module, draft)
    fixed = _ruff(
        book, module.path, draft.source, "check", "--fix", "--select", "I,F401,RUF022", "--exit-zero"
    )
    content = _ruff(book, module.path, fixed, "format")
    head = [
        f"# Built by bookkit from {module.owner.source}. Edit the chapter, not this file.",
        f"# bookkit: cells {module.digest}, body {files.digest(content, 12)}",
    ]
    return "\n".join(head) + "\n" + content


def _draft(module: Module) -> _Draft:
    """Docstring, hoisted imports, `__all__`, then the blocks in order."""
    lines: list[str] = []
    origin: dict[int, tuple[Saved, int]] = {}

    def add(line: str, saved: Saved | None = None, number: int = 0) -> None:
        lines.append(line)
        if saved:
            origin[len(lines)] = (saved, number)

    parsed = [(saved, ast.parse(saved.code)) for saved in module.cells]
    add(_docstring(module))
    for saved, tree in parsed:
        for number, line in _import_lines(saved, tree):
            add(line, saved, number)
    add(f"__all__ = {json.dumps(_public_names([tree for _, tree in parsed]))}")
    mark = ""
    for saved, tree in parsed:
        block = list(_code_lines(saved, tree))
        if block and mark != (mark := f"{BLOCK}{saved.chapter.source} § {saved.heading}"):
            lines += ["", "", mark, ""]
        elif block:
            lines += ["", ""]
        for number, line in block:
            add(line, saved, number)
    return _Draft(tuple(lines), origin)


def _docstring(module: Module) -> str:
    title = module.title.replace("\\", "\\\\").replace('"""', r"\"\"\"")
    ending = "" if title.endswith((".", "?", "!")) else "."
    return f'"""{title}{ending}"""' if not title.endswith('"') else f'"""{title} """'


def _import_lines(saved: Saved, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The cell's imports with their line numbers; ruff merges them and puts `__future__` first."""
    lines = saved.code.split("\n")
    for node in tree.body:
        if _is_import(node):
            for number in _line_numbers(node):
                yield number, lines[number - 1]


def _code_lines(saved: Saved, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The cell's lines without its imports and without blank lines at either end."""
    hoisted = {number for node in tree.body if _is_import(node) for number in _line_numbers(node)}
    lines = [(i, line) for i, line in enumerate(saved.code.split("\n"), start=1) if i not in hoisted]
    while lines and not lines[0][1].strip():
        lines.pop(0)
    while lines and not lines[-1][1].strip():
        lines.pop()
    yield from lines


def _line_numbers(node: ast.stmt | ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _refuse_unknown_names(book: Book, module: Module, draft: _Draft) -> None:
    """Ruff's F821 on the draft, told in lines of the chapter."""
    report = _ruff(
        book, module.path, draft.source, "check", "--select", "F821", "--output-format", "json", "--exit-zero"
    )
    errors: dict[str, BookError] = {}
    for found in json.loads(report):
        if found["code"] != "F821":
            continue
        name = found["message"].split("`")[1]
        saved, line = draft.origin[found["location"]["row"]]
        hint = _where_defined(saved.chapter, name)
        message = f"`{name}` is used here, but module {module.name} neither defines nor imports it"
        errors.setdefault(name, saved.error(message, line, hint))
    raise_all(list(errors.values()))


def _where_defined(chapter: Chapter, name: str) -> str:
    """The way out for an unknown name: save the cell that makes it, or import it."""
    for cell in text.read(chapter.path).cells:
        if cell.kind == "code" and cell.save is None and name in _defined_in(cell.source):
            return (
                f"The cell at line {cell.line} makes `{name}` and is not saved: save it, or pass `{name}` in."
            )
    return f"Import `{name}` in a saved cell, or correct the name."


def _defined_in(source: str) -> set[str]:
    try:
        return {name for name, _, _ in _bindings(ast.parse(source))}
    except (SyntaxError, ValueError):
        return set()


def _ruff(book: Book, path: Path, source: str, *arguments: str) -> str:
    """Run ruff over a module's source with the repository's own settings."""
    name = path.relative_to(book.root).as_posix()
    command = [
        sys.executable,
        "-m",
        "ruff",
        *arguments,
        "--quiet",
        "--no-cache",
        "--stdin-filename",
        name,
        "-",
    ]
    done = subprocess.run(command, cwd=book.root, input=source.encode(), capture_output=True)
    if done.returncode:
        raise BookError(f"ruff failed: {done.stderr.decode(errors='replace').strip()}", path=name)
    return done.stdout.decode()


def _orphans(book: Book, modules: Sequence[Module]) -> tuple[Path, ...]:
    """Generated files that no chapter saves to any more."""
    made = {module.path for module in modules}
    found = sorted((book.root / book.package).glob("*.py"))
    return tuple(path for path in found if path not in made and is_generated(files.read_text(path)))


# Modules edited by hand


def _edited(book: Book, module: Module, current: str, new: str) -> BookError:
    """The refusal to replace a file: what differs, and who owns the first difference."""
    name = module.path.relative_to(book.root).as_posix()
    if not is_generated(current):
        return BookError(
            f"was not generated, and {module.owner.source} saves cells to it",
            path=name,
            hint="Move its code into cells of the chapter and delete the file, or save the cells elsewhere.",
        )
    before, after = body(new).splitlines(), body(current).splitlines()
    diff = difflib.unified_diff(
        before, after, f"{name} as its chapter gives it", f"{name} as edited", lineterm=""
    )
    return BookError(
        f"was edited by hand; its code belongs to {_owner(module, before, after)}\n" + "\n".join(diff),
        path=name,
        hint=f"Make the change in {module.owner.source}, then delete {name} and run `bookkit tangle`.",
    )


def _owner(module: Module, before: Sequence[str], after: Sequence[str]) -> str:
    """The block mark above the first line that differs."""
    first = next((i for i, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), None)
    end = min(len(before), len(after)) if first is None else first
    marks = [line for line in before[: end + 1] if line.startswith(BLOCK)]
    return marks[-1].removeprefix(BLOCK) if marks else module.owner.source
