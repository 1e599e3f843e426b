"""Tests of the work of the four nodes, on a real flight."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

import pytest

from hopwatch.demo.faults import NodeFaults
from hopwatch.demo.links.ends import Ends, SocketEnds, TopicEnds
from hopwatch.demo.nodes.connector import FlightFile, label_flight
from hopwatch.demo.nodes.ingest import MAX_BEHIND_S, Metronome, create_messages, parse_flight, recreate_messages
from hopwatch.demo.nodes.norm import normalise_flight
from hopwatch.demo.nodes.router import MARKETS, route_flight
from hopwatch.demo.nodes.settings import NodeSettings
from hopwatch.demo.records import FLIGHT_COUNT, FlightMessage, read_flights
from hopwatch.demo.truth import CreatedMessage

FIRST = next(read_flights())
FAULTS = NodeFaults(drop_ratio=0.5, skew_s=-2.0)
SETTINGS = NodeSettings("ingest", "run", SocketEnds(3, 4), "spool:spool", 1000.0, 5, FAULTS)


def test_ingest_makes_numbers_of_numbers() -> None:
    """Columns that count become ints, NA becomes None, texts stay."""
    parsed = parse_flight({**FIRST, "dep_delay": "NA"})
    assert (parsed["distance"], parsed["dep_delay"], parsed["tailnum"]) == (1400, None, "N14228")


@pytest.mark.parametrize(
    ("columns", "state"),
    [({}, "flown"), ({"air_time": None}, "diverted"), ({"dep_time": None, "air_time": None}, "cancelled")],
)
def test_router_tells_market_and_state(columns: dict[str, None], state: str) -> None:
    """The carrier decides the market; what did not happen decides the state."""
    routed = route_flight({**parse_flight(FIRST), **columns})
    assert (routed["market"], routed["state"]) == ("mainline", state)


def test_every_carrier_of_the_year_has_a_market() -> None:
    """Sixteen carriers, and one that nobody knows."""
    assert len(MARKETS) == 16
    assert route_flight({**parse_flight(FIRST), "carrier": "ZZ"})["market"] == "other"


def test_norm_speaks_si_and_utc() -> None:
    """United 1545: due 5:15 in New York, 2 minutes late, 1,400 miles in 227 minutes."""
    flight = normalise_flight(route_flight(parse_flight(FIRST)))
    assert flight["scheduled"] == "2013-01-01T10:15:00+00:00"
    assert flight["departed"] == "2013-01-01T10:17:00+00:00"
    assert (flight["departure_delay_s"], flight["air_time_s"], flight["distance_km"]) == (120, 13620, 2253.082)


def test_norm_leaves_open_what_did_not_happen() -> None:
    """A cancelled flight has no departure and no delay."""
    nothing = dict.fromkeys(("dep_time", "dep_delay", "arr_delay", "air_time"))
    flight = normalise_flight(route_flight({**parse_flight(FIRST), **nothing}))
    assert (flight["departed"], flight["departure_delay_s"], flight["air_time_s"]) == (None, None, None)


def test_connector_writes_lines_and_begins_anew_when_a_file_is_full(tmp_path: Path) -> None:
    """Every flight is a line of JSON with its id; two files at most are kept."""
    flights, has_left = FlightFile(tmp_path, max_file_bytes=400), list[bool]()
    for number in range(10):
        flight = label_flight(parse_flight(FIRST)) | {"time_hour": "x" * 20}
        flights.hand_on(FlightMessage(bytes([number]) * 16, number, 0, flight), lambda: has_left.append(True))
    flights.close()
    assert len(has_left) == 10
    assert {path.name for path in tmp_path.iterdir()} == {"flights.jsonl", "flights.1.jsonl"}
    (last,) = (tmp_path / "flights.jsonl").read_text().splitlines()
    assert json.loads(last)["id"] == "09" * 16
    assert json.loads(last)["name"] == "UA 1545 EWR-IAH"


def test_a_metronome_keeps_the_rate_on_the_whole() -> None:
    """Uneven ticks lose nothing: after three seconds at 1,000 a second 3,000 messages were due."""
    metronome = Metronome(1000.0, now_s=50.0)
    assert sum(metronome.due(50.0 + tick) for tick in (0.0004, 0.3, 0.3001, 1.2, 2.0, 3.0)) == 3000


def test_after_a_standstill_nothing_is_made_up_for() -> None:
    """After a long pause the metronome skips what is missing, and goes on at its rate."""
    metronome = Metronome(1000.0, now_s=0.0)
    assert metronome.due(MAX_BEHIND_S + 2.0) == 0
    assert metronome.due(MAX_BEHIND_S + 2.5) == 500


def test_ingest_numbers_its_messages_on_from_where_it_was() -> None:
    """A restarted ingest gives the next number and the next flight, not those it gave before."""
    moments_s = chain([0.0, 0.0, 0.003], repeat(0.003))
    stops = iter([False, False, True])
    made = chain.from_iterable(create_messages(SETTINGS, 1, lambda: next(stops), lambda: next(moments_s)))
    assert [(message.number, message.flight["flight"]) for message in made] == [(1, "1714"), (2, "1141"), (3, "725")]


def test_what_a_killed_ingest_had_in_hand_is_the_same_again() -> None:
    """Id, number, event time and flight, with gaps between, and over the end of the flights."""
    births = [
        CreatedMessage(number, bytes([number % 256]) * 16, number) for number in (0, 3, FLIGHT_COUNT - 1, FLIGHT_COUNT)
    ]
    again = list(recreate_messages(births))
    assert [CreatedMessage(message.number, message.id, message.event_time_us) for message in again] == births
    assert [message.flight["flight"] for message in again] == ["1545", "725", "3531", "1545"]
    assert list(recreate_messages([])) == []


@pytest.mark.parametrize("ends", [SocketEnds(3, 4), TopicEnds("h:1,h:2", "a", "")], ids=["sockets", "topics"])
def test_settings_go_through_the_command_line(ends: Ends) -> None:
    """A node understands what its parent told it, whatever its links are."""
    told = replace(SETTINGS, ends=ends)
    assert NodeSettings.from_json(told.to_json()) == told
