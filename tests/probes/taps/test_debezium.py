"""Tests of change records of Debezium: their ids, their event times, and the records beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract.ids import TextId
from hopwatch.probes.taps.avro import AvroFraming, FileSchema, WriterSchema
from hopwatch.probes.taps.debezium import POSITION_FIELDS, DebeziumReader
from hopwatch.probes.taps.documents import PassedRecord, RecordKind, SkippedMessage, StampableMessage
from hopwatch.probes.taps.messages import MAX_VALUE_BYTES
from hopwatch.probes.values import SkipReason
from tests.probes.integrations.clients import Letter
from tests.probes.taps import debezium_samples as samples
from tests.probes.taps.avro_values import body
from tests.probes.taps.debezium_samples import SAMPLES, write_json
from tests.support.tap_bench import Place

READER = DebeziumReader()
LONG = {"connector": "a" * 253, "name": "b" * 253, "db": "d" * 247}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


class Record(Letter):
    """A message with a key and a value."""

    def __init__(self, key: object, value: object) -> None:
        """Take both."""
        super().__init__(None)
        self._key, self._value = key, value

    def key(self) -> object:  # type: ignore[override]
        """Return the key."""
        return self._key

    def value(self) -> object:  # type: ignore[override]
        """Return the value."""
        return self._value


def read(key: object, value: object, *, with_schema: bool = False) -> StampableMessage:
    """Return the message of a change."""
    found = READER.read(Record(write_json(key, with_schema=with_schema), write_json(value, with_schema=with_schema)))
    assert isinstance(found, StampableMessage)
    return found


def id_text(message: StampableMessage) -> str:
    """Return the text of its id."""
    assert isinstance(message.message_id, TextId)
    return message.message_id.text.decode()


def moved(record: dict[str, Any], **source: object) -> dict[str, Any]:
    """Return the change with other fields of its source."""
    return record | {"source": record["source"] | source}


@pytest.mark.parametrize(
    ("name", "event_us", "text"),
    [
        (
            "mysql update",
            1465581029100000,
            (
                '["mysql","mysql-server-1",{"db":"inventory","table":"customers"},{"id":1004},"u",1465581029100,'
                '{"file":"mysql-bin.000003","pos":484,"row":0,"server_id":223344}]'
            ),
        ),
        (
            "mysql delete",
            1465581902300000,
            (
                '["mysql","mysql-server-1",{"db":"inventory","table":"customers"},{"id":1004},"d",1465581902300,'
                '{"file":"mysql-bin.000003","pos":805,"row":0,"server_id":223344}]'
            ),
        ),
        (
            "postgresql update",
            1559033904863769,
            (
                '["postgresql","PostgreSQL_server",{"db":"postgres","schema":"public","table":"customers"},{"id":1},"u",'
                '1559033904863,{"lsn":24023128,"txId":556}]'
            ),
        ),
        (
            "sqlserver update",
            1559729995937000,
            (
                '["sqlserver","server1",{"db":"testDB","schema":"dbo","table":"customers"},{"id":1005},"u",1559729995937,'
                '{"change_lsn":"00000027:00000ac0:0002","commit_lsn":"00000027:00000ac0:0007","event_serial_no":"2"}]'
            ),
        ),
    ],
)
def test_the_id_of_a_change_is_its_place(name: str, event_us: int, text: str) -> None:
    """Source, table, key, operation and position make the id; the event time is that of the source."""
    message = read(*SAMPLES[name])
    assert (id_text(message), message.event_us, message.is_snapshot) == (text, event_us, False)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_schema_around_a_record_changes_nothing(name: str) -> None:
    """With and without it, whoever serialises, a change has one id."""
    assert read(*SAMPLES[name], with_schema=True) == read(*SAMPLES[name])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_change_that_is_delivered_again_has_the_same_id(name: str) -> None:
    """A connector that reads its log again may be another version, at another time, behind another transaction."""
    key, record = SAMPLES[name]
    again = moved(record, version="3.3.0.Final", sequence='["1","2"]', xmin=7, thread=9, query=None)
    again |= {"ts_ms": 1700000000000, "ts_us": 1700000000000000, "transaction": None}
    assert read(key, again) == read(key, record)


def test_all_samples_have_different_ids() -> None:
    """So have changes of one row, and the same change of another row, table or server."""
    update, key = samples.MYSQL_UPDATE, samples.MYSQL_KEY
    changes = [
        *SAMPLES.values(),
        (key, moved(update, pos=485)), (key, moved(update, row=1)), (key, moved(update, file="mysql-bin.000004")),
        (key, moved(update, table="clients")), (key, moved(update, name="mysql-server-2")), ({"id": 1005}, update),
        (key, moved(update, gtid="0e4d5dcd:10")), (key, update | {"op": "c"}), (key, moved(update, server_id=1)),
        (samples.POSTGRESQL_KEY, moved(samples.POSTGRESQL_UPDATE, lsn=24023129)),
        (samples.MONGODB_KEY, samples.MONGODB_UPDATE | {"updateDescription": {"removedFields": ["a"]}}),
        (samples.MONGODB_KEY, moved(samples.MONGODB_UPDATE, ord=2)),
    ]  # fmt: skip
    assert len({read(*change).message_id for change in changes}) == len(changes)


@given(st.sampled_from(POSITION_FIELDS), st.integers(0, 2**62), st.integers(0, 2**62))
def test_each_field_of_a_position_tells_changes_apart(field: str, one: int, other: int) -> None:
    """Two changes have one id if they stand at one place, whatever their connector calls it."""
    ids = {read(samples.MYSQL_KEY, moved(samples.MYSQL_UPDATE, **{field: place})).message_id for place in (one, other)}
    assert len(ids) == len({one, other})


def test_a_row_read_for_a_snapshot_is_marked() -> None:
    """Its id says so, and the tally counts it; each snapshot reads rows anew."""
    found = moved(samples.MYSQL_UPDATE | {"op": "r", "before": None}, snapshot="incremental", file="", pos=0)
    message = read(samples.MYSQL_KEY, found)
    assert message.is_snapshot
    assert ',"r",1465581029100,' in id_text(message)
    assert read(samples.MYSQL_KEY, moved(found, ts_ms=1465581029101)).message_id != message.message_id
    as_insert = read(samples.MYSQL_KEY, moved(samples.MYSQL_UPDATE | {"op": "c"}, snapshot="last"))
    place = Place()
    place.stamping.stamp_messages([message, as_insert, read(*SAMPLES["mysql update"])])
    assert place.stamping.tally.summary(0) == {"stamped": 3, "bad": {}, "dropped": 0, "snapshot_reads": 2}
    assert str(place.stamping.tally) == "3 stamped (2 of a snapshot), 0 bad"


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        (samples.MYSQL_KEY, None, RecordKind.TOMBSTONE),
        ({"databaseName": "testDB"}, samples.SQLSERVER_SCHEMA_CHANGE, RecordKind.SCHEMA_CHANGE),
        ({"id": "0e4d5dcd:10"}, samples.TRANSACTION_BEGIN, RecordKind.TRANSACTION),
        ({"id": "0e4d5dcd:10"}, samples.TRANSACTION_END, RecordKind.TRANSACTION),
        ({"serverName": "mysql-server-1"}, samples.HEARTBEAT, RecordKind.HEARTBEAT),
    ],
)
def test_records_beside_changes_are_no_messages(key: object, value: object, kind: RecordKind) -> None:
    """Such records are counted by their kind, with and without schema, and are neither stamps nor drops."""
    records = [Record(write_json(key, with_schema=has), write_json(value, with_schema=has)) for has in (False, True)]
    found = [READER.read(record) for record in records]
    assert found == [PassedRecord(kind)] * 2
    place = Place()
    place.stamping.stamp_messages(found)
    tally = place.stamping.tally
    assert tally.summary(place.probe.dropped) == {"stamped": 0, "bad": {}, "dropped": 0, "no_messages": {kind: 2}}
    assert str(tally) == f"0 stamped, 0 bad; no messages: {kind} 2"
    assert place.stamping.account.snapshot().received == 0


def test_a_delete_and_its_tombstone_are_one_message() -> None:
    """The delete is stamped, and what follows it for compaction is not."""
    place = Place()
    key = write_json(samples.MYSQL_KEY)
    records = [Record(key, write_json(samples.MYSQL_DELETE)), Record(key, None)]
    place.stamping.stamp_messages(map(READER.read, records))
    assert (place.stamping.tally.stamped, place.stamping.tally.bad.total()) == (1, 0)


def test_rows_of_a_table_without_a_key_are_told_apart() -> None:
    """Their own values stand for the key, for several may be written at one position; equal rows there are one."""
    rows = [samples.POSTGRESQL_UPDATE | {"after": {"name": name}} for name in ("a", "b", "a")]
    one, other, equal = (read(None, row) for row in rows)
    assert one.message_id != other.message_id
    assert one == equal
    assert '{"row":"' in id_text(one)


def test_a_message_without_a_transaction_has_no_time_in_its_id() -> None:
    """Its time is the one at which the connector met it, another one each time."""
    key, record = SAMPLES["postgresql message"]
    assert read(key, moved(record, ts_ms=1)).message_id == read(key, record).message_id


@pytest.mark.parametrize(
    ("key", "part"),
    [(b"1004", "1004"), (b"a key", '{"bytes":"61206b6579"}'), (b'{"id": 1}', '{"id":1}'), (b'"a"', '"a"')],
)
def test_a_key_may_be_of_any_form(key: bytes, part: str) -> None:
    """JSON is taken as its value, all else as its bytes."""
    found = READER.read(Record(key, write_json(samples.MYSQL_UPDATE)))
    assert isinstance(found, StampableMessage)
    assert f",{part}," in id_text(found)


def test_a_long_part_of_an_id_is_hashed() -> None:
    """So that a key of any length has an id of a bounded one; another long key has another."""
    texts = [id_text(read({"id": "x" * length}, samples.MYSQL_UPDATE)) for length in (247, 248, 249)]
    assert '{"id":"xxx' in texts[0]
    assert all('{"hash":"' in text and len(text) < 256 for text in texts[1:])
    assert len(set(texts)) == 3


@pytest.mark.parametrize(
    ("source", "record", "event_us"),
    [
        ({"ts_ns": 5_999, "ts_us": 7, "ts_ms": 8}, {}, 5),
        ({"ts_us": 7, "ts_ms": 8}, {}, 7),
        ({"ts_ns": None, "ts_us": 0, "ts_ms": 8}, {}, 8_000),
        ({"ts_ms": 0}, {"ts_ms": 9}, 9_000),
        ({}, {"ts_us": 9}, 9),
    ],
)
def test_the_event_time_is_the_most_exact_one_of_the_source(
    source: dict[str, object], record: dict[str, object], event_us: int
) -> None:
    """Of a source that gives none, which some write as 0, it is that of the record."""
    places = {"connector": "mysql", "file": "a", "pos": 1}
    assert read({"id": 1}, {"op": "c", "source": places | source} | record).event_us == event_us


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"{", SkippedMessage(SkipReason.NOT_JSON)),
        (b"[]", SkippedMessage(SkipReason.NO_ID)),
        (b'{"id": 1, "first_name": "Anne"}', SkippedMessage(SkipReason.NO_ID)),
        (b'{"op": "c", "source": 5}', SkippedMessage(SkipReason.NO_ID)),
        (b'{"op": 1, "source": {"pos": 5}}', SkippedMessage(SkipReason.NO_ID)),
        (b'{"op": "c", "source": {"ts_ms": 5}}', SkippedMessage(SkipReason.NO_ID, 5_000)),
        (b'{"op": "c", "source": {"pos": 5}}', SkippedMessage(SkipReason.NO_TIME)),
        (b'{"op": "c", "source": {"pos": 5, "ts_ms": "soon"}}', SkippedMessage(SkipReason.BAD_TIME)),
        (b" " * (MAX_VALUE_BYTES + 1), SkippedMessage(SkipReason.OVERSIZED)),
        (
            json.dumps({"op": "c" * 253, "source": LONG | {"pos": 5, "ts_ms": 5}}).encode(),
            SkippedMessage(SkipReason.BAD_ID, 5_000),
        ),
    ],
)
def test_what_is_no_change_is_counted_by_its_reason(value: bytes, expected: SkippedMessage) -> None:
    """A row without the envelope, as some transformations leave it, has no position, and so no id."""
    assert READER.read(Record(b"1", value)) == expected


def test_a_record_without_key_and_value_is_bad() -> None:
    """Such a record can be the tombstone of nothing."""
    assert READER.read(Record(None, None)) == SkippedMessage(SkipReason.NO_VALUE)


@given(st.none() | st.binary(max_size=20), JSON_VALUES, JSON_VALUES, JSON_VALUES)
def test_no_record_can_stop_a_tap(key: bytes | None, op: object, source: object, other: object) -> None:
    """Any record is stamped, passed or counted as bad."""
    for value in ({"op": op, "source": source, "after": other}, other, {"schema": op, "payload": source}):
        found = READER.read(Record(key, json.dumps(value).encode()))
        assert isinstance(found, StampableMessage | SkippedMessage | PassedRecord)


CUSTOMER = {"type": "record", "name": "Value", "namespace": "mysql-server-1.inventory.customers".replace("-", "_"),
            "fields": [{"name": "id", "type": "int"}, {"name": "first_name", "type": "string"}]}  # fmt: skip


def optional(name: str, kind: object) -> dict[str, object]:
    """Return a field that may be null, as the Avro converter writes it."""
    return {"name": name, "type": ["null", kind], "default": None}


ENVELOPE = {
    "type": "record", "name": "Envelope", "namespace": CUSTOMER["namespace"],
    "fields": [
        optional("before", CUSTOMER), optional("after", "Value"),
        {"name": "source", "type": {"type": "record", "name": "Source", "namespace": "io.debezium.connector.mysql",
            "fields": [
                *({"name": name, "type": "string"} for name in ("version", "connector", "name")),
                {"name": "ts_ms", "type": "long"}, {"name": "snapshot", "type": ["string", "null"]},
                {"name": "db", "type": "string"}, optional("table", "string"), {"name": "server_id", "type": "long"},
                optional("gtid", "string"), {"name": "file", "type": "string"}, {"name": "pos", "type": "long"},
                {"name": "row", "type": "int"}, optional("thread", "long"), optional("query", "string")]}},
        {"name": "op", "type": "string"}, optional("ts_ms", "long"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("framing", "before"), [(AvroFraming.CONFLUENT, b"\x00\x00\x00\x00\x07"), (AvroFraming.RAW, b"")]
)
def test_a_change_in_avro_has_the_id_of_its_place(tmp_path: Path, framing: AvroFraming, before: bytes) -> None:
    """Beside the key, which stands there as its bytes, for its schema is another one, it is that of the JSON record."""
    (tmp_path / "envelope.avsc").write_text(json.dumps(ENVELOPE))
    reader = DebeziumReader(FileSchema(tmp_path / "envelope.avsc", framing))
    record = samples.MYSQL_UPDATE | {
        name: {"id": 1004, "first_name": samples.MYSQL_UPDATE[name]["first_name"]} for name in ("before", "after")
    }
    value = body(moved(record, snapshot="false"), ENVELOPE)
    found = reader.read(Record(before + b"\xd8\x0f", before + value))
    in_json = read(samples.MYSQL_KEY, samples.MYSQL_UPDATE)
    assert isinstance(found, StampableMessage)
    assert id_text(found) == id_text(in_json).replace('{"id":1004}', '{"avro":"d80f"}')
    assert found[1:] == (*in_json[1:3], WriterSchema(ENVELOPE).fingerprint[:12], None)
    assert reader.read(Record(before + b"\xd8\x0f", None)) == PassedRecord(RecordKind.TOMBSTONE)
    assert reader.read(Record(None, b"\xff")) == SkippedMessage(SkipReason.UNDECODABLE)
