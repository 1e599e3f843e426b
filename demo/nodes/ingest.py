"""ingest: reads flights from the CSV, parses their columns, and makes messages of them at a steady rate.

Where the entrance is the gate it takes the messages from there.

Over links that lose nothing, its own log of what it created says what a killed ingest had in hand: it goes out again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, Protocol

from hopwatch.demo.entrance import events
from hopwatch.demo.layout import Layout
from hopwatch.demo.nodes.process import NextNode, is_stop_requested, open_step, read_settings, relay_messages
from hopwatch.demo.nodes.settings import NodeSettings
from hopwatch.demo.records import Flight, FlightMessage, create_message, read_flights, wall_clock_us
from hopwatch.demo.truth import CreatedMessage, NodeAction, count_actions, read_unfinished

NUMBERS: Final = ("year", "month", "day", "dep_delay", "arr_delay", "air_time", "distance", "hour", "minute")
"""The columns that hold whole numbers; the others stay texts."""
TICK_S: Final = 0.01
BATCH: Final = 500
"""Messages that are made at a time where no rate is to be kept."""
MAX_BEHIND_S: Final = 1.0
"""After a longer standstill the rate starts afresh: what was not created meanwhile is not made up for."""


def parse_flight(flight: Flight) -> Flight:
    """Return a row of the CSV with numbers where there are numbers, and ``None`` where it says NA."""
    parsed = {name: None if text in ("", "NA") else text for name, text in flight.items()}
    for name in NUMBERS:
        if (text := parsed.get(name)) is not None:
            parsed[name] = int(text)
    return parsed


class Metronome:
    """Counts the messages that are due, so that the average rate holds however long a single tick takes."""

    def __init__(self, rate_per_s: float, now_s: float) -> None:
        """Start counting at ``now_s``."""
        self._rate_per_s = rate_per_s
        self._since_s = now_s
        self._count = 0

    def due(self, now_s: float) -> int:
        """Return how many messages have become due since the last call."""
        due = int((now_s - self._since_s) * self._rate_per_s) - self._count
        if due > self._rate_per_s * MAX_BEHIND_S:
            self._since_s, self._count = now_s, 0
            return 0
        self._count += due
        return due


class RateSettings(Protocol):
    """Settings of a process that makes messages at a rate."""

    @property
    def rate_per_s(self) -> float:
        """Return the messages per second."""


def create_messages(
    settings: RateSettings,
    first_number: int,
    stop: Callable[[], bool] = is_stop_requested,
    now_s: Callable[[], float] = time.monotonic,
) -> Iterator[list[FlightMessage]]:
    """Yield the messages that have become due, numbered from ``first_number``, until a stop is requested."""
    rows = enumerate(read_flights(skip=first_number), start=first_number)
    metronome = Metronome(settings.rate_per_s, now_s())
    while not stop():
        due = metronome.due(now_s())
        yield [create_message(number, wall_clock_us(), row) for number, row in islice(rows, due)]
        time.sleep(TICK_S)


def create_count(
    count: int, stop: Callable[[], bool] = is_stop_requested, batch: int = BATCH
) -> Iterator[list[FlightMessage]]:
    """Yield so many messages in batches, each made when it is asked for; fewer if a stop is requested."""
    rows = enumerate(islice(read_flights(), count))
    while not stop() and (some := list(islice(rows, batch))):
        yield [create_message(number, wall_clock_us(), row) for number, row in some]


def recreate_messages(births: Sequence[CreatedMessage]) -> Iterator[FlightMessage]:
    """Yield messages as they were created, id, event time and flight; ``births`` are in the order of their numbers."""
    if not births:
        return
    first = births[0].number
    rows = enumerate(read_flights(skip=first), start=first)
    for birth in births:
        flight = next(row for number, row in rows if number == birth.number)
        yield FlightMessage(birth.id, birth.number, birth.event_time_us, flight)


def run_ingest(settings: NodeSettings) -> None:
    """Make messages and hand them on until a stop is requested."""
    # A restarted ingest goes on behind the last number that it gave.
    log = Layout(settings.path).truth_log(settings.node)
    first_number = count_actions(log, NodeAction.CREATED)
    in_hand = read_unfinished(log) if settings.ends.is_reliable else ()
    with open_step(settings, parse_flight, NextNode(settings.ends.outlet())) as step:
        for message in recreate_messages(in_hand):
            step.receive_message(message)
        for messages in create_messages(settings, first_number):
            for message in messages:
                step.create(message)
            step.release()


if __name__ == "__main__":
    own = read_settings()
    if own.ends.is_gated:
        with open_step(own, parse_flight, NextNode(own.ends.outlet())) as at_gate:
            relay_messages(own, at_gate, read=events.unpack_event)
    else:
        run_ingest(own)
