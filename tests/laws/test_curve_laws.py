"""Laws of timeliness against accuracy: its bounds hold for messages that are known one by one."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.completeness_curve import (
    SECOND_US,
    NodeArrivals,
    build_curve,
    count_late,
    propose_policy,
    round_up_us,
)
from hopwatch.probes.contract.limits import WINDOW_US

NODES = ("a", "b")
LAGS = st.one_of(st.integers(-5 * SECOND_US, 200 * SECOND_US), st.sampled_from((0, 10 * SECOND_US, 70 * SECOND_US)))
MESSAGES = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, WINDOW_US - 1),
        st.dictionaries(st.sampled_from(NODES), LAGS, min_size=1),
    ),
    min_size=1,
    max_size=40,
)
WAITS_US = (0, 5 * SECOND_US, 10 * SECOND_US, 60 * SECOND_US)


def gather(messages: list[tuple[int, int, dict[str, int]]]) -> list[NodeArrivals]:
    """Return the arrivals of messages, each with its window, its place in it, µs, and its lag at each node."""
    lags = defaultdict[tuple[str, int], list[int]](list)
    for window, _, at_nodes in messages:
        for node, lag_us in at_nodes.items():
            lags[node, window * WINDOW_US].append(lag_us)
    return [
        NodeArrivals(node, start_us, len(found), min(found), max(found), tdigest.build(np.array(found, np.int64)))
        for (node, start_us), found in lags.items()
    ]


@given(messages=MESSAGES)
def test_the_truth_lies_between_the_bounds(messages: list[tuple[int, int, dict[str, int]]]) -> None:
    """Windows that lack a message when they are judged, and arrivals behind that moment, at each node and at all."""
    curve = build_curve(gather(messages), WAITS_US)
    for node in (None, *curve.nodes):
        found = curve.whole if node is None else curve.nodes[node]
        for point in found.points:
            late = [
                window
                for window, place_us, at_nodes in messages
                for name, lag_us in at_nodes.items()
                if node in {None, name} and place_us + lag_us > WINDOW_US + point.wait_us
            ]
            assert point.windows_lower <= len(set(late)) <= point.windows_upper
            assert point.late_lower <= len(late) <= point.late_upper
        assert found.arrivals == sum(len(at_nodes) if node is None else node in at_nodes for _, _, at_nodes in messages)
        assert found.latest_us == max(
            lag for _, _, at_nodes in messages for name, lag in at_nodes.items() if node in {None, name}
        )


@given(messages=MESSAGES)
def test_a_longer_wait_leaves_less(messages: list[tuple[int, int, dict[str, int]]]) -> None:
    """Each bound falls, and so does the worst share."""
    points = build_curve(gather(messages), WAITS_US).whole.points
    for sooner, later in pairwise(points):
        assert all(before >= after for before, after in zip(sooner[1:], later[1:], strict=True))


@given(messages=MESSAGES)
def test_no_message_takes_longer_than_is_said(messages: list[tuple[int, int, dict[str, int]]]) -> None:
    """From its first node to its last, in each window."""
    curve, took = build_curve(gather(messages), WAITS_US), defaultdict[int, int](int)
    for window, _, at_nodes in messages:
        took[window] = max(took[window], max(at_nodes.values()) - min(at_nodes.values()))
    assert len(curve.passing_us) == len(took)
    assert all(said >= true for said, true in zip(sorted(curve.passing_us), sorted(took.values()), strict=True))


@given(
    passing_us=st.lists(st.integers(0, 10**11), min_size=1, max_size=60),
    amended_us=st.lists(st.integers(0, 10**11), max_size=60),
    settle_us=st.integers(0, 10**9),
    risk=st.floats(0, 0.5),
)
def test_a_proposal_keeps_its_risk(passing_us: list[int], amended_us: list[int], settle_us: int, risk: float) -> None:
    """At most so many windows take longer, and are amended; transit is the shortest round one of which that holds."""
    found = propose_policy(passing_us, amended_us, settle_us, risk)
    allowed = int(risk * len(passing_us))
    assert found.slow_windows == sum(one > found.transit_us for one in passing_us) <= allowed
    assert found.amended_windows == sum(one > found.transit_us + found.settle_us for one in amended_us) <= allowed
    assert found.settle_us >= settle_us
    if found.transit_us > SECOND_US:
        shorter_us = round_up_us(found.transit_us * 9 // 10 - SECOND_US)
        assert sum(one > shorter_us for one in passing_us) > allowed or shorter_us >= found.transit_us


@given(span_us=st.integers(0, 10**13))
def test_a_span_is_rounded_up_to_two_digits(span_us: int) -> None:
    """In whole seconds, a second at least, and by less than a tenth and a second."""
    rounded = round_up_us(span_us)
    assert rounded >= max(span_us, SECOND_US)
    assert rounded % SECOND_US == 0
    assert len(str(rounded // SECOND_US).rstrip("0")) <= 2
    assert rounded <= max(SECOND_US, span_us * 1.1 + SECOND_US)
    assert round_up_us(rounded) == rounded


@pytest.mark.parametrize(("lag_us", "late"), [(-1, 3), (0, 2), (5, 1), (9, 1), (10, 0)])
def test_late_arrivals_are_counted_exactly_where_a_digest_is(lag_us: int, late: int) -> None:
    """Over a lag, not at it; without a digest all of them may be."""
    lags = np.array([0, 5, 10], np.int64)
    assert count_late(NodeArrivals("a", 0, 3, 0, 10, tdigest.build(lags)), lag_us) == late
    assert count_late(NodeArrivals("a", 0, 3, 0, 10), lag_us) == (3 if late else 0)
