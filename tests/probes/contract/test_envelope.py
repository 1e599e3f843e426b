"""Tests of the envelope: the fingerprint, Avro's other ways to write, and each way for a record to be none."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import avro.schema
import fastavro.schema
import pytest

from hopwatch.probes.contract import envelope, limits
from hopwatch.probes.contract.batch import Batch, Drop, WireIdKind
from hopwatch.probes.contract.envelope import RecordError
from tests.support.batches import HEARTBEAT, PREFIX, TWO_PASSED, of_version_1, record_of
from tests.support.reading_together import read_together

SCHEMAS = [(envelope.SCHEMA_1, envelope.FINGERPRINT_1), (envelope.SCHEMA, envelope.FINGERPRINT)]


@pytest.mark.parametrize(("schema", "fingerprint"), SCHEMAS, ids=["version 1", "version 2"])
def test_the_fingerprint_is_that_of_the_canonical_form_by_fastavro(schema: dict[str, Any], fingerprint: bytes) -> None:
    """The constant is SHA-256 of the schema's canonical form, however the file is laid out."""
    canonical = fastavro.schema.to_parsing_canonical_form(schema)
    assert sha256(canonical.encode()).digest() == fingerprint


@pytest.mark.parametrize(("schema", "fingerprint"), SCHEMAS, ids=["version 1", "version 2"])
def test_the_fingerprint_is_that_of_the_canonical_form_by_avro(schema: dict[str, Any], fingerprint: bytes) -> None:
    """A second library finds the same form and the same fingerprint."""
    parsed = avro.schema.parse(json.dumps(schema))
    assert parsed.canonical_form == fastavro.schema.to_parsing_canonical_form(schema)
    assert parsed.fingerprint("sha256") == fingerprint


def test_the_page_names_both_fingerprints() -> None:
    """WIRE.md has the fingerprints of both schemas, for readers that others write."""
    page = (Path(__file__).parents[3] / "docs" / "WIRE.md").read_text()
    assert all(fingerprint.hex() in page for _, fingerprint in SCHEMAS)


def test_a_record_opens_with_marker_and_fingerprint() -> None:
    """33 bytes stand before the body."""
    assert envelope.encode(HEARTBEAT)[:33] == bytes([0x81]) + envelope.FINGERPRINT


# Each of these ends the record of a heartbeat of version 1, whose last three bytes are its empty reasons, drops and
# labels; in version 2 six more stand behind them.
BEHIND_2 = bytes(6)
BLOCKS: dict[str, tuple[str, dict[str, Any]]] = {
    "one block": ("04 0261 0262 00  00  00", {"reasons": ("a", "b")}),
    "two blocks": ("02 0261 02 0262 00  00  00", {"reasons": ("a", "b")}),
    "a negative count and the block's size": ("03 08 0261 0262 00  00  00", {"reasons": ("a", "b")}),
    "both ways in one array": ("01 04 0261 02 0262 00  00  00", {"reasons": ("a", "b")}),
    "drops": (
        "00  01 08 00 06 0278 01 08 00 08 0279 00  00",
        {"drops": (Drop(0, 3, "x"), Drop(0, 4, "y"))},
    ),
    "labels": ("00  00  02 0261 0262 01 08 0263 0264 00", {"labels": {"a": "b", "c": "d"}}),
}


@pytest.mark.parametrize(("tail", "said"), BLOCKS.values(), ids=BLOCKS)
def test_arrays_and_maps_come_in_any_blocks(tail: str, said: dict[str, Any]) -> None:
    """Avro lets a writer cut them into blocks, and tell a block's size by a negative count."""
    told = replace(HEARTBEAT, **said)
    assert envelope.decode(record_of(HEARTBEAT, 1)[:-3] + bytes.fromhex(tail)) == of_version_1(told)
    record = record_of(HEARTBEAT)[:-9] + bytes.fromhex(tail) + BEHIND_2
    assert envelope.decode(record) == told
    ((together, alone),) = read_together([record])
    assert together is None or together == alone


