"""Forecast of a lag: when it reaches a threshold, by the trend of the last hour with its error band.

The trend is a line of least squares. Its slope has the band of a normal distribution, widened for residuals that follow
each other: a variance is multiplied by ``(1 + r) / (1 - r)``, where ``r`` is their correlation from window to window
(G. V. Bayley and J. M. Hammersley, "The effective number of independent observations in an autocorrelated time series",
1946). A forecast counts where even the flattest line of the band gets there in time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from hopwatch.alerts.decision.inputs import LagPoint, PastWindows, WindowInput
from hopwatch.alerts.decision.reading import Reading, bad_reading, good_reading
from hopwatch.alerts.decision.rules import AlertRule
from hopwatch.monitor.results import UNINFORMATIVE
from hopwatch.probes.contract.limits import WINDOW_US

SPAN_US: Final = 3_600_000_000
MIN_POINTS: Final = 30
BAND_DEVIATIONS: Final = 3.0
"""Half of the width of the band, in standard deviations of the slope."""
MAX_CORRELATION: Final = 0.95
MIN_LEVEL_RATIO: Final = 0.1
"""Part of the threshold under which no trend is looked for: most nodes are far from it, and cost no query then."""
_LINE_PARAMETERS: Final = 2


class LagForecast(NamedTuple):
    """Forecast: in how many µs a threshold is reached; ``latest_us`` by the flattest line, infinite if it may never be.

    ``lag_us`` is the line at the end of the horizon.
    """

    expected_us: float
    earliest_us: float
    latest_us: float
    lag_us: float


def forecast_lag(points: Sequence[tuple[int, float]], threshold_us: float, horizon_us: float) -> LagForecast | None:
    """Return the forecast at the last of the points, pairs of a window's start and its lag in µs, in order of time.

    None without a trend: too few points, or a line that does not rise.
    """
    if len(points) < MIN_POINTS:
        return None
    starts, lags = np.array(points, float).T
    times = starts - starts[-1]
    spread = times - times.mean()
    square = float(spread @ spread)
    slope = float(spread @ lags) / square
    if slope <= 0:
        return None
    level = float(lags.mean() - slope * times.mean())
    residuals = lags - (level + slope * times)
    variance = float(residuals @ residuals) / (len(points) - _LINE_PARAMETERS)
    error = math.sqrt(variance / square * _correlation_factor(residuals))
    missing = max(threshold_us - level, 0.0)
    flattest, steepest = slope - BAND_DEVIATIONS * error, slope + BAND_DEVIATIONS * error
    latest_us = missing / flattest if flattest > 0 else math.inf
    return LagForecast(missing / slope, missing / steepest, latest_us, level + slope * horizon_us)


def evaluate_forecast(rule: AlertRule, minute: WindowInput, past: PastWindows) -> Iterator[Reading]:
    """Yield the reading of each node: bad where its lag is sure to reach the threshold within the rule's horizon."""
    result = minute.result
    if result.verdict in UNINFORMATIVE:
        return
    stream, end_us = result.stream, result.window_start_us + WINDOW_US
    threshold_us = rule.thresholds[stream]
    for node in result.nodes:
        if not rule.is_for(stream, node.node):
            continue
        sides = [(lag.p95, side) for side in rule.sides if (lag := getattr(node, f"lag_{side}_us")) is not None]
        if not sides:
            continue
        (worst_us, side), found = max(sides), None
        if worst_us >= MIN_LEVEL_RATIO * threshold_us:
            points = past.read_lags(stream, end_us - SPAN_US, end_us).get(node.node, ())
            found = forecast_lag(_select_side(points, side), threshold_us, rule.within_us)
        if found is None or found.latest_us > rule.within_us:
            yield good_reading(node.node)
        else:
            yield bad_reading(node.node, found.lag_us, threshold_us, note=_describe_forecast(found, side))


def _select_side(points: Sequence[LagPoint], side: str) -> list[tuple[int, float]]:
    sides = [(one.start_us, one.lag_in_us if side == "in" else one.lag_out_us) for one in points]
    return [(start_us, lag_us) for start_us, lag_us in sides if lag_us is not None]


def _correlation_factor(residuals: np.ndarray) -> float:
    square = float(residuals @ residuals)
    if not square:
        return 1.0
    correlation = min(max(float(residuals[1:] @ residuals[:-1]) / square, 0.0), MAX_CORRELATION)
    return (1 + correlation) / (1 - correlation)


def _describe_forecast(found: LagForecast, side: str) -> str:
    expected, earliest, latest = (round(span_us / WINDOW_US) for span_us in found[:3])
    return f"in {expected} min ({earliest} to {latest} min), by the last hour of its lag {side}"
