"""Tests of the decoder: what becomes of every record of a segment."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel.books import IMPLAUSIBLE, IN_WINDOW, NO_OFFSET_US, TOO_LATE, DropFact, PacketFact
from hopwatch.monitor.kernel.recent import RecentSampler
from hopwatch.monitor.kernel.tally import instance_name
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.payloads import (
    EARLY,
    NOWHERE,
    Claims,
    FactSheet,
    SetAside,
    join_payloads,
    pack_moment,
    split_payloads,
    unpack_recent,
    unpack_sheets,
)
from hopwatch.monitor.row_kinds import CLAIMS_ROW, CLOCK_ROW, FACTS_ROW, RECENT_ROW, SET_ASIDE_ROW
from hopwatch.monitor.spark import rows as rows_module
from hopwatch.monitor.spark.decoder import build_decoder, decode_segments
from hopwatch.monitor.spark.rows import JobRow, join_rows
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract import envelope, segment
from hopwatch.probes.contract.batch import Batch, BatchKind, Drop, Metrics, MetricsStamp, WireIdKind
from hopwatch.probes.contract.lag_histograms import count_lags
from hopwatch.probes.contract.limits import MAX_RECORD_BYTES
from tests.support.spool import (
    START_MS,
    STREAM_CONFIGS,
    WINDOW_POLICY,
    at_us,
    encode_unchecked,
    frame_record,
    make_batch,
    observation_batch,
    window_ms,
    write_file,
    write_segment,
)

GOOD = observation_batch([1, 2])
RECORD = envelope.encode(GOOD)
BODY = len(RECORD) - 33


def rows_of(*paths: Path) -> dict[str, list[JobRow]]:
    """Decode segments and sort the rows by kind."""
    rows: dict[str, list[JobRow]] = {CLAIMS_ROW: [], FACTS_ROW: [], SET_ASIDE_ROW: [], CLOCK_ROW: []}
    for row in decode_segments([str(path) for path in paths], STREAM_CONFIGS):
        rows[row.kind].append(row)
    return rows


def sheet_of(rows: dict[str, list[JobRow]]) -> FactSheet:
    """Return the only fact sheet."""
    (row,) = rows[FACTS_ROW]
    (sheet,) = unpack_sheets(row.payload)
    return sheet


def test_a_batch_becomes_a_claim_check_on_where_it_lies(tmp_path: Path) -> None:
    """Of a batch's observations nothing travels but how many there are, and where their record and its fields begin."""
    path = write_segment(
        tmp_path / "s.seg", make_batch(BatchKind.HEARTBEAT), observation_batch([1, 2], seq=1), arrival_us=at_us(70)
    )
    (row,) = rows_of(path)[CLAIMS_ROW]
    claims = Claims.unpack(row.payload)
    assert row[:5] == (CLAIMS_ROW, "orders", START_MS, 0, None)
    assert (claims.path, [node for node, _ in claims.senders], claims.observations) == (str(path), ["a"], 2)
    ((seq, arrival_us, start, end, count, ids_at, lag_in_at, lag_out_at, outcome_at, *named),) = claims.refs.tolist()
    assert named == [WireIdKind.BYTES, *[NOWHERE] * 4, 0]
    batch, data = observation_batch([1, 2], seq=1), path.read_bytes()
    assert (seq, arrival_us, count, outcome_at) == (1, at_us(70), 2, NOWHERE)
    assert envelope.decode(data[start:end]) == batch
    assert data[ids_at:].startswith(batch.message_ids)
    assert data[lag_in_at:].startswith(batch.lag_in_us)
    assert data[lag_out_at:].startswith(batch.lag_out_us)


def test_each_window_of_an_instance_has_a_claim_of_its_own(tmp_path: Path) -> None:
    """Batches are claimed by window, those of one window together."""
    batches = [observation_batch([n], seq=n, window_start_ms=window_ms(n % 2)) for n in range(4)]
    rows = rows_of(write_segment(tmp_path / "s.seg", *batches))[CLAIMS_ROW]
    claimed = {row.window_start_ms: Claims.unpack(row.payload).refs["seq"].tolist() for row in rows}
    assert claimed == {window_ms(0): [0, 2], window_ms(1): [1, 3]}


