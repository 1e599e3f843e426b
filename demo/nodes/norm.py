"""norm: miles become kilometres, minutes seconds, and local clock times moments in UTC."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from hopwatch.demo.nodes.process import NextNode, at_work, own_settings, relay
from hopwatch.demo.records import Flight

KM_PER_MILE: Final = 1.609344
KEPT: Final = ("carrier", "flight", "tailnum", "origin", "dest", "market", "state")


def normalise(flight: Flight) -> Flight:
    """Return the flight in SI units and UTC; what did not happen is ``None``."""
    hour = datetime.fromisoformat(str(flight["time_hour"]))
    scheduled = hour + timedelta(minutes=int(flight["minute"] or 0))
    delay_min = flight["dep_delay"]
    departed = None if delay_min is None else scheduled + timedelta(minutes=int(delay_min))
    return {
        **{name: flight[name] for name in KEPT},
        "scheduled": scheduled.isoformat(),
        "departed": None if departed is None else departed.isoformat(),
        "departure_delay_s": _times(flight["dep_delay"], 60),
        "arrival_delay_s": _times(flight["arr_delay"], 60),
        "air_time_s": _times(flight["air_time"], 60),
        "distance_km": _times(flight["distance"], KM_PER_MILE),
    }


def _times(value: str | float | None, factor: float) -> float | None:
    return None if value is None else round(float(value) * factor, 3)


if __name__ == "__main__":
    settings = own_settings()
    with at_work(settings, normalise, NextNode(settings.ends.outlet())) as step:
        relay(settings, step)
