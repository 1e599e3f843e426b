"""Laws of the contract: what is written is read, as fastavro reads it too, and no bytes do any harm."""

from __future__ import annotations

import io
import struct
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, Final

import fastavro
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract import envelope, segment
from hopwatch.probes.contract.batch import Batch, BatchKind, Metrics, MetricsStamp
from hopwatch.probes.contract.body import BodyCursor
from hopwatch.probes.contract.envelope import RecordError
from hopwatch.probes.contract.ids import id_bytes
from tests.model.lag_histogram import histogram, write
from tests.support.batches import (
    HEARTBEAT,
    PREFIXES,
    TWO_PASSED,
    as_body,
    as_fastavro_reads,
    batches,
    of_version_1,
    record_of,
    refusal,
)


@given(batches())
def test_what_is_encoded_is_decoded(batch: Batch) -> None:
    """Every batch that a probe may send comes back as it was."""
    assert envelope.decode(envelope.encode(batch)) == batch


@given(batches())
def test_the_reader_by_hand_agrees_with_fastavro(batch: Batch) -> None:
    """Both read the same fields from the same record, and nothing is left behind."""
    assert as_fastavro_reads(envelope.encode(batch)) == (as_body(batch), b"")


@given(batches())
def test_version_1_is_read_for_ever(batch: Batch) -> None:
    """A record of version 1 says what it always said to both readers, and nothing of what it has no fields for."""
    record = record_of(batch, version=1)
    assert envelope.decode(record) == of_version_1(batch)
    assert as_fastavro_reads(record) == (as_body(of_version_1(batch)), b"")


STRANGE = st.binary(min_size=1, max_size=40) | st.sampled_from(list(PREFIXES.values())).flatmap(
    lambda prefix: st.integers(1, len(prefix)).map(lambda length: prefix[:length])
)


@given(st.lists(batches().map(envelope.encode) | STRANGE, max_size=5), st.integers(0, 3))
def test_many_beginnings_of_records_are_checked_as_each_is(records: list[bytes], missing_bytes: int) -> None:
    """Together they are taken where each of them is, and refused as the first that is not; also of a file cut short."""
    ends = np.cumsum([len(record) for record in records], dtype=np.int64)
    starts = ends - np.array([len(record) for record in records], np.int64)
    kept = starts < sum(map(len, records)) - missing_bytes
    buffer = b"".join(records)[: int(sum(map(len, records))) - missing_bytes]
    places = starts[kept], ends[kept]
    each = [_refusal(envelope.check_prefix, buffer, *place) for place in zip(*places, strict=True)]
    assert _refusal(envelope.check_prefixes, buffer, *places) == next(filter(None, each), "")


def _refusal(check: Callable[..., object], *given_arguments: Any) -> str:  # noqa: ANN401 - a buffer, and places
    try:
        check(*given_arguments)
    except RecordError as error:
        return str(error)
    return ""


LONGS = st.integers(-(2**63), 2**63 - 1)


@st.composite
def counts(draw: st.DrawFn) -> dict[str, Any]:
    """Draw what was counted at one stamp, with the lags of some of the messages."""
    lags = draw(st.lists(LONGS, max_size=20))
    return {
        "stamp": draw(st.sampled_from(["IN", "OUT", "FILTERED", "REJECTED", "DEFERRED"])),
        "count": draw(st.integers(len(lags), 2**63 - 1)),
        "id_xor": draw(LONGS),
        "id_sum": draw(LONGS),
        "bytes": draw(st.integers(0, 2**63 - 1)),
        "lag_histogram": write(histogram(lags)),
    }


@given(st.lists(counts(), max_size=8))
def test_packets_are_read_as_they_were_written(metrics: list[dict[str, Any]]) -> None:
    """Counts are encoded and decoded, and lie where the reader by hand says, as fastavro reads them."""
    record = record_of(HEARTBEAT, kind="METRICS", metrics=metrics)
    found = [
        one._asdict() | {"stamp": MetricsStamp(one.stamp).name, "lag_histogram": record[slice(*one.lag_histogram)]}
        for one in envelope.read_record(record).metrics
    ]
    assert found == metrics == as_fastavro_reads(record)[0]["metrics"]
    packets = [
        Metrics(
            MetricsStamp[one["stamp"]], *(one[name] for name in ("count", "id_xor", "id_sum", "bytes", "lag_histogram"))
        )
        for one in metrics
    ]
    batch = envelope.decode(record)
    assert batch == replace(HEARTBEAT, kind=BatchKind.METRICS, metrics=tuple(packets))
    assert envelope.encode(batch) == record


