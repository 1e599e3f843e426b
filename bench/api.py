"""Latency of the query API over a month of 100 nodes, at a fixed rate of requests, its server on one core."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlencode

import aiohttp
import numpy as np
from rich.table import Table

from bench.dashboard import configuration
from bench.footprint import cpu_s
from bench.month import GREAT, Month, fill
from bench.speed import Progress
from bench.table_style import format_number, new_table
from bench.truth import WrongResultError
from hopwatch.monitor.kernel.completeness import HOUR_US
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import dialect
from hopwatch.probes.contract.limits import WINDOW_US

RATE: Final = 200
SECONDS: Final = 60
WARM_S: Final = 3
CONNECTIONS: Final = 64
GOAL_MS: Final = 50.0
CONTRACT: Final = '[completeness.hourly]\nstream = "{stream}"\nlost_below = 0.01\n'
STARTS_WITHIN_S: Final = 60.0
OK: Final = 200


@dataclass(frozen=True, slots=True)
class ApiTimes:
    """Latency of requests from the moment they were due, ms, and the share of its core that the server took."""

    what: str
    node_windows: int
    requests: int
    rate: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    cores: float


class _Question(NamedTuple):
    """Request, and what its answer has to have."""

    path: str
    key: str
    value: str


def measure(scratch: Path, tell: Progress, month: Month = Month(), seconds: int = SECONDS) -> list[ApiTimes]:  # noqa: B008 - a frozen value
    """Return the latencies of a window and of completeness at any moment of the month, alone and mixed.

    Raises:
        WrongResultError: an answer is not the one that was asked for.
    """
    file = scratch / "api-month.db"
    url = f"sqlite:///{file}"
    if not file.exists():
        engine = dialect.create_engine(url)
        fill(engine, month, tell)
        engine.dispose()
    config = scratch / "hopwatch.toml"
    config.write_text(configuration(url, month) + CONTRACT.format(stream=GREAT), "utf-8")
    dice = np.random.default_rng(1)
    windows, spans = _ask_windows(month, dice, seconds), _ask_spans(month, dice, seconds)
    mixed = [one for pair in zip(windows, spans, strict=True) for one in pair][: len(windows)]
    lines = []
    for what, questions in (("a window", windows), ("completeness of an hour", spans), ("both, mixed", mixed)):
        tell(what)
        with _serving(scratch, config) as (port, process):
            asyncio.run(_load(port, questions[: WARM_S * RATE]))
            before_s, begun_s = cpu_s(process), time.perf_counter()
            spans_ms = np.array(asyncio.run(_load(port, questions))) * 1e3
            took_s = time.perf_counter() - begun_s
            cores = (cpu_s(process) - before_s) / took_s
        p50_ms, p99_ms = (float(one) for one in np.quantile(spans_ms, (0.5, 0.99)))
        rate = len(questions) / took_s
        worst_ms = float(spans_ms.max())
        lines.append(ApiTimes(what, month.node_windows, len(questions), rate, p50_ms, p99_ms, worst_ms, cores))
    return lines


def build_table(lines: Sequence[ApiTimes]) -> Table:
    """Return the table of the figures."""
    title = f"The query API at {RATE} requests a second, its server on one core; goal: p99 of {GOAL_MS:.0f} ms"
    names = ("node-windows", "requests", "a second", "p50 ms", "p99 ms", "max ms", "cores")
    table = new_table(title, ("asked",), names)
    for line in lines:
        figures = (line.rate, line.p50_ms, line.p99_ms, line.max_ms)
        told = (format_number(one, 1) for one in figures)
        table.add_row(line.what, f"{line.node_windows:,}", f"{line.requests:,}", *told, format_number(line.cores, 2))
    return table


def _ask_windows(month: Month, dice: np.random.Generator, seconds: int) -> list[_Question]:
    places = dice.integers(0, month.minutes, seconds * RATE).tolist()
    starts = (format_iso(month.start_us + place * WINDOW_US) for place in places)
    return [_Question(f"/v1/streams/{GREAT}/windows/{start}", "window_start", start) for start in starts]


def _ask_spans(month: Month, dice: np.random.Generator, seconds: int) -> list[_Question]:
    first = HOUR_US // WINDOW_US
    places = dice.integers(first, month.minutes, seconds * RATE).tolist()
    ends = (format_iso(month.start_us + place * WINDOW_US) for place in places)
    said = ((end, urlencode({"contract": "hourly", "until": end})) for end in ends)
    return [_Question(f"/v1/completeness?{query}", "until", end) for end, query in said]


async def _load(port: int, questions: Sequence[_Question]) -> list[float]:
    """Ask at the rate, whether the answers come or not; return how long after it was due each was there, s."""
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", connector=connector) as session:
        begin_s = time.perf_counter()

        async def ask(number: int, question: _Question) -> float:
            due_s = begin_s + number / RATE
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            async with session.get(question.path) as answer:
                told = await answer.json()
            taken_s = time.perf_counter() - due_s
            if answer.status != OK or told[question.key] != question.value:
                raise WrongResultError(f"{question.path} was answered with {answer.status}: {str(told)[:200]}")
            return taken_s

        return list(await asyncio.gather(*(ask(*one) for one in enumerate(questions))))


@contextmanager
def _serving(scratch: Path, config: Path) -> Iterator[tuple[int, int]]:
    """Yield the port and the process of a server on the last core of this process; the load has the others.

    Raises:
        WrongResultError: it does not start.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "hopwatch", "api", "--config", str(config), "--port", str(port)]
    cores = sorted(os.sched_getaffinity(0))
    with (scratch / "api.log").open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:  # noqa: S603 - ours
        try:
            os.sched_setaffinity(process.pid, cores[-1:])
            os.sched_setaffinity(0, cores[:-1] or cores)
            _await(port, process)
            yield port, process.pid
            process.send_signal(signal.SIGINT)
            process.wait(STARTS_WITHIN_S)
        finally:
            os.sched_setaffinity(0, cores)
            process.kill()


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < until_s and process.poll() is None:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.1)
    raise WrongResultError("hopwatch api did not start: its last words are in api.log of the scratch folder")
