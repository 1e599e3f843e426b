"""A dashboard in a process of its own, whose statements are counted: ours, or a page that it is held against.

These Streamlit serves as its own command does.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Final
from urllib.request import urlopen

from sqlalchemy import Engine, event

from bench.contestant import keep_to_cores
from bench.footprint import Footprint, cpu_s

STARTS_WITHIN_S: Final = 60.0
TOLD_EVERY_S: Final = 0.2
OURS, PLAIN, EMPTY = "ours", "plain", "empty"


class ServerFailedError(RuntimeError):
    """The dashboard does not answer; the message ends with what it said last."""


@dataclass(frozen=True, slots=True)
class ServerSample:
    """Totals of a server at a moment: processor seconds, trips to the database, statements in them."""

    at_s: float
    cpu_s: float
    trips: int
    statements: int


@dataclass(frozen=True, slots=True)
class DashboardServer:
    """A server that runs."""

    url: str
    process: int
    counts: Path
    peak: Footprint

    def sample(self) -> ServerSample:
        """Return what it has done so far; its counts are as old as it tells them."""
        time.sleep(2 * TOLD_EVERY_S)
        trips, statements = json.loads(self.counts.read_text("ascii"))
        taken_s = cpu_s(self.process)
        self.peak.record_peak(self.process, self.counts.parent)
        return ServerSample(time.perf_counter(), taken_s, trips, statements)


@contextmanager
def run_server(kind: str, folder: Path, *arguments: str) -> Iterator[DashboardServer]:
    """Yield a server of a kind, on the cores that contestants have.

    Raises:
        ServerFailedError: it does not start.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    counts, said = folder / f"counts-{kind}.json", folder / f"said-{kind}.txt"
    command = [sys.executable, "-m", "bench.dashboard_server", kind, str(counts), str(port), *arguments]
    with said.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:  # noqa: S603 - ours
        try:
            _await(port, process, counts, said)
            yield DashboardServer(f"http://127.0.0.1:{port}/", process.pid, counts, Footprint())
            process.send_signal(signal.SIGINT)
            process.wait(STARTS_WITHIN_S)
        finally:
            process.kill()


def _await(port: int, process: subprocess.Popen[bytes], counts: Path, said: Path) -> None:
    until_s = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < until_s and process.poll() is None:
        with suppress(OSError):
            # It listens before it answers.
            urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=STARTS_WITHIN_S).close()
            if counts.exists():
                return
        time.sleep(TOLD_EVERY_S)
    raise ServerFailedError(f"the dashboard did not start: {said.read_text('utf-8', errors='replace')[-2_000:]}")


def main(kind: str, counts: str, port: str, *arguments: str) -> None:
    """Serve in this process, until SIGINT."""
    keep_to_cores()
    counted = [0, 0]

    @event.listens_for(Engine, "begin")
    def _trip(*_: object) -> None:
        counted[0] += 1

    @event.listens_for(Engine, "before_cursor_execute")
    def _statement(*_: object) -> None:
        counted[1] += 1

    Thread(target=_tell, args=(counted, Path(counts)), daemon=True).start()
    from streamlit.web import bootstrap  # noqa: PLC0415 - a second, and of use here alone

    from hopwatch.dashboards import server, theme  # noqa: PLC0415

    if kind == OURS:
        server.serve(Path(arguments[0]), server.open_socket("127.0.0.1", int(port)))
        return
    flags = theme.build_options() | {"server.address": "127.0.0.1", "server.port": int(port)}
    options = {name.replace(".", "_"): value for name, value in flags.items()}
    bootstrap.load_config_options(options)
    page = Path(__file__).with_name(f"{kind}_page.py")
    bootstrap.run(str(page), is_hello=False, args=list(arguments), flag_options=options)


def _tell(counted: list[int], file: Path) -> None:
    """Write the counts again and again, each time whole."""
    while True:
        written = file.with_suffix(".new")
        written.write_text(json.dumps(counted), "ascii")
        written.replace(file)
        time.sleep(TOLD_EVERY_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
