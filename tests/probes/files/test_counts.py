"""Tests of files of counts: the same file is the same packets, and what a row does not say is a hole, and no loss."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import reader
from hopwatch.probes.contract.batch import Batch, BatchKind, Metrics, MetricsStamp
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.probes.files import file_counts
from hopwatch.probes.files.errors import MappingError
from hopwatch.probes.files.file_columns import CountMapping, FileFormat, FileMapping
from hopwatch.probes.files.file_counts import number_packets
from hopwatch.probes.files.importer import FileResult, Importer, ImportPlan
from hopwatch.probes.files.outputs import SpoolOutput
from hopwatch.probes.files.slices import Slices
from hopwatch.probes.values import TimeUnit
from hopwatch.testing import EPOCH_US
from tests.model import model
from tests.model.counts import fingerprint
from tests.support.made_files import Row, as_csv, as_jsonl, as_parquet, import_files, look_at
from tests.support.micro_batches import run_once
from tests.support.model_comparison import comparable, prepared_store, rules_of
from tests.support.probe_host import spooled

START_US: Final = EPOCH_US // WINDOW_US * WINDOW_US
SERVERS: Final = ("web-1", "web-2")
MINUTES: Final = 12
STREAMS: Final = {"flights": {"path": ["sent -> packets"], "stamps": {"sent": "out", "packets": "count"}}}
MAPPING: Final = CountMapping("n", None, "x", "s", None, "minute", server="host")
PLAN: Final = ImportPlan("flights", "packets", MAPPING, bye=True)
SENT: Final = ImportPlan("flights", "sent", FileMapping("id", "at", server="host"), bye=True)


def at(minute: int) -> int:
    """Return the start of a minute, µs."""
    return START_US + minute * WINDOW_US


def sent_ids(server: str, minute: int) -> list[str]:
    """Return what a server sent in a minute: two messages or three."""
    return [f"{server}-{minute}-{number}" for number in range(2 + minute % 2)]


def counted(server: str, minute: int, ids: Sequence[str] | None = None) -> Row:
    """Return the row of a server's minute, with the fingerprint in hexadecimal."""
    ids = sent_ids(server, minute) if ids is None else ids
    xor, total = (half % 2**64 for half in fingerprint(map(id_bytes, ids)))
    return {"host": server, "minute": at(minute), "n": len(ids), "x": f"{xor:016x}", "s": f"{total:016x}"}


def all_rows() -> list[Row]:
    """Return the rows of all servers and minutes."""
    return [counted(server, minute) for minute in range(MINUTES) for server in SERVERS]


def put(folder: Path, rows: Sequence[Row], name: str = "counts.csv") -> Path:
    """Write rows as CSV."""
    place = folder / name
    place.write_bytes(as_csv(rows))
    return place


