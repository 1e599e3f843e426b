"""Tests of the importer: the same file is the same account, and what cannot be read is a gap with its place."""

from __future__ import annotations

import os
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hopwatch.monitor.kernel.servers import name_server
from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import BatchKind, Drop
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.files import avro_rows, importer, outputs
from hopwatch.probes.files.errors import MappingError
from hopwatch.probes.files.file_columns import FileFormat, FileMapping
from hopwatch.probes.files.importer import Importer, ImportPlan
from hopwatch.probes.files.outputs import SpoolOutput
from hopwatch.probes.files.slices import Slices
from hopwatch.probes.sinks.memory import MemorySink
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError
from hopwatch.probes.values import SkipReason, TimeUnit
from hopwatch.testing import EPOCH_US
from tests.support.made_files import (
    MAPPING,
    as_avro,
    as_csv,
    as_gzip,
    as_jsonl,
    as_parquet,
    build_container,
    import_files,
    look_at,
    made_rows,
)
from tests.support.probe_host import rows, spooled

PLAN = ImportPlan("flights", "file", MAPPING, bye=True)
FORMATS: dict[str, Callable[..., bytes]] = {"jsonl": as_jsonl, "csv": as_csv, "parquet": as_parquet, "avro": as_avro}
MINUTE_MS = 60_000
LINE_BYTES = 100 << 20


def observed(spool: Path) -> set[tuple[bytes, int, int | None]]:
    """Return id, event time and arrival of each observation in a spool."""
    return {(row.message_id, row.event_us, row.in_us) for own in spooled(spool).values() for row in rows(own)}


def expected(made: list[dict[str, object]]) -> set[tuple[bytes, int, int | None]]:
    """Return the same of rows."""
    return {(id_bytes(str(row["id"])), int(str(row["at"])), int(str(row["at"]))) for row in made}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("codec", ["plain", "gzip", "zstd"])
def test_every_format_says_the_same(tmp_path: Path, name: str, codec: str) -> None:
    """Of each row the id, its text, its event time, and a stamp at that time; the last batch is the bye."""
    made = made_rows(0, 700)
    data = FORMATS[name](made)
    if codec == "gzip":
        data = as_gzip(data)
    elif codec == "zstd":
        data = as_zstd(data)
    place = tmp_path / "a file"
    place.write_bytes(data)
    (result,) = import_files(tmp_path / "spool", PLAN, place)
    if name == "parquet" and codec != "plain":
        assert result.fault == "it is a compressed Parquet file: unpack it"
        return
    assert (result.observations, result.is_whole) == (700, True)
    assert observed(tmp_path / "spool") == expected(made)
    (batches,) = spooled(tmp_path / "spool").values()
    in_order = sorted(batches, key=lambda batch: batch.seq)
    assert [batch.seq for batch in in_order] == list(range(len(in_order)))
    assert [batch.kind for batch in in_order[-2:]] == [BatchKind.HEARTBEAT, BatchKind.BYE]
    assert in_order[0].kind is BatchKind.HEARTBEAT
    assert in_order[-1].complete_through_us == EPOCH_US + 699 * 1_000_000


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_the_codecs_of_avro_are_unpacked(tmp_path: Path, codec: str) -> None:
    """Block by block."""
    made = made_rows(0, 300)
    (tmp_path / "file").write_bytes(as_avro(made, codec))
    import_files(tmp_path / "spool", PLAN, tmp_path / "file")
    assert observed(tmp_path / "spool") == expected(made)


def test_the_same_file_changes_nothing(tmp_path: Path) -> None:
    """Twice, under another name, on another machine, or again after half of it: the same segments of the same time."""
    place, other = tmp_path / "a.jsonl", tmp_path / "renamed"
    place.write_bytes(as_jsonl(made_rows(0, 900)))
    import_files(tmp_path / "spool", PLAN, place)
    before = look_at(tmp_path / "spool")
    place.rename(other)
    import_files(tmp_path / "spool", PLAN, other, other)
    import_files(tmp_path / "elsewhere", PLAN, other)
    half = look_at(tmp_path / "elsewhere")
    for gone in sorted(half)[::2]:
        (tmp_path / "elsewhere" / gone).unlink()
    import_files(tmp_path / "elsewhere", PLAN, other)
    assert before == look_at(tmp_path / "spool") == look_at(tmp_path / "elsewhere")
    assert len(before) > 1