AT_THE_LIMIT: dict[str, Batch] = {
    "names": replace(HEARTBEAT, probe="é" * 128, stream="s" * 128, node="n" * 128),
    "reasons": replace(HEARTBEAT, reasons=("é" * 64,) * 32),
    "drops": replace(HEARTBEAT, drops=(Drop(0, 1, "é" * 64),) * 1_024),
    "labels": replace(HEARTBEAT, labels={str(n) * 64: "v" * 64 for n in range(8)}),
    "numbers": replace(HEARTBEAT, epoch_us=-(2**63), seq=2**63 - 1, sent_at_us=2**63 - 1, complete_through_us=-(2**63)),
    "observations": replace(
        TWO_PASSED, count=65_536, message_ids=bytes(16 * 65_536), lag_in_us=bytes(8 * 65_536), lag_out_us=b""
    ),
    "the end of the window": replace(TWO_PASSED, event_offset_us=struct.pack("<2I", 0, 59_999_999)),
    "texts of ids": replace(
        TWO_PASSED,
        id_kind=WireIdKind.TEXT,
        id_texts=b"\xf0\x9f\x90\x87" * 1_024,
        id_text_ends=struct.pack("<2I", 0, 4_096),
    ),
    "the last reason": replace(TWO_PASSED, reason=b"\xff\x1f", reasons=tuple(map(str, range(32)))),
}


@pytest.mark.parametrize("batch", AT_THE_LIMIT.values(), ids=AT_THE_LIMIT)
def test_what_just_keeps_a_limit_is_taken(batch: Batch) -> None:
    """Each limit of WIRE.md is itself allowed."""
    assert envelope.decode(envelope.encode(batch)) == batch


GOOD = envelope.encode(HEARTBEAT)
SCHEMA_OF_ZEROS = b"\x81" + bytes(32)

BROKEN_BYTES: dict[str, tuple[bytes, str, str]] = {
    "nothing": (b"", "bad_marker", "a record starts with 0x81, got no byte"),
    "a few bytes of a stranger": (b"ping", "bad_marker", "a record starts with 0x81, got 0x70"),
    "a cut prefix": (GOOD[:32], "truncated", "a record has at least 33 bytes, got 32"),
    "no body": (GOOD[:33], "truncated", "no whole number of at most 64 bits at byte 33 of the buffer"),
    "a cut text": (GOOD[:35], "truncated", "a field of 6 bytes starts where 1 are left"),
    "a cut number": (GOOD[:40] + b"\x80", "truncated", "no whole number of at most 64 bits at byte"),
    "a negative length": (PREFIX + b"\x01" + bytes(40), "truncated", "a field of -1 bytes starts where 40 are left"),
    "another marker": (b"\xc3" + GOOD[1:], "bad_marker", "a record starts with 0x81, got 0xc3"),
    "a stranger with our marker": (
        b"\x81" + bytes(range(100)),
        "bad_marker",
        "the body does not begin as that of every",
    ),
    "a map of MessagePack": (
        b"\x81\xa4name" + b"\xd9\x40" + b"x" * 64,
        "bad_marker",
        "the body does not begin as that",
    ),
    "a stream without a name": (
        SCHEMA_OF_ZEROS + b"\x02p\0\0\0\0\x02n",
        "bad_marker",
        "does not begin as that of every",
    ),
    "a number below 0": (SCHEMA_OF_ZEROS + b"\x02p\0\x01\0\x02s\x02n", "bad_marker", "does not begin as that of every"),
    "a version to come": (SCHEMA_OF_ZEROS + b"\x02p\0\0\x08\x02s\x02n?", "unknown_schema", "known by the fingerprint"),
    "another schema": (SCHEMA_OF_ZEROS + GOOD[33:], "unknown_schema", f"known by the fingerprint {'00' * 32}"),
    "a byte too many": (GOOD + b"\x00", "trailing_bytes", "1 bytes follow the last field of the record"),
    "two in one": (GOOD + GOOD, "trailing_bytes", f"{len(GOOD)} bytes follow the last field of the record"),
    "over 4 MiB": (bytes(2**22 + 1), "oversized", "a record has at most 4194304 bytes, got 4194305"),
    "an endless number": (PREFIX + b"\xff" * 40, "malformed", "no whole number of at most 64 bits at byte 33"),
    "a number of 65 bits": (PREFIX + b"\xff" * 9 + b"\x02" + bytes(40), "malformed", "no whole number of at most 64"),
    "no UTF-8": (PREFIX + b"\x02\xff" + GOOD[35:], "malformed", "a probe is not UTF-8: invalid start byte"),
    "a billion reasons": (
        GOOD[:-9] + b"\x80\x94\xeb\xdc\x03",
        "bad_length",
        "reasons has at most 32 items, got 500000",
    ),
    "as many, negative": (GOOD[:-9] + b"\x41\x00", "bad_length", "reasons has at most 32 items, got 33 or more"),
    "block on block": (GOOD[:-9] + b"\x02\x00" * 33, "bad_length", "reasons has at most 32 items, got 33 or more"),
}


