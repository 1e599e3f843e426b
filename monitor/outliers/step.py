"""Compiled step of the detector: scores one value of one series in 25 views, then learns it.

This is all that is compiled, in one file and with its numbers, because a compiled function that is kept on disk is
made anew when its own file changes, and only then.

The tail of a view is a generalised Pareto's beyond the edge of its largest values, fitted by moments (Hosking and
Wallis, Parameter and Quantile Estimation for the Generalized Pareto Distribution, 1987), as in SPOT (Siffer and others,
Anomaly Detection in Streams with Extreme Value Theory, 2017). The surprise of a value is -log10 of the share of the
past that lay beyond it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from hopwatch.monitor.outliers.state import VIEW_COUNT, Array

NOTICE: Final = 3.7
"""A score from which on an episode is noticed."""
OUTLIER: Final = 7.5
"""A score from which on it deserves attention, of a series that is a day old: what is new has seen no night yet."""
EPISODE_BEGAN: Final = 1
OUTLIER_BEGAN: Final = 2
"""Bits of a mark: an episode begins; it becomes an outlier."""
MAX_SURPRISE: Final = 10.0
"""Surprise of one view at most."""
FAMILIES_IN_SCORE: Final = 3
"""Number of families of views that make up the score."""

# Which views are of one family, whose loudest voice counts: level, jump, fast and slow mean, day, week, shift of mean
# over 32 and 96, spread, stillness, breakout, rise over 16.
_FAMILY: Final = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 9, 10, 10, 11, 11])
_FAMILIES: Final = 12

# A rarity counts by its return period: the same share of values is met more often where values come more often.
_REFERENCE_STEP_S: Final = 300.0
_STEP_WEIGHT: Final = 0.7
_MIN_STEP_S: Final = 1.0
_MAX_STEP_S: Final = 86_400.0
# A gap of so many steps parts the past from the present: what was near is near no more.
_LONG_GAP: Final = 96.0

# An episode ends after so many quiet values: a share of those seen, within bounds.
COOL_SHARE: Final = 0.05
MIN_COOL: Final = 10
MAX_COOL: Final = 60

_FAST: Final = 0.2
_SLOW: Final = 0.03
_JITTER: Final = 0.005
_JITTER_FLOOR: Final = 0.05
_TINY: Final = 1e-300

_US: Final = 1_000_000
_HALF_HOUR_US: Final = 1_800_000_000
_HOUR_US: Final = 3_600_000_000
_YOUNG_US: Final = 86_400_000_000
_DAYS_NEEDED: Final = 2
_WEEKS_NEEDED: Final = 2
_MAX_DAYS: Final = 255
_DAY_RATE: Final = 0.15
_WEEK_RATE: Final = 0.3
_DRIFT_RATE: Final = 0.05
_DEVIATION_RATE: Final = 0.02
_CLIP: Final = 4.0
_CLIP_FROM: Final = 24

_MIN_BLOCK: Final = 16
_MAX_BLOCK: Final = 256
_BLOCK_SHARE: Final = 8
_HALVED_AT: Final = 8192
_JUDGED_FROM: Final = 200
_TAIL: Final = 0.01
_MIN_TAIL: Final = 8
_MAX_SHAPE: Final = 0.5
_FLOOR: Final = 0.05
_FLAT_FLOOR: Final = 0.3
# Values that are whole steps apart are no finer known than that: of views of single values, not of means and spreads.
_GRAIN_FLOOR: Final = 0.25
_OF_SINGLE_VALUES: Final = np.array([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1])
_UNSEEN: Final = 6.0

_Given = ParamSpec("_Given")
_Returned = TypeVar("_Returned")
_functions: Final[list[Callable[..., Any]]] = []


def _compiled(function: Callable[_Given, _Returned]) -> Callable[_Given, _Returned]:
    """Mark a function as one that :func:`compile_step` compiles."""
    _functions.append(function)
    return function


@functools.cache
def compile_step() -> Callable[..., None]:
    """Return :func:`score_series` compiled, with all that it calls, and kept on disk where that is possible.

    It is compiled when it is first needed: numba takes long to import, and most commands score nothing.
    """
    for function in _functions:
        globals()[function.__name__] = _compile_function(function)
    return score_series


def _compile_function(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - numba has no types
    import numba  # noqa: PLC0415 - see compile_step

    try:
        return numba.njit(function, cache=True, nogil=True, error_model="numpy")
    except RuntimeError:
        return numba.njit(function, nogil=True, error_model="numpy")


@_compiled
def score_series(  # noqa: PLR0913, PLR0917 - the loop around everything, with its five answers
    states: Array,
    rows: Array,
    moments_us: Array,
    values: Array,
    scores: Array,
    marks: Array,
    since_us: Array,
    ranges: Array,
    surprises: Array,
) -> None:
    """Let every value enter the series of its row, in order; ``states`` and the last five arrays are written.

    A value that is not finite is a gap: nothing is learnt and its score is NaN. ``marks`` are
    of ``BEGAN`` and ``BECAME``.
    """
    views = np.empty(VIEW_COUNT)
    for at in range(len(rows)):
        one, moment_us, value = states[rows[at]], moments_us[at], values[at]
        scores[at], ranges[at, 0], ranges[at, 1] = np.nan, np.nan, np.nan
        marks[at], since_us[at] = 0, 0
        surprises[at, :] = 0.0
        if not math.isfinite(value):
            continue
        if one.seen == 0:
            one.anchor, one.first_us = value, moment_us
        x = value - one.anchor
        _update_step(one, moment_us)
        _close_profile_slots(one, moment_us)
        _compute_views(one, moment_us, x, views)
        _compute_surprises(one, views, surprises[at])
        _compute_expected_range(one, x, views, ranges[at])
        score = _compute_score(surprises[at], one.step_s)
        marks[at] = _update_episode(one, moment_us, score)
        cool = _cooling_values(one.seen)
        scores[at] = score
        if one.quiet <= cool:
            since_us[at] = one.began_us
            if marks[at] == 0:
                scores[at] = NOTICE / 2 * score / (score + NOTICE)
        _learn_views(one, views)
        _remember_value(one, x, one.quiet > cool)


@_compiled
def _update_step(one: np.record, moment_us: int) -> None:
    """Learn the usual step, of which a gap counts as three at most, and note a long gap."""
    if one.seen > 0:
        step_s = (moment_us - one.last_us) / _US
        usual_s = one.step_s
        if usual_s == 0:
            one.step_s = max(step_s, 0.0)
        elif step_s > 0:
            if step_s > _LONG_GAP * usual_s:
                one.unbroken = 0
            one.step_s += max(0.02, 1 / one.seen) * (min(step_s, 3 * usual_s) - usual_s)
    one.last_us = moment_us


@_compiled
def _close_profile_slots(one: np.record, moment_us: int) -> None:
    """Let the profiles learn the half-hour and the hour that have ended."""
    half_hour, hour = moment_us // _HALF_HOUR_US, moment_us // _HOUR_US
    if half_hour != one.half_hour:
        if one.half_hour_count > 0:
            _learn_half_hour(one)
        one.half_hour, one.half_hour_sum, one.half_hour_count = half_hour, 0.0, 0
    if hour != one.hour:
        if one.hour_count > 0:
            _learn_hour(one)
        one.hour, one.hour_sum, one.hour_count = hour, 0.0, 0


@_compiled
def _learn_half_hour(one: np.record) -> None:
    """Move the usual day towards the mean of this half-hour, by no more than is usual once that is known."""
    slot = one.half_hour % len(one.day)
    days = one.day_days[slot]
    off = one.half_hour_sum / one.half_hour_count - one.day[slot]
    if days > 0:
        size, count = abs(off), one.deviation_count
        most = _CLIP * one.deviation
        if count >= _CLIP_FROM:
            size = min(size, most)
        if days > 1:
            off = min(max(off, -most), most)
        one.deviation += max(_DEVIATION_RATE, 1 / (count + 1)) * (size - one.deviation)
        one.deviation_count = count + 1
    one.day[slot] += max(_DAY_RATE, 1 / (days + 1)) * off
    one.day_days[slot] = min(days + 1, _MAX_DAYS)


@_compiled
def _learn_hour(one: np.record) -> None:
    """Move the usual week towards the mean of this hour; its first value starts from the usual day."""
    slot = one.hour % len(one.week)
    weeks = one.week_weeks[slot]
    half_hour = one.hour * 2 % len(one.day)
    if one.day_days[half_hour] == 0:
        half_hour += 1
    known = one.week[slot] if weeks > 0 else one.day[half_hour]
    off = one.hour_sum / one.hour_count - known
    if one.day_days[half_hour] > _DAYS_NEEDED:
        most = _CLIP * one.deviation
        off = min(max(off, -most), most)
    one.week[slot] = known + (max(_WEEK_RATE, 1 / (weeks + 1)) * off if weeks > 0 else off)
    one.week_weeks[slot] = min(weeks + 1, _MAX_DAYS)


@_compiled
def _compute_views(one: np.record, moment_us: int, x: float, views: Array) -> None:
    """Write all views of the value, before it is remembered; one that cannot be had yet is NaN."""
    views[:] = np.nan
    seen, recent = one.unbroken, one.recent
    size = len(recent)
    if one.seen > 0:
        _write_both_sides(views, 0, x)
        _compute_calendar_views(one, moment_us, x, views)
    if seen == 0:
        return
    _write_both_sides(views, 4, x - one.fast)
    _write_both_sides(views, 6, x - one.slow)
    if seen >= 3:  # noqa: PLR2004 - the median of three
        a, b, c = recent[size - 1], recent[size - 2], recent[size - 3]
        _write_both_sides(views, 2, x - max(min(a, b), min(max(a, b), c)))
    if seen >= 16:  # noqa: PLR2004 - sixteen steps back
        _write_both_sides(views, 23, x - recent[size - 16])
    if seen >= 32:  # noqa: PLR2004 - a window of the last 32
        low, high = recent[size - 32], recent[size - 32]
        for place in range(size - 31, size):
            low, high = min(low, recent[place]), max(high, recent[place])
        views[21], views[22] = x - high, low - x
        spread = _compute_spread(recent, x, 32)
        views[18] = spread
        views[19] = -math.log(spread + _JITTER_FLOOR * one.jitter + _TINY)
    if seen >= 64:  # noqa: PLR2004 - two windows of 32
        _write_both_sides(views, 14, _compute_shift(recent, x, 32))
    if seen >= 96:  # noqa: PLR2004 - a window of 96
        views[20] = -math.log(_compute_spread(recent, x, 96) + _JITTER_FLOOR * one.jitter + _TINY)
    if seen >= size:
        _write_both_sides(views, 16, _compute_shift(recent, x, 96))


@_compiled
def _compute_calendar_views(one: np.record, moment_us: int, x: float, views: Array) -> None:
    """Write how far the value is off the usual day and week, and off what the series has lately been off them."""
    slot = moment_us // _HALF_HOUR_US % len(one.day)
    if one.day_days[slot] >= _DAYS_NEEDED:
        off = x - one.day[slot]
        _write_both_sides(views, 8, off)
        _write_both_sides(views, 10, off - one.drift)
        one.drift += _DRIFT_RATE * (off - one.drift)
    slot = moment_us // _HOUR_US % len(one.week)
    if one.week_weeks[slot] >= _WEEKS_NEEDED:
        off = x - one.week[slot]
        _write_both_sides(views, 12, off - one.week_drift)
        one.week_drift += _DRIFT_RATE * (off - one.week_drift)


@_compiled
def _write_both_sides(views: Array, at: int, off: float) -> None:
    """Write a view and its opposite: strange is what is large."""
    views[at], views[at + 1] = off, -off


@_compiled
def _compute_spread(recent: Array, x: float, width: int) -> float:
    """Return the standard deviation of the newest ``width`` values, ``x`` the last of them."""
    total = x
    for place in range(len(recent) - width + 1, len(recent)):
        total += recent[place]
    mean = total / width
    squares = (x - mean) ** 2
    for place in range(len(recent) - width + 1, len(recent)):
        squares += (recent[place] - mean) ** 2
    return math.sqrt(squares / width)


@_compiled
def _compute_shift(recent: Array, x: float, width: int) -> float:
    """Return the mean of the newest ``width`` values, ``x`` the last of them, less that of as many before."""
    newest, before = x, 0.0
    end = len(recent)
    for place in range(end - width + 1, end):
        newest += recent[place]
    for place in range(end - 2 * width + 1, end - width + 1):
        before += recent[place]
    return (newest - before) / width


@_compiled
def _compute_surprises(one: np.record, views: Array, surprises: Array) -> None:
    """Write -log10 of the share of each view's past beyond its value; linear from the mean to the edge of the tail."""
    for view in range(len(views)):
        rate, edge, x = one.rates[view], one.edges[view], views[view]
        if rate == 0 or math.isnan(x):
            continue
        beyond, scale, shape = x - edge, one.scales[view], one.shapes[view]
        if beyond > 0:
            surprise = rate + _UNSEEN
            if scale > 0:
                decades = beyond / scale if shape == 0 else math.log1p(shape * beyond / scale) / shape
                surprise = rate + decades / math.log(10)
            surprises[view] = min(surprise, MAX_SURPRISE)
        else:
            mean = one.means[view]
            if x > mean and edge > mean:
                surprises[view] = rate * (x - mean) / (edge - mean)