def test_what_is_read_otherwise_is_another_account(tmp_path: Path) -> None:
    """A mapping that was wrong does not hide the right one behind its numbers."""
    place = tmp_path / "file"
    place.write_bytes(as_jsonl([{"id": "a", "other": "b", "at": EPOCH_US}]))
    import_files(tmp_path / "spool", PLAN, place)
    import_files(tmp_path / "spool", ImportPlan("flights", "file", FileMapping("other", "at"), bye=True), place)
    assert len(spooled(tmp_path / "spool")) == 2


def test_segments_arrive_when_the_file_says_that_they_did(tmp_path: Path) -> None:
    """At the end of the minute of the last stamp: by the column, if there is one."""
    place = tmp_path / "file"
    place.write_bytes(as_jsonl([{"id": 1, "at": EPOCH_US, "in": EPOCH_US + 150_000_000}]))
    plan = ImportPlan("flights", "file", FileMapping("id", "at", arrived="in"), bye=True)
    import_files(tmp_path / "spool", plan, place)
    arrivals_us = {path.stat().st_mtime_ns // 1_000 for path in (tmp_path / "spool").rglob("*.seg")}
    assert arrivals_us == {((EPOCH_US + 150_000_000) // 60_000_000 + 1) * 60_000_000}
    assert {row.in_us for own in spooled(tmp_path / "spool").values() for row in rows(own)} == {EPOCH_US + 150_000_000}


def drops_of(spool: Path) -> list[Drop]:
    """Return the drops that the only instance told."""
    (batches,) = spooled(spool).values()
    return [drop for batch in batches for drop in batch.drops]


@pytest.mark.parametrize("is_json", [True, False])
def test_broken_lines_are_drops_in_their_windows(tmp_path: Path, is_json: bool) -> None:  # noqa: FBT001 - a case
    """One whose time can be read in its minute, one of which nothing can be in those around it; all others count."""
    made = made_rows(0, 6_000, step_us=100_000)
    lines = (as_jsonl if is_json else as_csv)(made).splitlines(keepends=True)
    broken, no_id = (b'{"id": "x", \n', b'{"at": %d}\n') if is_json else (b"a,b,c,d\n", b",%d\n")
    lines[3_000:3_000] = [broken]
    lines.insert(1_000, no_id % (EPOCH_US + 1))
    place = tmp_path / "file"
    place.write_bytes(b"".join(lines))
    (result,) = import_files(tmp_path / "spool", PLAN, place)
    reason = SkipReason.NOT_JSON if is_json else SkipReason.UNDECODABLE
    assert result.bad == {reason: 1, SkipReason.NO_ID: 1}
    assert (result.fault, result.observations) == ("", 6_000)
    told = {(drop.window_start_ms, drop.cause): drop.count for drop in drops_of(tmp_path / "spool")}
    start_ms = EPOCH_US // 60_000_000 * MINUTE_MS
    assert told.pop((start_ms, "no_id")) == 1
    near = {(start_ms + minute * MINUTE_MS, str(reason)) for minute in range(1, 9)}
    assert set(told) <= near | {(start_ms + minute * MINUTE_MS, str(reason)) for minute in (1, 2)}
    assert (start_ms + 5 * MINUTE_MS, str(reason)) in told
    assert set(told.values()) == {1}


@pytest.mark.parametrize("is_json", [True, False])
def test_a_line_that_is_too_long_is_skipped(tmp_path: Path, is_json: bool) -> None:  # noqa: FBT001 - a case
    """Memory is bounded, whatever a line is."""
    place = tmp_path / "file"
    before, behind = made_rows(0, 5), made_rows(5, 10)
    with place.open("wb") as file:
        file.write(as_jsonl(before) if is_json else as_csv(before))
        file.seek(LINE_BYTES, os.SEEK_CUR)
        file.write(b"\n" + (as_jsonl(behind) if is_json else as_csv(behind).partition(b"\n")[2]))
    tracemalloc.start()
    (result,) = import_files(tmp_path / "spool", PLAN, place)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (result.observations, result.bad) == (10, {SkipReason.OVERSIZED: 1})
    assert most_bytes < LINE_BYTES / 2


def test_files_of_one_name_with_other_contents_both_count(tmp_path: Path) -> None:
    """In two folders, or one after the other in one: a file is its content."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    first, other = tmp_path / "a" / "log", tmp_path / "b" / "log"
    first.write_bytes(as_jsonl(made_rows(0, 5)))
    other.write_bytes(as_jsonl(made_rows(5, 9)))
    import_files(tmp_path / "spool", PLAN, first, other)
    first.write_bytes(as_jsonl(made_rows(9, 12)))
    import_files(tmp_path / "spool", PLAN, first)
    assert len(spooled(tmp_path / "spool")) == 3
    assert observed(tmp_path / "spool") == expected(made_rows(0, 12))


def test_a_time_without_a_zone_among_others_is_bad(tmp_path: Path) -> None:
    """No zone is guessed from the lines around it; with --zone all of them count."""
    place = tmp_path / "file"
    place.write_bytes(b'{"id": "a", "at": "2023-11-14T22:13:20Z"}\n{"id": "b", "at": "2023-11-14T22:13:21"}\n')
    for zone, count in ((None, 1), ("UTC", 2)):
        plan = ImportPlan("flights", "file", FileMapping("id", "at", TimeUnit.ISO, zone=zone), bye=True)
        (result,) = import_files(tmp_path / f"{zone}", plan, place)
        assert (result.observations, result.bad[SkipReason.BAD_TIME]) == (count, 2 - count)


def as_zstd(data: bytes) -> bytes:
    """Return data compressed."""
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


CUTS = [
    (as_jsonl(made_rows(0, 99))[:-7], 98, "its last line has no newline, and may be cut"),
    (as_csv(made_rows(0, 99))[:-7], 98, "its last line has no newline, and may be cut"),
    (as_gzip(as_jsonl(made_rows(0, 9_000)))[:-900], None, "its compressed bytes end before their end"),
    (as_zstd(as_jsonl(made_rows(0, 9_000)))[:-900], None, "its compressed bytes end before their end"),
    (as_avro(made_rows(0, 900))[:-20], None, "it ends in the middle of a block"),
    (as_parquet(made_rows(0, 99))[:-20], 0, "it is no whole Parquet file"),
    (b"", 0, "it is empty"),
    (b"id,at\n", 0, "it has no rows"),
    (b'{"id": 1, "at": "x"}\n', 0, "none of its rows can be read: bad_time 1: are --id, --id-as, --time and"),
    (b"Obj\x01garbage", 0, "its header is cut"),
]


@pytest.mark.parametrize(("data", "count", "told"), CUTS)
def test_a_file_that_is_cut_says_so_and_completes_nothing(
    tmp_path: Path, data: bytes, count: int | None, told: str
) -> None:
    """All before the cut counts; the account is that of a probe that died: without a bye."""
    place = tmp_path / "file"
    place.write_bytes(data)
    (result,) = import_files(tmp_path / "spool", PLAN, place)
    assert result.fault.startswith(told)
    if count is None:
        assert 0 < result.observations < 9_000
    else:
        assert result.observations == count
    for batches in spooled(tmp_path / "spool").values():
        assert all(batch.kind is not BatchKind.BYE for batch in batches)
        assert {batch.complete_through_us for batch in batches} == {batches[0].epoch_us}


def test_a_block_of_avro_that_is_broken_ends_the_file(tmp_path: Path) -> None:
    """Its marker tells; the blocks before it count."""
    data = bytearray(as_avro(made_rows(0, 900), "null"))
    data[len(data) // 2] ^= 0xFF
    data[-1] ^= 0xFF
    place = tmp_path / "file"
    place.write_bytes(bytes(data))
    (result,) = import_files(tmp_path / "spool", PLAN, place)
    assert re.match(r"block \d+ (is broken|does not hold|says)", result.fault)
    assert 0 < result.observations < 900


@pytest.mark.parametrize("name", FORMATS)
def test_a_column_that_is_not_there_is_told_with_those_that_are(tmp_path: Path, name: str) -> None:
    """In one line, before anything is written."""
    place = tmp_path / "file"
    place.write_bytes(FORMATS[name](made_rows(0, 9)))
    plan = ImportPlan("flights", "file", FileMapping("number", "at"))
    with pytest.raises(MappingError, match=r"file: there is no column 'number', there are id, at$"):
        import_files(tmp_path / "spool", plan, place)
    assert not look_at(tmp_path / "spool")


def test_nested_columns_are_named_with_dots(tmp_path: Path) -> None:
    """In JSON lines and in Parquet."""
    made = [{"meta": {"id": f"a-{number}", "at": EPOCH_US}} for number in range(3)]
    (tmp_path / "one").write_bytes(as_jsonl(made))
    (tmp_path / "two").write_bytes(as_parquet(made))
    plan = ImportPlan("flights", "file", FileMapping("meta.id", "meta.at"), bye=True)
    results = import_files(tmp_path / "spool", plan, tmp_path / "one", tmp_path / "two")
    assert [result.observations for result in results] == [3, 3]
    wrong = ImportPlan("flights", "file", FileMapping("meta.number", "meta.at"))
    for place in ("one", "two"):
        with pytest.raises(MappingError, match=r"no column 'meta.number', there are meta, meta.id, meta.at"):
            import_files(tmp_path / "spool", wrong, tmp_path / place)


def test_servers_are_told_by_column_and_by_path(tmp_path: Path) -> None:
    """Each has an account of its own, under a name of which the monitor knows the server."""
    made = [{"id": number, "at": EPOCH_US, "host": f"s{number % 2}"} for number in range(10)]
    (tmp_path / "s7.jsonl").write_bytes(as_jsonl(made))
    by_column = ImportPlan("flights", "file", FileMapping("id", "at", server="host"), bye=True)
    import_files(tmp_path / "columns", by_column, tmp_path / "s7.jsonl")
    assert sorted(name_server(name.split(".")[2]) for name in spooled(tmp_path / "columns")) == ["s0", "s1"]
    by_path = ImportPlan("flights", "file", MAPPING, bye=True, server_pattern=re.compile(r"(s\d+)\.jsonl"))
    import_files(tmp_path / "paths", by_path, tmp_path / "s7.jsonl")
    assert [name.split(".")[2].partition("-")[0] for name in spooled(tmp_path / "paths")] == ["s7"]
    (tmp_path / "odd").write_bytes(as_jsonl(made))
    (result,) = import_files(tmp_path / "paths", by_path, tmp_path / "odd")
    assert result.fault == "--server-from finds no server in its path"


def test_event_times_far_from_all_others_are_bad(tmp_path: Path) -> None:
    """One line of 1970 among those of a day would list a window for each minute since."""
    made = [*made_rows(0, 50), {"id": "odd", "at": 5}]
    (tmp_path / "file").write_bytes(as_jsonl(made))
    (result,) = import_files(tmp_path / "spool", PLAN, tmp_path / "file")
    assert (result.observations, result.bad) == (50, {SkipReason.BAD_TIME: 1})


def test_a_file_that_grows_is_not_whole(tmp_path: Path) -> None:
    """The result says so, and its account completes nothing."""
    place = tmp_path / "file"
    place.write_bytes(as_jsonl(made_rows(0, 50)))

    def grow(_: int) -> None:
        with place.open("ab") as file:
            file.write(as_jsonl(made_rows(50, 51)))

    output = SpoolOutput(tmp_path / "spool", is_replay=True)
    output.check()
    result = Importer(PLAN, output, grow).import_file(str(place), Event())
    assert result.fault == "it changed while it was read: import it again once it is finished"
    assert all(batch.kind is not BatchKind.BYE for own in spooled(tmp_path / "spool").values() for batch in own)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """In one line, and others go on."""
    (tmp_path / "good").write_bytes(as_jsonl(made_rows(0, 5)))
    gone, good = import_files(tmp_path / "spool", PLAN, tmp_path / "gone", tmp_path / "good")
    assert "No such file" in gone.fault
    assert good.observations == 5


def test_a_file_whose_name_is_no_text_is_told(tmp_path: Path) -> None:
    """A name of bytes that are no text ends nothing: the file is told, and nothing of it counts."""
    place = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    Path(place).write_bytes(as_jsonl(made_rows(0, 5)))
    result = Importer(PLAN, SpoolOutput(tmp_path / "spool", is_replay=True)).import_file(place, Event())
    assert (result.name, result.fault) == (f"{tmp_path}/\\udcff", "its name is not UTF-8: rename it")
    assert result.observations == 0


def test_an_import_that_is_stopped_completes_nothing(tmp_path: Path) -> None:
    """The next one begins the file anew, and says the same."""
    stop = Event()
    stop.set()
    (tmp_path / "file").write_bytes(as_jsonl(made_rows(0, 5)))
    output = SpoolOutput(tmp_path / "spool", is_replay=True)
    output.check()
    result = Importer(PLAN, output).import_file(str(tmp_path / "file"), stop)
    assert result.fault == "it was not read to its end: start again, which changes nothing that is there"
    assert not look_at(tmp_path / "spool")


def test_an_import_that_is_stopped_behind_the_last_rows_is_not_through(tmp_path: Path) -> None:
    """The last batches are not written then: who took the file for imported would never write them."""
    stop = Event()
    (tmp_path / "file").write_bytes(as_jsonl(made_rows(0, 5)))
    output = SpoolOutput(tmp_path / "spool", is_replay=True)
    output.check()
    result = Importer(PLAN, output, lambda _: stop.set()).import_file(str(tmp_path / "file"), stop)
    assert result.fault == "it was not read to its end: start again, which changes nothing that is there"
    assert not look_at(tmp_path / "spool")


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "xz"])
def test_a_block_that_unpacks_to_too_much_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str
) -> None:
    """A few bytes may stand for all the memory that there is."""
    monkeypatch.setattr(avro_rows, "MAX_BLOCK_BYTES", 1_500)
    (tmp_path / "file").write_bytes(as_avro(made_rows(0, 500), codec))
    (result,) = import_files(tmp_path / "spool", PLAN, tmp_path / "file")
    assert result.fault == "block 1 cannot be unpacked (a block is too large)"


def test_a_block_of_zstandard_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stream is read in pieces."""
    monkeypatch.setattr(avro_rows, "MAX_BLOCK_BYTES", 1_500)
    fields = [{"name": "id", "type": "string"}, {"name": "at", "type": "long"}]
    schema = {"type": "record", "name": "Flight", "fields": fields}
    packed = pa.Codec("zstd").compress(bytes(100_000), asbytes=True)
    (tmp_path / "file").write_bytes(build_container(schema, packed, "zstandard"))
    (result,) = import_files(tmp_path / "spool", PLAN, tmp_path / "file")
    assert result.fault == "block 1 cannot be unpacked (a block is too large)"


def test_a_schema_that_nobody_foresaw_ends_no_import(tmp_path: Path) -> None:
    """The file has the fault, and others go on."""
    fields = [{"name": "id", "type": {"type": "fixed", "name": "F", "size": 10**30}}, {"name": "at", "type": "long"}]
    (tmp_path / "odd").write_bytes(build_container({"type": "record", "name": "R", "fields": fields}, b"x", "null"))
    (tmp_path / "good").write_bytes(as_jsonl(made_rows(0, 5)))
    odd, good = import_files(tmp_path / "spool", PLAN, tmp_path / "odd", tmp_path / "good")
    assert odd.fault.startswith("its rows cannot be read (OverflowError")
    assert good.is_whole


def test_a_column_of_servers_that_is_no_text_is_told(tmp_path: Path) -> None:
    """The file has the fault."""
    table = pa.table({"id": ["a"], "at": [EPOCH_US], "server": pa.array([b"\xff"], pa.binary())})
    pq.write_table(table, tmp_path / "file")
    plan = ImportPlan("flights", "file", FileMapping("id", "at", server="server"))
    (result,) = import_files(tmp_path / "spool", plan, tmp_path / "file")
    assert result.fault.startswith("its column server names no servers (")


def test_iso_times_of_a_csv_are_read(tmp_path: Path) -> None:
    """With a zone of their own, or by --zone."""
    (tmp_path / "file").write_text("id;at\na;2013-06-01T05:00:00Z\nb;2013-06-01T05:00:00.5+02:00\n")
    plan = ImportPlan("flights", "file", FileMapping("id", "at", TimeUnit.ISO, format=FileFormat.CSV), bye=True)
    (result,) = import_files(tmp_path / "spool", plan, tmp_path / "file")
    assert (result.observations, result.is_whole) == (2, True)


def test_a_spool_that_a_monitor_watches_is_not_for_a_replay(tmp_path: Path) -> None:
    """Arrivals of the past would come behind its watermark."""
    (tmp_path / "-hopwatch.monitor.host-1.1700000000000000").mkdir()
    with pytest.raises(TapUsageError, match=r"is watched by a running monitor, .* or let hopwatch tap files watch"):
        SpoolOutput(tmp_path, is_replay=True).check()
    SpoolOutput(tmp_path, is_replay=False).check()
    assert os.access(tmp_path, os.W_OK)


def test_what_names_cannot_tell_apart_is_refused(tmp_path: Path) -> None:
    """Two columns of one name, and a column inside of one that is read."""
    (tmp_path / "twice").write_bytes(b"id,at,id\n1,2,3\n")
    with pytest.raises(MappingError, match="there are 2 columns 'id': their names tell them apart"):
        import_files(tmp_path / "spool", PLAN, tmp_path / "twice")
    (tmp_path / "inside").write_bytes(b'{"meta": {"at": 5}}\n')
    plan = ImportPlan("flights", "file", FileMapping("meta", "meta.at"))
    (result,) = import_files(tmp_path / "spool", plan, tmp_path / "inside")
    assert result.fault == "meta.at lies inside a column that is read itself"


def test_a_codec_that_is_not_known_is_told(tmp_path: Path) -> None:
    """With those that are; so is a header that would take all memory."""
    data = as_avro(made_rows(0, 5), "null")
    (tmp_path / "file").write_bytes(data.replace(b"\x08null", b"\x08nuls"))
    (result,) = import_files(tmp_path / "spool", PLAN, tmp_path / "file")
    assert result.fault.startswith("its codec 'nuls' is not known, but null, deflate, snappy")
    (tmp_path / "file").write_bytes(b"Obj\x01\x02\xff\xff\xff\xff\x0f")
    (result,) = import_files(tmp_path / "spool", PLAN, tmp_path / "file")
    assert result.fault == "its header is too large"


def test_a_column_of_too_many_servers_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each server has an account in the monitor."""
    monkeypatch.setattr(importer, "MAX_SERVERS", 3)
    (tmp_path / "file").write_bytes(as_jsonl(made_rows(0, 5)))
    plan = ImportPlan("flights", "file", FileMapping("id", "at", server="id"))
    with pytest.raises(MappingError, match="--server id has more than 3 values"):
        import_files(tmp_path / "spool", plan, tmp_path / "file")


def test_a_slice_before_the_first_is_told(tmp_path: Path) -> None:
    """Its rows count, and no account has it."""
    (tmp_path / "file").write_bytes(as_jsonl(made_rows(0, 5)))
    plan = ImportPlan("flights", "file", MAPPING, Slices(EPOCH_US + 60_000_000, 60_000_000))
    (result,) = import_files(tmp_path / "spool", plan, tmp_path / "file")
    assert result.note == "it lies before the first of --slices: nobody knows whether it is all of its time"
    assert len(spooled(tmp_path / "spool")) == 1


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """Nor is a pipe, which would be waited for."""
    (result,) = import_files(tmp_path / "spool", PLAN, tmp_path)
    assert result.fault == "it is no regular file"


def test_another_sink_gets_the_same_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a topic; one that takes nothing ends the import once it is stopped."""
    sink, told = MemorySink(), list[str]()
    monkeypatch.setattr(outputs, "open_sink", lambda *_: sink)
    monkeypatch.setattr(outputs, "open_checked_sink", lambda *_: sink)
    (tmp_path / "file").write_bytes(as_jsonl(made_rows(0, 500)))
    plan = ImportPlan("flights", "file", MAPPING, Slices(EPOCH_US, 900_000_000))
    import_files(tmp_path / "spool", plan, tmp_path / "file")
    around = RunContext(told.append)
    output = outputs.open_output("kafka://localhost:9092/observations", around, is_replay=True)
    Importer(plan, output).import_file(str(tmp_path / "file"), around.stop)
    output.settle()
    kept = [batch for batches in spooled(tmp_path / "spool").values() for batch in batches]
    assert sorted(map(envelope.encode, kept)) == sorted(sink.records)
    sink.is_full = True
    around.stop.set()
    with pytest.raises(TapSourceError, match="the sink has not taken all: start again, which changes nothing"):
        Importer(plan, output).import_file(str(tmp_path / "file"), Event())
