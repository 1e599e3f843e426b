"""Tests of flights as events, and of those that are broken: held against what the gate itself reads and judges."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any, Final
from uuid import UUID

import pytest

from hopwatch.demo.entrance.breakage import BREAKAGES, choose_breakage
from hopwatch.demo.entrance.events import SCHEMA, build_item, pack_event, unpack_event
from hopwatch.demo.link import LinkError
from hopwatch.demo.nodes.ingest import parse_flight
from hopwatch.demo.records import FlightMessage, create_message, read_flights
from hopwatch.gate.codec import Codec
from hopwatch.gate.event_checks import CheckedEvent, EventPolicy, check_event, parse_id
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.request_bodies import parse_batch
from hopwatch.gate.rules import Action, EventRule, FieldPath, NumberRange

NOW_US: Final = 1_700_000_040_000_000
CODEC: Final = Codec(Schema.parse(json.dumps(SCHEMA)))
TERMS: Final = EventPolicy(
    86_400_000_000, (EventRule("range distance", NumberRange(FieldPath.parse("distance"), 1, None), Action.REJECT),)
)
"""As the demo's configuration has them."""


def judged(*events: dict[str, Any]) -> list[CheckedEvent]:
    """Return what the gate makes of events that arrive now."""
    return [check_event(one, parse_id(one), CODEC, TERMS, NOW_US) for one in parse_batch(json.dumps(events).encode())]


def some_messages(count: int = 1_000) -> list[FlightMessage]:
    """Return the first messages of a run."""
    rows = enumerate(islice(read_flights(), count))
    return [create_message(number, NOW_US + number, parse_flight(row)) for number, row in rows]


def test_what_goes_through_the_gate_is_the_same_message() -> None:
    """Id, number, event time and flight, cancelled flights too."""
    messages = some_messages()
    assert any(message.flight["dep_time"] is None for message in messages)
    let_in = judged(*(build_item(message) for message in messages))
    assert all(one.action is None for one in let_in)
    assert [unpack_event(pack_event(one.event_id, one.event_us, one.record)) for one in let_in] == messages


def test_what_is_no_flight_is_refused() -> None:
    """An event of another schema is not taken for one."""
    with pytest.raises(LinkError, match=r"^a flight begins with 81[0-9a-f]{64}, the gate let in 6e6f$"):
        unpack_event(pack_event(bytes(16), 0, b"no"))


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda one: one.name)
def test_the_gate_sees_each_breakage_in_its_place(breakage: Any) -> None:  # noqa: ANN401 - of a list
    """The gate rejects a broken event for its breakage alone, and keeps its id."""
    (message,) = some_messages(1)
    (found,) = judged(breakage.on(build_item(message)))
    assert found.action is Action.REJECT
    assert [one.place.removeprefix("/0") for one in found.faults] == [breakage.place]
    assert UUID(bytes=found.event_id) == UUID(bytes=message.id)
    assert found.event_us == (NOW_US if breakage.place == "/time" else message.event_time_us)


def test_the_seed_says_which_breakage_it_is() -> None:
    """The same for the same seed, another for another, and each kind comes."""
    first = [choose_breakage(1, number).name for number in range(100)]
    assert first == [choose_breakage(1, number).name for number in range(100)]
    assert first != [choose_breakage(2, number).name for number in range(100)]
    assert set(first) == {breakage.name for breakage in BREAKAGES}