@given(batches(), st.binary(max_size=20), st.binary(max_size=20))
def test_a_record_is_read_in_the_middle_of_a_buffer(batch: Batch, before: bytes, behind: bytes) -> None:
    """Each packed field lies in the buffer where its span says, and what stands around the record plays no part."""
    record = envelope.encode(batch)
    buffer = before + record + behind
    view = envelope.read_record(buffer, len(before), len(before) + len(record))
    envelope.check_values(buffer, view)
    spans = {name: value for name, value in view._asdict().items() if isinstance(value, envelope.ByteSpan)}
    assert envelope.read_labels(buffer, *spans.pop("labels_span")) == batch.labels
    assert {name: buffer[slice(*span)] for name, span in spans.items()} == {n: getattr(batch, n) for n in spans}


@given(st.binary() | st.builds(bytes.__add__, st.sampled_from(sorted(PREFIXES.values())), st.binary()))
def test_random_bytes_raise_nothing_but_a_record_error(record: bytes) -> None:
    """Any bytes, behind a good prefix too, are a batch or a RecordError with a short name and a sentence."""
    refused = refusal(record)
    assert refused is None or (refused.reason.isidentifier() and str(refused))


@st.composite
def broken_records(draw: st.DrawFn) -> bytes:
    """Draw the record of a good batch and break it: bytes changed, put in or taken out."""
    record = bytearray(record_of(draw(batches()), draw(st.sampled_from([1, 2]))))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(record)))
        end = draw(st.integers(start, min(start + 8, len(record))))
        record[start:end] = draw(st.binary(max_size=10))
    return bytes(record)


@given(broken_records())
def test_what_is_read_from_a_broken_record_is_what_fastavro_reads(record: bytes) -> None:
    """Either it is refused with a RecordError, or it says the same to both readers, to the last byte."""
    with suppress(RecordError):
        batch = envelope.decode(record)
        assert as_fastavro_reads(record) == (as_body(batch), b"")


@given(batches(), st.data())
def test_no_beginning_of_a_record_is_a_record(batch: Batch, data: st.DataObject) -> None:
    """A record that was cut anywhere is refused as truncated, as long as a byte of it tells that it is one."""
    record = record_of(batch, data.draw(st.sampled_from([1, 2])))
    cut = record[: data.draw(st.integers(0, len(record) - 1))]
    refused = refusal(cut)
    assert refused is not None
    assert refused.reason == ("truncated" if cut else "bad_marker")


_BROKEN_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["OBSERVATIONS", "HEARTBEAT", "BYE"]),
        "seq": st.integers(-2, 2),
        "count": st.integers(-1, 3),
        "window_start_ms": st.sampled_from([-60_000, -1, 0, 1, 60_000]),
        "message_ids": st.sampled_from([0, 16, 17, 32]).map(bytes),
        "event_offset_us": st.sampled_from([b"", bytes(8), b"\xff" * 8, bytes(9)]),
        "lag_in_us": st.sampled_from([b"", bytes(16), struct.pack("<q", -(2**63)) * 2]),
        "outcome": st.sampled_from([b"", b"\x00\x01", b"\x01\x02", b"\x03\x00", b"\x01"]),
        "reason": st.sampled_from([b"", b"\xff\x00", b"\xff\xff", b"\xff"]),
        "reasons": st.lists(st.just("r"), max_size=2),
        "node": st.sampled_from(["", "a b", "n"]),
        "id_kind": st.sampled_from(["BYTES", "UUID", "INT", "TEXT"]),
        "id_texts": st.sampled_from([b"", b"ab", b"\xff"]),
        "id_text_ends": st.lists(st.integers(0, 3), min_size=2, max_size=2).map(lambda ends: struct.pack("<2I", *ends)),
        "until_us": st.sampled_from([0, 8, 16]).map(bytes),
    },
)


@given(_BROKEN_FIELDS)
def test_what_is_read_could_be_written(fields: dict[str, Any]) -> None:
    """Reader and writer keep the same limits: a batch that decodes is one that encodes, to the same record."""
    record = record_of(TWO_PASSED, **fields)
    with suppress(RecordError):
        assert envelope.encode(envelope.decode(record)) == record