def test_all_instances_of_a_segment_have_one_claim_a_window(tmp_path: Path) -> None:
    """Each batch says which of them sent it."""
    probes = ("p", "q", "p", "r", "q")
    path = write_segment(tmp_path / "s.seg", *(observation_batch([n], seq=n, probe=p) for n, p in enumerate(probes)))
    (row,) = rows_of(path)[CLAIMS_ROW]
    claims = Claims.unpack(row.payload)
    assert [claims.senders[at] for at in claims.refs["sender"]] == [
        ("a", instance_name("a", probe, GOOD.epoch_us)) for probe in probes
    ]


def test_the_books_get_a_fact_for_every_batch(tmp_path: Path) -> None:
    """Heartbeats and byes too: number, arrival, complete_through, sent_at, window, count, kind, standing, no clock."""
    kinds = (
        make_batch(BatchKind.HEARTBEAT),
        observation_batch([1, 2], seq=1, sent_at_us=at_us(66)),
        make_batch(BatchKind.BYE, seq=2),
    )
    sheet = sheet_of(rows_of(write_segment(tmp_path / "s.seg", *kinds, arrival_us=at_us(70))))
    assert (sheet.stream, sheet.node, sheet.probe, sheet.epoch_us) == ("orders", "a", "probe-of-a", at_us(-10))
    assert list(sheet.facts) == [
        (0, at_us(70), at_us(65), at_us(65), START_MS, 0, 0, BatchKind.HEARTBEAT, IN_WINDOW, NO_OFFSET_US),
        (1, at_us(70), at_us(65), at_us(66), START_MS, 0, 2, BatchKind.OBSERVATIONS, IN_WINDOW, NO_OFFSET_US),
        (2, at_us(70), at_us(65), at_us(65), START_MS, 0, 0, BatchKind.BYE, IN_WINDOW, NO_OFFSET_US),
    ]


def test_a_clock_that_is_ahead_completes_nothing_beyond_the_arrival(tmp_path: Path) -> None:
    """A batch completes nothing beyond its own arrival."""
    ahead = make_batch(BatchKind.HEARTBEAT, complete_through_us=at_us(500))
    sheet = sheet_of(rows_of(write_segment(tmp_path / "s.seg", ahead, arrival_us=at_us(70))))
    assert [fact.complete_through_us for fact in sheet.facts] == [at_us(70)]


def test_drops_stand_beside_the_batch_that_reported_them(tmp_path: Path) -> None:
    """So that the drops of a batch that comes twice count once."""
    drops = (Drop(START_MS, 3, "queue full"), Drop(window_ms(1), 1, "spool full"))
    batches = (make_batch(BatchKind.HEARTBEAT), make_batch(BatchKind.HEARTBEAT, seq=1, drops=drops))
    sheet = sheet_of(rows_of(write_segment(tmp_path / "s.seg", *batches)))
    assert sheet.drops == (DropFact(1, START_MS, 3, "queue full"), DropFact(1, window_ms(1), 1, "spool full"))


def test_labels_go_along_with_the_facts(tmp_path: Path) -> None:
    """An instance's host and version are those of its first batch in the segment."""
    batches = (
        make_batch(BatchKind.HEARTBEAT, labels={"host": "h1"}),
        make_batch(BatchKind.HEARTBEAT, seq=1, labels={"host": "h2"}),
    )
    assert sheet_of(rows_of(write_segment(tmp_path / "s.seg", *batches))).labels == {"host": "h1"}