@pytest.mark.parametrize(("record", "reason", "told"), BROKEN_BYTES.values(), ids=BROKEN_BYTES)
def test_bytes_that_are_no_record_say_why(record: bytes, reason: str, told: str) -> None:
    """The reason is a short name to count by, the message says what was got."""
    with pytest.raises(RecordError) as caught:
        envelope.decode(record)
    assert (caught.value.reason, told in str(caught.value)) == (reason, True), str(caught.value)


def _heartbeat(**fields: Any) -> bytes:  # noqa: ANN401 - as the wire has them
    return record_of(HEARTBEAT, **fields)


def _two(**fields: Any) -> bytes:  # noqa: ANN401 - as the wire has them
    return record_of(TWO_PASSED, **fields)


def _drop(**fields: Any) -> bytes:  # noqa: ANN401 - as the wire has them
    return _heartbeat(drops=[{"window_start_ms": 0, "count": 1, "cause": "full"} | fields])


NOT_STAMPED_TWICE = struct.pack("<2q", limits.NOT_STAMPED, limits.NOT_STAMPED)

NOTHING = struct.pack("<2q", limits.NOT_STAMPED, limits.NOT_STAMPED)
ONE_OF_TWO = struct.pack("<2q", 0, limits.NOT_STAMPED)
KIND_4 = PREFIX + b"\x02p" + b"\x00\x00\x08" + b"\x02s" + b"\x02n" + bytes(19)
KIND_3 = b"\x81" + envelope.FINGERPRINT_1 + b"\x02p" + b"\x00\x00\x06" + b"\x02s" + b"\x02n" + bytes(13)
ID_KIND_4 = record_of(HEARTBEAT)[:-6] + b"\x08" + bytes(5)
METRICS: dict[str, Any] = {"stamp": "IN", "count": 1, "id_xor": 1, "id_sum": 1, "bytes": 1, "lag_histogram": b""}


def _texts(texts: bytes, *ends: int, id_kind: str = "TEXT") -> bytes:
    packed = struct.pack(f"<{len(ends)}I", *ends)
    return record_of(TWO_PASSED, id_kind=id_kind, id_texts=texts, id_text_ends=packed)


def _metrics(**fields: Any) -> bytes:  # noqa: ANN401 - as the wire has them
    return record_of(HEARTBEAT, kind="METRICS", metrics=[METRICS | fields])


LENGTH = "for each of 2, got"

