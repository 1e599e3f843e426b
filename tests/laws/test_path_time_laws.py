"""Laws of times on the path: they are those of the reference model, and along a path they add up to the lag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.path_times import tabulate_times
from hopwatch.monitor.kernel.stamp_sample import MAX_SAMPLES, MISSING_US, StampSample, merge_samples
from hopwatch.monitor.kernel.tally import Tally, build_tally, merge_tallies
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.payloads import pack_tally, unpack_tally
from hopwatch.monitor.results import PathTime
from tests.laws.strategies import DrawnPathway, SeenMessage, message_id, pathways, seen_messages
from tests.model.times import PathTimes
from tests.support.batch_arrays import make_batch

END_US: Final = 60

Drawn = tuple[DrawnPathway, list[SeenMessage]]


@st.composite
def windows(draw: st.DrawFn) -> Drawn:
    """Draw a pathway and what was seen on it."""
    drawn = draw(pathways())
    return drawn, draw(seen_messages(drawn.product))


def tally_of(pathway: Pathway, observations: Sequence[SeenMessage]) -> Tally:
    """Return the tally of observations, each in a batch of its own."""
    batches = [
        make_batch(one.node, [message_id(one.message)], [one.says.lag_in_us], [one.says.lag_out_us], [one.says.outcome])
        for one in observations
    ]
    return build_tally(pathway, batches, END_US)


def times_of(pathway: Pathway, tally: Tally) -> list[list[PathTime]]:
    """Return the times of each node, by source."""
    found = tabulate_times(pathway, tally.stamp_sample)
    return [sorted(of_node, key=lambda one: one.source) for of_node in found]


@given(windows())
def test_times_are_those_of_the_model(window: Drawn) -> None:
    """On each edge and inside each node, of paths of any form, and of messages that come twice, late or by half."""
    drawn, observations = window
    nodes = drawn.product.nodes
    seen = [(nodes[one.node], one.says.__class__(message_id(one.message), *_said(one))) for one in observations]
    model = PathTimes(drawn.model, seen)
    expected = [model.shown(node) for node in nodes] if len(nodes) > 1 else [[]]
    found = times_of(drawn.product, tally_of(drawn.product, observations))
    assert [[asdict(one) for one in of_node] for of_node in found] == expected


def _said(one: SeenMessage) -> tuple[int | None, int | None, int]:
    return one.says.lag_in_us, one.says.lag_out_us, one.says.outcome


@given(windows())
def test_times_on_a_path_add_up_to_the_lag_at_its_end(window: Drawn) -> None:
    """Totals of one message are the lag with which it left the pathway last; those of a window are the sums of all."""
    drawn, observations = window
    messages, total_us = 0, 0
    for message in {one.message for one in observations}:
        tally = tally_of(drawn.product, [one for one in observations if one.message == message])
        found = [one for of_node in times_of(drawn.product, tally) for one in of_node]
        if found and found[0].path_messages:
            assert tally.stamp_sample is not None
            departures_us = tally.stamp_sample.departures_us[drawn.product.terminals, 0]
            assert sum(one.total_us for one in found) == departures_us[departures_us != MISSING_US].max()
            messages += 1
        total_us += sum(one.total_us for one in found)
    whole = [one for of_node in times_of(drawn.product, tally_of(drawn.product, observations)) for one in of_node]
    assert sum(one.total_us for one in whole) == total_us
    assert {one.path_messages for one in whole} <= {messages}


@given(windows(), st.integers(2, 4))
def test_times_of_shards_are_those_of_the_whole(window: Drawn, shards: int) -> None:
    """Each message is in one shard, and a tally is the same when it has been packed."""
    drawn, observations = window
    parts = [[one for one in observations if one.message % shards == shard] for shard in range(shards)]
    packed = [pack_tally(tally_of(drawn.product, part)) for part in parts]
    merged = merge_tallies([unpack_tally(memory) for memory in packed])
    assert times_of(drawn.product, merged) == times_of(drawn.product, tally_of(drawn.product, observations))


# Samples


def many(messages: int, lags_us: np.ndarray, ids: np.ndarray) -> list[ObservedBatch]:
    """Return batches of messages that take no time to, 5 µs inside, and their own lag behind the first of two nodes."""
    batches = []
    for node, (came_us, left_us) in enumerate(((np.zeros_like(lags_us), lags_us * 0 + 5), (lags_us + 5, lags_us + 6))):
        for start in range(0, messages, 1_000):
            own = slice(start, start + 1_000)
            made = make_batch(node, [])
            batches.append(
                made._replace(message_ids=ids[own], lag_in_us=came_us[own].copy(), lag_out_us=left_us[own].copy())
            )
    return batches


@pytest.mark.parametrize("messages", [MAX_SAMPLES, MAX_SAMPLES + 1, 50_000])
@pytest.mark.parametrize("period", [2, 10, 25])
def test_a_sample_is_fair_where_ids_count_up(messages: int, period: int) -> None:
    """Of numbered messages each second, tenth or 25th is slow: that share of a sample is, within five deviations."""
    pathway = Pathway.parse("a -> b")
    numbers = np.arange(messages, dtype=np.uint64)
    is_slow = numbers % period == 0
    ids = np.stack((np.zeros_like(numbers), numbers), axis=1)
    tally = build_tally(pathway, many(messages, np.where(is_slow, 1_000_000, 10), ids), END_US)
    sample = tally.stamp_sample
    assert sample is not None
    assert len(sample.weights) <= MAX_SAMPLES
    assert sample.weights.sum() == messages
    slow = sample.weights[sample.arrivals_us[1] > 500_000].sum() / messages
    share = 1 / period
    assert abs(slow - is_slow.mean()) <= 5 * np.sqrt(share * (1 - share) / (len(sample.weights)))
    edge = times_of(pathway, tally)[1][0]
    assert (edge.source, edge.samples, edge.messages) == ("a", len(sample.weights), messages)
    assert edge.total_us == int((sample.weights * (sample.arrivals_us[1] - 5)).sum())


def test_a_window_of_few_messages_is_no_sample() -> None:
    """All of them are timed, whatever their lags need: half of the width, or all of it."""
    pathway = Pathway.parse("a -> b")
    lags_us = np.arange(MAX_SAMPLES, dtype=np.int64)
    ids = np.stack((lags_us, lags_us), axis=1).astype(np.uint64)
    for longest_us in (0, 2**31 - 1, 2**31, 2**42):
        tally = build_tally(pathway, many(MAX_SAMPLES, lags_us + longest_us, ids), END_US)
        kept = unpack_tally(pack_tally(tally)).stamp_sample
        assert tally.stamp_sample is not None
        assert kept is not None
        assert all(map(np.array_equal, kept, tally.stamp_sample))
        edge = times_of(pathway, tally)[1][0].time_us
        assert (edge.count, edge.min, edge.p50, edge.max) == (
            *(MAX_SAMPLES, longest_us),
            *(longest_us + MAX_SAMPLES // 2 - 1, longest_us + MAX_SAMPLES - 1),
        )


def test_a_tally_without_a_sample_has_no_times() -> None:
    """A window is not timed of which one shard was tallied by a version that kept no stamps."""
    pathway = Pathway.parse("a -> b")
    sample = build_tally(pathway, (), END_US).stamp_sample
    assert isinstance(sample, StampSample)
    assert merge_samples([sample, None]) is None
    assert tabulate_times(pathway, None) == ((), ())
