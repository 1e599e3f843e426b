"""Laws of the forecast of a lag, and what a rule makes of it."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hopwatch.alerts.decision import evaluators
from hopwatch.alerts.decision.forecast import MIN_POINTS, SPAN_US, forecast_lag
from hopwatch.alerts.decision.inputs import LagPoint
from hopwatch.alerts.decision.reading import Reading
from hopwatch.alerts.events import AlertKind
from hopwatch.monitor.results import Verdict
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.alert_scenario import build_rules
from tests.support.windows import Memory, at, lag, window_input

HOUR_US: Final = 3_600_000_000
RULE: Final = '[[alerts.rules]]\nkind = "forecast"\nenabled = true\nthreshold = "100s"\nnodes = ["b"]\n'
SECOND: Final = 1_000_000


def line(
    slope_us: float, level_us: float, noise_us: float = 0.0, seed: int = 0, count: int = 60
) -> list[tuple[int, float]]:
    """Return lags that rise by so much a window to a level, with normal noise."""
    noise = np.random.default_rng(seed).normal(0, 1, count) * noise_us
    return [
        (place * WINDOW_US, level_us + slope_us * (place - count + 1) + float(noise[place])) for place in range(count)
    ]


@given(slope=st.floats(1e3, 1e6), level=st.floats(0, 1e8), missing=st.floats(1, 1e8))
def test_a_straight_line_is_continued(slope: float, level: float, missing: float) -> None:
    """Without noise the threshold is reached when the line does, and the band has no width."""
    found = forecast_lag(line(slope, level), level + missing, HOUR_US)
    assert found is not None
    times = (found.expected_us, found.earliest_us, found.latest_us)
    assert times == pytest.approx([missing / slope * WINDOW_US] * 3, rel=1e-3, abs=1e5)
    assert found.lag_us == pytest.approx(level + 60 * slope, rel=1e-6)


@given(slope=st.floats(-1e6, 0), level=st.floats(0, 1e8), noise=st.floats(0, 1e5), seed=st.integers(0, 99))
def test_a_lag_that_does_not_rise_reaches_nothing(slope: float, level: float, noise: float, seed: int) -> None:
    """Level or falling, with whatever noise, no threshold is sure to be reached."""
    found = forecast_lag(line(slope, level, noise, seed), level + 1e9, HOUR_US)
    assert found is None or found.latest_us > HOUR_US


@given(
    st.lists(st.floats(0, 1e9), min_size=MIN_POINTS, max_size=60),
    st.floats(1, 1e9),
    st.sampled_from([0.001, 2.0, 1_000.0]),
    st.integers(0, 2**50),
)
def test_units_and_dates_do_not_matter(lags: list[float], threshold: float, scale: float, shift_us: int) -> None:
    """Lags and threshold times any number, on any day, are reached at the same time after the last window."""
    assume(float(np.ptp(lags)) > 1e-3 * max(lags))
    points = [(place * WINDOW_US, one) for place, one in enumerate(lags)]
    moved = [(start + shift_us, one * scale) for start, one in points]
    found, again = forecast_lag(points, threshold, HOUR_US), forecast_lag(moved, threshold * scale, HOUR_US)
    if found is not None and again is not None:
        assert again[:2] == pytest.approx(found[:2], rel=1e-3, abs=1)
        assert again.earliest_us <= again.expected_us <= again.latest_us


def test_noise_and_memory_widen_the_band() -> None:
    """The same trend under noise is surer than under a lag that wanders, and less sure than without either."""
    plain, noisy = (forecast_lag(line(1e5, 1e7, noise), 2e7, HOUR_US) for noise in (0.0, 5e5))
    wandering = line(1e5, 1e7)
    walk = np.cumsum(np.random.default_rng(1).normal(0, 2e5, 60))
    walked = forecast_lag(
        [(start, one + float(step)) for (start, one), step in zip(wandering, walk, strict=True)], 2e7, HOUR_US
    )
    assert plain is not None
    assert noisy is not None
    assert walked is not None
    assert plain.latest_us < noisy.latest_us < walked.latest_us


def test_half_an_hour_of_lags_is_too_few_without_one() -> None:
    """A young stream has no trend."""
    assert forecast_lag(line(1e5, 1e7, count=MIN_POINTS - 1), 2e7, HOUR_US) is None
    assert forecast_lag(line(1e5, 1e7, count=MIN_POINTS), 2e7, HOUR_US) is not None


def readings(p95_us: float, past: Memory, verdict: Verdict = Verdict.CLEAN) -> dict[str, Reading]:
    """Return what the rule makes of a window in which both nodes have this lag out."""
    rules = build_rules(RULE)
    rule = next(rule for rule in rules.rules if rule.kind is AlertKind.FORECAST)
    fields = {name: {"lag_out_us": lag(round(p95_us))} for name in ("a", "b")}
    minute = window_input(60, nodes=fields, verdict=verdict)
    return {one.node: one for one in evaluators.evaluate_rule(rule, rules.streams["orders"], minute, past)}


def remember(slope_us: float, level_us: float) -> Memory:
    """Return a past in which the lag out of ``b`` rose like this up to the window that is judged."""
    points = [LagPoint(at(place + 1), None, lag_us) for place, (_, lag_us) in enumerate(line(slope_us, level_us))]
    return Memory(lags={"b": points})


def test_a_lag_that_will_be_over_the_threshold_is_bad() -> None:
    """The reading tells the side, when, and between which times; a node that the rule is not for has none."""
    found = readings(40 * SECOND, remember(2 * SECOND, 40 * SECOND))
    assert set(found) == {"b"}
    assert found["b"].is_bad
    assert (found["b"].observed, found["b"].threshold) == (160 * SECOND, 100 * SECOND)
    assert found["b"].note == "in 30 min (30 to 30 min), by the last hour of its lag out"


@pytest.mark.parametrize(("slope_s", "level_s"), [(0.5, 40), (0, 40), (-1, 90)], ids=["later", "level", "falling"])
def test_a_lag_that_will_not_is_good(slope_s: float, level_s: float) -> None:
    """Rising too slowly, not at all, or falling."""
    assert not readings(level_s * SECOND, remember(slope_s * SECOND, level_s * SECOND))["b"].is_bad


def test_an_unknown_window_says_nothing() -> None:
    """Nobody knows what was not seen."""
    assert readings(40 * SECOND, remember(2 * SECOND, 40 * SECOND), Verdict.UNKNOWN) == {}


def test_a_lag_far_from_the_threshold_costs_no_query() -> None:
    """Most nodes, most of the time."""
    past = remember(2 * SECOND, 9 * SECOND)
    assert not readings(9 * SECOND, past)["b"].is_bad
    assert past.lag_queries == 0
    readings(40 * SECOND, past)
    assert past.lag_queries == 1
    assert SPAN_US == HOUR_US
