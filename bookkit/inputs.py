"""What a chapter's outputs depend on, all of it content of the repository.

Its code; the source of every module of the repository that the code imports, and that those import; the files
those modules and the chapter's header name; and the pinned versions, in `constraints.txt`, of the other
packages imported.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bookkit import files, tangle, text
from bookkit.book import Book, Chapter
from bookkit.errors import BookError

CONSTRAINTS = "constraints.txt"
SHORT = 12  # hex digits of a part's digest

# Packages that are imported by another name than they are installed by.
DISTRIBUTIONS = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


@dataclass(frozen=True)
class Module:
    """What a module of the repository brings in: names it imports, files it reads, its digest."""

    imports: tuple[str, ...]
    data: tuple[Path, ...]
    digest: str


@dataclass(frozen=True)
class Sources:
    """The repository's modules and pins, each read once.

    `planned` holds the text of modules that are about to be written: they count as if they were on disk.
    """

    book: Book
    planned: Mapping[Path, str] = field(default_factory=dict)
    _modules: dict[Path, Module] = field(default_factory=dict)
    _found: dict[tuple[str, Path], frozenset[Path]] = field(default_factory=dict)
    _pins: dict[str, str] = field(default_factory=dict)

    def parts(self, chapter: Chapter, chapter_text: text.Text) -> dict[str, str]:
        """Everything that the chapter's outputs depend on: what it is, and a short digest of it."""
        code = [cell for cell in chapter_text.cells if cell.kind == "code"]
        imports = tuple(name for cell in code for name in imported_names(cell.code))
        modules, others = self._reachable(imports, chapter.path.parent)
        found = {"code": files.digest([_code_of(cell) for cell in code], SHORT)}
        for path in modules:
            found[self._name(path)] = self._module(path).digest
            found |= {self._name(data): _file_digest(data) for data in self._module(path).data}
        found |= {self._name(path): _file_digest(path) for path in self._declared(chapter)}
        found |= {f"{CONSTRAINTS}: {name}": pin for name, pin in self._pinned(others)}
        return found

    def _reachable(self, imports: tuple[str, ...], folder: Path) -> tuple[list[Path], set[str]]:
        """The repository's modules reached from these imports, and the other packages named on the way.

        A kernel finds modules in the chapter's own `folder`, where it runs, and in the repository's.
        """
        modules: set[Path] = set()
        others: set[str] = set()
        waiting, seen = list(imports), set(imports)
        while waiting:
            name = waiting.pop()
            paths = self._files_of(name, self.book.root) | self._files_of(name, folder)
            if not paths:
                others.add(name.split(".")[0])
            for path in paths - modules:
                modules.add(path)
                new = set(self._module(path).imports) - seen
                waiting += new
                seen |= new
        return sorted(modules), others

    def _files_of(self, name: str, folder: Path) -> frozenset[Path]:
        """The files below `folder` that importing a dotted name runs: the module's and its packages'."""
        if (name, folder) not in self._found:
            parts = name.split(".")
            bases = [folder.joinpath(*parts[:count]) for count in range(1, len(parts) + 1)]
            candidates = [path for base in bases for path in (base.with_suffix(".py"), base / "__init__.py")]
            existing = (path for path in candidates if path in self.planned or path.is_file())
            self._found[name, folder] = frozenset(existing)
        return self._found[name, folder]

    def _module(self, path: Path) -> Module:
        if path not in self._modules:
            self._modules[path] = self._read_module(path)
        return self._modules[path]

    def _read_module(self, path: Path) -> Module:
        source = self.planned[path] if path in self.planned else files.read_text(path)
        package = path.parent.relative_to(self.book.root).parts
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None)
            raise BookError(f"cannot be read as Python: {error}", path=self._name(path), line=line) from error
        data = tuple(_files_beside(tree, path.parent)) if "__file__" in source else ()
        return Module(tuple(_imports(tree, package)), data, files.digest(tangle.code_of(source, tree), SHORT))

    def _declared(self, chapter: Chapter) -> Iterator[Path]:
        """The files that the header's `data:` patterns match."""
        for pattern in chapter.data:
            matched = _files_matching(pattern, self.book.root)
            if not matched:
                raise BookError(
                    f"header: `data:` names {pattern}, and no file matches it",
                    path=chapter.source,
                    line=1,
                    hint="Paths and patterns are relative to the repository.",
                )
            yield from matched

    def _pinned(self, packages: set[str]) -> Iterator[tuple[str, str]]:
        if not self._pins:
            self._pins.update(_read_pins(self.book.root / CONSTRAINTS) or {"": ""})
        for name in sorted({normalised(DISTRIBUTIONS.get(package, package)) for package in packages}):
            if name in self._pins:
                yield name, self._pins[name]

    def _name(self, path: Path) -> str:
        return path.relative_to(self.book.root).as_posix()


def _files_matching(pattern: str, root: Path) -> list[Path]:
    """The files inside of `root` that a pattern matches; none for what is no pattern."""
    try:
        found = [path for path in root.glob(pattern) if path.is_file()]
    except (ValueError, NotImplementedError):  # "", "/etc/passwd", "**.csv"
        return []
    return sorted(path for path in found if ".." not in path.parts)


def _code_of(cell: text.Cell) -> list[object]:
    """What of a code cell its outputs depend on; a figure's label salts its identifiers."""
    return [cell.code, cell.options.get("label"), list(cell.tags)]


def imported_names(code: str) -> tuple[str, ...]:
    """The dotted names that a cell's code imports; magics are read as IPython reads them."""
    if "import" not in code:
        return ()
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        tree = _parse_as_ipython(code)
    return tuple(_imports(tree, ()))


def _parse_as_ipython(code: str) -> ast.Module:
    from IPython.core.inputtransformer2 import TransformerManager

    manager = TransformerManager()  # type: ignore[no-untyped-call]
    try:
        return ast.parse(manager.transform_cell(code))
    except (SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])  # executing the cell will say what is wrong


def _imports(tree: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    """Every dotted name that may be a module: for `from a import b` both a and a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            around = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*around, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _files_beside(tree: ast.AST, folder: Path) -> Iterator[Path]:
    """The files that a module names as `Path(__file__).parent / "folder" / "file"`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            base, parts = _division(node)
            path = folder.joinpath(*parts)
            if "__file__" in ast.dump(base) and path.is_file():
                yield path


def _division(node: ast.expr) -> tuple[ast.expr, list[str]]:
    """`base / "a" / "b"` as base and ["a", "b"]."""
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.right, ast.Constant)
        and isinstance(node.right.value, str)
    ):
        base, parts = _division(node.left)
        return base, [*parts, node.right.value]
    return node, []


def _file_digest(path: Path) -> str:
    """Of the bytes, with LF line ends, so that a checkout on another system gives the same."""
    return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()[:SHORT]


def _read_pins(path: Path) -> dict[str, str]:
    """Package → version as `constraints.txt` pins it; empty without the file."""
    if not path.is_file():
        return {}
    lines = (line.split("#")[0].strip() for line in files.read_text(path).splitlines())
    pairs = (re.match(r"^([A-Za-z0-9._-]+)\s*(.*)$", line) for line in lines)
    return {normalised(pair[1]): pair[2].removeprefix("==").strip() for pair in pairs if pair}


def normalised(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()
