"""Files and packets of a fleet, with all that goes wrong on their way: by import, tap and once alike to the cell."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import pytest

from hopwatch.cli.main import main
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import reader
from tests.support.fleet_replay import (
    AT_LAST_MS,
    JUDGED_AFTER_MS,
    LAST_ARRIVAL_MS,
    PATIENCE_S,
    RUN,
    SEED,
    TRANSIT_MS,
    LiveMonitor,
    Replay,
    let_arrive,
    serving,
    spooling,
    tapping,
    watch,
    windows_of,
)
from tests.support.model_comparison import Json, comparable
from tests.support.server_files import (
    DROPPED,
    SLICE_MS,
    SPAN_MS,
    START_MS,
    make_fleet,
    name_lost,
)
from tests.support.server_packets import (
    MINUTE_MS,
    MINUTES,
    find_packet_gaps,
    write_records,
)
from tests.support.spool_traffic import rest

USUAL, WHOLE = (6_000, 6), (336_776, 50)
"""Flights and servers, as a rule and in a soak: all flights of the year."""
KILLS: Final = (1, 10)
LONGEST_LIFE_S: Final = 0.5
"""Time after its first segment within which a tap is killed."""
LIFE: Final = ("status", "revision", "recovered")
OPEN_END: Final = (START_MS + SPAN_MS, START_MS + SPAN_MS + SLICE_MS)
"""Span of which nobody knows that it has no files."""
MOMENTS: Final = {format_iso(start_ms * 1_000): start_ms for start_ms in range(START_MS, START_MS + SPAN_MS, MINUTE_MS)}


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


@pytest.mark.usefixtures("imported")
def test_where_servers_only_count_the_37_are_counted(replay: Replay) -> None:
    """Server by server and minute by minute; nothing is called lost, and a window is CLEAN where nothing was dropped.

    What never came has come now: before, no window that it may have counted in is CLEAN.
    """
    spool = Path(shutil.copytree(replay.folder / "imported", replay.folder / "counted-at-last"))
    before = windows_of(replay.judge_once(replay.folder / "imported", replay.counted_rules))
    check_counted(replay, before, AT_LAST_MS)
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
    clean_before, clean = (
        {window["window_start"] for window in told if window["verdict"] == "CLEAN"} for told in (before, windows)
    )
    assert set() < clean_before < clean


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


def test_a_tap_that_is_killed_says_what_an_import_says(
    replay: Replay, imported: Json, times: Callable[[int, int], int]
) -> None:
    """The tap of the files and that of the packets, at any moment, again and again: to the cell."""
    spool, state, dice = replay.open_spool("tapped"), replay.folder / "state", Random(SEED)
    known, places = set(spool.rglob("*.seg")), list(range(len(replay.packets)))
    # A tap by HTTP takes seconds to start: as a rule packets come into the spool without one.
    posting = serving if times(0, 1) else spooling
    for _ in range(times(*KILLS)):
        before = replay.count_segments(spool)
        with tapping(replay, spool, state) as files, posting(replay, spool) as (packets, post):
            post(dice.sample(places, len(places) // 6))
            for _ in rest(PATIENCE_S):
                is_begun = replay.count_segments(spool) > before or replay.is_through(state)
                if is_begun or files.poll() is not None:
                    break
            assert files.poll() is None
            time.sleep(dice.random() * LONGEST_LIFE_S)
            for process in (files, *packets):
                process.kill()
    starts = replay.count_starts()
    with tapping(replay, spool, state) as files, posting(replay, spool) as (packets, post):
        # What was taken in the second before it was killed is gone: so the servers post all once more.
        post(dice.sample(places, len(places)))
        for _ in rest(PATIENCE_S):
            if files.poll() is not None or (replay.count_starts() > starts and replay.is_through(state)):
                break
        for process in (files, *packets):
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
    # The taps stamp with the time of now, and files and packets are of 2013.
    let_arrive(spool, known, START_MS + SPAN_MS + LAST_ARRIVAL_MS)
    replay.end(spool)
    found = replay.judge_once(spool)
    assert found["streams"] == imported["streams"]
    # Packets that were posted again are duplicates, and nothing else is.
    assert found["accounts"] | {"records": 0, "batches": 0, "duplicate_batches": 0} == imported["accounts"] | {
        "records": 0, "batches": 0, "duplicate_batches": 0
    }  # fmt: skip


@pytest.mark.soak  # laws hold --once against the slow model by default
def test_run_once_says_what_an_import_says(replay: Replay, imported: Json) -> None:
    """Through Spark and the commands."""
    config = replay.folder / "hopwatch.toml"
    config.write_text(f'transport.url = "spool:./imported"\n{config.read_text()}')
    subprocess.run([*RUN, "run", "--once", "--config", str(config)], check=True, capture_output=True)
    told = subprocess.run([*RUN, "report", "--json", "--config", str(config)], check=True, capture_output=True)
    assert windows_of(json.loads(told.stdout)) == windows_of(json.loads(json.dumps(imported)))
