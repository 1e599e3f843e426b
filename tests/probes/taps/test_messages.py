"""Tests of messages of Kafka: where id and event time are found in them, and why they are not."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.taps.avro import AvroFraming, FileSchema, WriterSchema
from hopwatch.probes.taps.documents import SkippedMessage, StampableMessage
from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.probes.taps.messages import MAX_VALUE_BYTES, FieldSource, MessageField, MessageReader, choose_field
from hopwatch.probes.values import IdFormat, SkipReason, TimeUnit
from hopwatch.testing import EPOCH_US
from tests.probes.taps.avro_values import ORDER, VALUE, body
from tests.probes.taps.value_messages import MARKED, SEEN, Record
from tests.support.raw_producer import raw_cluster
from tests.support.tap_bench import Place as Surrounded


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (MARKED, SEEN),
        ([("hopwatch-id", b"old"), *MARKED], SEEN),
        (None, SkippedMessage(SkipReason.NO_ID)),
        (MARKED[1:], SkippedMessage(SkipReason.NO_ID, EPOCH_US)),
        (MARKED[:1], SkippedMessage(SkipReason.NO_TIME)),
        ([MARKED[0], ("hopwatch-time", b"soon")], SkippedMessage(SkipReason.BAD_TIME)),
        ([("hopwatch-id", b"\xff"), MARKED[1]], SkippedMessage(SkipReason.BAD_ID, EPOCH_US)),
        ([("hopwatch-id", None), MARKED[1]], SkippedMessage(SkipReason.NO_ID, EPOCH_US)),
    ],
)
def test_marks_are_read_from_the_headers(headers: object, expected: StampableMessage | SkippedMessage) -> None:
    """Marks are read from the headers, whatever the value is."""
    assert MessageReader().read(Record(b"x" * 2 * MAX_VALUE_BYTES, headers)) == expected


def test_headers_of_which_a_name_is_no_utf_8_are_no_marks() -> None:
    """Their message is counted, with its event time where that is read from elsewhere; the tap goes on."""
    names = [(b"hopwatch-id", b"a"), (b"hopwatch-time", b"%d" % EPOCH_US), (b"\xff", b"")]
    value = b'{"id": "a", "at": %d}' % EPOCH_US
    in_id, in_time = MessageField(FieldSource.JSON, "id"), MessageField(FieldSource.JSON, "at")
    readers = [
        (MessageReader(), SkippedMessage(SkipReason.UNDECODABLE)),
        (MessageReader(time_spot=in_time), SkippedMessage(SkipReason.UNDECODABLE, EPOCH_US)),
        (MessageReader(in_id), SkippedMessage(SkipReason.UNDECODABLE)),
        (MessageReader(in_id, in_time), SEEN),
    ]
    with raw_cluster() as cluster:
        for turn, (reader, expected) in enumerate(readers):
            message = cluster.read_back(value, names, f"t{turn}")
            assert reader.read(message) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (json.dumps({"m": {"id": "a"}, "at": EPOCH_US // 1_000}).encode(), SEEN),
        (b"{", SkippedMessage(SkipReason.NOT_JSON)),
        (None, SkippedMessage(SkipReason.NO_VALUE)),
        (b" " * (MAX_VALUE_BYTES + 1), SkippedMessage(SkipReason.OVERSIZED)),
        (b"{}", SkippedMessage(SkipReason.NO_ID)),
        (b'{"m": {"id": "a"}}', SkippedMessage(SkipReason.NO_TIME)),
    ],
)
def test_id_and_time_may_stand_in_a_json_value(value: object, expected: StampableMessage | SkippedMessage) -> None:
    """At the paths that are asked for."""
    reader = MessageReader(
        MessageField(FieldSource.JSON, "m.id"), MessageField(FieldSource.JSON, "at"), unit=TimeUnit.MS
    )
    assert reader.read(Record(value)) == expected


@pytest.mark.parametrize(
    ("where", "told"),
    [
        (MessageField(FieldSource.HEADER, "sent"), "in the header sent of each message, written in ms"),
        (MessageField(FieldSource.JSON, "meta.at"), "at meta.at of each JSON value, written in ms"),
        (MessageField(FieldSource.AVRO, "meta.at"), "at meta.at of each Avro value, written in ms"),
        (MessageField(FieldSource.RECORD), "each record's own, by its producer or broker"),
    ],
)
def test_where_event_times_come_from_is_told(where: MessageField, told: str) -> None:
    """A tap says it when it starts: lag is measured from there."""
    assert where.describe(TimeUnit.MS) == told


def test_a_bad_value_is_the_reason_even_if_the_id_is_in_a_header() -> None:
    """And the other way round the event time is kept."""
    assert MessageReader(time_spot=MessageField(FieldSource.JSON, "at")).read(Record(b"{", MARKED)) == SkippedMessage(
        SkipReason.NOT_JSON
    )
    reader = MessageReader(MessageField(FieldSource.JSON, "id"))
    assert reader.read(Record(b"{", MARKED)) == SkippedMessage(SkipReason.NOT_JSON, EPOCH_US)
    assert reader.read(Record(b'{"id": "a"}', MARKED)) == SEEN


def test_id_and_time_may_stand_in_an_avro_value(tmp_path: Path) -> None:
    """A time that its schema calls one needs no unit."""
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
    avro = FileSchema(tmp_path / "order.avsc", AvroFraming.RAW)
    reader = MessageReader(MessageField(FieldSource.AVRO, "id"), MessageField(FieldSource.AVRO, "at"), avro=avro)
    schema = WriterSchema(ORDER).fingerprint[:12]
    assert reader.read(Record(body())) == StampableMessage(
        uuid.UUID(str(VALUE["id"])).bytes, 1_699_920_000_000_000, schema=schema
    )
    assert reader.read(Record(b"x")) == SkippedMessage(SkipReason.UNDECODABLE)
    marked = MessageReader(MessageField(FieldSource.AVRO, "mark"), id_kind=IdFormat.BYTES, avro=avro)
    assert marked.read(Record(body(), MARKED)) == SkippedMessage(SkipReason.BAD_ID, EPOCH_US)


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ((1, EPOCH_US // 1_000), SEEN), ((2, EPOCH_US // 1_000), SEEN),
        ((0, 5), SkippedMessage(SkipReason.NO_TIME)), ((1, -1), SkippedMessage(SkipReason.NO_TIME)),
        ((1, -2), SkippedMessage(SkipReason.BAD_TIME)), ((1, EPOCH_US), SkippedMessage(SkipReason.BAD_TIME)),
        ((2, 2**62), SkippedMessage(SkipReason.BAD_TIME)),
    ],
)  # fmt: skip
def test_the_record_s_own_time_may_be_the_event_time(
    time: tuple[int, int], expected: StampableMessage | SkippedMessage
) -> None:
    """The record's timestamp of any type is the event time if a window can hold it; a record without one has none."""
    assert MessageReader(time_spot=MessageField(FieldSource.RECORD)).read(Record(b"", MARKED, time)) == expected


