"""Reader of Debezium's change records: an id that a change keeps however often it is delivered, and its event time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import orjson

from hopwatch.probes.contract.ids import TextId, hash_text
from hopwatch.probes.taps.avro import AvroValues
from hopwatch.probes.taps.documents import PassedRecord, RecordKind, SkippedMessage, StampableMessage
from hopwatch.probes.taps.messages import parse_value
from hopwatch.probes.values import MAX_ID_CHARS, SkipReason, TimeUnit, build_time_reader

if TYPE_CHECKING:
    from confluent_kafka import Message

PLACE_FIELDS: Final = ("db", "schema", "keyspace", "shard", "collection", "table")
"""Fields of ``source`` that name the table of a change, of all connectors."""
POSITION_FIELDS: Final = (
    "file", "pos", "row", "gtid", "server_id",
    "lsn", "txId", "change_lsn", "commit_lsn", "event_serial_no",
    "scn", "rs_id", "ssn", "redo_thread", "lcr_position",
    "ord", "h", "tord", "stxnid", "lsid", "txnNumber",
    "vgtid", "server_transaction_id", "record_sequence", "mod_number",
)  # fmt: skip
"""Fields of ``source`` that place a change in the log of its database, of all connectors: the same whenever it is read.

Not so ``version``, ``sequence``, ``xmin``, ``thread``, ``query`` and the times by the connector's own clock.
"""
MAX_PART_BYTES: Final = 256
"""Length of a part of an id beyond which its hash stands for it."""

_TIMES: Final = tuple(
    (name, build_time_reader(unit))
    for name, unit in (("ts_ns", TimeUnit.NS), ("ts_us", TimeUnit.US), ("ts_ms", TimeUnit.MS))
)
_READ, _MESSAGE, _UPDATE_FIELD = "r", "m", "updateDescription"
_NO_SNAPSHOT: Final = (None, False, "false")


class DebeziumReader:
    """Reader of ids and event times from Debezium's records, of JSON or, with ``avro``, of Avro."""

    def __init__(self, avro: AvroValues | None = None) -> None:
        """Set the decoder of Avro values."""
        self._avro = avro

    def read(self, message: Message) -> StampableMessage | SkippedMessage | PassedRecord:
        """Read a record, whatever it holds.

        Raises:
            SchemaWaitError: the schema of its value cannot be known yet.
        """
        key, value = message.key(), message.value()
        if value is None and key is not None:
            # It follows a delete, so that compaction forgets the key.
            return PassedRecord(RecordKind.TOMBSTONE)
        parsed = parse_value(value, self._avro)
        record = _unwrap(parsed.document)
        if not isinstance(record, dict):
            return SkippedMessage(parsed.bad or SkipReason.NO_ID)
        kind = _find_kind(record)
        if kind is not None:
            return PassedRecord(kind)
        found = self._read_change(key, record)
        if parsed.writer is not None and isinstance(found, StampableMessage):
            return found._replace(schema=parsed.writer.label)
        return found

    def _read_change(self, key: object, record: Mapping[str, object]) -> StampableMessage | SkippedMessage:
        source = record.get("source")
        if not isinstance(source, dict) or not isinstance(record.get("op"), str):
            return SkippedMessage(SkipReason.NO_ID)
        try:
            event_us, bad_time = _read_event_us(source, record), SkipReason.NO_TIME
        except ValueError:
            event_us, bad_time = None, SkipReason.BAD_TIME
        try:
            text = self._build_id_text(key, record, source)
        except (ValueError, TypeError, RecursionError):
            return SkippedMessage(SkipReason.BAD_ID, event_us)
        if text is None:
            return SkippedMessage(SkipReason.NO_ID, event_us)
        if event_us is None:
            return SkippedMessage(bad_time)
        return StampableMessage(TextId.from_text(text), event_us, _is_snapshot(record, source))

    def _build_id_text(self, key: object, record: Mapping[str, object], source: Mapping[str, object]) -> str | None:
        """Return the text of a change's id; None if nothing places it.

        Raises:
            ValueError: it is too long.
            TypeError: a value in it has no form in JSON.
        """
        op = record["op"]
        position = {name: source[name] for name in POSITION_FIELDS if source.get(name) is not None}
        if not position and op != _READ:
            return None
        parts = (
            source.get("connector"),
            source.get("name"),
            {name: source[name] for name in PLACE_FIELDS if source.get(name) is not None},
            self._read_key(key, record),
            op,
            # The moment at which the connector met it is another one at each delivery.
            None if op == _MESSAGE else source.get("ts_ms"),
            position | _find_update(record, source),
        )
        text = b"[" + b",".join(map(_write_part, parts)) + b"]"
        if len(text) > MAX_ID_CHARS:
            raise ValueError(f"the text of an id has at most {MAX_ID_CHARS} characters, got {len(text)}")
        return text.decode()

    def _read_key(self, key: object, record: Mapping[str, object]) -> object:
        """Return the key's value; of a table without one, a hash of the row."""
        if not isinstance(key, bytes):
            row = [record.get("before"), record.get("after"), record.get("message")]
            return {"row": hash_text(_write_json(row)).hex()}
        body = None if self._avro is None else self._avro.strip_framing(key)
        if body is not None:
            return {"avro": body.hex()}
        try:
            return _unwrap(orjson.loads(key))
        except orjson.JSONDecodeError:
            return {"bytes": key.hex()}