@_compiled
def _compute_expected_range(one: np.record, x: float, views: Array, expected: Array) -> None:
    """Write the range outside of which few values lay: around the usual day, the slow mean, or by the level alone."""
    value = x + one.anchor
    for up in (8, 6, 0):
        if one.rates[up] > 0 and not math.isnan(views[up]):
            middle = value - views[up]
            expected[0], expected[1] = middle - one.edges[up + 1], middle + one.edges[up]
            return


@_compiled
def _compute_score(surprises: Array, step_s: float) -> float:
    """Return the score: the mean of the three most surprised families, corrected for how often values come."""
    loudest = np.zeros(_FAMILIES)
    for view in range(len(surprises)):
        loudest[_FAMILY[view]] = max(loudest[_FAMILY[view]], surprises[view])
    loudest.sort()
    mean = float(loudest[_FAMILIES - FAMILIES_IN_SCORE :].mean())
    if mean == 0 or step_s == 0:
        return 0.0
    step_s = min(max(step_s, _MIN_STEP_S), _MAX_STEP_S)
    return max(0.0, mean + _STEP_WEIGHT * math.log10(step_s / _REFERENCE_STEP_S))


@_compiled
def _cooling_values(seen: int) -> int:
    """Return after how many quiet values an episode has ended."""
    return min(max(int(COOL_SHARE * seen), MIN_COOL), MAX_COOL)


