"""Laws of the rating: for streams of known capacity, any sequence of outcomes, any shares and schedules."""

from __future__ import annotations

import json
import math
import uuid
from typing import Final

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hopwatch.rate.growth import find_growth
from hopwatch.rate.intervals import (
    build_wilson_interval,
    count_needed_messages,
    estimate_quantile,
    estimate_share,
    measure_inflation,
)
from hopwatch.rate.message_ids import build_body, build_ids, find_places, format_ids, match_places, parse_ids
from hopwatch.rate.processor_use import ProcessorUse
from hopwatch.rate.saturation import RECEIVER, PointLag, SaturationCause, Side, find_saturation, measure_point
from hopwatch.rate.schedule import Arrivals, build_due_s, group_requests
from hopwatch.rate.search import SearchEnd, SearchPlan, advance_search, plan_repeat, start_search
from hopwatch.rate.step import StepState, judge_step, plan_step
from hopwatch.rate.target import LagCondition, Target, parse_target
from tests.support.simulated_stream import SimulatedStream, search

TARGET: Final = parse_target("e2e p95 <= 500 ms and loss = 0")
CAPACITIES: Final = st.floats(200, 20_000)
SEEDS: Final = st.integers(0, 2**32 - 1)
RUNS: Final = st.integers(0, 2**42 - 1)


def plan(max_per_s: float = 50_000, tolerance: float = 0.05) -> SearchPlan:
    """Return a plan that begins at 100 messages a second."""
    return SearchPlan(100, 1, max_per_s, tolerance)


@settings(max_examples=30, deadline=None)
@given(CAPACITIES, SEEDS)
def test_the_rating_of_a_steady_stream_is_its_capacity(capacity_per_s: float, seed: int) -> None:
    """With constant arrivals the rating is the capacity, less the tolerance, plus the growth that no step can show."""
    state, _ = search(SimulatedStream(capacity_per_s, 0.05), plan(), TARGET, seed)
    assert state.end is SearchEnd.FOUND
    assert state.held_per_s is not None
    assert 0.95 / 1.0001 <= state.held_per_s / capacity_per_s <= 1.0101


@settings(max_examples=30, deadline=None)
@given(st.floats(400, 10_000), SEEDS)
def test_the_rating_of_a_queue_with_chance_is_near_its_capacity(capacity_per_s: float, seed: int) -> None:
    """With Poisson arrivals (M/D/1) the rating is 85 to 106 % of the capacity."""
    stream = SimulatedStream(capacity_per_s, 0.05, arrivals=Arrivals.POISSON)
    state, _ = search(stream, plan(), TARGET, seed)
    assert state.end is SearchEnd.FOUND
    assert state.held_per_s is not None
    assert 0.85 <= state.held_per_s / capacity_per_s <= 1.06


@settings(max_examples=20, deadline=None)
@given(CAPACITIES, SEEDS)
def test_three_ratings_are_near_each_other(capacity_per_s: float, seed: int) -> None:
    """Three searches with other chance are within 10 % of their median."""
    stream = SimulatedStream(capacity_per_s, 0.05, arrivals=Arrivals.POISSON)
    found, plans = list[float](), [plan()]
    for number in range(3):
        found.append(search(stream, plans[-1], TARGET, seed + number)[0].held_per_s or 0.0)
        plans.append(plan_repeat(plan(), found[-1], number + 1))
    assert len({one.start_per_s for one in plans}) == 4
    found.sort()
    assert found[2] <= 1.1 * found[1]
    assert found[0] >= 0.85 * found[1]


@settings(max_examples=20, deadline=None)
@given(CAPACITIES, st.floats(0.01, 1), SEEDS)
def test_a_stream_that_loses_has_no_rating_without_loss(capacity_per_s: float, loss_ratio: float, seed: int) -> None:
    """Neither has one whose loss is twice the bound, while half the bound is borne."""
    state, _ = search(SimulatedStream(capacity_per_s, loss_ratio=loss_ratio), plan(), TARGET, seed)
    assert (state.end, state.held_per_s) == (SearchEnd.NEVER_HELD, None)
    for factor, is_borne in ((0.5, True), (2, False)):
        bounded = Target((LagCondition(0.95, 0.5),), 0.02)
        held = search(SimulatedStream(capacity_per_s, loss_ratio=0.02 * factor), plan(), bounded, seed)[0].held_per_s
        assert (held is not None) is is_borne