def _unwrap(document: object) -> object:
    """Return the payload of a document that carries its schema."""
    if isinstance(document, dict) and document.keys() == {"schema", "payload"}:
        return document["payload"]
    return document


def _find_kind(record: Mapping[str, object]) -> RecordKind | None:
    """Return the kind of a record of Debezium that is no change of a row."""
    if "op" in record:
        return None
    if record.keys() <= {"ts_ms", "ts_us", "ts_ns"} and record:
        return RecordKind.HEARTBEAT
    if record.get("status") in {"BEGIN", "END"} and "id" in record:
        return RecordKind.TRANSACTION
    if "source" in record and ("ddl" in record or "tableChanges" in record):
        return RecordKind.SCHEMA_CHANGE
    return None


def _is_snapshot(record: Mapping[str, object], source: Mapping[str, object]) -> bool:
    return record["op"] == _READ or source.get("snapshot") not in _NO_SNAPSHOT


def _find_update(record: Mapping[str, object], source: Mapping[str, object]) -> dict[str, object]:
    """Return what changed, where changes of one transaction share a position: MongoDB's, which say it themselves."""
    found = record.get(_UPDATE_FIELD) if source.get("connector") == "mongodb" else None
    return {} if found is None else {_UPDATE_FIELD: hash_text(_write_json(found)).hex()}


def _read_event_us(source: Mapping[str, object], record: Mapping[str, object]) -> int | None:
    """Return the time of a change in µs: by its source, else by the connector that met it.

    Raises:
        ValueError: a time is none, or no window can hold it.
    """
    return next(_iter_times(source), None) or next(_iter_times(record), None)


def _iter_times(fields: Mapping[str, object]) -> Iterator[int]:
    """Yield the times of a record, the most exact one first; connectors write 0 where they know none."""
    for name, read in _TIMES:
        value = fields.get(name)
        if value is not None and (event_us := read(value)):
            yield event_us


def _write_part(part: object) -> bytes:
    written = _write_json(part)
    return written if len(written) <= MAX_PART_BYTES else _write_json({"hash": hash_text(written).hex()})


def _write_json(value: object) -> bytes:
    """Return a value in JSON, the same for the same value: keys sorted, no spaces.

    Raises:
        TypeError: it has no form in JSON.
    """
    return orjson.dumps(value, _write_other, orjson.OPT_SORT_KEYS)


def _write_other(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
