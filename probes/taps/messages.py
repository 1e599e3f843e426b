"""Reader of id and event time from Kafka messages: in headers, in the value, or in the record's timestamp."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

import orjson

from hopwatch.probes import message_headers
from hopwatch.probes.kafka.consumer import read_headers, read_recorded_us
from hopwatch.probes.taps.avro import AvroValues
from hopwatch.probes.taps.documents import PassedRecord, SkippedMessage, StampableMessage, find_value, parse_path
from hopwatch.probes.taps.errors import TapUsageError
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

    def read(self, message: Message) -> StampableMessage | SkippedMessage | PassedRecord:
        """Read a record; never raise, whatever it holds."""


class MessageReader:
    """Reader of ids and event times from messages."""

    def __init__(
        self,
        id_spot: MessageField = ID_FIELD,
        time_spot: MessageField = TIME_FIELD,
        *,
        id_kind: IdFormat = IdFormat.AUTO,
        unit: TimeUnit = TimeUnit.US,
        avro: AvroValues | None = None,
    ) -> None:
        """Set the fields, and the formats of their values.

        Raises:
            TapUsageError: a path is invalid, or values would have to be both JSON and Avro.
        """
        places = {id_spot.source, time_spot.source}
        if {FieldSource.JSON, FieldSource.AVRO} <= places or (FieldSource.AVRO in places) != (avro is not None):
            raise TapUsageError(
                "a value is JSON or Avro: --avro-schema goes with --id-avro or --time-avro, without JSON"
            )
        self._id_field, self._time_field, self._avro = id_spot, time_spot, avro
        self._paths = {
            spot: parse_path(spot.name)
            for spot in (id_spot, time_spot)
            if spot.source in (FieldSource.JSON, FieldSource.AVRO)
        }
        self._in_headers = FieldSource.HEADER in places
        self._read_id, self._read_time = build_id_reader(id_kind), build_time_reader(unit)

    def read(self, message: Message) -> StampableMessage | SkippedMessage:
        """Read a message; never raise, whatever it holds."""
        document: object = None
        bad: SkipReason | None = None
        if self._paths:
            document, bad = parse_value(message.value(), self._avro)
        headers: dict[str, object] = {}
        if self._in_headers:
            try:
                # The last header of a name counts: a service that marks a message anew appends its own.
                headers = dict(read_headers(message))
            except ValueError:
                bad = bad or SkipReason.UNDECODABLE
        event_us, bad_time = self._read_event_time(message, headers, document)
        found = self._read_field(headers, document, self._id_field)
        if found is None:
            return SkippedMessage(bad or SkipReason.NO_ID, event_us)
        try:
            message_id = self._read_id(found)
        except ValueError:
            return SkippedMessage(SkipReason.BAD_ID, event_us)
        if event_us is None:
            return SkippedMessage(bad or bad_time)
        return StampableMessage(message_id, event_us)

    def _read_event_time(
        self, message: Message, headers: dict[str, object], document: object
    ) -> tuple[int | None, SkipReason]:
        try:
            if self._time_field.source is FieldSource.RECORD:
                return _read_record_time(message), SkipReason.NO_TIME
            found = self._read_field(headers, document, self._time_field)
            return (None if found is None else self._read_time(found)), SkipReason.NO_TIME
        except ValueError:
            return None, SkipReason.BAD_TIME

    def _read_field(self, headers: dict[str, object], document: object, spot: MessageField) -> object:
        return headers.get(spot.name) if spot.source is FieldSource.HEADER else find_value(document, self._paths[spot])


def parse_value(value: object, avro: AvroValues | None) -> tuple[object, SkipReason | None]:
    """Return the document of a value, of Avro with ``avro`` and of JSON without; else None, and the reason."""
    if not isinstance(value, bytes):
        # A record without a value is a tombstone: it deletes its key.
        return None, SkipReason.NO_VALUE
    if len(value) > MAX_VALUE_BYTES:
        return None, SkipReason.OVERSIZED
    try:
        return (orjson.loads(value) if avro is None else avro.decode(value)), None
    except ValueError:
        return None, SkipReason.NOT_JSON if avro is None else SkipReason.UNDECODABLE


def _read_record_time(message: Message) -> int | None:
    recorded_us = read_recorded_us(message)
    return None if recorded_us is None else check_event_us(recorded_us)
