"""ingest: reads flights from the CSV, parses their columns, and makes messages of them at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from demo.config import Layout
from demo.nodes.process import at_work, next_node, own_settings, told_to_stop
from demo.nodes.settings import NodeSettings
from demo.records import Flight, Message, new_message, raw_flights, wall_clock_us
from demo.truth import Deed, deed_count

NUMBERS: Final = ("year", "month", "day", "dep_delay", "arr_delay", "air_time", "distance", "hour", "minute")
"""The columns that hold whole numbers; the others stay texts."""
TICK_S: Final = 0.01
MAX_BEHIND_S: Final = 1.0
"""After a longer standstill the rate starts afresh: what was not created meanwhile is not made up for."""


def parse(flight: Flight) -> Flight:
    """Return a row of the CSV with numbers where there are numbers, and ``None`` where it says NA."""
    parsed = {name: None if text in ("", "NA") else text for name, text in flight.items()}
    for name in NUMBERS:
        if (text := parsed.get(name)) is not None:
            parsed[name] = int(text)
    return parsed


class Metronome:
    """Says how many messages are due, so that the rate holds on the whole whatever a single tick takes."""

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


def new_messages(
    settings: NodeSettings,
    first_number: int,
    stop: Callable[[], bool] = told_to_stop,
    now_s: Callable[[], float] = time.monotonic,
) -> Iterator[Message]:
    """Yield a message whenever one is due, numbered from ``first_number``, until told to stop."""
    rows = enumerate(raw_flights(skip=first_number), start=first_number)
    metronome = Metronome(settings.rate_per_s, now_s())
    while not stop():
        for _ in range(metronome.due(now_s())):
            number, row = next(rows)
            yield new_message(number, wall_clock_us(), row)
        time.sleep(TICK_S)


if __name__ == "__main__":
    settings = own_settings()
    # A restarted ingest goes on behind the last number that it gave.
    first_number = deed_count(Layout(settings.path).truth_log(settings.node), Deed.CREATED)
    with next_node(settings) as hand_on, at_work(settings, parse, hand_on) as step:
        for message in new_messages(settings, first_number):
            step.create(message)
            step.release()
