"""Reading while writing: serve the pages, rebuild on save, reload the browser.

Only the pages are served, and only to this machine. A page asks for the next version with one long request
and reloads itself when the answer comes; the script that does so is added on the way out, the built files do
not hold it. When a build fails, the page stays and shows the message.
"""

from __future__ import annotations

import errno
import json
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator, Set
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from bookkit import book as books
from bookkit.book import Book
from bookkit.errors import BookError
from bookkit.render import stamp

HOST = "127.0.0.1"
ROUTE = "/_bookkit/next"
WATCHED = {".md", ".bib", ".yml", ".py", ".css", ".js", ".lua", ".html", ".typ", ".json", ".txt"}
IGNORED = {"_book", "figures", "tests", "__pycache__", ".ipynb_checkpoints", "venv", "node_modules"}
INTERVAL = 0.3  # seconds between two looks at the sources
PATIENCE = 25.0  # seconds that a page's request stays open
SCRIPT = """<script>
(async () => {
  let version = %d;
  for (;;) {
    try {
      const answer = await (await fetch("%s?after=" + version)).json();
      if (answer.version === version) continue;
      if (!answer.error) { location.reload(); return; }
      version = answer.version;
      const box = document.getElementById("bookkit-error") ?? document.createElement("pre");
      document.body.append(box);
      box.id = "bookkit-error";
      box.setAttribute("role", "alert");
      box.style.cssText = "position:fixed;inset:auto 0 0 0;z-index:99;margin:0;padding:1rem;max-height:50vh;"
        + "overflow:auto;white-space:pre-wrap;background:#7d1518;color:#fff";
      box.textContent = answer.error;
    } catch { await new Promise((done) => setTimeout(done, 1000)); }
  }
})();
</script>
"""

Rebuild = Callable[[], None]
Snapshot = dict[str, tuple[int, int]]


class Versions:
    """Counts builds; whoever waits for the next one is woken by it."""

    def __init__(self) -> None:
        self.version = 1
        self.error = ""
        self._changed = threading.Condition()

    def publish(self, error: str = "") -> None:
        """A build ended: `error` is its message, "" when the pages are new."""
        with self._changed:
            self.version += 1
            self.error = error
            self._changed.notify_all()

    def after(self, version: int, patience: float) -> tuple[int, str]:
        """The version and error once they are newer than `version`, or what they are when patience ends."""
        with self._changed:
            self._changed.wait_for(lambda: self.version != version, patience)
            return self.version, self.error


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, with the reloading script in every page."""

    def __init__(self, *args: object, versions: Versions, directory: str) -> None:
        self.versions = versions
        super().__init__(*args, directory=directory)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """A page with the script in it, the next version's number, or a file as it is."""
        path = urlsplit(self.path).path
        if path == ROUTE:
            self._send_next()
        elif (file := self._page(path)) is not None:
            html = file.read_text(encoding="utf-8")
            script = SCRIPT % (self.versions.version, ROUTE)
            self._send(html.replace("</body>", script + "</body>", 1).encode(), "text/html; charset=utf-8")
        else:
            super().do_GET()

    def end_headers(self) -> None:
        """Nothing may be kept: the next request is for the next build."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing about requests: the terminal shows builds."""

    def _page(self, path: str) -> Path | None:
        file = Path(self.translate_path(path))
        file = file / "index.html" if file.is_dir() and path.endswith("/") else file
        return file if file.suffix == ".html" and file.is_file() else None

    def _send_next(self) -> None:
        asked = parse_qs(urlsplit(self.path).query).get("after", [""])[0]
        version, error = self.versions.after(int(asked) if asked.isdigit() else 0, PATIENCE)
        self._send(json.dumps({"version": version, "error": error}).encode(), "application/json")

    def _send(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Server(ThreadingHTTPServer):
    """A thread a request, none of which keeps the program alive."""

    daemon_threads = True
    allow_reuse_address = True


def make_server(folder: Path, port: int, versions: Versions) -> Server:
    """A server for the folder; port 0 takes a free one. Raises BookError when the port is taken."""
    handler = partial(Handler, versions=versions, directory=str(folder))
    try:
        return Server((HOST, port), handler)
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            reason = "is in use" if error.errno == errno.EADDRINUSE else "may not be used"
            raise BookError(
                f"port {port} {reason}", hint=f"Choose another one: bookkit preview --port {port + 1}"
            ) from error
        raise
    except OverflowError as error:
        raise BookError(f"{port} is no port number", hint="Ports go from 1 to 65535.") from error


def serve(
    book: Book, port: int = 8000, *, rebuild: Callable[[Book], object] | None = None, browse: bool = False
) -> None:
    """Build, serve on http://127.0.0.1:PORT/, and rebuild whenever a source is saved, until interrupted.

    `rebuild` is called with the book as it is then (by default all that `bookkit build` does); a BookError
    that it raises is shown and the old pages stay. Raises BookError when the port is taken.
    """
    versions = Versions()
    server = make_server(stamp.output_folder(book), port, versions)
    address = f"http://{HOST}:{server.server_port}/"
    look = partial(snapshot, book.root, book.package)
    seen = look()
    report(versions, partial(_rebuild, book.root, rebuild or build_all))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"Serving {address} (Ctrl+C ends it)", flush=True)
    if browse:
        webbrowser.open(address)
    try:
        for _ in changes(look, seen):
            report(versions, partial(_rebuild, book.root, rebuild or build_all))
    except KeyboardInterrupt:
        print("\nEnded.", flush=True)
    finally:
        server.shutdown()
        server.server_close()


def build_all(book: Book) -> None:
    """Everything that `bookkit build` does."""
    from bookkit import build

    build.run(book)


def _rebuild(root: Path, rebuild: Callable[[Book], object]) -> None:
    rebuild(books.load(root))


def report(versions: Versions, rebuild: Rebuild) -> None:
    """Run a build and publish how it ended. What the author can mend is shown; anything else is a fault of
    this tool, shown too, and the preview goes on.
    """
    start = time.perf_counter()
    try:
        rebuild()
    except BookError as error:
        print(f"Error: {error}", flush=True)
        versions.publish(str(error))
    except Exception as error:
        print(f"Error: {type(error).__name__}: {error}", flush=True)
        versions.publish(f"{type(error).__name__}: {error}")
    else:
        print(f"Pages are up to date ({time.perf_counter() - start:.1f} s).", flush=True)
        versions.publish()


def changes(
    look: Callable[[], Snapshot], seen: Snapshot, wait: Callable[[float], None] = time.sleep
) -> Iterator[Snapshot]:
    """What `look` finds, once for each time that a source was saved, after the saving has settled."""
    while True:
        wait(INTERVAL)
        now = look()
        while now != seen:
            seen = now
            wait(INTERVAL / 3)
            now = look()
            if now == seen:
                yield now


def snapshot(root: Path, package: str = "") -> Snapshot:
    """The sources below `root`: path → (modification time in ns, size).

    What a build writes is left out (figures, notebooks, the modules of `package`), so that no build causes
    the next. Times only wake the build; what is stale it decides by content.
    """
    found: Snapshot = {}
    for path in _sources(root, IGNORED | {package}):
        try:
            status = path.stat()
        except OSError:  # saved by renaming, and just gone
            continue
        found[path.relative_to(root).as_posix()] = (status.st_mtime_ns, status.st_size)
    return found


def _sources(folder: Path, ignored: Set[str]) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in ignored or path.name.startswith("."):
            continue
        if path.is_dir():
            yield from _sources(path, ignored)
        elif path.suffix in WATCHED:
            yield path
