"""Where in a message of Kafka id and event time stand: in headers, in the value, or in the record's own time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import orjson

from hopwatch.probes import marks
from hopwatch.probes.taps.avro import AvroValues
from hopwatch.probes.taps.documents import Seen, Unseen, find, path_keys
from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.probes.values import Bad, IdKind, TimeUnit, believed, id_reader, time_reader

if TYPE_CHECKING:
    from confluent_kafka import Message

MAX_VALUE_BYTES: Final = 1024 * 1024
"""A value that is longer is not looked into."""
_NO_TIME_MS: Final = -1
"""What Kafka has in the place of a time."""


class Place(StrEnum):
    """Where something stands."""

    HEADER = "header"
    JSON = "json"
    AVRO = "avro"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class Spot:
    """A place, and the header's name or the path there."""

    place: Place
    name: str = ""

    def said(self, unit: TimeUnit) -> str:
        """Return in words where event times come from that stand here, and how they are written."""
        if self.place is Place.RECORD:
            return "each record's own, by its producer or broker"
        if self.place is Place.HEADER:
            return f"in the header {self.name} of each message, written in {unit}"
        value = {Place.JSON: "JSON", Place.AVRO: "Avro"}[self.place]
        return f"at {self.name} of each {value} value, written in {unit}"


ID_SPOT: Final = Spot(Place.HEADER, marks.ID_HEADER)
TIME_SPOT: Final = Spot(Place.HEADER, marks.TIME_HEADER)


def spot(what: str, header: str, json: str | None, avro: str | None, *, is_record: bool = False) -> Spot:
    """Return the one spot that was asked for; the header, if there was no other.

    Raises:
        TapUsageError: there was more than one.
    """
    asked = [
        Spot(place, name)
        for place, name in ((Place.JSON, json), (Place.AVRO, avro), (Place.RECORD, "" if is_record else None))
        if name is not None
    ]
    if len(asked) > 1:
        told = " and ".join(f"--{what}-{one.place}" for one in asked)
        raise TapUsageError(f"the {what} stands in one place, got {told}: name one of them")
    return asked[0] if asked else Spot(Place.HEADER, header)


class MessageReader:
    """Reads ids and event times out of messages."""

    def __init__(
        self,
        id_spot: Spot = ID_SPOT,
        time_spot: Spot = TIME_SPOT,
        *,
        id_kind: IdKind = IdKind.AUTO,
        unit: TimeUnit = TimeUnit.US,
        avro: AvroValues | None = None,
    ) -> None:
        """Take the spots, and how what stands there is to be read.

        Raises:
            TapUsageError: a path cannot be, or values would have to be both JSON and Avro.
        """
        places = {id_spot.place, time_spot.place}
        if {Place.JSON, Place.AVRO} <= places or (Place.AVRO in places) != (avro is not None):
            raise TapUsageError(
                "a value is JSON or Avro: --avro-schema goes with --id-avro or --time-avro, without JSON"
            )
        self._id_spot, self._time_spot, self._avro = id_spot, time_spot, avro
        self._paths = {
            spot: path_keys(spot.name) for spot in (id_spot, time_spot) if spot.place in (Place.JSON, Place.AVRO)
        }
        self._in_headers = Place.HEADER in places
        self._read_id, self._read_time = id_reader(id_kind), time_reader(unit)

    def read(self, message: Message) -> Seen | Unseen:
        """Return what a message says; nothing that it holds can raise."""
        document: object = None
        bad: Bad | None = None
        if self._paths:
            document, bad = self._document(message.value())
        # Of a name that comes twice the last counts: whoever marked the message anew put that behind.
        headers: dict[str, object] = dict(message.headers() or ()) if self._in_headers else {}
        event_us, bad_time = self._event_time(message, headers, document)
        found = self._found(headers, document, self._id_spot)
        if found is None:
            return Unseen(bad or Bad.NO_ID, event_us)
        try:
            message_id = self._read_id(found)
        except ValueError:
            return Unseen(Bad.BAD_ID, event_us)
        if event_us is None:
            return Unseen(bad or bad_time)
        return Seen(message_id, event_us)

    def _document(self, value: object) -> tuple[object, Bad | None]:
        if not isinstance(value, bytes):
            # A record without a value says that what has its key is gone.
            return None, Bad.NO_VALUE
        if len(value) > MAX_VALUE_BYTES:
            return None, Bad.OVERSIZED
        try:
            return (orjson.loads(value) if self._avro is None else self._avro.decode(value)), None
        except ValueError:
            return None, Bad.NOT_JSON if self._avro is None else Bad.UNDECODABLE

    def _event_time(self, message: Message, headers: dict[str, object], document: object) -> tuple[int | None, Bad]:
        try:
            if self._time_spot.place is Place.RECORD:
                return _record_us(message), Bad.NO_TIME
            found = self._found(headers, document, self._time_spot)
            return (None if found is None else self._read_time(found)), Bad.NO_TIME
        except ValueError:
            return None, Bad.BAD_TIME

    def _found(self, headers: dict[str, object], document: object, spot: Spot) -> object:
        return headers.get(spot.name) if spot.place is Place.HEADER else find(document, self._paths[spot])


def _record_us(message: Message) -> int | None:
    kind, stamp_ms = message.timestamp()
    return believed(stamp_ms * 1_000) if kind and stamp_ms != _NO_TIME_MS else None
