"""Parsing of request bodies into events; a fault of one event does not affect the others."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from hopwatch.gate import json_members
from hopwatch.probes.http.problems import Fault, HttpProblem

MAX_EVENTS: Final = 1_000
"""Maximum number of events in one request."""
MAX_EVENT_BYTES: Final = 256 * 1024
"""Maximum size of an event, as JSON and as Avro."""


class DecodedData(NamedTuple):
    """Data in Avro, read as a value of the schema that it is written by; or the faults for which it cannot be."""

    value: Any
    faults: tuple[Fault, ...] = ()


class SentEvent(NamedTuple):
    """Event as it was sent: its id and time as JSON values, its data as JSON bytes, or as framed Avro with its value.

    ``place`` is the JSON pointer of the event in the body; ``data_place`` that of its data.
    """

    event_id: object
    time: object
    data: bytes
    place: str = ""
    data_place: str = ""
    faults: tuple[Fault, ...] = ()
    decoded: DecodedData | None = None


class _Item(msgspec.Struct, forbid_unknown_fields=True):
    id: Any
    data: msgspec.Raw
    time: Any = None


_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_EVENTS: Final = msgspec.json.Decoder(list[_Item])
_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_ITEM: Final = msgspec.json.Decoder(_Item)
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def parse_batch(body: bytes) -> list[SentEvent]:
    """Return the events of a body that is a JSON list of events.

    Raises:
        HttpProblem: it is not JSON, not a list, empty, or too long.
    """
    if not json_members.may_have_repeats(body):
        try:
            found = _EVENTS.decode(body)
        except _UNREADABLE:
            pass  # the items are parsed one by one below, so that each has faults of its own
        else:
            check_count(len(found))
            return [
                SentEvent(one.id, one.time, bytes(one.data), f"/{at}", f"/{at}/data") for at, one in enumerate(found)
            ]
    try:
        items = _ITEMS.decode(body)
    except msgspec.ValidationError:
        told = "the body is a list of events, such as [{...}]"
        raise HttpProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-events", told, [Fault("", "it is no list")]) from None
    except _UNREADABLE as error:
        raise HttpProblem(HTTPStatus.BAD_REQUEST, "not-json", f"the body is no JSON: {error!s:.200}") from None
    check_count(len(items))
    return [_parse_item(bytes(item), f"/{number}") for number, item in enumerate(items)]


def parse_single(event_id: str, time: object, body: bytes) -> SentEvent:
    """Return the event of a body that holds its data alone."""
    return SentEvent(event_id, time, body, faults=find_repeats(body))


def find_repeats(data: bytes, place: str = "") -> tuple[Fault, ...]:
    """Return the fault of JSON with a repeated member, at the place of the first one; empty without one."""
    found = json_members.find_repeated_member(data) if json_members.may_have_repeats(data) else None
    return () if found is None else (Fault(place + found, json_members.REPEATED_MEMBER),)


def check_count(count: int) -> None:
    """Check the number of events of one request.

    Raises:
        HttpProblem: there is none, or there are too many.
    """
    if not 0 < count <= MAX_EVENTS:
        told = f"a request has 1 to {MAX_EVENTS:,} events, got {count:,}"
        raise HttpProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-events", told, [Fault("", told)])


def _parse_item(item: bytes, place: str) -> SentEvent:
    try:
        found = _ITEM.decode(item)
    except _UNREADABLE as error:
        return _build_malformed(item, place, error)
    # An event that is too large is refused for its size anyway.
    faults = find_repeats(item, place) if len(found.data) <= MAX_EVENT_BYTES else ()
    # With a repeated id it is unknown which of the two was meant.
    event_id = None if any(one.place == f"{place}/id" for one in faults) else found.id
    return SentEvent(event_id, found.time, bytes(found.data), place, f"{place}/data", faults)


def _build_malformed(item: bytes, place: str, error: Exception) -> SentEvent:
    """Return a malformed item as an event with a fault; with its id, if it has one."""
    fault = Fault(place, f"an event has id, data and perhaps time: {error!s:.120}")
    try:
        parts = _OBJECT.decode(item)
        event_id = msgspec.json.decode(parts["id"]) if "id" in parts else None
    except _UNREADABLE:
        event_id = None
    return SentEvent(event_id, None, item, place, place, (fault,))
