"""Files and packets of a fleet, with all that goes wrong on their way: by import, tap and once alike to the cell."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Event
from typing import Final

import pytest

from hopwatch.cli.main import main
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import reader
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.files.file_columns import FileMapping
from hopwatch.probes.files.importer import Importer, ImportPlan
from hopwatch.probes.files.outputs import SpoolOutput
from hopwatch.probes.files.slices import Slices
from hopwatch.probes.values import TimeUnit
from tests.support.micro_batches import MicroBatches, run_once
from tests.support.model_comparison import Json, comparable, prepared_store, rules_of
from tests.support.probe_host import ROOT
from tests.support.server_files import (
    DROPPED,
    SERVER_PATTERN,
    SLICE_MS,
    SLICES,
    SPAN_MS,
    START_MS,
    Fleet,
    ServerFile,
    find_gaps,
    make_fleet,
    name_lost,
)
from tests.support.server_packets import (
    MINUTE_MS,
    MINUTES,
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
USUAL, WHOLE = (6_000, 6), (336_776, 50)
"""Flights and servers, as a rule and in a soak: all flights of the year."""
KILLS: Final = (1, 10)
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
LONGEST_LIFE_S: Final = 0.5
"""Time after its first segment within which a tap is killed."""
LIFE: Final = ("status", "revision", "recovered")
STEP_MS: Final = 10 * MINUTE_MS
LAST_ARRIVAL_MS: Final = 7 * 3_600_000
OPEN_END: Final = (START_MS + SPAN_MS, START_MS + SPAN_MS + SLICE_MS)
"""Span of which nobody knows that it has no files."""
TRANSIT_MS: Final = 150_000
JUDGED_AFTER_MS: Final = MINUTE_MS + TRANSIT_MS + 17 * MINUTE_MS
FLAGS: Final = (
    "--stream", "flights", "--id", "id", "--time", "at", "--time-unit", "ms",
)  # fmt: skip
FILE_FLAGS: Final = ("--node", "file", "--slices", f"{START}/15m", "--server-from", SERVER_PATTERN)

Rules = dict[str, StreamConfig]
AT_LAST_MS: Final = START_MS + SPAN_MS + 12 * 3_600_000
"""Moment at which all that will ever come has come."""
MOMENTS: Final = {format_iso(start_ms * 1_000): start_ms for start_ms in range(START_MS, START_MS + SPAN_MS, MINUTE_MS)}


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


@pytest.fixture(scope="module", params=[USUAL, pytest.param(WHOLE, marks=pytest.mark.soak)], ids=["usual", "whole"])
def replay(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Replay:
    """Return a fleet of two hours."""
    flights, servers = request.param
    made = Replay(tmp_path_factory.mktemp("fleet"), make_fleet(flights, servers, Random(SEED)))
    for number in range(len(made.fleet.files)):
        made.put(number)
    return made


@pytest.fixture(scope="module")
def imported(replay: Replay) -> Json:
    """Return what is known when all files were imported among all packets, in random order and in two parts."""
    spool, dice = replay.open_spool("imported"), Random(SEED)
    whole = [replay.chunks / file.name for file in replay.fleet.files if file.is_whole]
    cut = [replay.chunks / file.name for file in replay.fleet.files if not file.is_whole]
    places = list(range(len(replay.packets)))
    dice.shuffle(whole)
    dice.shuffle(places)
    assert replay.import_files(spool, cut) == 1
    replay.post(spool, places[: len(places) // 3])
    assert replay.import_files(spool, whole[: len(whole) // 2]) == 0
    replay.post(spool, places[len(places) // 3 :])
    assert replay.import_files(spool, whole) == 0
    replay.end(spool)
    return replay.judge_once(spool)


def windows_of(report: Json) -> list[Json]:
    """Return the windows of the only stream."""
    (stream,) = report["streams"]
    return list(stream["windows"])


def without_life(report: Json) -> list[Json]:
    """Return the windows without what tells whether they were amended."""
    return [
        {name: told for name, told in window.items() if name not in LIFE} for window in windows_of(comparable(report))
    ]


def test_the_37_that_were_dropped_are_named_and_no_other(replay: Replay, imported: Json) -> None:
    """Though files came late, twice, and cut, in five formats, and their schema changed within a minute.

    A packet that never came might have told that some of them ended there on purpose.
    """
    windows = windows_of(imported)
    assert name_lost(imported) == replay.fleet.dropped
    assert sum(window["lost_upper"] for window in windows) == DROPPED
    assert sum(window["known"] for window in windows) == len(replay.fleet.sent)
    check_windows(replay, windows, find_packet_gaps(replay.packets, AT_LAST_MS))
    assert {window["verdict"] for window in windows} == {"CLEAN", "LOSSY", "UNKNOWN"}


def test_the_packet_of_a_server_its_file_and_the_ids_that_are_not_in_it(
    replay: Replay, imported: Json, capsys: pytest.CaptureFixture[str]
) -> None:
    """In JSON, and in the text of each window in which any was dropped: those, and no server more."""
    windows = windows_of(imported)
    check_servers(replay, windows, AT_LAST_MS)
    config = replay.folder / "text.toml"
    store = f'store.url = "sqlite:///{replay.folder / "imported.db"}"\n'
    config.write_text(store + (replay.folder / "hopwatch.toml").read_text())
    named: set[str] = set()
    for window in windows:
        if window["lost"]:
            start_ms = MOMENTS[window["window_start"]]
            span = ("--from", format_iso(start_ms * 1_000), "--to", format_iso((start_ms + MINUTE_MS) * 1_000))
            assert main(["report", "--config", str(config), *span]) == 0
            named |= read_servers(
                capsys.readouterr().out, replay.truth.tell((start_ms - START_MS) // MINUTE_MS, AT_LAST_MS)
            )
    assert named == replay.fleet.dropped


def test_where_servers_only_count_the_37_are_counted(replay: Replay, imported: Json) -> None:
    """Server by server and minute by minute; nothing is called lost, and a window is CLEAN where nothing was dropped.

    What never came has come now: before, no window that it may have counted in is CLEAN.
    """
    assert imported
    spool = Path(shutil.copytree(replay.folder / "imported", replay.folder / "counted-at-last"))
    check_counted(replay, windows_of(replay.judge_once(replay.folder / "imported", replay.counted_rules)), AT_LAST_MS)
    for place, packet in enumerate(replay.never):
        write_records(spool, f"never-{place}", [packet.record], START_MS + SPAN_MS + LAST_ARRIVAL_MS)
    windows, dropped = windows_of(replay.judge_once(spool, replay.counted_rules)), 0
    for window in windows:
        (counts,) = window["counts"]
        apart = {one["probe"]: one["count"] - (one["seen_behind"] or 0) for one in counts["servers"]}
        minute = (MOMENTS[window["window_start"]] - START_MS) // MINUTE_MS
        true = replay.truth.tell(minute, AT_LAST_MS)
        assert apart == {server: len(one["missing_ids"]) for server, one in true.items() if one is not None}
        assert window["verdict"] == ("UNKNOWN" if sum(apart.values()) else "CLEAN")
        dropped += sum(apart.values())
    assert dropped == DROPPED
    assert len(windows) == MINUTES


@pytest.mark.soak  # where ids are known at the servers it runs each time
def test_where_servers_only_count_no_window_is_called_clean_too_early(replay: Replay) -> None:
    """Nor anything lost, at any moment."""
    live = LiveMonitor(replay, replay.open_spool("counted-live"), replay.counted_rules)
    for now_ms, windows in watch(replay, live):
        check_counted(replay, windows, now_ms)
    assert len(windows) == MINUTES


def check_counted(replay: Replay, windows: list[Json], now_ms: int) -> None:
    """Check windows of servers that only count: CLEAN where all has come and is the same, else UNKNOWN."""
    for window in windows:
        true = replay.truth.tell((MOMENTS[window["window_start"]] - START_MS) // MINUTE_MS, now_ms)
        is_same = all(one is not None and one["count"] == (one["seen_behind"] or 0) for one in true.values())
        assert window["verdict"] == "UNKNOWN" or (window["verdict"] == "CLEAN" and is_same), window
        assert window["lost"] == window["counts"][0]["lost_before_lower"] == 0
    if not replay.find_gaps(now_ms):
        assert {window["verdict"] for window in windows} == {"CLEAN", "UNKNOWN"}


def check_servers(replay: Replay, windows: list[Json], now_ms: int) -> None:
    """Check what is said of each server, but for those of whose file only a part has come."""
    for window in windows:
        expected = replay.truth.tell((MOMENTS[window["window_start"]] - START_MS) // MINUTE_MS, now_ms)
        (counts,) = window["counts"]
        assert {one["probe"] for one in counts["servers"]} == expected.keys()
        for one in counts["servers"]:
            true = expected[one["probe"]]
            if true is not None:
                gone = true["missing_ids"]
                assert gone is None or {*one["missing_ids"]} == gone
                assert one | {"missing_ids": gone} == true, window


def read_servers(text: str, expected: dict[str, Json | None]) -> set[str]:
    """Return the ids that the lines on servers name; each says what is true, and there is none of a server more."""
    named = set()
    lines = dict(re.findall(r"^  (server-\d+): (.*)$", text, re.MULTILINE))
    assert lines.keys() == {
        server
        for server, one in expected.items()
        if one is not None and (one["missing_behind"] or (one["count"] is None and one["left_before"]))
    }
    for server, line in lines.items():
        one = expected[server]
        assert one is not None
        left, seen, gone = one["left_before"], one["seen_behind"], one["missing_behind"]
        told = [f"{left:,} by count" if one["count"] is not None else f"no packet; {left:,} left server"]
        told.append("none at file" if seen is None else f"{seen:,} at file")
        if gone and seen and one["count"] is not None:
            told[-1] += f", {gone:,} fewer"
        said, _, ids = line.partition(f"; {gone:,} missing at file: ")
        assert said == "; ".join(told), text
        named |= {*ids.split(", ")} - {""}
    return named


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
        for beat in ("first", "second"):
            came = {path for path in self.spool.rglob("*.seg") if path.stat().st_mtime_ns <= now_ms * 10**6} - self.read
            self.read |= came
            # A pulse in the spool itself would make it one that a monitor watches.
            moment = pulse(now_ms * 1_000, beat).write(self.folder / f"pulses-of-{self.spool.name}" / f"{now_ms}")
            self.batches.run([*sorted(came), moment])
        return [one for one in windows_of(reader.read_report(self.store)) if one["status"] in {"FINAL", "AMENDED"}]


def let_arrive(spool: Path, known: set[Path], arrival_ms: int) -> None:
    """Give what a tap has just written the moment at which its file came."""
    for path in set(spool.rglob("*.seg")) - known:
        os.utime(path, ns=(arrival_ms * 10**6, arrival_ms * 10**6))
        known.add(path)


def meets(start_ms: int, gaps: list[tuple[int, int]]) -> bool:
    """Return whether a window needs something of a gap to be judged."""
    return any(begin < start_ms + MINUTE_MS + TRANSIT_MS and start_ms < end for begin, end in gaps)


def check_windows(replay: Replay, windows: list[Json], gaps: list[tuple[int, int]]) -> None:
    """Check that windows which a gap meets say so where anything is missing, and all others what is true."""
    dropped_in: dict[str, set[str]] = {}
    for row in replay.fleet.sent:
        if row["id"] in replay.fleet.dropped:
            dropped_in.setdefault(format_iso(row["at"] // MINUTE_MS * MINUTE_MS * 1_000), set()).add(row["id"])
    for window in windows:
        start_ms, dropped = MOMENTS[window["window_start"]], dropped_in.get(window["window_start"], set())
        named = {lost for node in window["nodes"] for lost in node["lost_ids"]}
        if meets(start_ms, gaps):
            assert window["verdict"] == ("UNKNOWN" if window["lost"] else "CLEAN"), window
            assert window["lost_lower"] == 0
        else:
            assert (window["verdict"], named) == ("LOSSY" if dropped else "CLEAN", dropped), window


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


def test_a_gap_is_unknown_until_its_file_comes_and_amended_then(replay: Replay, imported: Json) -> None:
    """At every moment: what no gap meets is already true, and in the end all is as if it had come in time."""
    live, unknown = LiveMonitor(replay, replay.open_spool("live"), replay.rules), set[str]()
    for now_ms, windows in watch(replay, live):
        open_end = [] if now_ms == AT_LAST_MS else [OPEN_END]
        check_windows(replay, windows, [*replay.find_gaps(now_ms), *open_end])
        check_servers(replay, windows, now_ms)
        if open_end:
            unknown |= {window["window_start"] for window in windows if window["verdict"] == "UNKNOWN"}
    assert len(windows) == MINUTES
    late = [*replay.find_gaps(START_MS + SPAN_MS + JUDGED_AFTER_MS), OPEN_END]
    assert {window["status"] for window in windows} <= {"FINAL", "AMENDED"}
    amended = {window["window_start"] for window in windows if window["status"] == "AMENDED"}
    assert amended == {start for start, start_ms in MOMENTS.items() if meets(start_ms, late)}
    assert unknown
    assert unknown <= amended
    assert without_life(reader.read_report(live.store)) == without_life(imported)


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
    yield AT_LAST_MS, live.read_until(now_ms + MINUTE_MS)


def group_by_moment(fleet: Fleet) -> Iterator[tuple[int, list[ServerFile]]]:
    """Yield moments, and the files that have come since the one before: every 10 minutes, then one late file each."""
    waiting = list(fleet.files)
    for now_ms in range(START_MS + STEP_MS, START_MS + SPAN_MS + JUDGED_AFTER_MS + STEP_MS, STEP_MS):
        yield now_ms, [waiting.pop(0) for _ in range(sum(file.arrival_ms <= now_ms for file in waiting))]
    for file in waiting:
        yield file.arrival_ms - 1, []
        yield file.arrival_ms, [file]


def test_a_tap_that_is_killed_says_what_an_import_says(
    replay: Replay, imported: Json, times: Callable[[int, int], int]
) -> None:
    """At any moment, again and again: to the cell."""
    spool, state, dice = replay.open_spool("tapped"), replay.folder / "state", Random(SEED)
    known, places = set(spool.rglob("*.seg")), list(range(len(replay.packets)))
    dice.shuffle(places)
    for life in range(times(*KILLS)):
        replay.post(spool, places[life :: times(*KILLS)])
        before = len(list(spool.rglob("*.seg")))
        with tapping(replay, spool, state) as process:
            for _ in rest(PATIENCE_S):
                is_begun = len(list(spool.rglob("*.seg"))) > before or replay.is_through(state)
                if is_begun or process.poll() is not None:
                    break
            assert process.poll() is None
            time.sleep(dice.random() * LONGEST_LIFE_S)
            process.kill()
    starts = replay.count_starts()
    with tapping(replay, spool, state) as process:
        for _ in rest(PATIENCE_S):
            if process.poll() is not None or (replay.count_starts() > starts and replay.is_through(state)):
                break
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    # The tap stamps with the time of now, and the files are of 2013.
    let_arrive(spool, known, START_MS + SPAN_MS + LAST_ARRIVAL_MS)
    replay.end(spool)
    assert replay.judge_once(spool) == imported


@pytest.mark.soak  # laws hold --once against the slow model by default
def test_run_once_says_what_an_import_says(replay: Replay, imported: Json) -> None:
    """Through Spark and the commands."""
    config = replay.folder / "hopwatch.toml"
    config.write_text(f'transport.url = "spool:./imported"\n{config.read_text()}')
    subprocess.run([*RUN, "run", "--once", "--config", str(config)], check=True, capture_output=True)
    told = subprocess.run([*RUN, "report", "--json", "--config", str(config)], check=True, capture_output=True)
    assert windows_of(json.loads(told.stdout)) == windows_of(json.loads(json.dumps(imported)))
