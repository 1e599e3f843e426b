"""Tests of landing: records of a topic become segments and rows, whatever they are and however they come."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel.books import NO_OFFSET_US
from hopwatch.monitor.kernel.recent import RecentSampler
from hopwatch.monitor.kernel.tally import Tally
from hopwatch.monitor.kernel.window import STRAGGLING_US
from hopwatch.monitor.payloads import Claims, OffsetRun, SetAside, pack_tally, unpack_recent, unpack_sheets
from hopwatch.monitor.row_kinds import CLAIMS_ROW, CLOCK_ROW, FACTS_ROW, OFFSETS_ROW, RECENT_ROW, SET_ASIDE_ROW
from hopwatch.monitor.spark import claim_reader, landing
from hopwatch.monitor.spark.decoder import decode_segments
from hopwatch.monitor.spark.landing import (
    LOG_APPEND_TIME,
    RECORDS_AT_ONCE,
    build_lander,
    land_records,
    save_read_through,
)
from hopwatch.monitor.spark.rows import JobRow
from hopwatch.probes.contract import common_records, segment
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.common_records import MIN_RECORDS
from hopwatch.probes.contract.envelope import RecordError, decode, encode
from hopwatch.probes.contract.kafka import OFFSET_HEADER
from tests.support.spool import STREAM_CONFIGS, at_us, make_batch, observation_batch, write_segment

TOPIC = "observations"
PATHWAY = STREAM_CONFIGS["orders"].pathway
GOOD = encode(observation_batch([1, 2]))
SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestampType", pa.int32()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("value", pa.binary()),
    ]
)
Headers = list[tuple[str, bytes | None]]
Record = tuple[int, int, int, int, Headers | None, bytes | None]


def came(
    values: Sequence[bytes | None], *, partition: int = 0, first: int = 0, arrival_us: int = at_us(70)
) -> list[Record]:
    """Return records of one partition, all with the broker's time."""
    return [(partition, first + n, arrival_us, LOG_APPEND_TIME, None, value) for n, value in enumerate(values)]


def landed(folder: Path, *batches: list[Record]) -> dict[str, list[JobRow]]:
    """Land records and sort the rows by kind."""
    rows: dict[str, list[JobRow]] = {
        kind: [] for kind in (CLAIMS_ROW, FACTS_ROW, SET_ASIDE_ROW, OFFSETS_ROW, CLOCK_ROW)
    }
    arrow = [
        pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, record, strict=True)) for record in batch], SCHEMA)
        for batch in batches
    ]
    for row in land_records(iter(arrow), TOPIC, folder, STREAM_CONFIGS):
        rows[row.kind].append(row)
    return rows


def claimed(rows: dict[str, list[JobRow]]) -> Tally:
    """Return the tally of all claims."""
    return claim_reader.tally_claims(
        STREAM_CONFIGS["orders"], [Claims.unpack(row.payload) for row in rows[CLAIMS_ROW]], at_us(60)
    )


def offsets(rows: dict[str, list[JobRow]]) -> list[OffsetRun]:
    """Return the runs that were read."""
    return [OffsetRun.unpack(row.payload) for row in rows[OFFSETS_ROW]]