@settings(max_examples=20, deadline=None)
@given(st.floats(1_000, 1e6), st.floats(0.51, 60), SEEDS)
def test_a_stream_that_is_always_late_is_never_good(capacity_per_s: float, delay_s: float, seed: int) -> None:
    """The search ends at its lowest rate, without a rating."""
    state, _ = search(SimulatedStream(capacity_per_s, delay_s), plan(), TARGET, seed)
    assert (state.end, state.held_per_s) == (SearchEnd.NEVER_HELD, None)


@settings(max_examples=20, deadline=None)
@given(st.floats(100, 20_000), SEEDS)
def test_a_stream_that_is_always_good_is_rated_at_the_bound(max_per_s: float, seed: int) -> None:
    """The search ends at the highest rate that it may try."""
    state, _ = search(SimulatedStream(4 * max_per_s), plan(max_per_s), TARGET, seed)
    assert (state.end, state.held_per_s) == (SearchEnd.MAX_RATE, max_per_s)


@settings(max_examples=20, deadline=None)
@given(st.floats(500, 10_000), SEEDS)
def test_a_sender_that_is_too_slow_is_never_taken_for_the_stream(sender_per_s: float, seed: int) -> None:
    """The search ends with the sender as its bound, at a rate that the sender can send."""
    state, _ = search(SimulatedStream(1e6, sender_per_s=sender_per_s), plan(), TARGET, seed)
    assert state.end is SearchEnd.SENDER
    assert state.held_per_s is not None
    assert state.held_per_s <= 1.011 * sender_per_s


@given(
    st.lists(st.sampled_from(StepState), min_size=1_000, max_size=1_000),
    st.floats(1, 100),
    st.floats(1, 1_000),
    st.floats(0.01, 1),
)
def test_a_search_ends_within_its_bounds(
    outcomes: list[StepState], start_per_s: float, factor: float, tolerance: float
) -> None:
    """For any outcomes: rates are within the bounds, what held is below what failed, and the number of steps is bound.

    Each of the rates, of doubling, halving and bisection, is tried at most six times.
    """
    bounds = SearchPlan(start_per_s, 1, start_per_s * factor, tolerance)
    state, steps = start_search(bounds), 0
    for outcome in outcomes:
        if state.end is not None:
            break
        assert bounds.min_per_s <= state.next_per_s <= bounds.max_per_s
        state, steps = advance_search(bounds, state, outcome), steps + 1
        if state.held_per_s is not None and state.failed_per_s is not None:
            assert state.held_per_s < state.failed_per_s
    assert state.end is not None
    rates = math.log2(bounds.max_per_s) + 3 + max(0.0, math.log2(math.log(2) / math.log1p(tolerance))) + 1
    assert steps <= 6 * rates


@given(st.integers(1, 100_000), st.data())
def test_an_interval_holds_its_share(count: int, data: st.DataObject) -> None:
    """Within 0 and 1, around the share, narrower with more messages."""
    share = data.draw(st.integers(0, count)) / count
    narrow, wide = build_wilson_interval(share, 4 * count), build_wilson_interval(share, count)
    for one in (narrow, wide):
        assert 0 <= one.low <= share <= one.high <= 1
    assert narrow.high - narrow.low <= wide.high - wide.low


@given(st.lists(st.booleans(), max_size=2_000), st.integers(1, 50))
def test_messages_that_share_their_fate_count_less(fates: list[bool], batch: int) -> None:
    """Each message of the step counts as at most one, and the interval of batches is no narrower than of its means."""
    hits = np.repeat(np.array(fates, bool), batch)
    assert 1 <= measure_inflation(hits) <= max(1, hits.size)
    found = estimate_share(hits)
    assert found.interval.low <= found.share <= found.interval.high


