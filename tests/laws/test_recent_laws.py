"""Laws of recent figures: those of the slow model, however records are read; and a cost that is bounded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.accounting.recent_tracker import RecentTracker
from hopwatch.monitor.kernel.deferrals import NEVER_US
from hopwatch.monitor.kernel.recent import (
    MAX_SECOND_LAGS,
    MAX_SECONDS,
    MAX_STAMPS,
    NO_TRAFFIC,
    RecentSampler,
    RecentStamps,
    summarize_stamps,
)
from hopwatch.monitor.kernel.recent_messages import MAX_SECOND_MESSAGES, RecentMessages, measure_edges
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.payloads import pack_recent, unpack_recent
from hopwatch.monitor.results import RecentFigures, RecentLag
from hopwatch.monitor.row_kinds import RECENT_ROW
from hopwatch.monitor.spark.decoder import decode_segments
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.batch import Batch, MetricsStamp, Outcome
from hopwatch.probes.contract.lag_histograms import count_lags
from hopwatch.probes.contract.limits import NOT_STAMPED
from tests.model.recent import Seen, edge_figures, end_of_span, figures, percentiles
from tests.support.recent import pack_stamps
from tests.support.spool import WINDOW_POLICY, at_us, observation_batch, pack_lags, write_segment

NODES: Final = ("a", "b", "c")
RULES: Final = {
    "orders": StreamConfig(Pathway.parse("a -> b -> c", stamps={"c": "in"}), WINDOW_POLICY),
    "silent": StreamConfig(Pathway.parse("x -> y"), WINDOW_POLICY),
}
EDGES: Final = (("a", "b"), ("b", "c"))
NO_LAGS: Final = np.empty(0, np.int64)

lags = st.one_of(st.none(), st.integers(-5, 60_000_000), st.sampled_from([2**62, -(2**62)]))
outcomes = st.sampled_from([0, 0, 0, 1, 2, 3])


@st.composite
def batches(draw: st.DrawFn) -> list[Seen]:
    """Draw a batch: observations of a node that arrived together, each of which that passed has a stamp."""
    node, arrival_us = draw(st.sampled_from(NODES)), at_us(70) + draw(st.integers(0, 25_000_000))
    seen: list[Seen] = []
    for lag_in_us, lag_out_us, outcome in draw(st.lists(st.tuples(lags, lags, outcomes), min_size=1, max_size=6)):
        has_stamp = outcome or lag_in_us is not None or lag_out_us is not None
        seen.append(Seen(node, arrival_us, lag_in_us if has_stamp else 7, lag_out_us, outcome, len(seen)))
    return seen


def encode_batch(seen: list[Seen], seq: int) -> Batch:
    """Return the batch of some observations; a field that says nothing is left out."""
    sides = [[one.lag_in_us for one in seen], [one.lag_out_us for one in seen]]
    packed = [
        pack_lags(*(NOT_STAMPED if us is None else us for us in side)) if any(us is not None for us in side) else b""
        for side in sides
    ]
    said = bytes(one.outcome for one in seen) if any(one.outcome for one in seen) else b""
    return observation_batch(
        range(len(seen)), seen[0].node, seq=seq, lag_in_us=packed[0], lag_out_us=packed[1], outcome=said
    )


def read_parts(folder: Path, batches: list[list[Seen]], tasks: int) -> list[list[RecentStamps]]:
    """Return what each of some tasks has read: of a segment a batch, those of a task in one micro-batch."""
    paths: list[list[str]] = [[] for _ in range(tasks)]
    for seq, seen in enumerate(batches):
        path = write_segment(folder / f"{seq}.seg", encode_batch(seen, seq), arrival_us=seen[0].arrival_us)
        paths[seq % tasks].append(str(path))
    read = [decode_segments(of_task, RULES, RecentSampler()) for of_task in paths]
    return [[unpack_recent(row.payload) for row in rows if row.kind == RECENT_ROW] for rows in read]


def renew(tracker: RecentTracker, backlog: Mapping[str, int]) -> RecentFigures:
    """Return the new figures of the stream."""
    (found,) = tracker.renew(RULES, ["orders"], lambda _: backlog)
    return found


@given(drawn=st.lists(batches(), min_size=1, max_size=12), tasks=st.integers(1, 4), backlog=st.integers(0, 9))
def test_figures_are_those_of_the_model(drawn: list[list[Seen]], tasks: int, backlog: int) -> None:
    """Records may be spread over tasks in any way; a node of which nothing was read has zeros."""
    tracker = RecentTracker()
    with TemporaryDirectory() as folder:
        parts = read_parts(Path(folder), drawn, tasks)
    tracker.absorb((part for of_task in parts for part in of_task), NEVER_US)
    found, seen = renew(tracker, {"b": backlog}), [one for batch in drawn for one in batch]
    end_s = end_of_span(max(one.arrival_us for one in seen))
    assert found.through_us == end_s * 1_000_000
    for node in found.nodes:
        expected = figures(seen, node.node, end_s, one_side=node.node == "c")
        assert {name: getattr(node, name) for name in expected} == expected
        assert node.backlog == (backlog if node.node == "b" else 0)
    assert {edge[:2]: edge[2:] for edge in found.edges} == {
        edge: told for edge in EDGES if (told := edge_figures(seen, edge, end_s, one_sided={"c"}))
    }


@given(drawn=st.lists(batches(), min_size=2, max_size=12))
def test_the_end_of_the_span_never_goes_back(drawn: list[list[Seen]]) -> None:
    """Of micro-batches in any order each renews the figures up to the latest arrival so far."""
    tracker, ends_us = RecentTracker(), []
    with TemporaryDirectory() as folder:
        parts = read_parts(Path(folder), drawn, len(drawn))
    for number, part in enumerate(parts):
        tracker.absorb(part, NEVER_US)
        ends_us += [one.through_us for one in tracker.renew(RULES, ["orders"], lambda _: {})]
        so_far = max(seen[0].arrival_us for seen in drawn[: number + 1])
        assert ends_us[-1] == end_of_span(so_far) * 1_000_000
    assert ends_us == sorted(ends_us)
    seen = [one for batch in drawn for one in batch]
    end_s = ends_us[-1] // 1_000_000
    whole = summarize_stamps([part for of_task in parts for part in of_task], end_s)
    for node in NODES:
        expected = figures(seen, node, end_s, one_side=node == "c")
        told = whole.get(("orders", node))
        assert (told[0].stamps if told else 0) == expected["arrived"]


@pytest.mark.parametrize(
    ("size", "batches_a_second"), [(1, 4_000), (511, 1), (512, 40), (513, 40), (65_535, 1), (65_535, 4)]
)
def test_stamps_are_counted_and_lags_are_sampled_evenly(size: int, batches_a_second: int) -> None:
    """Ranks are off by at most 2 %, and no more is kept of a second than is said, however many there are."""
    chance, sampler, every = np.random.default_rng(7), RecentSampler(), []
    for second in range(10):
        for _ in range(batches_a_second):
            lags_us = chance.lognormal(10, 2, size).astype(np.int64)
            every.append(lags_us)
            stamps = pack_stamps(lags_us, lags_us + 5)
            sampler.add_batch("orders", "a", second * 1_000_000, stamps, size, is_one_sided=False)
    kept = sampler.collect()
    assert kept.counts["lags"].max() <= min(2 * MAX_SECOND_LAGS, size * batches_a_second)
    traffic = summarize_stamps([kept], 10)["orders", "a"]
    ordered = np.sort(np.concatenate(every))
    for side, more_us in zip(traffic, (0, 5), strict=False):
        assert side.stamps == len(ordered)
        assert side.lag_us is not None
        ranks = np.searchsorted(ordered, np.array(side.lag_us) - more_us) / len(ordered)
        assert np.abs(ranks - (0.5, 0.95, 0.99)).max() < 0.02


@pytest.mark.parametrize(("size_of_a", "size_of_b"), [(10, 10), (5_000, 7), (7, 5_000), (15_000, 500)])
def test_times_on_edges_are_sampled_evenly(size_of_a: int, size_of_b: int) -> None:
    """Both nodes keep the same messages, in batches of any size: p50 is off by less than 15 ranks of a hundred."""
    chance, sampler, count = np.random.default_rng(11), RecentSampler(), 30_000
    times_us = chance.lognormal(13, 1, count).astype(np.int64)
    left_us = chance.integers(0, 2_000_000, count)
    for node, size, lags_us in (("a", size_of_a, left_us), ("b", size_of_b, left_us + times_us)):
        for first in range(0, count, size):
            of_batch = lags_us[first : first + size]
            stamps = pack_stamps(of_batch, of_batch, first_id=first)
            second = first * 15 // count
            place = second * 1_000_000 + (node == "b") * 400_000
            sampler.add_batch("orders", node, place, stamps, len(of_batch), is_one_sided=False)
    kept = unpack_recent(pack_recent(sampler.collect()))
    found = measure_edges([RecentMessages(kept.nodes, kept.sightings)], {"orders": [("a", "b")]}, 15)
    assert (found.edges, set(found.edge.tolist())) == ((("orders", "a", "b"),), {0})
    assert set(found.times_us.tolist()) <= set(times_us.tolist())
    assert len(found.times_us) >= 64
    assert len(kept.sightings) <= 2 * 15 * MAX_SECOND_MESSAGES
    rank = np.mean(np.sort(times_us) <= np.median(found.times_us))
    assert abs(rank - 0.5) < 0.15


def test_a_message_on_its_way_for_too_long_has_no_time_on_the_edge() -> None:
    """A departure is known for a minute of arrival, and what has arrived before the span does not count."""
    sampler, lags_us = RecentSampler(), np.array([5], np.int64)
    for number, (left_s, came_s) in enumerate([(0, 59), (1, 59), (50, 49), (51, 50), (59, 60)]):
        for node, second in (("a", left_s), ("b", came_s)):
            stamps = pack_stamps(lags_us * number, lags_us * 2 * number, first_id=number)
            sampler.add_batch("orders", node, second * 1_000_000, stamps, 1, is_one_sided=False)
    kept = sampler.collect()
    messages, edges = [RecentMessages(kept.nodes, kept.sightings)], {"orders": [("a", "b"), ("b", "z"), ("z", "a")]}
    assert measure_edges(messages, edges, 60).edges == (("orders", "a", "b"),)
    assert sorted(-measure_edges(messages, edges, 60).times_us) == [0, 5, 15]
    assert sorted(-measure_edges(messages, edges, 61).times_us) == [5, 20]
    assert len(measure_edges(messages, {"clicks": [("a", "b")]}, 60).edges) == 0


def test_outcomes_of_large_batches_are_told_apart() -> None:
    """A message that is stopped has no lag out, a deferred one none at all, also where lags are sampled."""
    sampler, outcome = RecentSampler(), np.zeros(4_000, np.uint8)
    outcome[:1_000], outcome[1_000:1_500], outcome[1_500:3_000] = Outcome.FILTERED, Outcome.REJECTED, Outcome.DEFERRED
    lags_us = np.arange(4_000)
    sampler.add_batch("orders", "a", 0, pack_stamps(lags_us, lags_us, outcome.tolist()), 4_000, is_one_sided=False)
    came, left, stopped = summarize_stamps([sampler.collect()], 1)["orders", "a"]
    assert (came.stamps, left.stamps, stopped.stamps) == (2_500, 1_000, 1_500)
    assert left.lag_us is not None
    assert min(left.lag_us) >= 3_000


@given(seconds=st.lists(st.integers(0, 400), min_size=1, max_size=200))
def test_a_task_keeps_the_last_seconds_alone(seconds: list[int]) -> None:
    """Of a backlog of hours, in whatever order its records come, only what the next spans may need."""
    sampler, lags_us = RecentSampler(), np.array([5], np.int64)
    for second in seconds:
        sampler.add_batch("orders", "a", second * 1_000_000, pack_stamps(lags_us, lags_us), 1, is_one_sided=False)
    kept = sampler.collect()
    newest = max(seconds)
    expected = sorted(2 * [second for second in seconds if second > newest - MAX_SECONDS])
    assert sorted(np.repeat(kept.counts["second"], kept.counts["stamps"]).tolist()) == expected


def test_packets_may_say_anything() -> None:
    """Counts near the end of 64 bits end nothing: what is beyond any traffic is the most that is counted."""
    sampler = RecentSampler()
    lags = count_lags(np.array([5, 9], np.int64), np.array([2**40, 2**40], np.int64))
    for _ in range(4):
        sampler.add_packet("orders", "n", 0, MetricsStamp.IN, 2**63 - 1, lags)
    came, *_ = summarize_stamps([sampler.collect()] * 3, 1)["orders", "n"]
    assert (came.stamps, came.lag_us) == (3 * MAX_STAMPS, RecentLag(5, 9, 9))


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=300))
def test_percentiles_are_exact_where_nothing_is_left_out(lags_us: list[int]) -> None:
    """The rank of each is found by whole numbers."""
    sampler, told_us = RecentSampler(), np.array(lags_us, np.int64)
    sampler.add_batch("orders", "a", 0, pack_stamps(told_us, NO_LAGS), len(lags_us), is_one_sided=False)
    came, *_ = summarize_stamps([sampler.collect()], 1)["orders", "a"]
    assert came.lag_us == percentiles(lags_us)


@pytest.mark.parametrize("size", [4, 513])
def test_large_and_small_batches_are_counted_alike(size: int) -> None:
    """A node that stamps one side takes either stamp for both, whatever is empty, and in batches of any size."""
    chance = np.random.default_rng(size)
    lags_us = chance.integers(0, 9, (2, size))
    lags_us[chance.random((2, size)) < 0.4] = NOT_STAMPED
    outcome = chance.integers(0, 4, size).tolist()
    for packed in (
        pack_stamps(lags_us[0], lags_us[1], outcome),
        pack_stamps(lags_us[0], NO_LAGS),
        pack_stamps(NO_LAGS, lags_us[1]),
    ):
        sides = (np.frombuffer(one, "<i8").tolist() or [NOT_STAMPED] * size for one in packed[1:3])
        said = packed.outcome or bytes(size)
        told_us = [[None if us == NOT_STAMPED else us for us in side] for side in sides]
        seen = [Seen("a", 0, came_us, left_us, code) for came_us, left_us, code in zip(*told_us, said, strict=True)]
        for is_one_sided in (False, True):
            sampler = RecentSampler()
            sampler.add_batch("orders", "a", 0, packed, size, is_one_sided=is_one_sided)
            told = summarize_stamps([sampler.collect()], 1).get(("orders", "a"), NO_TRAFFIC)
            expected = figures(seen, "a", 1, one_side=is_one_sided)
            assert [one.stamps for one in told] == [expected[name] for name in ("arrived", "departed", "stopped")]
