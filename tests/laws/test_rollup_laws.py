"""Laws of the roll-up: parts in any order and in any grouping, the same counts, and percentiles within the promise."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.cli.report import _lost_ratio
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.count_lags import CountLags, digest_histograms
from hopwatch.monitor.kernel.rollup import COUNTS, SpanPart, SpanShape, roll_up
from hopwatch.monitor.kernel.tally import NodeLags
from hopwatch.monitor.results import (
    NodeCounts,
    NodeRollUp,
    RollUp,
    Status,
    Verdict,
    WindowResult,
    roll_up_to_json,
    window_to_json,
)
from hopwatch.probes.contract.lag_histograms import count_lags
from tests.model.hours import counts_by_span
from tests.model.hours import without_percentiles as without_count_percentiles
from tests.support.conclusions import PATHWAY, build_conclusion
from tests.support.distributions import rank_errors

TOLERANCES = np.array([0.01, 0.002, 0.002])
LAGS = st.lists(st.integers(-(10**6), 10**9), max_size=40)
COUNT_LAGS = st.lists(LAGS, min_size=2, max_size=2).map(
    lambda sides: CountLags(*(digest_histograms([count_lags(np.array(lags, np.int64))]) for lags in sides))
)
Made = list[tuple[SpanPart[WindowResult], list[int]]]
BASE = build_conclusion(status=Status.FINAL).result
SHAPE = SpanShape(tuple(node.node for node in BASE.nodes), frozenset(), frozenset({BASE.nodes[-1].node}))


FACTS = st.none() | st.booleans()
NUMBERS = st.integers(0, 9) | st.just(2**63 - 1)


@st.composite
def counted(draw: st.DrawFn, most: int) -> tuple[NodeCounts, ...]:
    """Draw what two nodes counted in a window, the second one between nodes with ids and the first before them."""
    first, second = (
        NodeCounts(
            *(node, draw(NUMBERS), draw(NUMBERS), draw(NUMBERS), draw(NUMBERS), None),
            *(before, draw(NUMBERS) if before else None, draw(FACTS) if before else None),
            draw(st.integers(0, most)) if before else 0,
            *("b", draw(NUMBERS), draw(FACTS)),
        )
        for node, before in (("n", None), ("m", "a"))
    )
    return first, second


@st.composite
def parts(draw: st.DrawFn) -> Made:
    """Draw final windows, and the lags of their last node."""
    made = []
    for number in range(draw(st.integers(1, 12))):
        counts: dict[str, Any] = {name: draw(st.integers(0, 1_000)) for name in COUNTS}
        upper, verdict = draw(st.none() | st.integers(0, 9)), draw(st.sampled_from(Verdict))
        loss = draw(st.integers(0, 9))
        nodes = tuple(replace(node, loss=loss, seen=loss + 3, loss_upper=upper) for node in BASE.nodes)
        start_us = number * 60_000_000
        told_lags = draw(st.tuples(COUNT_LAGS, COUNT_LAGS))
        pairs = zip(draw(counted(counts["known"])), told_lags, strict=True)
        counts["counts"] = tuple(replace(one, **told.figures) for one, told in pairs)
        result = replace(BASE, window_start_us=start_us, verdict=verdict, lost_upper=upper, nodes=nodes, **counts)
        lags = draw(LAGS)
        digest = tdigest.build(np.array(lags, np.int64))
        first, last = (NodeLags(one, one, one) for one in (tdigest.EMPTY, digest))
        made.append((SpanPart(result, (first, last), (None, last.lag_out_us), told_lags), lags))
    return made


def without_percentiles(rolled: RollUp) -> dict[str, Any]:
    """Return all of a roll-up that is exact, by the path to it."""
    found: dict[str, Any] = {}
    for place, one in enumerate((rolled, *rolled.nodes)):
        for field in fields(RollUp if place == 0 else NodeRollUp):
            value = getattr(one, field.name)
            if hasattr(value, "p50"):
                value = value.count, value.min, value.max
            if field.name not in ("nodes", "process_duration_p95_us"):
                found[f"{place}.{field.name}"] = value
    return found


@given(parts(), st.randoms(use_true_random=False))
def test_order_changes_nothing(made: Made, dice: random.Random) -> None:
    """Not a digit, percentiles included."""
    given_parts = [part for part, _ in made]
    shuffled = list(given_parts)
    dice.shuffle(shuffled)
    assert roll_up(SHAPE, "s", 0, shuffled).figures == roll_up(SHAPE, "s", 0, given_parts).figures


@given(parts(), st.integers(1, 5))
def test_spans_of_spans_are_spans_of_windows(made: Made, size: int) -> None:
    """A day from its hours has the counts of a day from its windows, whatever the hours are."""
    windows = [part for part, _ in made]
    hours = [roll_up(SHAPE, "s", 0, windows[at : at + size]) for at in range(0, len(windows), size)]
    day, at_once = roll_up(SHAPE, "s", 0, hours).figures, roll_up(SHAPE, "s", 0, windows).figures
    assert without_percentiles(day) == without_percentiles(at_once)


@given(parts(), st.integers(1, 5))
def test_percentiles_keep_the_promise_of_the_digest(made: Made, size: int) -> None:
    """Of hours and of days: 1 % of rank for the median, 0.2 % for the others."""
    windows, values = [part for part, _ in made], np.array([lag for _, lags in made for lag in lags], np.int64)
    hours = [roll_up(SHAPE, "s", 0, windows[at : at + size]) for at in range(0, len(windows), size)]
    for rolled in (roll_up(SHAPE, "s", 0, hours), roll_up(SHAPE, "s", 0, windows)):
        lag = rolled.figures.lag_us
        assert (lag is None) == (not values.size)
        if lag is not None:
            told = np.array([lag.p50, lag.p95, lag.p99], np.float64)
            assert (rank_errors(values, told, np.array([0.5, 0.95, 0.99])) <= TOLERANCES).all()


@given(parts())
def test_windows_are_counted_once_and_by_their_verdict(made: Made) -> None:
    """The verdicts add up to the windows."""
    rolled = roll_up(SHAPE, "s", 0, [part for part, _ in made]).figures
    assert rolled.windows == len(made)
    assert rolled.windows == sum(getattr(rolled, verdict.value.lower()) for verdict in Verdict)


@given(parts())
def test_what_nodes_counted_in_a_span_is_what_the_model_makes_of_its_windows(made: Made) -> None:
    """Sums, bounds, and what all windows show; at most what 63 bits hold."""
    windows = [part for part, _ in made]
    told = without_count_percentiles(roll_up_to_json(roll_up(SHAPE, "s", 0, windows).figures)["counts"])
    assert [told] == counts_by_span([window_to_json(part.figures, []) for part in windows], "hour")


@given(parts(), st.integers(1, 5))
def test_a_part_without_counts_adds_none_and_leaves_the_rest_open(made: Made, size: int) -> None:
    """A span that was rolled up before they were kept: wherever it stands, sums are known, and no more is said."""
    windows = [part for part, _ in made]
    older = SpanPart(
        replace(roll_up(SHAPE, "s", 0, windows[:size]).figures, counts=()), windows[0].lags, windows[0].ends
    )
    newer = roll_up(SHAPE, "s", 0, windows)
    day = roll_up(SHAPE, "s", 0, [older, newer]).figures.counts
    assert day == roll_up(SHAPE, "s", 0, [newer, older]).figures.counts
    for one, alone in zip(day, newer.figures.counts, strict=True):
        assert (one.arrived, one.lost_before_lower) == (alone.arrived, alone.lost_before_lower)
        assert (one.lag_in_us, one.lag_out_us) == (alone.lag_in_us, alone.lag_out_us)
        for said, before in ((one.same_before, alone.same_before), (one.same_behind, alone.same_behind)):
            assert said is (False if before is False else None)
        assert one.lost_before_upper is None


RATIOS = st.just(0.0) | st.floats(0, 1)


@given(parts(), RATIOS)
def test_an_hour_fails_on_loss_only_if_one_of_its_minutes_does(made: Made, ratio: float) -> None:
    """By ids or by count; and over a ratio of 0 whenever one does, so that ``--by`` hides no loss."""
    windows = [replace(part.figures, lost_lower=min(part.figures.lost_lower, part.figures.known)) for part, _ in made]
    minutes = [_lost_ratio(window_to_json(one, [])) for one in windows]
    spans = [SpanPart(one, part.lags, part.ends) for one, (part, _) in zip(windows, made, strict=True)]
    hour = _lost_ratio(roll_up_to_json(roll_up(SHAPE, "s", 0, spans).figures))
    assert hour <= max(minutes) * (1 + 1e-12)
    assert (hour > 0) == any(one > 0 for one in minutes)
    if hour > ratio * (1 + 1e-12):
        assert any(one > ratio for one in minutes)


def test_the_shape_is_that_of_the_pathway() -> None:
    """The shape that the laws use is the one that the store makes of the rules."""
    assert SpanShape.from_pathways([PATHWAY]) == SHAPE
