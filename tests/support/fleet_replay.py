"""The files and packets of a fleet in a folder, how they come into a spool, and a monitor that reads it meanwhile."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from random import Random
from threading import Event
from typing import Final

import httpx

from hopwatch.cli.main import main
from hopwatch.monitor.store import reader
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.segment import FORWARDED_RECORDS
from hopwatch.probes.files.file_columns import FileMapping
from hopwatch.probes.files.importer import Importer, ImportPlan
from hopwatch.probes.files.outputs import SpoolOutput
from hopwatch.probes.files.slices import Slices
from hopwatch.probes.values import TimeUnit
from servers.process import free_ports
from tests.support.micro_batches import MicroBatches, run_once
from tests.support.model_comparison import Json, prepared_store, rules_of
from tests.support.probe_host import ROOT
from tests.support.server_files import (
    SERVER_PATTERN,
    SLICE_MS,
    SLICES,
    SPAN_MS,
    START_MS,
    Fleet,
    ServerFile,
    find_gaps,
)
from tests.support.server_packets import (
    MINUTE_MS,
    ServerTruth,
    find_packet_gaps,
    make_packets,
    write_departures,
    write_records,
)
from tests.support.spool_traffic import pulse, rest

START: Final = "2013-06-01T00:00Z"
RUN: Final = (sys.executable, "-m", "hopwatch")
SEED: Final = 2013
PATIENCE_S: Final = 240
STREAMS: Final[Json] = {
    "flights": {
        "path": ["server -> packet -> file"],
        "stamps": {"server": "out", "packet": "count", "file": "in"},
        # A file comes up to 90 s after the 15 minutes that it is of.
        "settle": "17m",
        "amend_for": "12h",
    }
}
COUNTED: Final[Json] = {
    "flights": STREAMS["flights"]
    | {"path": ["packet -> file"], "stamps": {"packet": "count", "file": "in"}, "ignore_nodes": ["server"]}
}
"""The same where no probe knows the ids at the servers."""
PLAN: Final = ImportPlan(
    "flights", "file", FileMapping("id", "at", TimeUnit.MS), Slices(START_MS * 1_000, SLICE_MS * 1_000),
    server_pattern=re.compile(SERVER_PATTERN),
)  # fmt: skip
STEP_MS: Final = 10 * MINUTE_MS
LAST_ARRIVAL_MS: Final = 7 * 3_600_000
TRANSIT_MS: Final = 150_000
JUDGED_AFTER_MS: Final = MINUTE_MS + TRANSIT_MS + 17 * MINUTE_MS
FLAGS: Final = (
    "--stream", "flights", "--id", "id", "--time", "at", "--time-unit", "ms",
)  # fmt: skip
FILE_FLAGS: Final = ("--node", "file", "--slices", f"{START}/15m", "--server-from", SERVER_PATTERN)

Rules = dict[str, StreamConfig]
AT_LAST_MS: Final = START_MS + SPAN_MS + 12 * 3_600_000
"""Moment at which all that will ever come has come."""


class Replay:
    """The files of a fleet in a folder, its packets, and the spools that both come into."""

    def __init__(self, folder: Path, fleet: Fleet) -> None:
        """Write what the probes of the servers saw leave; none of their files and packets has come yet."""
        self.folder, self.fleet, self.chunks = folder, fleet, folder / "chunks"
        (folder / "counted").mkdir()
        self.counted_rules, self.rules = rules_of(folder / "counted", COUNTED), rules_of(folder, STREAMS)
        self.packets, self.never = make_packets(fleet.sent, Random(SEED))
        self.truth = ServerTruth(fleet, self.packets)
        write_departures(fleet.sent, folder / "servers")

    def open_spool(self, name: str) -> Path:
        """Return a new spool with the stamps of the servers, which arrive minute by minute."""
        return Path(shutil.copytree(self.folder / "servers", self.folder / name))

    def post(self, spool: Path, places: Iterable[int]) -> None:
        """Let packets come into a spool, each at its moment."""
        for place in places:
            packet = self.packets[place]
            write_records(spool, f"packet-{place}", [packet.record], packet.arrival_ms)

    def put(self, number: int) -> Path:
        """Let a file come into the folder, whole in one moment."""
        file = self.fleet.files[number]
        path = self.chunks / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}")
        part.write_bytes(file.data)
        return part.rename(path)

    def import_files(self, spool: Path, paths: list[Path], *more: str) -> int:
        """Import files of the fleet; return the exit code."""
        return main(["import", *map(str, paths), *FILE_FLAGS, *FLAGS, "--sink", f"spool:{spool}", *more])

    def end(self, spool: Path) -> None:
        """Say that the servers have ended with their last files."""
        last = [self.chunks / file.name for file in self.fleet.files if file.slice == SLICES - 1 and file.is_whole]
        assert self.import_files(spool, last, "--bye") == 0

    def find_gaps(self, now_ms: int) -> list[tuple[int, int]]:
        """Return the spans of files and packets that have not come by a moment, ms."""
        return [*find_gaps(self.fleet, now_ms), *find_packet_gaps(self.packets, now_ms)]

    def count_segments(self, spool: Path) -> int:
        """Return how many segments there are of files."""
        return sum(not path.parent.name.startswith(FORWARDED_RECORDS) for path in spool.rglob("*.seg"))

    def is_through(self, state: Path) -> bool:
        """Return whether a tap has imported all files; of those that are cut its log tells."""
        told = state.read_text() if state.exists() else ""
        log = (self.folder / "tap.log").read_text()
        return all(
            f'{self.chunks / file.name}"' in told if file.is_whole else file.name in log for file in self.fleet.files
        )

    def count_starts(self) -> int:
        """Return how often a tap has begun to watch the folder, by its log."""
        return (self.folder / "tap.log").read_text().count("watching the folder")

    def judge_once(self, spool: Path, rules: Rules | None = None) -> Json:
        """Return what ``run --once`` says of a spool."""
        engine = prepared_store(self.folder, f"{spool.name}{'-counted' if rules else ''}.db")
        run_once(engine, rules or self.rules, sorted(spool.rglob("*.seg")), spool)
        found = reader.read_report(engine)
        engine.dispose()
        return found


def windows_of(report: Json) -> list[Json]:
    """Return the windows of the only stream."""
    (stream,) = report["streams"]
    return list(stream["windows"])


class LiveMonitor:
    """Monitor that reads a spool while it is filled, on the clock of the files."""

    def __init__(self, replay: Replay, spool: Path, rules: Rules) -> None:
        """Start with an empty store."""
        self.spool, self.folder = spool, replay.folder
        self.store = prepared_store(replay.folder, f"{spool.name}.db")
        self.batches = MicroBatches(rules, self.store, spool_dir=spool)
        self.read: set[Path] = set()

    def read_until(self, now_ms: int) -> list[Json]:
        """Read what has arrived by a moment, and return the windows that are judged by then."""
        waiting = set(self.spool.rglob("*.seg")) - self.read
        came = {path for path in waiting if path.stat().st_mtime_ns <= now_ms * 10**6}
        self.read |= came
        for beat in ("first", "second"):
            # A pulse in the spool itself would make it one that a monitor watches.
            moment = pulse(now_ms * 1_000, beat).write(self.folder / f"pulses-of-{self.spool.name}" / f"{now_ms}")
            self.batches.run([*sorted(came), moment])
            came = set()
        return [one for one in windows_of(reader.read_report(self.store)) if one["status"] in {"FINAL", "AMENDED"}]


def let_arrive(spool: Path, known: set[Path], arrival_ms: int) -> None:
    """Give what a tap has just written the moment at which its file came."""
    for path in set(spool.rglob("*.seg")) - known:
        os.utime(path, ns=(arrival_ms * 10**6, arrival_ms * 10**6))
        known.add(path)


def watch(replay: Replay, live: LiveMonitor) -> Iterator[tuple[int, list[Json]]]:
    """Let files and packets come into the spool of a monitor; yield moments, and what is judged by then."""
    importer = Importer(PLAN, SpoolOutput(live.spool, is_replay=False))
    replay.post(live.spool, range(len(replay.packets)))
    known = set(live.spool.rglob("*.seg"))
    for now_ms, files in group_by_moment(replay.fleet):
        for file in files:
            result = importer.import_file(str(replay.chunks / file.name), Event())
            assert result.fault == ("" if file.is_whole else "its last line has no newline, and may be cut")
            let_arrive(live.spool, known, file.arrival_ms)
        yield now_ms, live.read_until(now_ms)
    replay.end(live.spool)
    yield AT_LAST_MS, live.read_until(max(now_ms, replay.packets[-1].arrival_ms) + MINUTE_MS)


def group_by_moment(fleet: Fleet) -> Iterator[tuple[int, list[ServerFile]]]:
    """Yield moments, and the files that have come since the one before: every 10 minutes, then one late file each."""
    waiting = list(fleet.files)
    for now_ms in range(START_MS + STEP_MS, START_MS + SPAN_MS + JUDGED_AFTER_MS + STEP_MS, STEP_MS):
        yield now_ms, [waiting.pop(0) for _ in range(sum(file.arrival_ms <= now_ms for file in waiting))]
    for file in waiting:
        yield file.arrival_ms - 1, []
        yield file.arrival_ms, [file]


@contextmanager
def tapping(replay: Replay, spool: Path, state: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the tap of the folder in a process, which is killed at the end."""
    command = [*RUN, "tap", "files", str(replay.chunks), *FILE_FLAGS, *FLAGS, "--sink", f"spool:{spool}"]
    with (replay.folder / "tap.log").open("ab") as log:
        process = subprocess.Popen([*command, "--quiet", "0", "--state", str(state)], cwd=ROOT, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


Posting = tuple[tuple[subprocess.Popen[bytes], ...], Callable[[Iterable[int]], None]]
"""Processes that take packets, and what posts some to them."""


@contextmanager
def spooling(replay: Replay, spool: Path) -> Iterator[Posting]:
    """Let packets come into a spool without a process."""
    yield (), partial(replay.post, spool)


@contextmanager
def serving(replay: Replay, spool: Path) -> Iterator[Posting]:
    """Run a tap by HTTP in a process, which is killed at the end."""
    (port,) = free_ports(1)
    command = [*RUN, "tap", "http", "--port", str(port), "--sink", f"spool:{spool}"]
    with (replay.folder / "http.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    headers = {"content-type": "application/vnd.hopwatch.batch"}
    there = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S, headers=headers)

    def post(places: Iterable[int]) -> None:
        for place in places:
            answer = there.post("/v1/observations", content=replay.packets[place].record)
            assert answer.status_code == HTTPStatus.ACCEPTED, answer.text

    try:
        for _ in rest(PATIENCE_S):
            assert process.poll() is None
            with suppress(httpx.TransportError):
                if there.get("/readyz").status_code == HTTPStatus.OK:
                    break
        yield (process,), post
    finally:
        there.close()
        process.kill()
        process.wait()