@settings(max_examples=50, deadline=None)
@given(st.floats(0.001, 0.2), SEEDS)
def test_the_interval_of_a_share_keeps_its_confidence(share: float, seed: int) -> None:
    """Of 200 samples at least 170 hold the true share: 95 % are promised."""
    random = np.random.default_rng(seed)
    kept = 0
    for _ in range(200):
        found = estimate_share(random.random(2_000) < share).interval
        kept += found.low <= share <= found.high
    assert kept >= 170


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=500), st.sampled_from((0.5, 0.95, 0.99)), st.integers(0, 100))
def test_a_quantile_is_an_order_statistic_within_its_interval(
    values: list[float], quantile: float, missing: int
) -> None:
    """A quantile is a value with at most 1 - p of them above it, and missing messages never make it smaller."""
    array = np.array(values)
    found, ends = estimate_quantile(array, quantile)
    assert found in values
    assert (array > found).sum() <= (1 - quantile) * array.size + 1e-9
    assert ends.low <= found <= ends.high
    assert estimate_quantile(np.concatenate([array, np.full(missing, np.inf)]), quantile)[0] >= found


def test_the_needed_messages_grow_with_the_quantile() -> None:
    """So many that the share above it is known to a fifth, as the page says."""
    assert [count_needed_messages(quantile) for quantile in (0.5, 0.95, 0.99)] == [97, 1_825, 9_508]


@settings(max_examples=50, deadline=None)
@given(st.floats(0.02, 10), st.floats(0, 5), SEEDS)
def test_a_lag_that_grows_is_found(slope: float, base_s: float, seed: int) -> None:
    """A growth with noise is found at any height; its slope is near the true one. Without a slope nothing is found."""
    random = np.random.default_rng(seed)
    due_s = np.arange(2_000) / 200
    noise = random.exponential(0.02, due_s.size)
    growth = find_growth(due_s, base_s + slope * due_s + noise)
    assert growth.is_growing
    assert abs(growth.slope - slope) < 0.01
    assert not find_growth(due_s, base_s + noise).is_growing
    assert not find_growth(due_s, base_s - slope * due_s + noise).is_growing


@settings(max_examples=50, deadline=None)
@given(st.floats(10, 5_000), st.integers(0, 2_000), st.sampled_from(Arrivals), st.integers(1, 500), SEEDS)
def test_each_message_goes_once_and_never_before_it_is_due(
    rate_per_s: float, count: int, arrivals: Arrivals, batch: int, seed: int
) -> None:
    """Requests are slices in order, none larger than a batch, each sent when its last message is due or later."""
    due_s = build_due_s(rate_per_s, count, arrivals, np.random.default_rng(seed))
    assert (np.diff(due_s) >= 0).all()
    starts, sent_s = group_requests(due_s, batch, 0.02)
    assert (int(starts[0]), int(starts[-1]), len(sent_s)) == (0, count, len(starts) - 1)
    sizes = np.diff(starts)
    assert ((sizes >= 1) & (sizes <= batch)).all()
    assert (np.diff(sent_s) >= 0).all()
    if count:
        assert (sent_s >= due_s[starts[1:] - 1] - 1e-9).all()
        assert (sent_s <= due_s[starts[:-1]] + 0.02 + 1e-9).all()


@given(RUNS, RUNS, st.integers(0, 2**32 - 200), st.lists(st.integers(0, 2**47), min_size=1, max_size=50))
def test_what_arrives_is_found_by_its_id(run: int, other: int, first: int, due: list[int]) -> None:
    """Ids are UUIDs of version 7 that give back their place, through text too, and those of another run give none."""
    assume(run != other)
    due_us = np.array(due, np.int64)
    ids = build_ids(run, first, due_us)
    places = list(range(first, first + len(due)))
    texts = format_ids(ids).tobytes()
    assert find_places(run, ids).tolist() == places
    assert find_places(other, ids).size == 0
    assert match_places(run, parse_ids(texts)).tolist() == places
    for place, when in enumerate(due):
        parsed = uuid.UUID(texts[36 * place : 36 * place + 36].decode())
        assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
        assert parsed.bytes == ids[place].tobytes()
        assert parsed.int >> 80 == when // 1_000


