"""Reader of id and event time from Kafka messages: in headers, in the value, or in the record's timestamp."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import orjson

from hopwatch.probes import message_headers
from hopwatch.probes.kafka.consumer import read_headers, read_recorded_us
from hopwatch.probes.schema_registry import UnknownSchemaError
from hopwatch.probes.taps.avro import AvroValues, WriterSchema
from hopwatch.probes.taps.documents import PassedRecord, SkippedMessage, StampableMessage, find_value, parse_path
from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.probes.taps.selection import Selection, SelectionKind
from hopwatch.probes.values import IdFormat, SkipReason, TimeUnit, build_id_reader, build_time_reader, check_event_us

if TYPE_CHECKING:
    from confluent_kafka import Message

MAX_VALUE_BYTES: Final = 1024 * 1024
"""Maximum size of a value that is parsed."""


class FieldSource(StrEnum):
    """Source of a field in a message."""

    HEADER = "header"
    JSON = "json"
    AVRO = "avro"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class MessageField:
    """Field of a message: its source, and the header's name or the path."""

    source: FieldSource
    name: str = ""

    def describe(self, unit: TimeUnit) -> str:
        """Describe the source and the format of event times in this field."""
        if self.source is FieldSource.RECORD:
            return "each record's own, by its producer or broker"
        if self.source is FieldSource.HEADER:
            return f"in the header {self.name} of each message, written in {unit}"
        value = {FieldSource.JSON: "JSON", FieldSource.AVRO: "Avro"}[self.source]
        return f"at {self.name} of each {value} value, written in {unit}"


ID_FIELD: Final = MessageField(FieldSource.HEADER, message_headers.ID_HEADER)
TIME_FIELD: Final = MessageField(FieldSource.HEADER, message_headers.TIME_HEADER)


def choose_field(
    what: str, header: str, json: str | None, avro: str | None, *, is_record: bool = False
) -> MessageField:
    """Return the field that the options choose; the header by default.

    Raises:
        TapUsageError: the options choose more than one.
    """
    asked = [
        MessageField(place, name)
        for place, name in (
            (FieldSource.JSON, json),
            (FieldSource.AVRO, avro),
            (FieldSource.RECORD, "" if is_record else None),
        )
        if name is not None
    ]
    if len(asked) > 1:
        told = " and ".join(f"--{what}-{one.source}" for one in asked)
        raise TapUsageError(f"the {what} stands in one place, got {told}: name one of them")
    return asked[0] if asked else MessageField(FieldSource.HEADER, header)


class RecordReader(Protocol):
    """Reader of id and event time from the records of a topic."""

    def read(self, message: Message) -> StampableMessage | SkippedMessage | PassedRecord | None:
        """Read a record, whatever it holds; None of one that is not selected.

        Raises:
            SchemaWaitError: the schema of its value cannot be known yet.
        """


class ParsedValue(NamedTuple):
    """Value of a record: its document, the Avro schema that wrote it, or why it cannot be read."""

    document: object = None
    writer: WriterSchema | None = None
    bad: SkipReason | None = None
    is_other: bool = False
    """Whether its schema is not selected."""


