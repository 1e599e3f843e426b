"""An entrance in a process of its own: the gate, the gate without validation, or what stands in its place."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from bench.contestant import ContestantError, keep_to_cores
from bench.gate.client import HOST
from bench.gate.orders import STREAM
from servers.kafka import Kafka
from servers.process import free_ports

GATE, UNCHECKED, PLAIN = "gate", "unchecked", "plain"
KINDS: Final = (GATE, UNCHECKED, PLAIN)
OBSERVATIONS: Final = "hopwatch.observations"
STARTS_WITHIN_S: Final = 60.0
_LOOK_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class EntranceServer:
    """A server that runs."""

    port: int
    process: int
    metrics_port: int = 0
    """Port of the page of metrics; of the gate alone."""


def topic(kind: str) -> str:
    """Return the topic that a kind writes to."""
    return f"{STREAM}.{kind}"


def topics(kind: str) -> tuple[str, ...]:
    """Return all topics that a kind needs."""
    return topic(kind), _rejected(kind)


def _rejected(kind: str) -> str:
    return f"{topic(kind)}.rejected"


@contextmanager
def run_server(kind: str, folder: Path, broker: Kafka, more: str = "") -> Iterator[EntranceServer]:
    """Yield a server of a kind, on the cores that contestants have; what it needs for the next time stays in a folder.

    ``more`` is added to its configuration.

    Raises:
        ContestantError: it does not start.
    """
    own = folder / kind
    own.mkdir(exist_ok=True)
    (own / "hopwatch.toml").write_text(_configuration(kind, broker) + more, "utf-8")
    port, metrics_port = free_ports(2)
    said = own / "said.txt"
    command = [
        sys.executable,
        "-m",
        "bench.gate.server",
        kind,
        str(own),
        str(port),
        broker.bootstrap,
        str(metrics_port),
    ]
    with said.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:  # noqa: S603 - ours
        try:
            _await(kind, port, process, said)
            yield EntranceServer(port, process.pid, metrics_port)
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STARTS_WITHIN_S)
        finally:
            process.kill()


def _configuration(kind: str, broker: Kafka) -> str:
    return (
        f'[transport]\nurl = "{broker.url(OBSERVATIONS)}"\n[store]\nurl = "sqlite:///./hopwatch.db"\n'
        f'[streams.{STREAM}]\npath = "gate -> sink"\n'
        f'[gate.streams.{STREAM}]\nto = "{broker.url(topic(kind))}"\nrejected = "{broker.url(_rejected(kind))}"\n'
    )


def _await(kind: str, port: int, process: subprocess.Popen[bytes], said: Path) -> None:
    until_s = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < until_s and process.poll() is None:
        with suppress(OSError):
            urlopen(f"http://{HOST}:{port}/healthz", timeout=STARTS_WITHIN_S).close()
            return
        time.sleep(_LOOK_S)
    words = said.read_text("utf-8", errors="replace").strip()[-2_000:]
    raise ContestantError(f"the entrance {kind!r} did not start: {words}")


def main(kind: str, folder: str, port: str, bootstrap: str, metrics_port: str) -> int:
    """Serve in this process, until SIGINT; return the exit code."""
    keep_to_cores()
    if kind == PLAIN:
        from bench.peers import plain_app  # noqa: PLC0415 - each has what it needs, and no more

        plain_app.serve(HOST, int(port), bootstrap, topic(kind))
        return 0
    if kind == UNCHECKED:
        from bench.gate import bare_gate  # noqa: PLC0415

        bare_gate.take_all()
    from hopwatch.cli.main import main as hopwatch  # noqa: PLC0415

    where = ["--config", str(Path(folder) / "hopwatch.toml"), "--port", port, "--host", HOST]
    where += ["--metrics-listen", f"{HOST}:{metrics_port}"]
    return hopwatch(["gate", *where, "--allow-weak"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
