"""Suggestion of a threshold from what was observed: the lowest that would have fired seldom, and not for long.

A threshold is tried on the observed windows by the state machine that decides of live ones. Thresholds are round, with
two digits, and tried from the highest downwards: lower ones fire more often, or for longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.alerts.decision.episode import MAX_KEEP_WINDOWS, NEW_EPISODE, Phase, fold_window
from hopwatch.alerts.decision.rules import AlertRule
from hopwatch.probes.contract.limits import WINDOW_US

DIGITS: Final = 10
"""Thresholds of one order of magnitude begin with 10 to 99."""
MAX_SHARE: Final = 0.1
"""Share of the observed windows that alerts may last: what lasts longer is no exception, but how the place is."""
MIN_POWER: Final = -9
"""Exponent of the last digit of the lowest thresholds that are tried."""

Floats = NDArray[np.float64]
Moments = NDArray[np.int64]


class PastAlert(NamedTuple):
    """Alert that would have fired: from its first bad window to the end of its last, µs, and its highest value."""

    since_us: int
    until_us: int
    peak: float


class Suggestion(NamedTuple):
    """Threshold, and the alerts that it would have fired; ``windows`` is of how many windows it is."""

    threshold: float
    alerts: tuple[PastAlert, ...]
    windows: int


def suggest_threshold(
    starts_us: Moments, values: Floats, rule: AlertRule, most: int, lowest: float
) -> Suggestion | None:
    """Suggest the threshold of a rule for one place; None where nothing was observed.

    Its alerts would have lasted for a tenth of the windows at most: below a place's normal values all is one alert.

    Args:
        starts_us: the starts of windows, in order, µs since 1970; shape (n,).
        values: what the rule compares with its threshold, in each of them; NaN where nothing can be known; shape (n,).
        rule: its ``for`` and ``keep_firing_for`` are kept.
        most: how many alerts the threshold may have fired.
        lowest: the lowest threshold that makes sense, in the unit of the values.
    """
    is_known = ~np.isnan(values)
    starts_us, values = starts_us[is_known], values[is_known]
    if not len(values):
        return None
    best = None
    for threshold in _round_thresholds(max(float(values.max()), lowest), lowest):
        fired = replay_threshold(starts_us, values, rule, threshold)
        if len(fired) > most or _count_windows(fired) > MAX_SHARE * len(values):
            break
        best = Suggestion(threshold, fired, len(values))
    return best


def replay_threshold(starts_us: Moments, values: Floats, rule: AlertRule, threshold: float) -> tuple[PastAlert, ...]:
    """Return the alerts that a rule would have fired with a threshold, in order."""
    is_bad = values > threshold
    places = np.arange(len(values))
    last_bad = np.maximum.accumulate(np.where(is_bad, places, -1))
    # So many good windows behind a bad one end whatever there was; those behind them change nothing.
    matter = (last_bad >= 0) & (places - last_bad <= max(rule.keep_windows, MAX_KEEP_WINDOWS))
    run, found = NEW_EPISODE, list[PastAlert]()
    for place in np.flatnonzero(matter).tolist():
        was = run.phase
        run = fold_window(run, int(starts_us[place]), rule, is_bad=bool(is_bad[place]))
        if run.phase is Phase.FIRING and was is not Phase.FIRING:
            first = int(np.searchsorted(starts_us, run.since_us))
            found.append(PastAlert(run.since_us, 0, float(values[first : place + 1].max())))
        if run.phase is Phase.FIRING and is_bad[place]:
            peak = max(found[-1].peak, float(values[place]))
            found[-1] = found[-1]._replace(until_us=int(starts_us[place]) + WINDOW_US, peak=peak)
    return tuple(found)


def _count_windows(alerts: Iterable[PastAlert]) -> int:
    return sum((one.until_us - one.since_us) // WINDOW_US for one in alerts)


def _round_thresholds(highest: float, lowest: float) -> Iterator[float]:
    """Yield numbers of two digits, downwards from the first that is not below the highest."""
    if highest <= 0:
        yield lowest
        return
    power = int(np.floor(np.log10(highest))) - 1
    number = int(np.ceil(round(highest / 10.0**power, 9)))
    while (threshold := round(number * 10.0**power, max(0, -power))) > lowest:
        yield threshold
        number -= 1
        if number < DIGITS:
            number, power = 10 * DIGITS - 1, power - 1
        if power < MIN_POWER:
            break
    yield lowest