BROKEN_FIELDS: dict[str, tuple[bytes, str, str]] = {
    "no probe": (_heartbeat(probe=""), "bad_length", "a probe has 1 to 128 characters, got 0"),
    "a long probe": (_heartbeat(probe="p" * 129), "bad_length", "a probe has 1 to 128 characters, got 129"),
    "a longer probe": (_heartbeat(probe="p" * 513), "bad_length", "a probe has at most 128 characters, got 513 bytes"),
    "a negative number": (_heartbeat(seq=-1), "bad_value", "seq counts from 0, got -1"),
    "an unknown kind": (KIND_4, "bad_value", "kind is 0, 1, 2 or 3, got 4"),
    "an unknown kind of version 1": (KIND_3, "bad_value", "kind is 0, 1 or 2, got 3"),
    "an unknown kind of ids": (ID_KIND_4, "bad_value", "id_kind is 0, 1, 2 or 3, got 4"),
    "texts without ends": (_texts(b"ab"), "bad_length", "id_texts is empty where id_text_ends is, got 2 bytes"),
    "an end too few": (_texts(b"ab", 2), "bad_length", f"id_text_ends is empty or 4 bytes {LENGTH} 4"),
    "ends that go back": (_texts(b"ab", 2, 1), "bad_value", "got an end 1 bytes before the one before it"),
    "an end beyond": (_texts(b"ab", 1, 3), "bad_length", "the last text ends with id_texts at 2, got 3"),
    "a byte behind": (_texts(b"ab", 1, 1), "bad_length", "the last text ends with id_texts at 2, got 1"),
    "an end of 4 GiB": (_texts(b"", 2**32 - 1, 0), "bad_value", "got an end 4294967295 bytes before"),
    "a long text": (
        _texts(b"a" * 1_026, 1, 1_026),
        "bad_length",
        "the text of an id has at most 1024 characters, got one of 1025 bytes",
    ),
    "a long text of wide letters": (_texts("é".encode() * 1_025, 0, 2_050), "bad_length", "got one of 2050 bytes"),
    "a text of no characters": (_texts(b"\x80" * 4_097, 0, 4_097), "bad_length", "got one of 4097 bytes"),
    "texts of numbers": (
        _texts(b"ab", 1, 2, id_kind="INT"),
        "bad_value",
        "ids have texts where id_kind is 3, got 2",
    ),
    "moments too few": (_two(until_us=bytes(8)), "bad_length", f"until_us is empty or 8 bytes {LENGTH} 8"),
    "half a sequence": (_two(sequence=bytes(12)), "bad_length", f"sequence is empty or 8 bytes {LENGTH} 12"),
    "metrics in a heartbeat": (_heartbeat(metrics=[METRICS]), "bad_value", "of kind METRICS, got 1 in another"),
    "less than no metrics": (_metrics(count=-1), "bad_value", "a count and bytes from 0, got 0, -1 and 1"),
    "a large histogram": (
        _metrics(lag_histogram=bytes(65_537)),
        "bad_length",
        "a lag histogram has at most 65536 bytes, got 65537",
    ),
    "nine metrics": (
        _heartbeat(kind="METRICS", metrics=[METRICS] * 9),
        "bad_length",
        "metrics has at most 8 items, got 9",
    ),
    "no stream": (_heartbeat(stream=""), "bad_name", "a stream is 1 to 128 of the characters A-Za-z0-9._-, got ''"),
    "a stream with a line feed": (_heartbeat(stream="orders\n"), "bad_name", "got 'orders\\n'"),
    "a long stream": (_heartbeat(stream="s" * 129), "bad_length", "a stream has 0 to 128 characters, got 129"),
    "a node with a slash": (_heartbeat(node="a/b"), "bad_name", "a node is 1 to 128 of the characters"),
    "a node beyond ASCII": (_heartbeat(node="nöde"), "bad_name", "got 'nöde'"),
    "half a minute": (_heartbeat(window_start_ms=30_000), "bad_value", "window_start_ms is a whole minute, got 30000"),
    "a heartbeat that counts": (
        _heartbeat(count=1),
        "bad_count",
        "count is 1 to 65536, and 0 without observations, got 1",
    ),
    "observations of nothing": (_two(count=0), "bad_count", "and 0 without observations, got 0"),
    "too many observations": (_two(count=65_537), "bad_count", "count is 1 to 65536, and 0 without"),
    "less than none": (_two(count=-1), "bad_count", "and 0 without observations, got -1"),
    "a heartbeat with ids": (_heartbeat(message_ids=bytes(16)), "bad_length", "message_ids has 16 bytes for each of 0"),
    "half an id": (_two(message_ids=bytes(24)), "bad_length", f"message_ids has 16 bytes {LENGTH} 24"),
    "no ids": (_two(message_ids=b""), "bad_length", f"message_ids has 16 bytes {LENGTH} 0"),
    "an offset too few": (
        _two(event_offset_us=bytes(4)),
        "bad_length",
        f"event_offset_us is empty or 4 bytes {LENGTH} 4",
    ),
    "half a lag in": (_two(lag_in_us=bytes(12)), "bad_length", f"lag_in_us is empty or 8 bytes {LENGTH} 12"),
    "a lag out too many": (_two(lag_out_us=bytes(24)), "bad_length", f"lag_out_us is empty or 8 bytes {LENGTH} 24"),
    "an outcome too few": (_two(outcome=b"\x00"), "bad_length", f"outcome is empty or 1 bytes {LENGTH} 1"),
    "a reason too many": (_two(reason=b"\xff" * 3), "bad_length", f"reason is empty or 1 bytes {LENGTH} 3"),
    "an offset of a minute": (
        _two(event_offset_us=struct.pack("<2I", 1, 60_000_000)),
        "bad_value",
        "event_offset_us is below 60000000, got 60000000",
    ),
    "an unknown outcome": (_two(outcome=b"\x00\x04"), "bad_value", "outcome is 0, 1, 2 or 3, got 4"),
    "an unknown outcome of version 1": (
        record_of(TWO_PASSED, 1, outcome=b"\x00\x03"),
        "bad_value",
        "outcome is 0, 1 or 2, got 3",
    ),
    "an unknown reason": (
        _two(reason=b"\xff\x01", reasons=["one"]),
        "bad_value",
        "a reason is 255 or an index into the 1 reasons given, got 1",
    ),
    "passed, no stamp": (_two(lag_in_us=b""), "bad_value", "that passed carries neither an in nor an out stamp"),
    "passed, not stamped": (_two(lag_in_us=NOTHING, lag_out_us=NOTHING), "bad_value", "carries neither an in nor"),
    "one of two passed": (_two(lag_in_us=ONE_OF_TWO, outcome=b"\x01\x00"), "bad_value", "carries neither an in nor"),
    "33 reasons": (_heartbeat(reasons=["r"] * 33), "bad_length", "reasons has at most 32 items, got 33 or more"),
    "a long reason": (_heartbeat(reasons=["r" * 65]), "bad_length", "a reason has 0 to 64 characters, got 65"),
    "1,025 drops": (
        _heartbeat(drops=[{"window_start_ms": 0, "count": 1, "cause": ""}] * 1_025),
        "bad_length",
        "drops has at most 1024 items, got 1025 or more",
    ),
    "a drop at half a minute": (
        _drop(window_start_ms=30_000),
        "bad_value",
        "a drop names a whole minute and a count over 0, got 30000 and 1",
    ),
    "less than no drop": (_drop(count=-1), "bad_value", "a whole minute and a count over 0, got 0 and -1"),
    "a long cause": (_drop(cause="c" * 65), "bad_length", "a cause has 0 to 64 characters, got 65"),
    "9 labels": (_heartbeat(labels=dict.fromkeys("123456789", "")), "bad_length", "labels has at most 8 items, got 9"),
    "a long label": (_heartbeat(labels={"host": "h" * 65}), "bad_length", "a label has 0 to 64 characters, got 65"),
    "a long label's name": (_heartbeat(labels={"h" * 65: ""}), "bad_length", "a label has 0 to 64 characters, got 65"),
}


