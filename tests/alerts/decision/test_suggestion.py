"""Laws of suggested thresholds: they are those that the state machine of live alerts would have fired so often."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.alerts.decision.episode import NEW_EPISODE, Phase, fold_window
from hopwatch.alerts.decision.rules import AlertRule
from hopwatch.alerts.decision.suggestion import replay_threshold, suggest_threshold
from hopwatch.alerts.events import AlertKind, Severity
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.windows import at

VALUES: Final = st.lists(st.sampled_from([0.0, 0.001, 0.02, 0.5, 3.0, 3.1, 250.0, np.nan]), max_size=200)


def build_rule(for_windows: int = 1, keep_windows: int = 5) -> AlertRule:
    """Return a rule of lag."""
    return AlertRule("lag", AlertKind.LAG, Severity.TICKET, {}, for_windows, keep_windows)


def moments(count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the starts of so many windows."""
    return np.array([at(minute) for minute in range(count)], np.int64)


def count_firings(values: list[float], rule: AlertRule, threshold: float) -> int:
    """Count the alerts by folding each window, as the monitor does."""
    run, count = NEW_EPISODE, 0
    for minute, value in enumerate(values):
        if np.isnan(value):
            continue
        was, run = run.phase, fold_window(run, at(minute), rule, is_bad=value > threshold)
        count += run.phase is Phase.FIRING and was is not Phase.FIRING
    return count


@given(VALUES, st.integers(1, 6), st.integers(1, 6), st.integers(1, 3))
def test_a_suggestion_fires_no_more_than_it_may(values: list[float], lasts: int, keeps: int, most: int) -> None:
    """Nor for longer than a tenth of what was observed."""
    rule = build_rule(lasts, keeps)
    found = suggest_threshold(moments(len(values)), np.array(values, float), rule, most, 0.001)
    known = [value for value in values if not np.isnan(value)]
    if not known:
        assert found is None
        return
    assert found is not None
    assert count_firings(values, rule, found.threshold) == len(found.alerts) <= most
    assert sum(one.until_us - one.since_us for one in found.alerts) <= len(known) * WINDOW_US / 10
    assert found.windows == len(known)
    assert found.threshold >= 0.001


@given(VALUES, st.integers(1, 6), st.integers(1, 70), st.sampled_from([0.0, 0.01, 1.0, 3.0]))
def test_a_replay_is_what_the_monitor_decides(values: list[float], lasts: int, keeps: int, threshold: float) -> None:
    """Also where it leaves out the good windows that change nothing."""
    rule, series = build_rule(lasts, keeps), np.array(values, float)
    is_known = ~np.isnan(series)
    found = replay_threshold(moments(len(values))[is_known], series[is_known], rule, threshold)
    assert len(found) == count_firings(values, rule, threshold)
    for one in found:
        spanned = [values[minute] for minute in range(len(values)) if one.since_us <= at(minute) < one.until_us]
        assert one.peak == max(value for value in spanned if not np.isnan(value))
        assert one.until_us > one.since_us


def test_an_outage_is_named_with_its_peak() -> None:
    """From its first bad window to the end of its last; thresholds are round."""
    values = np.full(3_000, 0.9)
    values[1_000:1_012] = 7.34
    values[2_000] = 1.27
    found = suggest_threshold(moments(3_000), values, build_rule(5), 1, 0.001)
    assert found is not None
    assert found.threshold == pytest.approx(0.9)
    assert found.alerts == ((at(1_000), at(1_012), 7.34),)
    twice = suggest_threshold(moments(3_000), values, build_rule(1), 1, 0.001)
    assert twice is not None
    assert twice.threshold == pytest.approx(1.3)
    lasting = suggest_threshold(moments(3_000), np.full(3_000, 0.9), build_rule(1), 1, 0.001)
    assert lasting is not None
    assert lasting.threshold == pytest.approx(0.9)
    assert lasting.alerts == ()


def test_a_series_that_was_never_bad_has_the_lowest_threshold() -> None:
    """As a loss that never was."""
    found = suggest_threshold(moments(10), np.zeros(10), build_rule(), 1, 0.0)
    assert found is not None
    assert (found.threshold, found.alerts) == (0.0, ())


def test_windows_without_a_value_fire_nothing() -> None:
    """UNKNOWN is neither good nor bad: bad windows on both sides of it are one alert."""
    values = np.array([9.0, np.nan, 9.0, np.nan, np.nan, 9.0])
    (one,) = replay_threshold(moments(6)[~np.isnan(values)], values[~np.isnan(values)], build_rule(3), 1.0)
    assert (one.since_us, one.until_us) == (at(0), at(5) + WINDOW_US)