@given(st.lists(st.integers(10**15, 10**16 - 1), min_size=1, max_size=20), st.dictionaries(st.text(), st.text()))
def test_a_body_is_the_list_of_its_events(due: list[int], data: dict[str, str]) -> None:
    """JSON with id, event time and data of each."""
    due_us = np.array(due, np.int64)
    ids = build_ids(7, 0, due_us)
    said = json.loads(build_body(ids, due_us, json.dumps(data).encode()))
    assert [one["time"] for one in said] == due
    assert [uuid.UUID(one["id"]).bytes for one in said] == [one.tobytes() for one in ids]
    assert all(one["data"] == data for one in said)


@st.composite
def pathways(draw: st.DrawFn) -> tuple[list[str], int, Side]:
    """Draw the nodes of a pathway, and the point behind which messages wait."""
    nodes = [f"n{place}" for place in range(draw(st.integers(1, 6)))]
    return nodes, draw(st.integers(0, len(nodes) - 1)), draw(st.sampled_from(Side))


@settings(max_examples=50, deadline=None)
@given(pathways(), st.floats(0.05, 1), st.floats(0, 1), st.floats(0, 1), SEEDS)
def test_the_first_point_that_waits_is_what_saturates(
    pathway: tuple[list[str], int, Side], slope: float, share: float, waited: float, seed: int
) -> None:
    """The node behind whose point the lag grows is found, and the cause goes by its own processor use."""
    nodes, slow, slow_side = pathway
    random = np.random.default_rng(seed)
    due_s = np.arange(1_000) / 100
    lags_s, points = np.zeros(due_s.size), []
    for place, node in enumerate(nodes):
        for side in Side:
            lags_s = lags_s + random.exponential(0.005, due_s.size)
            if (place, side) == (slow, slow_side):
                lags_s = lags_s + slope * due_s
            points.append(measure_point(PointLag(node, side, due_s, lags_s)))
    found = find_saturation(points, {nodes[slow]: ProcessorUse(share, waited)})
    assert (found.node, found.side, found.grows) == (nodes[slow], slow_side, True)
    if share >= 0.85:
        assert found.cause is SaturationCause.PROCESSOR
    else:
        assert found.cause is (SaturationCause.MACHINE if share + waited >= 0.85 else SaturationCause.WAITING)
    assert find_saturation(points, {}).cause is SaturationCause.UNKNOWN


def test_without_probes_nothing_is_known_of_what_saturates() -> None:
    """The receiver alone, or points with too few messages, name no node."""
    due_s = np.arange(1_000) / 100
    receiver = measure_point(PointLag(RECEIVER, Side.IN, due_s, due_s))
    few = measure_point(PointLag("a", Side.IN, due_s[:10], due_s[:10]))
    for points in ((), (receiver,), (few, receiver)):
        assert find_saturation(points, {"a": ProcessorUse(1.0, 0.0)})[:4] == (
            None,
            None,
            False,
            SaturationCause.UNKNOWN,
        )


@settings(max_examples=30, deadline=None)
@given(CAPACITIES, st.floats(0.1, 3), SEEDS)
def test_a_verdict_is_never_better_with_less(capacity_per_s: float, load: float, seed: int) -> None:
    """A step that loses a message more, or whose sender is late, does not hold where it did not before."""
    stream, rate_per_s = SimulatedStream(capacity_per_s, 0.01), capacity_per_s * load
    random = np.random.default_rng(seed)
    measured = stream.measure(rate_per_s, plan_step(rate_per_s, TARGET), random)
    verdict = judge_step(measured, TARGET)
    lags_s = measured.lags_s.copy()
    lags_s[random.integers(lags_s.size)] = np.inf
    assert (
        judge_step(
            type(measured)(rate_per_s, measured.due_s, lags_s, measured.is_accepted, measured.lateness_s), TARGET
        ).state
        is StepState.FAILS
    )
    late = type(measured)(rate_per_s, measured.due_s, measured.lags_s, measured.is_accepted, measured.lateness_s + 1)
    assert judge_step(late, TARGET).state is StepState.VOID
    assert (verdict.state is StepState.HOLDS) == (not verdict.reasons)
