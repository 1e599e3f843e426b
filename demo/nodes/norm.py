"""norm: miles become kilometres, minutes seconds, and local clock times moments in UTC."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from hopwatch.demo.nodes.process import NextNode, open_step, read_settings, relay_messages
from hopwatch.demo.records import Flight

KM_PER_MILE: Final = 1.609344
COPIED_FIELDS: Final = ("carrier", "flight", "tailnum", "origin", "dest", "market", "state")


def normalise_flight(flight: Flight) -> Flight:
    """Return the flight in SI units and UTC; what did not happen is ``None``."""
    hour = datetime.fromisoformat(str(flight["time_hour"]))
    scheduled = hour + timedelta(minutes=int(flight["minute"] or 0))
    delay_min = flight["dep_delay"]
    departed = None if delay_min is None else scheduled + timedelta(minutes=int(delay_min))
    return {
        **{name: flight[name] for name in COPIED_FIELDS},
        "scheduled": scheduled.isoformat(),
        "departed": None if departed is None else departed.isoformat(),
        "departure_delay_s": _multiply(flight["dep_delay"], 60),
        "arrival_delay_s": _multiply(flight["arr_delay"], 60),
        "air_time_s": _multiply(flight["air_time"], 60),
        "distance_km": _multiply(flight["distance"], KM_PER_MILE),
    }


def _multiply(value: str | float | None, factor: float) -> float | None:
    return None if value is None else round(float(value) * factor, 3)


if __name__ == "__main__":
    settings = read_settings()
    with open_step(settings, normalise_flight, NextNode(settings.ends.outlet())) as step:
        relay_messages(settings, step)