class MessageReader:
    """Reader of ids and event times from messages."""

    def __init__(  # noqa: PLR0913 - what the flags of a tap say
        self,
        id_spot: MessageField = ID_FIELD,
        time_spot: MessageField = TIME_FIELD,
        *,
        id_kind: IdFormat = IdFormat.AUTO,
        unit: TimeUnit = TimeUnit.US,
        avro: AvroValues | None = None,
        selection: Selection | None = None,
    ) -> None:
        """Set the fields, and the formats of their values; without a selection all messages are taken.

        Raises:
            TapUsageError: a path is invalid, or values would have to be both JSON and Avro.
        """
        places = {id_spot.source, time_spot.source}
        is_by_schema = selection is not None and selection.kind is not SelectionKind.HEADER
        needs_avro = FieldSource.AVRO in places or is_by_schema
        if (FieldSource.JSON in places and needs_avro) or needs_avro != (avro is not None):
            raise TapUsageError(
                "a value is JSON or Avro: --avro-schema or --registry go with --id-avro, --time-avro or --take"
            )
        self._id_field, self._time_field, self._avro = id_spot, time_spot, avro
        self._paths = {
            spot: parse_path(spot.name)
            for spot in (id_spot, time_spot)
            if spot.source in (FieldSource.JSON, FieldSource.AVRO)
        }
        self._selection, self._is_by_schema = selection, is_by_schema
        is_by_header = selection is not None and not is_by_schema
        self._in_headers = FieldSource.HEADER in places or is_by_header
        self._read_id, self._read_time = build_id_reader(id_kind), build_time_reader(unit)

    def read(self, message: Message) -> StampableMessage | SkippedMessage | None:
        """Read a message, whatever it holds; None of one that is not selected.

        Raises:
            SchemaWaitError: the schema of its value cannot be known yet.
        """
        value = ParsedValue()
        if self._paths or self._is_by_schema:
            value = parse_value(message.value(), self._avro, self._selection, has_document=bool(self._paths))
        headers, bad_headers = self._parse_headers(message) if self._in_headers else ({}, None)
        if value.is_other or (bad_headers is None and not self._takes_headers(headers)):
            return None
        bad = value.bad or bad_headers
        event_us, bad_time = self._read_event_time(message, headers, value)
        # A value of which the schema cannot be told may be one of those that are selected.
        is_unknown = self._is_by_schema and value.bad is not None
        found = None if is_unknown else self._read_field(headers, value, self._id_field)
        if found is None:
            return SkippedMessage(bad or SkipReason.NO_ID, event_us)
        try:
            message_id = self._read_id(found)
        except ValueError:
            return SkippedMessage(SkipReason.BAD_ID, event_us)
        if event_us is None:
            return SkippedMessage(bad or bad_time)
        return StampableMessage(message_id, event_us, schema="" if value.writer is None else value.writer.label)

    def _takes_headers(self, headers: dict[str, object]) -> bool:
        return self._selection is None or self._selection.takes_headers(headers)

    def _parse_headers(self, message: Message) -> tuple[dict[str, object], SkipReason | None]:
        try:
            # The last header of a name counts: a service that marks a message anew appends its own.
            return dict(read_headers(message)), None
        except ValueError:
            return {}, SkipReason.UNDECODABLE

    def _read_event_time(
        self, message: Message, headers: dict[str, object], value: ParsedValue
    ) -> tuple[int | None, SkipReason]:
        try:
            if self._time_field.source is FieldSource.RECORD:
                return _read_record_time(message), SkipReason.NO_TIME
            found = self._read_field(headers, value, self._time_field)
            return (None if found is None else self._read_time(found)), SkipReason.NO_TIME
        except ValueError:
            return None, SkipReason.BAD_TIME

    def _read_field(self, headers: dict[str, object], value: ParsedValue, spot: MessageField) -> object:
        if spot.source is FieldSource.HEADER:
            return headers.get(spot.name)
        keys = self._paths[spot]
        return find_value(value.document, keys if value.writer is None else value.writer.find_keys(keys))


def parse_value(
    value: object, avro: AvroValues | None, selection: Selection | None = None, *, has_document: bool = True
) -> ParsedValue:
    """Return a record's value, of Avro with ``avro`` and of JSON without; its document if that is asked for.

    Raises:
        SchemaWaitError: its schema cannot be known yet.
    """
    if not isinstance(value, bytes) or len(value) > MAX_VALUE_BYTES:
        # A record without a value is a tombstone: it deletes its key.
        return ParsedValue(bad=SkipReason.OVERSIZED if isinstance(value, bytes) else SkipReason.NO_VALUE)
    try:
        if avro is None:
            return ParsedValue(orjson.loads(value))
        return _decode_avro(avro, value, selection, has_document=has_document)
    except ValueError:
        return ParsedValue(bad=SkipReason.NOT_JSON if avro is None else SkipReason.UNDECODABLE)
    except UnknownSchemaError:
        return ParsedValue(bad=SkipReason.UNKNOWN_SCHEMA)


def _decode_avro(avro: AvroValues, value: bytes, selection: Selection | None, *, has_document: bool) -> ParsedValue:
    writer, start = avro.find_body(value)
    if selection is not None and not selection.takes_schema(writer):
        return ParsedValue(is_other=True)
    return ParsedValue(writer.read(value, start) if has_document else None, writer)


def _read_record_time(message: Message) -> int | None:
    recorded_us = read_recorded_us(message)
    return None if recorded_us is None else check_event_us(recorded_us)