@_compiled
def _update_episode(one: np.record, moment_us: int, score: float) -> int:
    """Begin an episode, or go on with it; return what is to be told of it, once."""
    if score < NOTICE:
        one.quiet += 1
        return 0
    mark = 0
    if one.quiet > _cooling_values(one.seen):
        one.began_us, one.told = moment_us, EPISODE_BEGAN
        mark = EPISODE_BEGAN
    one.quiet = 0
    if score >= OUTLIER and one.told == EPISODE_BEGAN and moment_us - one.first_us >= _YOUNG_US:
        one.told = OUTLIER_BEGAN
        mark |= OUTLIER_BEGAN
    return mark


@_compiled
def _learn_views(one: np.record, views: Array) -> None:
    """Let the views wait; at the end of a block let their tails learn them, so that an event does not hide itself."""
    for view in range(len(views)):
        x = views[view]
        if not math.isnan(x):
            one.views_seen[view] += 1
            one.means[view] += (x - one.means[view]) / one.views_seen[view]
            _insert_falling(one.waiting[view], x)
    one.unlearnt += 1
    if one.unlearnt >= min(max(one.seen // _BLOCK_SHARE, _MIN_BLOCK), _MAX_BLOCK):
        one.unlearnt = 0
        for view in range(len(views)):
            _extend_tail(one, view)
            _fit_tail(one, view)


@_compiled
def _insert_falling(falling: Array, x: float) -> None:
    """Put ``x`` in its place among the largest, if it is one of them."""
    at = len(falling) - 1
    if x <= falling[at]:
        return
    while at > 0 and falling[at - 1] < x:
        falling[at] = falling[at - 1]
        at -= 1
    falling[at] = x


@_compiled
def _extend_tail(one: np.record, view: int) -> None:
    """Move what waits to the tail; halve a tail that speaks for too many, every second one, so that it forgets."""
    tops, waiting = one.tops[view], one.waiting[view]
    for place in range(len(waiting)):
        if waiting[place] == -np.inf:
            break
        _insert_falling(tops, waiting[place])
    waiting[:] = -np.inf
    if one.views_seen[view] >= _HALVED_AT:
        kept = 0
        for place in range(one.thinned[view] % 2, len(tops), 2):
            tops[kept] = tops[place]
            kept += 1
        tops[kept:] = -np.inf
        one.views_seen[view] //= 2
        one.thinned[view] = (one.thinned[view] + 1) % 2


@_compiled
def _fit_tail(one: np.record, view: int) -> None:
    """Fit the tail beyond its edge, the first of the largest values that is no longer part of it."""
    tops, seen = one.tops[view], one.views_seen[view]
    if seen < _JUDGED_FROM:
        return
    size = min(max(math.ceil(_TAIL * seen), _MIN_TAIL), len(tops) - 1)
    while size > 0 and tops[size] == -np.inf:
        size -= 1
    if size < 3:  # noqa: PLR2004 - two moments of fewer say nothing
        return
    edge, total = tops[size], 0.0
    for place in range(size):
        total += tops[place] - edge
    mean, squares = total / size, 0.0
    for place in range(size):
        squares += (tops[place] - edge - mean) ** 2
    variance = squares / size
    shape = 0.5 * (1 - mean * mean / variance) if variance > 0 else 0.0
    shape = min(max(shape, 0.0), _MAX_SHAPE)
    floor = _FLOOR if total > 0 else _FLAT_FLOOR
    one.edges[view], one.shapes[view] = edge, shape
    one.scales[view] = max(mean * (1 - shape), floor * (edge - one.means[view]))
    if _OF_SINGLE_VALUES[view]:
        one.scales[view] = max(one.scales[view], _GRAIN_FLOOR * one.grain)
    one.rates[view] = math.log10(seen / size)


@_compiled
def _remember_value(one: np.record, x: float, usual: bool) -> None:  # noqa: FBT001 - compiled code takes no names
    """Keep the value among the recent ones, and in its half-hour and hour unless it is part of an episode."""
    recent = one.recent
    size = len(recent)
    if one.unbroken == 0:
        one.fast = one.slow = x
    else:
        one.jitter += max(_JITTER, 1 / one.seen) * (abs(x - recent[size - 1]) - one.jitter)
        one.fast += _FAST * (x - one.fast)
        one.slow += _SLOW * (x - one.slow)
    moved = abs(x - one.newest)
    if one.seen > 0 and moved > 0 and (one.grain == 0 or moved < one.grain):
        one.grain = moved
    one.newest = x
    for place in range(size - 1):
        recent[place] = recent[place + 1]
    recent[size - 1] = x
    one.seen += 1
    one.unbroken += 1
    if usual:
        one.half_hour_sum += x
        one.half_hour_count += 1
        one.hour_sum += x
        one.hour_count += 1
