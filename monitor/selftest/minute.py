"""Injected minute of the self-test: the counts, lost ids and lags that are true of its window."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, NamedTuple

RANK_ERROR: Final = 0.02
"""Error in rank that a quantile of the monitor may have."""
_FIGURES: Final = {"min": 0.0, "p50": 0.5, "p95": 0.95, "max": 1.0}


class LagBounds(NamedTuple):
    """Bounds of a figure of a lag, µs: a stamp was taken between two readings of the clock."""

    low_us: int
    high_us: int


@dataclass(frozen=True, slots=True)
class InjectedMinute:
    """Minute as it was injected; ``lost`` has the ids of each node, ``lags`` bounds by node, side and figure.

    ``is_exact`` says that nothing was injected, or happened to the probes, that leaves a bound of a loss open.
    ``late_us`` is by how much the latest stamp was later than planned: the monitor stood still for so long. Of a minute
    in which probes ``dropped`` stamps nothing else is known.
    """

    start_us: int
    known: int = 0
    delivered: int = 0
    filtered: int = 0
    rejected: int = 0
    duplicates: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    lags: Mapping[str, Mapping[str, LagBounds]] = field(default_factory=dict)
    is_exact: bool = True
    late_us: int = 0
    dropped: int = 0

    @property
    def lost_ids(self) -> frozenset[bytes]:
        """The ids of all lost messages."""
        return frozenset(message_id for ids in self.lost.values() for message_id in ids)


def bound_lags(lags_us: Mapping[str, Sequence[LagBounds]]) -> dict[str, dict[str, LagBounds]]:
    """Return bounds of the figures of some lags, by the name of their node and side."""
    found: dict[str, dict[str, LagBounds]] = defaultdict(dict)
    for place, bounds in lags_us.items():
        lows, highs = sorted(one.low_us for one in bounds), sorted(one.high_us for one in bounds)
        for name, rank in _FIGURES.items():
            last = len(bounds) - 1
            # Between two stamps a quantile may be interpolated.
            low, high = math.floor((rank - RANK_ERROR) * last) - 1, math.ceil((rank + RANK_ERROR) * last) + 1
            if rank in {0.0, 1.0}:
                low = high = round(rank * last)
            found[place][name] = LagBounds(lows[max(low, 0)], highs[min(high, last)])
    return dict(found)


def format_minute(minute: InjectedMinute) -> str:
    """Return a minute as JSON."""
    told = asdict(minute) | {"lost": {node: [one.hex() for one in ids] for node, ids in minute.lost.items()}}
    return json.dumps(told, separators=(",", ":"))


def parse_minute(text: str, *, is_exact: bool) -> InjectedMinute:
    """Return a minute from its JSON; whether its bounds are exact is said apart, as that may change."""
    told = json.loads(text) | {"is_exact": is_exact}
    told["lost"] = {node: [bytes.fromhex(one) for one in ids] for node, ids in told["lost"].items()}
    told["lags"] = {
        place: {name: LagBounds(*bounds) for name, bounds in figures.items()} for place, figures in told["lags"].items()
    }
    return InjectedMinute(**told)