@pytest.mark.parametrize(("record", "reason", "told"), BROKEN_FIELDS.values(), ids=BROKEN_FIELDS)
def test_a_field_that_breaks_a_limit_says_which(record: bytes, reason: str, told: str) -> None:
    """Every limit of WIRE.md has its sentence."""
    with pytest.raises(RecordError) as caught:
        envelope.decode(record)
    assert (caught.value.reason, told in str(caught.value)) == (reason, True), str(caught.value)


@pytest.mark.parametrize(
    "record", [one[0] for one in (BROKEN_BYTES | BROKEN_FIELDS).values()], ids=BROKEN_BYTES | BROKEN_FIELDS
)
def test_what_breaks_the_wire_is_never_read_with_others(record: bytes) -> None:
    """The reader of one says why it is no record; those around it are read together."""
    plain = record_of(TWO_PASSED)
    before, (together, alone), behind = read_together([plain, record, plain])
    assert together is None
    assert isinstance(alone, str)
    assert all(view == one for view, one in (before, behind))


def test_what_did_not_pass_needs_no_stamp() -> None:
    """A message may be refused before anybody looks at a clock."""
    batch = replace(TWO_PASSED, lag_in_us=b"", outcome=b"\x01\x02")
    assert envelope.decode(envelope.encode(batch)) == batch


UNWRITABLE: dict[str, tuple[Batch, str]] = {
    "what version 1 has not said": (replace(HEARTBEAT, id_kind=WireIdKind.UNKNOWN), "of which kind its ids are"),
    "what no reader takes": (replace(HEARTBEAT, node="a b"), "a node is 1 to 128 of the characters"),
    "passed without a stamp": (replace(TWO_PASSED, lag_in_us=b""), "carries neither an in nor an out stamp"),
    "a number of 65 bits": (replace(HEARTBEAT, sent_at_us=2**63), "a number has at most 64 bits, a text is UTF-8"),
    "half a character": (replace(HEARTBEAT, reasons=("\ud800",)), "a text is UTF-8: 'utf-8' codec can't encode"),
}


@pytest.mark.parametrize(("batch", "told"), UNWRITABLE.values(), ids=UNWRITABLE)
def test_a_batch_that_no_reader_takes_is_not_written(batch: Batch, told: str) -> None:
    """The probe learns of it, not the monitor."""
    with pytest.raises(RecordError) as caught:
        envelope.encode(batch)
    assert told in str(caught.value)


@pytest.mark.parametrize("count", [1, 2, 63, 64, 5_000, 65_536])
def test_event_offsets_are_found_where_the_ids_end(count: int) -> None:
    """As long as their length is, and where another writer pads it; where there are none, that is said."""
    packed: dict[str, Any] = {"message_ids": bytes(16 * count), "lag_in_us": bytes(8 * count), "count": count}
    for offsets_us in (bytes(4 * count), b""):
        record = envelope.encode(replace(TWO_PASSED, **packed, event_offset_us=offsets_us, id_texts=b""))
        view = envelope.read_record(record)
        expected = view.event_offset_us.start if offsets_us else None
        assert envelope.find_event_offsets(record, view.message_ids.end) == expected
    for padded, expected in ((b"\x88\x80\x00....", 3), (b"\x80\x00", None)):
        assert envelope.find_event_offsets(padded, 0) == expected