def judge(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the windows, by their starts, beside all that was sent; the model says the same."""
    made = [
        {"id": one, "at": at(minute), "host": server}
        for server in SERVERS
        for minute in range(MINUTES)
        for one in sent_ids(server, minute)
    ]
    (folder / "sent").write_bytes(as_jsonl(made))
    spool = folder / "spool"
    import_files(spool, SENT, folder / "sent")
    engine = prepared_store(folder, "once.db")
    run_once(engine, rules_of(folder, STREAMS), sorted(spool.rglob("*.seg")), spool)
    found = reader.read_report(engine)
    assert comparable(found) == comparable(model.report(STREAMS, spool))
    engine.dispose()
    (stream,) = found["streams"]
    return {window["window_start"]: window for window in stream["windows"]}


def packets_of(spool: Path) -> dict[tuple[str, int], tuple[Metrics, ...]]:
    """Return what is counted in a spool by server and minute."""
    return {
        (batch.labels["host"], (batch.window_start_ms * 1_000 - START_US) // WINDOW_US): batch.metrics
        for batches in spooled(spool).values()
        for batch in batches
        if batch.kind is BatchKind.METRICS
    }


def test_a_whole_file_shows_that_nothing_was_lost(tmp_path: Path) -> None:
    """Each minute is CLEAN, by fingerprint."""
    (result,) = import_files(tmp_path / "spool", PLAN, put(tmp_path, all_rows()))
    assert (result.observations, result.is_whole) == (2 * MINUTES, True)
    windows = judge(tmp_path)
    assert {window["verdict"] for window in windows.values()} == {"CLEAN"}
    assert len(windows) == MINUTES


def test_what_was_not_counted_is_lost_by_count_in_its_minute_alone(tmp_path: Path) -> None:
    """At least the difference."""
    rows = [row if row["minute"] != at(7) else row | {"n": 1, "x": "", "s": ""} for row in all_rows()]
    import_files(tmp_path / "spool", PLAN, put(tmp_path, rows))
    windows = judge(tmp_path)
    lossy = {start: window for start, window in windows.items() if window["verdict"] == "LOSSY"}
    assert list(lossy) == [format_iso(at(7))]
    (told,) = lossy[format_iso(at(7))]["counts"]
    assert (told["arrived"], told["left_before"], told["lost_before_lower"]) == (2, 6, 4)


def _without(rows: list[Row]) -> None:
    del rows[2 * 5]


def _negative(rows: list[Row]) -> None:
    rows[2 * 5]["n"] = -1


def _other(rows: list[Row]) -> None:
    rows.append(rows[2 * 5] | {"n": 7, "x": "", "s": ""})


@pytest.mark.parametrize("spoil", [_without, _negative, _other])
@pytest.mark.parametrize("is_sliced", [False, True])
def test_what_a_row_does_not_say_is_unknown_in_its_minute(tmp_path: Path, spoil: Any, is_sliced: bool) -> None:  # noqa: ANN401, FBT001 - cases
    """And in those before it that are judged by what comes behind them; nothing is lost, and all others are CLEAN."""
    rows = all_rows()
    spoil(rows)
    slices = Slices(START_US, MINUTES * WINDOW_US) if is_sliced else None
    plan = ImportPlan("flights", "packets", MAPPING, slices, bye=True)
    import_files(tmp_path / "spool", plan, put(tmp_path, rows))
    windows = judge(tmp_path)
    unknown = [start for start, window in windows.items() if window["verdict"] == "UNKNOWN"]
    assert unknown[-1] == format_iso(at(5))
    assert len(unknown) <= 4
    assert {window["verdict"] for start, window in windows.items() if start not in unknown} == {"CLEAN"}


@pytest.mark.parametrize("edge", [0, MINUTES - 1])
def test_a_minute_that_only_other_servers_have_is_a_hole(tmp_path: Path, edge: int) -> None:
    """Though it is the first or the last of the file."""
    rows = [row for row in all_rows() if (row["host"], row["minute"]) != ("web-2", at(edge))]
    import_files(tmp_path / "spool", PLAN, put(tmp_path, rows))
    windows = judge(tmp_path)
    assert windows[format_iso(at(edge))]["verdict"] == "UNKNOWN"
    assert {window["verdict"] for window in windows.values()} == {"CLEAN", "UNKNOWN"}


@pytest.mark.parametrize("line", [b"web-1,x,3,,\n", b"web-1,%d,3,,\n" % (at(3) + 1), b"web-1,,3,,\n", b"1,2\n"])
def test_a_row_of_no_minute_may_be_of_any(tmp_path: Path, line: bytes) -> None:
    """So no minute of its server is CLEAN; nothing is lost."""
    place = put(tmp_path, all_rows())
    place.write_bytes(place.read_bytes() + line)
    (result,) = import_files(tmp_path / "spool", PLAN, place)
    assert (result.observations, sum(result.bad.values())) == (2 * MINUTES, 1)
    assert {window["verdict"] for window in judge(tmp_path).values()} == {"UNKNOWN"}


def test_without_a_bye_all_is_unknown(tmp_path: Path) -> None:
    """Nobody knows whether another file has more; the same file with a bye then tells it."""
    place = put(tmp_path, all_rows())
    import_files(tmp_path / "spool", ImportPlan("flights", "packets", MAPPING), place)
    assert {window["verdict"] for window in judge(tmp_path).values()} == {"UNKNOWN"}
    import_files(tmp_path / "spool", PLAN, place)
    assert {window["verdict"] for window in judge(tmp_path).values()} == {"CLEAN"}


def test_the_same_file_changes_nothing(tmp_path: Path) -> None:
    """Twice, under another name, on another machine, or again after half of it: the same segments of the same time."""
    rows = all_rows()
    del rows[9]
    place = put(tmp_path, rows)
    import_files(tmp_path / "spool", PLAN, place)
    before = look_at(tmp_path / "spool")
    other = place.rename(tmp_path / "renamed")
    import_files(tmp_path / "spool", PLAN, other, other)
    import_files(tmp_path / "elsewhere", PLAN, other)
    for gone in sorted(look_at(tmp_path / "elsewhere"))[::2]:
        (tmp_path / "elsewhere" / gone).unlink()
    import_files(tmp_path / "elsewhere", PLAN, other)
    assert before == look_at(tmp_path / "spool") == look_at(tmp_path / "elsewhere")
    assert before


def test_files_that_say_the_same_of_two_servers_are_two(tmp_path: Path) -> None:
    """The path tells of which server a file is, and equal bytes hide none of them."""
    rows = [{"minute": at(minute), "n": 1} for minute in range(3)]
    mapping = CountMapping("n", None, None, None, None, "minute")
    plan = ImportPlan("flights", "packets", mapping, bye=True, server_pattern=re.compile(r"web-\d"))
    places = [put(tmp_path, rows, f"{server}.csv") for server in SERVERS]
    import_files(tmp_path / "spool", plan, *places)
    assert packets_of(tmp_path / "spool").keys() == {(server, minute) for server in SERVERS for minute in range(3)}


def test_ends_are_taken_up_from_a_state(tmp_path: Path) -> None:
    """As JSON has them: what an import before has read is completed as it would have been."""
    rows = all_rows()
    del rows[9]
    place = put(tmp_path, rows)
    import_files(tmp_path / "whole", PLAN, place)
    first = Importer(PLAN, SpoolOutput(tmp_path / "spool", is_replay=True))
    (tmp_path / "spool").mkdir()
    result = first.import_file(str(place), Event())
    second = Importer(PLAN, SpoolOutput(tmp_path / "spool", is_replay=True))
    second.resume({}, [type(end)(*end[:-1], [list(mark) for mark in end.marks]) for end in result.ends])
    second.finish()
    assert look_at(tmp_path / "spool") == look_at(tmp_path / "whole")


@pytest.mark.parametrize("write", [as_csv, as_jsonl, as_parquet])
@pytest.mark.parametrize("form", ["hexadecimal", "decimal", "signed"])
def test_fingerprints_and_formats_say_the_same(tmp_path: Path, write: Any, form: str) -> None:  # noqa: ANN401 - a case
    """In 16 hexadecimal digits, or as whole numbers with a sign or without."""
    rows = all_rows()
    for row in rows:
        for half in ("x", "s"):
            number = int(row[half], 16)
            signed = (number ^ 2**63) - 2**63
            row[half] = {"hexadecimal": row[half], "decimal": str(number), "signed": signed}[form]
    (tmp_path / "counts").write_bytes(write(rows))
    (result,) = import_files(tmp_path / "spool", PLAN, tmp_path / "counts")
    assert result.is_whole, result
    expected = {
        (server, minute): (Metrics(MetricsStamp.IN, 2 + minute % 2, *fingerprint(map(id_bytes, ids))),)
        for server in SERVERS
        for minute in range(MINUTES)
        for ids in [sent_ids(server, minute)]
    }
    assert packets_of(tmp_path / "spool") == expected


def test_stamps_and_sizes_stand_in_columns(tmp_path: Path) -> None:
    """A minute is one packet of all of its stamps; a row that stands there twice is one."""
    mapping = CountMapping("n", "side", None, None, "size", "minute", TimeUnit.ISO, zone="UTC", format=FileFormat.CSV)
    told: list[tuple[str, int, Any]]
    told = [("in", 5, 100), ("out", 3, ""), ("filtered", 1, 7), ("rejected", 1, 0), ("deferred", 0, 0), ("in", 5, 100)]
    rows = [{"minute": "2026-11-21 10:00", "side": side, "n": count, "size": size} for side, count, size in told]
    plan = ImportPlan("flights", "packets", mapping, server="web-7")
    (result,) = import_files(tmp_path / "spool", plan, put(tmp_path, rows))
    assert (result.observations, result.is_whole) == (5, True)
    (metrics,) = packets_of(tmp_path / "spool").values()
    assert metrics == tuple(
        Metrics(MetricsStamp[side.upper()], count, size_bytes=int(size or 0)) for side, count, size in told[:-1]
    )


BAD: Final[dict[str, tuple[Row, str, str]]] = {
    "negative": ({"n": -5}, "bad_count", "row 2: n is a whole number from 0 to 2^63 - 1, got '-5'"),
    "a fraction": ({"n": "5.0"}, "bad_count", "got '5.0'"),
    "nothing": ({"n": ""}, "bad_count", "got None"),
    "too many": ({"n": 2**63}, "bad_count", f"got '{2**63}'"),
    "half a fingerprint": ({"x": ""}, "bad_fingerprint", "two times 64 bits, hexadecimal or decimal, got None and"),
    "no fingerprint": ({"x": "zz"}, "bad_fingerprint", "got 'zz' and"),
    "seconds": ({"minute": at(0) + 1}, "bad_minute", "row 2: minute begins a whole minute, got 20"),
    "no time": ({"minute": ""}, "no_time", "row 2: minute is empty"),
    "a bad time": ({"minute": "x"}, "bad_time", "row 2: minute is no time between 1970 and 2255"),
    "a far time": ({"minute": at(0) + 400 * 1_440 * WINDOW_US}, "bad_time", "is more than 366 days from the first"),
    "another": ({"minute": at(0)}, "two_counts", "'web-1' counted 2 as in at "),
}


@pytest.mark.parametrize(("wrong", "reason", "told"), BAD.values(), ids=BAD)
def test_a_bad_row_is_told_with_its_place(tmp_path: Path, wrong: Row, reason: str, told: str) -> None:
    """And counted; all others count."""
    rows = [counted("web-1", minute) for minute in range(4)]
    rows[1] |= wrong
    (result,) = import_files(tmp_path / "spool", PLAN, put(tmp_path, rows))
    assert dict(result.bad) == {reason: 1}
    assert told in result.note
    assert result.observations == (2 if reason == "two_counts" else 3)
    assert ("web-1", 1) not in packets_of(tmp_path / "spool")


def test_a_bad_stamp_is_told(tmp_path: Path) -> None:
    """With those that there are."""
    mapping = CountMapping("n", "side", None, None, None, "minute")
    rows = [{"minute": at(minute), "side": side, "n": 1} for minute, side in enumerate(["in", "both"])]
    (result,) = import_files(tmp_path / "spool", ImportPlan("flights", "packets", mapping), put(tmp_path, rows))
    assert result.note == "row 2: side is one of in, out, filtered, rejected, deferred, got 'both'"


def test_a_file_that_is_cut_counts_nothing(tmp_path: Path) -> None:
    """The whole file will, and what stands in both would be added; the slice has not come."""
    place = put(tmp_path, all_rows())
    whole = place.read_bytes()
    place.write_bytes(whole[:-9])
    plan = ImportPlan("flights", "packets", MAPPING, Slices(START_US, MINUTES * WINDOW_US), bye=True)
    (result,) = import_files(tmp_path / "spool", plan, place)
    assert (result.observations, result.fault) == (0, "its last line has no newline, and may be cut")
    assert not packets_of(tmp_path / "spool")
    place.write_bytes(whole)
    import_files(tmp_path / "spool", plan, place)
    assert {window["verdict"] for window in judge(tmp_path).values()} == {"CLEAN"}


def _read_one(tmp_path: Path, rows: Sequence[Row], mapping: CountMapping = MAPPING) -> FileResult:
    (result,) = import_files(tmp_path / "spool", ImportPlan("flights", "packets", mapping), put(tmp_path, rows))
    return result


def test_what_cannot_be_read_at_all_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No good row, too many of them, or times without a zone."""
    told = "none of its rows can be read: bad_count 1: are --counted, --time and --time-unit right?"
    assert _read_one(tmp_path, [counted("web-1", 0) | {"n": -1}]).fault == told
    iso = CountMapping("n", None, None, None, None, "minute", TimeUnit.ISO)
    with pytest.raises(MappingError, match="have no zone"):
        _read_one(tmp_path, [{"minute": "2026-11-21T10:00", "n": 1}], iso)
    monkeypatch.setattr(file_counts, "MAX_COUNTS", 5)
    assert _read_one(tmp_path, all_rows()).fault == "it has more than 5 rows of counts: split it by time"
    assert not packets_of(tmp_path / "spool")


def test_a_column_that_names_no_servers_is_told(tmp_path: Path) -> None:
    """Lists are no texts."""
    (tmp_path / "counts").write_bytes(as_parquet([{"n": 1, "minute": at(0), "host": [1], "x": None, "s": None}]))
    (result,) = import_files(tmp_path / "spool", PLAN, tmp_path / "counts")
    assert result.fault.startswith("its column host names no servers")


@given(st.sets(st.integers(0, 40)), st.booleans())
def test_a_number_is_left_out_for_each_run_of_minutes_that_is_not_there(minutes: set[int], is_open: bool) -> None:  # noqa: FBT001 - hypothesis
    """Between what completes all before it, and what was sent when it ended: no other minute is touched."""
    starts = sorted(at(minute) for minute in minutes)
    numbers = number_packets(starts, at(0), at(41), is_open=is_open)
    assert [start for _, start in numbers.packets] == starts
    # Number, and the moments that a batch completes and is sent at.
    told = [(0, at(0), at(0)), *((seq, at(0), start + WINDOW_US - 1) for seq, start in numbers.packets)]
    told += [(seq, mark_us - 1, mark_us - 1) for seq, mark_us in numbers.marks]
    told.append((numbers.bye, at(41), at(41) - 1))
    missed = set()
    for (seq, through_us, _), (behind, _, sent_us) in pairwise(sorted(told)):
        if behind > seq + 1:
            missed |= {minute for minute in range(41) if at(minute) <= sent_us and through_us + 1 < at(minute + 1)}
    absent = set(range(41)) - minutes
    assert missed == (set(range(41)) if is_open else absent)


def test_very_many_holes_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all minutes."""
    monkeypatch.setattr(file_counts, "MAX_HOLES", 2)
    starts = [at(minute) for minute in range(0, 12, 2)]
    assert number_packets(starts[:2], at(0), at(3), is_open=False).marks
    assert not number_packets(starts, at(0), at(11), is_open=False).marks


def test_only_its_own_batches_are_written(tmp_path: Path) -> None:
    """A hello, packets that complete nothing, and a bye of each server."""
    import_files(tmp_path / "spool", PLAN, put(tmp_path, [counted("web-1", minute) for minute in range(2)]))
    batches = [batch for of_folder in spooled(tmp_path / "spool").values() for batch in of_folder]
    ordered: list[Batch] = sorted(batches, key=lambda batch: batch.seq)
    assert [(batch.seq, batch.kind) for batch in ordered] == list(
        enumerate((BatchKind.HEARTBEAT, BatchKind.METRICS, BatchKind.METRICS, BatchKind.BYE))
    )
    assert [batch.complete_through_us for batch in ordered] == [at(0), at(0), at(0), at(2) - 1]