@pytest.mark.parametrize(
    "other",
    [{"node": "b"}, {"probe": "other"}, {"probe": 'x", 1]'}, {"probe": "[bold]"}, {"epoch_us": at_us(-9)}],
    ids=str,
)
def test_instances_are_told_apart(other: dict[str, object], tmp_path: Path) -> None:
    """Another node, probe name or start is another account, whatever characters the names are made of."""
    path = write_segment(tmp_path / "s.seg", GOOD, replace(GOOD, **other))  # type: ignore[arg-type]  # one field
    rows = rows_of(path)
    assert len(list(unpack_sheets(rows[FACTS_ROW][0].payload))) == 2
    claimed = [Claims.unpack(row.payload) for row in rows[CLAIMS_ROW]]
    assert len({instance for claims in claimed for _, instance in claims.senders}) == 2


def _header(**fields: object) -> bytes:
    return encode_unchecked(replace(make_batch(BatchKind.HEARTBEAT), **fields))  # type: ignore[arg-type]  # what no probe would send


def _packed(**fields: object) -> bytes:
    return encode_unchecked(replace(GOOD, **fields))  # type: ignore[arg-type]  # what no probe would send


BROKEN = {
    "no marker": (b"\x80" + RECORD[1:], "bad_marker", "a record starts with 0x81, got 0x80"),
    "strange schema": (RECORD[:1] + bytes(32) + RECORD[33:], "unknown_schema", "no schema is known by .* 0000"),
    "empty": (b"", "bad_marker", "a record starts with 0x81, got no byte"),
    "cut": (RECORD[:-3], "truncated", "starts where .* are left|no whole number"),
    "endless number": (RECORD[:33] + b"\xff" * BODY, "malformed", "no whole number of at most 64 bits at byte"),
    "no UTF-8": (RECORD.replace(b"probe-of-a", b"probe-of-\xff"), "malformed", "a probe is not UTF-8"),
    "more behind": (RECORD + b"\0\0", "trailing_bytes", "2 bytes follow the last field"),
    "number below 0": (_header(seq=-1), "bad_value", "seq counts from 0, got -1"),
    "half a minute": (_header(window_start_ms=START_MS + 1), "bad_value", f"a whole minute, got {START_MS + 1}"),
    "offset": (_packed(event_offset_us=b"\0\x87\x93\x03" * 2), "bad_value", "below 60000000, got 60000000"),
    "outcome": (_packed(outcome=b"\0\x04"), "bad_value", "outcome is 0, 1, 2 or 3, got 4"),
    "counts": (_header(kind=BatchKind.METRICS), "unsupported", "'a' sends counts: declare it by stamps = { a = "),
    "texts": (
        _packed(id_kind=WireIdKind.TEXT, id_texts=b"a", id_text_ends=bytes(8)),
        "bad_length",
        "with id_texts at 1, got",
    ),
    "reason": (_packed(reason=b"\xff\x01", reasons=("one",)), "bad_value", "an index into the 1 reasons given"),
    "no stamp": (_packed(lag_in_us=b"", lag_out_us=b""), "bad_value", "carries neither an in nor an out stamp"),
    "no drop": (_header(drops=(Drop(START_MS, 0, "x"),)), "bad_value", "a count over 0"),
    "markup": (_header(stream="<b>"), "bad_name", "a stream is 1 to 128 of the characters .*, got '<b>'"),
    "SQL": (_header(node="'; DROP TABLE windows"), "bad_name", 'got "\'; DROP TABLE windows"'),
    "long name": (_header(probe="p" * 129), "bad_length", "a probe has 1 to 128 characters, got 129"),
    "very long name": (_header(probe="p" * 10_000), "bad_length", "at most 128 characters, got 10000 bytes"),
    "too few ids": (_packed(message_ids=bytes(16)), "bad_length", "16 bytes for each of 2, got 16"),
    "too few lags": (_packed(lag_in_us=bytes(8)), "bad_length", "lag_in_us is empty or 8 bytes for each of 2, got 8"),
    "labels": (_header(labels={str(n): "" for n in range(9)}), "bad_length", "labels has at most 8 items"),
    "nothing observed": (_packed(count=0), "bad_count", "count is 1 to 65536, .*, got 0"),
    "busy heartbeat": (_header(count=1), "bad_count", "and 0 without observations, got 1"),
    "stream": (envelope.encode(observation_batch([1], stream="ordres")), "unknown_stream", "has no stream 'ordres'"),
    "node": (envelope.encode(observation_batch([1], node="c")), "unknown_node", "the path of 'orders' has no node 'c'"),
}