def test_recent_stamps_of_all_partitions_are_one_row(tmp_path: Path) -> None:
    """By the broker's time, with the latest arrival; without a sampler there is none."""
    records = [*came([GOOD]), *came([GOOD], partition=1, arrival_us=at_us(72))]
    arrow = pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, record, strict=True)) for record in records], SCHEMA)
    *_, recent, last = land_records(iter([arrow]), TOPIC, tmp_path, STREAM_CONFIGS, RecentSampler())
    assert (recent.kind, last.kind) == (RECENT_ROW, CLOCK_ROW)
    found = unpack_recent(recent.payload)
    assert found.latest_us == at_us(72)
    assert sorted(set(found.counts["second"].tolist())) == [at_us(s) // 1_000_000 for s in (70, 72)]
    (batch,) = build_lander(TOPIC, tmp_path, STREAM_CONFIGS, samples=True)(iter([arrow]))
    assert batch.column("kind").to_pylist().count(RECENT_ROW) == 1
    (batch,) = build_lander(TOPIC, tmp_path, STREAM_CONFIGS)(iter([arrow]))
    assert batch.column("kind").to_pylist().count(RECENT_ROW) == 0


def test_a_record_is_landed_where_its_claim_points(tmp_path: Path) -> None:
    """In a segment that is named by the offsets and that any reader of segments can read."""
    rows = landed(tmp_path, came([GOOD], first=7))
    (path,) = tmp_path.iterdir()
    assert path.name == "observations-0-00000000000000000007-00000000000000000007.seg"
    (frame,) = segment.read_frames(path.read_bytes())
    assert path.read_bytes()[frame.start : frame.end] == GOOD
    assert Claims.unpack(rows[CLAIMS_ROW][0].payload).path == str(path)
    assert claimed(rows).observations == 2
    assert [sheet.path for sheet in unpack_sheets(rows[FACTS_ROW][0].payload)] == [str(path)]


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=6),
    st.integers(1, 4),
    st.sampled_from([1, 3, RECORDS_AT_ONCE]),
    st.sampled_from([1, MIN_RECORDS]),
)
def test_what_is_landed_is_what_a_spool_would_hold(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]], size: int, at_once: int, min_records: int
) -> None:
    """The same records, the same arrival: the same tally and the same facts, however many are read at once."""
    folder = tmp_path_factory.mktemp("both")
    # Labels stand at another place in each record.
    labels = [{}, {"host": "h1"}, {"host": "h2\0"}]
    made = [observation_batch(numbers, seq=seq, labels=labels[seq % 3]) for seq, numbers in enumerate(batches)]
    records = came([encode(batch) for batch in made])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landing, "RECORDS_AT_ONCE", at_once)
        patch.setattr(common_records, "MIN_RECORDS", min_records)
        by_topic = landed(folder / "landed", *(records[at_ : at_ + size] for at_ in range(0, len(records), size)))
    path = write_segment(folder / "s.seg", *made, arrival_us=at_us(70))
    by_spool = list(decode_segments([str(path)], STREAM_CONFIGS))
    claims = [Claims.unpack(row.payload) for row in by_spool if row.kind == CLAIMS_ROW]
    assert pack_tally(claimed(by_topic)) == pack_tally(
        claim_reader.tally_claims(STREAM_CONFIGS["orders"], claims, at_us(60))
    )
    facts = [sheet.facts for row in by_spool if row.kind == FACTS_ROW for sheet in unpack_sheets(row.payload)]
    assert [sheet.facts for row in by_topic[FACTS_ROW] for sheet in unpack_sheets(row.payload)] == facts


def test_each_record_has_an_arrival_of_its_own(tmp_path: Path) -> None:
    """Its messages were sighted then, and the clock goes by the latest."""
    save_read_through(tmp_path, at_us(60))
    early, late = (
        came([GOOD], arrival_us=at_us(80)),
        came([encode(observation_batch([3], seq=1))], first=1, arrival_us=at_us(90)),
    )
    rows = landed(tmp_path, early + late)
    assert claimed(rows).last_first_sighting_us == at_us(90)
    assert rows[CLOCK_ROW][0].clock_us == at_us(90)
    (sheet,) = unpack_sheets(rows[FACTS_ROW][0].payload)
    assert [fact.arrival_us for fact in sheet.facts] == [at_us(80), at_us(90)]


HEADERS: dict[str, tuple[Headers | None, int]] = {
    "ahead": ([(OFFSET_HEADER, b"150000")], 150_000),
    "behind, beside others": ([("trace", b"7"), (OFFSET_HEADER, b"-1"), ("x", None)], -1),
    "twice": ([(OFFSET_HEADER, b"5"), (OFFSET_HEADER, b"6")], 6),
    "none": ([], NO_OFFSET_US),
    "of another program": ([("hopwatch", b"5")], NO_OFFSET_US),
    "without a value": ([(OFFSET_HEADER, None)], NO_OFFSET_US),
    "empty": ([(OFFSET_HEADER, b"")], NO_OFFSET_US),
    "no number": ([(OFFSET_HEADER, b"1e9")], NO_OFFSET_US),
    "no decimal": ([(OFFSET_HEADER, "\u0664".encode())], NO_OFFSET_US),
    "beyond 64 bits": ([(OFFSET_HEADER, b"9" * 19)], NO_OFFSET_US),
}


@pytest.mark.parametrize(("headers", "offset_us"), HEADERS.values(), ids=HEADERS)
def test_the_header_of_a_record_has_the_upper_bound_of_its_clock(
    headers: Headers | None, offset_us: int, tmp_path: Path
) -> None:
    """Of that record alone; what is no number of µs says nothing, and the record counts as ever."""
    first, second, third = came([encode(observation_batch([n], seq=n)) for n in range(3)])
    rows = landed(tmp_path, [first, (*second[:4], headers, second[5]), third])
    (sheet,) = unpack_sheets(rows[FACTS_ROW][0].payload)
    assert [fact.offset_max_us for fact in sheet.facts] == [NO_OFFSET_US, offset_us, NO_OFFSET_US]
    assert claimed(rows).observations == 3