@given(st.integers(-(2**63), 2**63 - 1))
def test_no_time_of_a_record_can_stop_a_tap(stamp_ms: int) -> None:
    """A message with any timestamp is stamped or counted as bad."""
    place = Surrounded()
    reader = MessageReader(time_spot=MessageField(FieldSource.RECORD))
    found = reader.read(Record(b"", MARKED, (1, stamp_ms)))
    assert found is not None
    place.stamping.stamp_messages([found])
    tally = place.stamping.tally
    assert tally.stamped + tally.bad[SkipReason.BAD_TIME] + tally.bad[SkipReason.NO_TIME] == 1


def test_one_spot_is_asked_for() -> None:
    """The header without another; more than one is a mistake."""
    assert choose_field("id", "h", None, None) == MessageField(FieldSource.HEADER, "h")
    assert choose_field("id", "h", "a.b", None) == MessageField(FieldSource.JSON, "a.b")
    assert choose_field("id", "h", None, "a.b") == MessageField(FieldSource.AVRO, "a.b")
    assert choose_field("time", "h", None, None, is_record=True) == MessageField(FieldSource.RECORD, "")
    with pytest.raises(
        TapUsageError, match="the time stands in one place, got --time-json and --time-record: name one"
    ):
        choose_field("time", "h", "a", None, is_record=True)


@pytest.mark.parametrize(
    ("id_spot", "time_spot"),
    [
        (MessageField(FieldSource.JSON, "a"), MessageField(FieldSource.AVRO, "b")),
        (MessageField(FieldSource.AVRO, "a"), MessageField(FieldSource.RECORD)),
    ],
)
def test_a_value_is_json_or_avro(id_spot: MessageField, time_spot: MessageField) -> None:
    """Avro needs its schema, and one value is not both."""
    with pytest.raises(
        TapUsageError,
        match="a value is JSON or Avro: --avro-schema or --registry go with --id-avro, --time-avro or --take",
    ):
        MessageReader(id_spot, time_spot)
