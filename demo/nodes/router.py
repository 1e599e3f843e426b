"""router: tells by the carrier which market a flight belongs to, and by its times what became of it."""

from __future__ import annotations

from typing import Final

from hopwatch.demo.nodes.process import NextNode, open_step, read_settings, relay_messages
from hopwatch.demo.records import Flight

MARKETS: Final = {
    **dict.fromkeys(("AA", "DL", "UA", "US", "AS", "HA"), "mainline"),
    **dict.fromkeys(("B6", "WN", "F9", "FL", "VX"), "low cost"),
    **dict.fromkeys(("EV", "MQ", "9E", "YV", "OO"), "regional"),
}
"""Carrier code to market, for the sixteen carriers of 2013."""


def route_flight(flight: Flight) -> Flight:
    """Return the flight with its market, and with its state: cancelled, diverted or flown."""
    landed = "diverted" if flight["air_time"] is None else "flown"
    state = "cancelled" if flight["dep_time"] is None else landed
    return {**flight, "market": MARKETS.get(str(flight["carrier"]), "other"), "state": state}


if __name__ == "__main__":
    settings = read_settings()
    with open_step(settings, route_flight, NextNode(settings.ends.outlet())) as step:
        relay_messages(settings, step)
