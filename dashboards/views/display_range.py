"""Time range and step size of a stream's charts, limited to the points that a chart can show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hopwatch.dashboards.views.address import PageAddress, RangePreset
from hopwatch.probes.contract.limits import WINDOW_US

MINUTE_US: Final = WINDOW_US
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US
MAX_POINTS: Final = 2_000
"""Points that a chart has at most."""
MAX_MINUTES: Final = 6 * 60
"""Windows that are shown one by one at most; of longer ranges the hours are."""
MAX_HOURS: Final = 31 * 24
MAX_STEPS: Final = MAX_POINTS // 2
"""Steps of any range: a chart has two lines at least."""

LENGTHS_US: Final = {
    RangePreset.HOUR: HOUR_US,
    RangePreset.SIX_HOURS: 6 * HOUR_US,
    RangePreset.DAY: DAY_US,
    RangePreset.WEEK: 7 * DAY_US,
    RangePreset.MONTH: 30 * DAY_US,
}
STEP_WORDS: Final = {MINUTE_US: "minute", HOUR_US: "hour", DAY_US: "day"}


@dataclass(frozen=True, slots=True)
class DisplayRange:
    """A range ``[from_us, to_us)`` of whole steps; ``complaint`` says if it is another than was asked for."""

    from_us: int
    to_us: int
    step_us: int
    notice: str = ""

    @property
    def step_count(self) -> int:
        """Return the number of steps."""
        return (self.to_us - self.from_us) // self.step_us


def select_range(address: PageAddress, first_us: int, last_us: int) -> DisplayRange:
    """Return the range that an address means for a stream whose windows start from ``first_us`` to ``last_us``.

    A range that moves on ends with the last window; one that stays and holds no window of the stream is refused, and
    the newest hour stands for it.
    """
    end_us = last_us + WINDOW_US
    if address.from_us is None or address.to_us is None:
        # A stream that is younger than the range fills its charts.
        from_us = max(first_us, end_us - LENGTHS_US[address.range])
        if address.window_us is not None and not from_us <= address.window_us < end_us:
            return build_range_around(address.window_us, LENGTHS_US[address.range], end_us)
        return align_range(from_us, end_us)
    if address.from_us >= end_us or address.to_us <= first_us:
        newest = align_range(max(first_us, end_us - HOUR_US), end_us)
        told = "nothing of this stream was read in the range that was asked for: showing its newest hour instead"
        return DisplayRange(newest.from_us, newest.to_us, newest.step_us, told)
    # What lies outside of all windows is empty, and would cost points.
    return align_range(max(address.from_us, first_us), min(address.to_us, end_us))


def build_range_around(window_us: int, length_us: int, end_us: int) -> DisplayRange:
    """Return a range of this length with a window in its middle, that ends no later than ``end_us`` if it holds it."""
    to_us = max(window_us + WINDOW_US, min(window_us + length_us // 2, end_us))
    return align_range(to_us - length_us, to_us)


def align_range(from_us: int, to_us: int) -> DisplayRange:
    """Return the range in whole steps: minutes, hours where there are too many of them, or days."""
    step_us = next((step for step, most in _MAX_STEPS_BY_SIZE if to_us - from_us <= most * step), DAY_US)
    whole_us = -(-to_us // step_us) * step_us
    return DisplayRange(max(from_us // step_us * step_us, whole_us - MAX_STEPS * step_us), whole_us, step_us)


def parse_drag(first_ms: float, last_ms: float) -> tuple[int, int]:
    """Return the range, µs, that a drag across a chart means: whole minutes, at least one, whichever way it went."""
    first, last = sorted((first_ms, last_ms))
    from_us = int(first // 60_000) * MINUTE_US
    return from_us, max(int(-(-last // 60_000)) * MINUTE_US, from_us + MINUTE_US)


def limit_lines(steps: int, lines: int) -> int:
    """Return how many of so many lines a chart may have, with a point a step; at least one."""
    return max(1, min(lines, MAX_POINTS // max(1, steps)))


_MAX_STEPS_BY_SIZE: Final = ((MINUTE_US, MAX_MINUTES), (HOUR_US, MAX_HOURS))
