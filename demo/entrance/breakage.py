"""Kinds of malformed events that the demo sends, and the place in the event that the gate has to name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from hopwatch.demo.faults import draw_chance
from hopwatch.demo.stream import GATE

Item = dict[str, Any]
"""An event as it is posted: id, time and data."""
HOUR_US: Final = 3_600_000_000


class Breakage(NamedTuple):
    """A kind of malformed event; ``place`` is the JSON pointer below the event that the gate has to name."""

    name: str
    place: str
    on: Callable[[Item], Item]
    """Returns the broken event."""


def _wrong_type(event: Item) -> Item:
    return {**event, "data": {**event["data"], "distance": "far"}}


def _missing_field(event: Item) -> Item:
    return {**event, "data": {name: value for name, value in event["data"].items() if name != "carrier"}}


def _unknown_field(event: Item) -> Item:
    return {**event, "data": {**event["data"], "colour": "red"}}


def _rule_broken(event: Item) -> Item:
    # The demo's configuration has the rule.
    return {**event, "data": {**event["data"], "distance": -event["data"]["distance"]}}


def _time_ahead(event: Item) -> Item:
    return {**event, "time": event["time"] + HOUR_US}


def _time_too_old(event: Item) -> Item:
    return {**event, "time": event["time"] - 48 * HOUR_US}


BREAKAGES: Final = (
    Breakage("wrong type", "/data/distance", _wrong_type),
    Breakage("missing field", "/data/carrier", _missing_field),
    Breakage("unknown field", "/data/colour", _unknown_field),
    Breakage("rule broken", "/data/distance", _rule_broken),
    Breakage("time ahead", "/time", _time_ahead),
    Breakage("time too old", "/time", _time_too_old),
)


def choose_breakage(seed: int, number: int) -> Breakage:
    """Return how message ``number`` is broken, the same for the same seed."""
    return BREAKAGES[int(draw_chance(seed, GATE, "breakage", number) * len(BREAKAGES))]