@given(st.lists(st.binary(max_size=50)))
def test_records_are_walked_as_they_were_framed(records: list[bytes]) -> None:
    """A whole segment yields its records, in order and without a fault."""
    data = segment.MAGIC + b"".join(map(segment.encode_frame, records))
    assert [(data[f.start : f.end], f.fault) for f in segment.read_frames(data)] == [(record, "") for record in records]


@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=4), st.data())
def test_a_segment_that_was_cut_yields_its_whole_records(records: list[bytes], data: st.DataObject) -> None:
    """All records before the cut are read, and the one that the cut went through is one torn tail."""
    whole = [segment.encode_frame(record) for record in records]
    length = data.draw(st.integers(0, sum(map(len, whole))))
    cut = segment.MAGIC + b"".join(whole)[:length]
    ends = [sum(map(len, whole[: n + 1])) for n in range(len(whole))]
    good = [cut[frame.start : frame.end] for frame in segment.read_frames(cut) if not frame.fault]
    faults = [frame.fault for frame in segment.read_frames(cut) if frame.fault]
    assert good == [record for record, end in zip(records, ends, strict=True) if end <= length]
    assert faults == ([] if length in (0, *ends) else ["torn_tail"])


@given(st.binary() | st.binary().map(segment.MAGIC.__add__))
def test_walking_raises_nothing_and_stays_inside(data: bytes) -> None:
    """The frames of any file lie within it, one behind the other, and each fault has a sentence."""
    frames = list(segment.read_frames(data))
    ends = [0, *(frame.end for frame in frames)]
    assert all(end <= frame.start <= frame.end <= len(data) for end, frame in zip(ends, frames, strict=False))
    assert all(bool(frame.fault) == bool(frame.message) for frame in frames)


@given(st.uuids() | st.binary(min_size=16, max_size=16) | st.integers(0, 2**128 - 1) | st.text())
def test_an_id_has_sixteen_bytes_and_keeps_them(message_id: uuid.UUID | bytes | int | str) -> None:
    """The wire's form of an id stands for itself, and so does the UUID of these bytes."""
    wire = id_bytes(message_id)
    assert len(wire) == 16
    assert id_bytes(wire) == id_bytes(uuid.UUID(bytes=wire)) == id_bytes(int.from_bytes(wire)) == wire


def test_the_wire_has_the_fields_of_a_batch() -> None:
    """Nothing of a batch is left unwritten, the order is that of the schema, and version 1 is where 2 begins.

    A reader knows where the labels stand, beside.
    """
    first, second = (
        [field["name"] for field in schema["fields"]]  # type: ignore[attr-defined]
        for schema in (envelope.SCHEMA_1, envelope.SCHEMA)
    )
    assert second == [*asdict(TWO_PASSED)]
    assert list(envelope.RecordView._fields) == [*second, "labels_span"]
    assert second[: len(first)] == first


def _pack_labels(labels: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    fastavro.schemaless_writer(packed, {"type": "map", "values": "string"}, labels)
    return packed.getvalue()


_LABELS: Final = st.dictionaries(st.text(max_size=15), st.text(max_size=15), max_size=8)


@given(_LABELS.map(_pack_labels), st.data())
def test_the_end_of_a_map_is_where_a_reader_of_its_texts_ends(packed: bytes, data: st.DataObject) -> None:
    """Of bytes that may be cut, changed and followed by others: item by item a reader ends at the end that is found."""
    changed = bytearray(packed + data.draw(st.binary(max_size=3)))
    for at in data.draw(st.lists(st.integers(0, len(changed) - 1), max_size=2)):
        changed[at] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(changed)))
    found = BodyCursor(bytes(changed), 0, end).find_map_end()
    if found is not None:
        body = BodyCursor(bytes(changed), 0, end)
        for _ in body.iter_items("labels", 63):
            body.read_span()
            body.read_span()
        assert body.position == found


@given(_LABELS, st.binary(max_size=9))
def test_labels_are_read_once_and_may_be_changed(labels: dict[str, str], behind: bytes) -> None:
    """Each reader has labels of its own, whatever it does with them; bytes behind them are not looked at."""
    packed = _pack_labels(labels)
    first = envelope.read_labels(packed + behind, 0, len(packed))
    assert first == labels
    first["another"] = "value"
    assert envelope.read_labels(packed, 0, len(packed)) == labels