def test_the_clock_waits_for_partitions_that_are_behind(tmp_path: Path) -> None:
    """The clock goes at most a minute beyond what all partitions were read to, and stays while that is unknown."""
    assert landed(tmp_path, came([GOOD], arrival_us=at_us(900)))[CLOCK_ROW][0].clock_us == 0
    save_read_through(tmp_path, at_us(100))
    assert landed(tmp_path, came([GOOD], arrival_us=at_us(900)))[CLOCK_ROW][0].clock_us == at_us(100) + STRAGGLING_US
    assert landed(tmp_path, came([GOOD], arrival_us=at_us(130)))[CLOCK_ROW][0].clock_us == at_us(130)


def test_what_no_window_points_to_is_not_landed(tmp_path: Path) -> None:
    """A heartbeat leaves facts, offsets and the clock, and no file."""
    rows = landed(tmp_path / "landed", came([encode(make_batch(BatchKind.HEARTBEAT))]))
    assert [len(rows[kind]) for kind in (FACTS_ROW, OFFSETS_ROW, CLOCK_ROW, CLAIMS_ROW)] == [1, 1, 1, 0]
    assert not (tmp_path / "landed").exists()


POISON = {
    "nothing": (None, "bad_marker"),
    "noise": (b"\x00" * 40, "bad_marker"),
    "cut": (GOOD[:-3], "truncated"),
    "5 MB": (b"\x81" * 5_000_000, "oversized"),
}


@pytest.mark.parametrize("min_records", [1, MIN_RECORDS])
@pytest.mark.parametrize(("poison", "reason"), POISON.values(), ids=POISON)
def test_poison_is_set_aside_with_its_offset(
    poison: bytes | None, reason: str, min_records: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The good records around it are counted, whether they are read together or alone; empty batches do nothing."""
    monkeypatch.setattr(common_records, "MIN_RECORDS", min_records)
    records = came([GOOD, poison, encode(observation_batch([3], seq=1))], partition=4, first=100)
    rows = landed(tmp_path, [], records, [])
    (row,) = rows[SET_ASIDE_ROW]
    found = SetAside.unpack(row.payload)
    assert (found.path, found.position, found.length) == ("observations/4", 101, len(poison or b""))
    assert found.reason == reason
    with pytest.raises(RecordError, match=f"^{re.escape(found.message)}$"):
        decode(poison or b"")
    assert claimed(rows).observations == 3
    assert [(run.first, run.last) for run in offsets(rows)] == [(100, 102)]


def test_a_record_with_its_producers_time_is_set_aside(tmp_path: Path) -> None:
    """The arrival clock is the broker's: a topic whose setting was changed must not move it to any year."""
    record = (0, 0, at_us(10**9), 0, None, GOOD)
    rows = landed(tmp_path, [record])
    found = SetAside.unpack(rows[SET_ASIDE_ROW][0].payload)
    assert (found.reason, found.message) == (
        "no_arrival_time",
        "the topic's message.timestamp.type is LogAppendTime, got a record with its producer's time",
    )


def test_gaps_in_the_offsets_part_the_runs(tmp_path: Path) -> None:
    """Partition by partition, whatever order they come in."""
    rows = landed(tmp_path, came([GOOD], partition=1), came([GOOD], first=5) + came([GOOD], first=9))
    assert [(run.place, run.first, run.last) for run in offsets(rows)] == [
        ("observations/1", 0, 0),
        ("observations/0", 5, 5),
        ("observations/0", 9, 9),
    ]


def test_landing_again_writes_the_same_over_it(tmp_path: Path) -> None:
    """A batch that is replayed after a crash leaves no second file."""
    first, second = landed(tmp_path, came([GOOD])), landed(tmp_path, came([GOOD]))
    assert first == second
    assert len(list(tmp_path.iterdir())) == 1


def test_a_task_that_dies_leaves_nothing(tmp_path: Path) -> None:
    """Neither a segment nor what was being written."""

    def dying() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, came([GOOD])[0], strict=True))], SCHEMA)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(land_records(dying(), TOPIC, tmp_path, STREAM_CONFIGS))
    assert list(tmp_path.iterdir()) == []


def test_nothing_read_says_nothing(tmp_path: Path) -> None:
    """Not even the time."""
    assert list(build_lander(TOPIC, tmp_path, STREAM_CONFIGS)(iter([]))) == []
