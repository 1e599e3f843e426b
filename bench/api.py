"""Latency of the query API over a month of 100 nodes, at a fixed rate of requests, its server on one core.

Of both databases: a window, completeness, both, and both while clients wait for changes, of which each gets every one.
"""

from __future__ import annotations

import asyncio
import gc
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
import orjson
from rich.console import Group
from sqlalchemy import Engine

from bench.api_watchers import EVERY_S, WATCHERS, Watchers
from bench.dashboard import POSTGRES, SQLITE, configuration, open_database
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
    """Latency of requests from the moment they were due, ms, and the share of its core that the server took.

    ``errors`` are requests that got no answer, or one that is none; latencies are those of the others. Where an answer
    is of something else than was asked for, the bench ends.
    """

    store: str
    what: str
    node_windows: int
    requests: int
    errors: int
    rate: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    cores: float


@dataclass(frozen=True, slots=True)
class ChangeTimes:
    """Time from a change of a window to its event, s, of clients that got every change, once and in order."""

    store: str
    clients: int
    changes: int
    p50_s: float
    p99_s: float
    max_s: float


class _Question(NamedTuple):
    """Request, and what its answer has to have."""

    path: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class _Bench:
    """Store that is asked: its name, its engine, what it has, and the configuration that names it."""

    store: str
    engine: Engine
    month: Month
    config: Path
    core: int

    def ask(self, what: str, questions: Sequence[_Question], watched_s: float = 0) -> list[ApiTimes | ChangeTimes]:
        """Return the latencies of questions, and of changes, if clients wait for them, for so long.

        Raises:
            WrongResultError: an answer is not the one that was asked for, or there is none at all.
        """
        with _serving(self.config, self.core) as (port, process):
            asyncio.run(_load(port, questions[: WARM_S * RATE]))
            before_s, begun_s = cpu_s(process), time.perf_counter()
            watchers = Watchers(self.engine, self.month, port)
            with _uncollected():
                spans_s, changes_s = asyncio.run(_load_watched(port, questions, watchers, watched_s))
            took_s = time.perf_counter() - begun_s
            cores = (cpu_s(process) - before_s) / took_s
        answered = [one for one in spans_s if one is not None]
        if not answered:
            raise WrongResultError(f"none of {len(questions)} requests was answered")
        p50_ms, p99_ms, max_ms = (1e3 * float(one) for one in np.quantile(answered, (0.5, 0.99, 1.0)))
        asked = len(questions), len(questions) - len(answered), len(questions) / took_s
        times = ApiTimes(self.store, what, self.month.node_windows, *asked, p50_ms, p99_ms, max_ms, cores)
        if not changes_s:
            return [times]
        spread_s = (float(one) for one in np.quantile(changes_s, (0.5, 0.99, 1.0)))
        return [times, ChangeTimes(self.store, WATCHERS, len(changes_s) // WATCHERS, *spread_s)]


def measure(
    scratch: Path,
    tell: Progress,
    month: Month = Month(),  # noqa: B008 - a frozen value
    seconds: int = SECONDS,
) -> list[ApiTimes | ChangeTimes]:
    """Return the latencies of a window and of completeness at any moment of the month, alone, mixed, and watched.

    Raises:
        ServerError: PostgreSQL is not there, or does not start.
        WrongResultError: an answer is not the one that was asked for, or a client did not get every change.
    """
    dice = np.random.default_rng(1)
    windows, spans = _ask_windows(month, dice, seconds), _ask_spans(month, dice, seconds)
    mixed = [one for pair in zip(windows, spans, strict=True) for one in pair][: len(windows)]
    asked = {"a window": windows, "completeness of an hour": spans, "both, mixed": mixed}
    lines: list[ApiTimes | ChangeTimes] = []
    with _leave_a_core() as core:
        for store in (SQLITE, POSTGRES):
            with _filled(store, scratch, month, lambda step, store=store: tell(f"{store}: {step}")) as url:  # type: ignore[misc]  # a default
                config = scratch / "hopwatch.toml"
                config.write_text(configuration(url, month) + CONTRACT.format(stream=GREAT), "utf-8")
                bench = _Bench(store, dialect.create_engine(url), month, config, core)
                for what, questions in asked.items():
                    tell(f"{store}: {what}")
                    lines += bench.ask(what, questions)
                tell(f"{store}: both, with {WATCHERS} clients that wait for changes")
                lines += bench.ask(f"both, and {WATCHERS} clients wait for changes", mixed, seconds)
                bench.engine.dispose()
    return lines


def build_table(lines: Sequence[ApiTimes | ChangeTimes]) -> Group:
    """Return the tables of the figures."""
    title = f"The query API at {RATE} requests a second, its server on one core; goal: p99 of {GOAL_MS:.0f} ms"
    names = ("node-windows", "requests", "errors", "a second", "p50 ms", "p99 ms", "max ms", "cores")
    asked = new_table(title, ("store", "asked"), names)
    title = f"Changes, one every {EVERY_S} s, at clients that wait: each got every one, once and in order"
    changes = new_table(title, ("store",), ("clients", "changes", "p50 s", "p99 s", "max s"))
    for line in lines:
        if isinstance(line, ApiTimes):
            figures = (line.rate, line.p50_ms, line.p99_ms, line.max_ms)
            told = (*(format_number(one, 1) for one in figures), format_number(line.cores, 2))
            asked.add_row(
                line.store, line.what, f"{line.node_windows:,}", f"{line.requests:,}", f"{line.errors:,}", *told
            )
        else:
            told = tuple(format_number(one, 2) for one in (line.p50_s, line.p99_s, line.max_s))
            changes.add_row(line.store, f"{line.clients:,}", f"{line.changes:,}", *told)
    return Group(asked, changes)


@contextmanager
def _leave_a_core() -> Iterator[int]:
    """Keep this process, and all that it starts, off its last core, if it has several; yield that core."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:-1] or cores)
    try:
        yield cores[-1]
    finally:
        os.sched_setaffinity(0, cores)


@contextmanager
def _filled(store: str, scratch: Path, month: Month, tell: Progress) -> Iterator[str]:
    """Yield the URL of a store of the month; a file is kept in the folder, and used again."""
    if store == SQLITE:
        file = scratch / f"api-{month.days}-{month.nodes}.db"
        if not file.exists():
            making = file.with_suffix(".part")
            making.unlink(missing_ok=True)
            _fill(f"sqlite:///{making}", month, tell)
            making.rename(file)
        yield f"sqlite:///{file}"
        return
    with open_database(store, scratch) as url:
        _fill(url, month, tell)
        yield url


def _fill(url: str, month: Month, tell: Progress) -> None:
    engine = dialect.create_engine(url)
    fill(engine, month, tell)
    engine.dispose()


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


async def _load(port: int, questions: Sequence[_Question]) -> list[float | None]:
    """Ask at the rate, whether the answers come or not; return how long after it was due each was there, s, or None."""
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", connector=connector) as session:

        async def ask(due_s: float, question: _Question) -> float | None:
            try:
                async with session.get(question.path) as answer:
                    body = await answer.read()
            except (aiohttp.ClientError, TimeoutError):
                return None
            taken_s = time.perf_counter() - due_s
            if answer.status != OK:
                return None
            told = orjson.loads(body)
            if told[question.key] != question.value:
                raise WrongResultError(f"{question.path} was answered with {str(told)[:200]}")
            return taken_s

        begin_s, asked = time.perf_counter(), []
        for number, question in enumerate(questions):
            due_s = begin_s + number / RATE
            # One by one: thousands of tasks that are made at once would be late before the first has asked.
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            asked.append(asyncio.create_task(ask(due_s, question)))
        return list(await asyncio.gather(*asked))


async def _load_watched(
    port: int, questions: Sequence[_Question], watchers: Watchers, watched_s: float
) -> tuple[list[float | None], list[float]]:
    """Ask while clients wait for changes for so long, if at all; return the spans of both, s."""
    if not watched_s:
        return await _load(port, questions), []
    spans_s, changes_s = await asyncio.gather(_load(port, questions), watchers.watch(watched_s))
    return spans_s, changes_s


@contextmanager
def _uncollected() -> Iterator[None]:
    """Collect no garbage during the block: a collection of this process would count as latency of the server."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def _serving(config: Path, core: int) -> Iterator[tuple[int, int]]:
    """Yield the port and the process of a server on a core.

    Raises:
        WrongResultError: it does not start.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "hopwatch", "api", "--config", str(config), "--port", str(port)]
    with config.with_name("api.log").open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:  # noqa: S603 - ours
        try:
            os.sched_setaffinity(process.pid, [core])
            _await(port, process)
            yield port, process.pid
            process.send_signal(signal.SIGINT)
            process.wait(STARTS_WITHIN_S)
        finally:
            process.kill()


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < until_s and process.poll() is None:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.1)
    raise WrongResultError("hopwatch api did not start: its last words are in api.log of the scratch folder")