@pytest.mark.parametrize(("record", "reason", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_record_is_set_aside_and_the_good_ones_around_it_count(
    record: bytes, reason: str, message: str, tmp_path: Path
) -> None:
    """A broken record is set aside with its place and reason, and the batches around it are claimed."""
    path = write_segment(tmp_path / "s.seg", GOOD, record, replace(GOOD, seq=1), arrival_us=at_us(70))
    rows = rows_of(path)
    (row,) = rows[SET_ASIDE_ROW]
    found = SetAside.unpack(row.payload)
    position = len(segment.MAGIC) + len(frame_record(GOOD)) + segment.FRAME_BYTES
    assert (found.path, found.position, found.length) == (str(path), position, len(record))
    assert (found.arrival_us, found.reason) == (at_us(70), reason)
    assert re.search(message, found.message)
    assert [Claims.unpack(row.payload).refs["seq"].tolist() for row in rows[CLAIMS_ROW]] == [[0, 1]]


FAULTY_FILES = {
    "bad CRC": (
        frame_record(GOOD)[:-1] + b"\1" + frame_record(replace(GOOD, seq=1)),
        ("bad_crc", 14, len(RECORD), "CRC-32C 0x.* was written, 0x.* was read"),
        [1],
    ),
    "oversized": (
        frame_record(bytes(MAX_RECORD_BYTES + 1)) + frame_record(GOOD),
        ("oversized", 14, MAX_RECORD_BYTES + 1, "at most 4194304 bytes, got 4194305"),
        [0],
    ),
    "torn in a record": (
        frame_record(GOOD) + frame_record(replace(GOOD, seq=1))[:-1],
        ("torn_tail", 14 + len(RECORD) + 8, len(RECORD) - 1, "bytes starts where .* are left"),
        [0],
    ),
    "torn in a frame": (
        frame_record(GOOD) + b"\x01\x00\x00",
        ("torn_tail", 14 + len(RECORD), 3, "3 bytes are left where a frame needs 8"),
        [0],
    ),
}


@pytest.mark.parametrize(("data", "set_aside", "claimed"), FAULTY_FILES.values(), ids=FAULTY_FILES)
def test_a_faulty_frame_is_told_and_the_whole_records_count(
    data: bytes, set_aside: tuple[str, int, int, str], claimed: list[int], tmp_path: Path
) -> None:
    """Reading goes on behind a bad CRC and an oversized record, and ends at a torn tail."""
    rows = rows_of(write_file(tmp_path / "s.seg", segment.MAGIC + data))
    (row,) = rows[SET_ASIDE_ROW]
    found = SetAside.unpack(row.payload)
    assert (found.reason, found.position, found.length) == set_aside[:3]
    assert re.search(set_aside[3], found.message)
    assert [Claims.unpack(row.payload).refs["seq"].tolist() for row in rows[CLAIMS_ROW]] == [claimed]


@pytest.mark.parametrize("data", [b"", b"HWSP1", b"HWSP2\n", b"%PDF-1.7 a foreign file", frame_record(GOOD)], ids=repr)
def test_a_foreign_file_is_refused_whole(data: bytes, tmp_path: Path) -> None:
    """Without the magic nothing of a file is read: one row of records set aside, no facts, no claims."""
    rows = rows_of(write_file(tmp_path / "s.seg", data, at_us(70)))
    (row,) = rows[SET_ASIDE_ROW]
    found = SetAside.unpack(row.payload)
    assert (found.reason, found.position, found.length, found.arrival_us) == ("foreign_file", 0, len(data), at_us(70))
    assert found.message == f"a segment starts with b'HWSP1\\n', got {data[:6]!r}"
    assert not rows[FACTS_ROW] + rows[CLAIMS_ROW]


def test_a_segment_without_records_is_only_a_clock(tmp_path: Path) -> None:
    """The magic alone is a whole segment: it moves the clock and says nothing."""
    rows = rows_of(write_segment(tmp_path / "s.seg", arrival_us=at_us(70)))
    assert [kind for kind, of_kind in rows.items() if of_kind] == [CLOCK_ROW]


LAST = WINDOW_POLICY.amendable_until_us(START_MS * 1_000)


@pytest.mark.parametrize(
    ("arrival_us", "standing", "claimed"),
    [
        (at_us(-300) - 1, IMPLAUSIBLE, "early"),
        (at_us(-300), IN_WINDOW, "counted"),
        (LAST, IN_WINDOW, "counted"),
        (LAST + 1, TOO_LATE, "not at all"),
        (at_us(60) + WINDOW_POLICY.max_age_us, TOO_LATE, "not at all"),
        (at_us(60) + WINDOW_POLICY.max_age_us + 1, IMPLAUSIBLE, "not at all"),
    ],
)
def test_what_came_at_the_wrong_time_is_a_fact_that_counts_nothing(
    arrival_us: int, standing: int, claimed: str, tmp_path: Path
) -> None:
    """The batch's own arrival decides; one that came too early is claimed all the same, so that its copy is known."""
    rows = rows_of(write_segment(tmp_path / "s.seg", GOOD, arrival_us=arrival_us))
    (fact,) = sheet_of(rows).facts
    assert (fact.seq, fact.count, fact.standing) == (0, 2, standing)
    claims = [Claims.unpack(row.payload) for row in rows[CLAIMS_ROW]]
    found = [(claim.observations, bool((claim.refs["count"] == EARLY).all())) for claim in claims]
    assert found == {"early": [(0, True)], "counted": [(2, False)], "not at all": []}[claimed]


@pytest.mark.parametrize("moment_us", [0, 4_070_908_800_000_000], ids=["1970", "2099"])
def test_event_times_of_another_age_spoil_nothing(moment_us: int, tmp_path: Path) -> None:
    """A batch of 1970 or 2099 between two good ones leaves their claims and the clock as they are."""
    odd = observation_batch([9], seq=1, window_start_ms=moment_us // 1_000)
    rows = rows_of(write_segment(tmp_path / "s.seg", GOOD, odd, observation_batch([3], seq=2), arrival_us=at_us(70)))
    assert [fact.standing for fact in sheet_of(rows).facts] == [IN_WINDOW, IMPLAUSIBLE, IN_WINDOW]
    assert [Claims.unpack(row.payload).refs["seq"].tolist() for row in rows[CLAIMS_ROW]] == [[0, 2]]
    assert rows[CLOCK_ROW][0].clock_us == at_us(70)


@pytest.mark.parametrize(
    "pulse", [make_batch(BatchKind.HEARTBEAT), make_batch(BatchKind.BYE), GOOD], ids=lambda batch: batch.kind.name
)
def test_the_monitors_own_pulse_is_known(pulse: Batch, tmp_path: Path) -> None:
    """The stream _hopwatch needs no configuration, has books, and no windows whatever is sent in its name."""
    rows = rows_of(write_segment(tmp_path / "s.seg", replace(pulse, stream="_hopwatch", node="monitor")))
    assert (sheet_of(rows).stream, len(rows[SET_ASIDE_ROW]), len(rows[CLAIMS_ROW])) == ("_hopwatch", 0, 0)


def test_the_claims_of_a_window_go_to_every_shard(tmp_path: Path) -> None:
    """Each shard picks its own ids from the same batches when it redeems them."""
    sharded = {"orders": replace(STREAM_CONFIGS["orders"], shards=3)}
    rows = [
        row
        for row in decode_segments([str(write_segment(tmp_path / "s.seg", GOOD))], sharded)
        if row.kind == CLAIMS_ROW
    ]
    assert [row.shard for row in rows] == [0, 1, 2]
    assert len({row.payload for row in rows}) == 1


def test_the_arrival_is_the_files_modification_time(tmp_path: Path) -> None:
    """In whole µs, rounded down; nothing in the records moves it."""
    path = write_segment(tmp_path / "s.seg", make_batch(BatchKind.HEARTBEAT, sent_at_us=at_us(900)))
    os.utime(path, ns=(0, at_us(70) * 1_000 + 999))
    assert [fact.arrival_us for fact in sheet_of(rows_of(path)).facts] == [at_us(70)]


def test_the_last_row_is_the_latest_arrival_that_was_read(tmp_path: Path) -> None:
    """A clock row moves the watermark; all other rows carry no time, so that Spark drops none of them."""
    paths = [write_segment(tmp_path / f"{s}.seg", GOOD, arrival_us=at_us(s)) for s in (70, 80, 75)]
    *rows, last = decode_segments(map(str, paths), STREAM_CONFIGS)
    assert last == JobRow(CLOCK_ROW, "", 0, 0, at_us(80), pack_moment(at_us(80)))
    assert {row.clock_us for row in rows} == {None}
    assert list(decode_segments([], STREAM_CONFIGS)) == []


def test_recent_stamps_of_a_task_are_one_row(tmp_path: Path) -> None:
    """Of all its segments, with the latest arrival of any record; without a sampler there is none."""
    paths = [write_segment(tmp_path / f"{s}.seg", GOOD, arrival_us=at_us(s)) for s in (70, 80, 75)]
    undeclared = write_segment(tmp_path / "x.seg", replace(GOOD, node="nix"), arrival_us=at_us(90))
    listed = [str(path) for path in (*paths, undeclared)]
    *_, recent, last = decode_segments(listed, STREAM_CONFIGS, RecentSampler())
    assert (recent.kind, recent.clock_us, last.kind) == (RECENT_ROW, None, CLOCK_ROW)
    found = unpack_recent(recent.payload)
    assert (found.nodes, found.latest_us) == ((("orders", "a"),), at_us(90))
    assert sorted(set(found.counts["second"].tolist())) == [at_us(s) // 1_000_000 for s in (70, 75, 80)]
    assert [row.kind for row in decode_segments(listed, STREAM_CONFIGS) if row.kind == RECENT_ROW] == []
    (batch,) = build_decoder(STREAM_CONFIGS, samples=True)(iter([pa.record_batch([pa.array(listed)], ["path"])]))
    assert batch.column("kind").to_pylist().count(RECENT_ROW) == 1


@pytest.mark.parametrize("name", ["plain", "two words", "100%25", "a:b", "q?x#y", "ünï", "[x]{y}*", "back\\slash"])
def test_a_segment_is_found_whatever_its_folder_is_called(name: str, tmp_path: Path) -> None:
    """Spark names a file with its scheme in front and nothing escaped."""
    path = write_segment(tmp_path / name / "0000000000.seg", GOOD)
    (batch,) = build_decoder(STREAM_CONFIGS)(iter([pa.record_batch([pa.array([f"file:{path}"])], ["path"])]))
    assert batch.column("kind").to_pylist() == [CLOCK_ROW, FACTS_ROW, CLAIMS_ROW]
    (parcel,) = split_payloads(batch.column("payload")[2].as_py())
    assert Claims.unpack(parcel).path == str(path)


@given(
    st.lists(
        st.builds(
            JobRow,
            st.sampled_from([CLAIMS_ROW, FACTS_ROW, SET_ASIDE_ROW]),
            st.sampled_from("ab"),
            st.integers(0, 1),
            st.integers(0, 1),
            st.none(),
            st.binary(max_size=9),
        )
    ),
    st.integers(1, 40),
)
def test_rows_of_a_key_are_joined_and_none_is_lost(rows: list[JobRow], size: int) -> None:
    """Claims and facts only, in the order of their key; a row is sent on as soon as it is as large as one may be."""
    with patch.object(rows_module, "JOINED_BYTES", size):
        joined = list(join_rows(rows))
    parted = [
        row._replace(payload=parcel)
        for row in joined
        for parcel in (split_payloads(row.payload) if row.kind != SET_ASIDE_ROW else [row.payload])
    ]
    assert sorted(parted, key=lambda row: row[:4]) == sorted(rows, key=lambda row: row[:4])
    for row in joined:
        *head, _ = split_payloads(row.payload) if row.kind != SET_ASIDE_ROW else [b""]
        assert len(join_payloads(head)) < size


def test_rows_leave_in_batches_of_a_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An Arrow batch has at most ROWS_PER_BATCH rows."""
    monkeypatch.setattr(rows_module, "ROWS_PER_BATCH", 2)
    path = write_segment(
        tmp_path / "s.seg", *(observation_batch([1], seq=n, window_start_ms=window_ms(-n)) for n in range(3))
    )
    batches = build_decoder(STREAM_CONFIGS)(iter([pa.record_batch([pa.array([str(path)])], ["path"])]))
    assert [batch.num_rows for batch in batches] == [2, 2, 1]


def test_packed_arrays_may_be_empty(tmp_path: Path) -> None:
    """A batch without lags out, outcomes and reasons is claimed like any other."""
    bare = replace(GOOD, lag_out_us=b"", event_offset_us=np.array([0, 59_999_999], "<u4").tobytes())
    assert len(rows_of(write_segment(tmp_path / "s.seg", bare))[CLAIMS_ROW]) == 1


@given(st.binary(max_size=200), st.integers(0, len(frame_record(GOOD))))
def test_no_bytes_stop_the_decoder(tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int) -> None:
    """A whole record before any bytes is claimed, and bytes that are no record are set aside."""
    spoilt = frame_record(GOOD) + frame_record(GOOD)[:place] + noise
    rows = rows_of(write_file(tmp_path_factory.mktemp("spool") / "s.seg", segment.MAGIC + spoilt, at_us(70)))
    whole = 1 + spoilt.startswith(frame_record(GOOD) * 2)
    assert len(sheet_of(rows).facts) == whole
    assert bool(rows[SET_ASIDE_ROW]) == (len(spoilt) > whole * len(frame_record(GOOD)))
    assert [Claims.unpack(row.payload).refs["seq"][0] for row in rows[CLAIMS_ROW]] == [0]


LAGS = count_lags(np.array([-5, 0, 1_000_000]))


def test_counts_are_facts_and_ids_are_not_taken_from_who_counts(tmp_path: Path) -> None:
    """A packet is for the books alone, as it was told; observations of its node are set aside."""
    rules = {"orders": StreamConfig(Pathway.parse("a -> b", {"b": "count"}), WINDOW_POLICY)}
    packet = make_batch(BatchKind.METRICS, "b", metrics=(Metrics(MetricsStamp.OUT, 7, -1, 2, 30, LAGS),))
    path = write_segment(tmp_path / "s.seg", packet, observation_batch([1], node="b"))
    rows = list(decode_segments([str(path)], rules))
    (sheet,) = [sheet for row in rows if row.kind == FACTS_ROW for sheet in unpack_sheets(row.payload)]
    (aside,) = [SetAside.unpack(row.payload) for row in rows if row.kind == SET_ASIDE_ROW]
    assert sheet.packets == (PacketFact(0, START_MS, MetricsStamp.OUT, 7, -1, 2, 30, LAGS),)
    assert [row.kind for row in rows if row.kind == CLAIMS_ROW] == []
    told = "stamps declares that 'b' counts, and it sends observations"
    assert (aside.reason, aside.message) == ("unsupported", told)
