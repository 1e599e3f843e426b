"""Tests of the tracker of recent figures: which streams it renews, which nodes it shows, and what it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from hopwatch.monitor.accounting.recent_tracker import MAX_STREAMS_PER_BATCH, RecentTracker
from hopwatch.monitor.kernel.deferrals import NEVER_US
from hopwatch.monitor.kernel.recent import NO_STAMPS, RecentSampler, RecentStamps
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import RecentEdge, RecentFigures, RecentLag
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.batch import MetricsStamp
from hopwatch.probes.contract.lag_histograms import count_lags
from tests.support.recent import pack_stamps
from tests.support.spool import START_US, STREAM_CONFIGS, WINDOW_POLICY, at_us

LAGS_US: Final = np.array([10, 20, 30, 40], np.int64)


def stamped(stream: str, node: str, *seconds: float) -> RecentStamps:
    """Return four stamps in and out in each of some batches."""
    sampler = RecentSampler()
    for second in seconds:
        sampler.note_arrival(at_us(second))
        sampler.add_batch(stream, node, at_us(second), pack_stamps(LAGS_US, LAGS_US + 1), 4, is_one_sided=False)
    return sampler.collect()


def renew(
    tracker: RecentTracker, rules: Mapping[str, StreamConfig] = STREAM_CONFIGS, **backlog: int
) -> dict[str, RecentFigures]:
    """Return the figures that are new, by stream."""
    return {one.stream: one for one in tracker.renew(rules, list(rules), lambda _: backlog)}


def test_a_silent_stream_has_figures_of_zero() -> None:
    """As time goes by for all streams: nothing passes, no lag is known, and the backlog has no end."""
    tracker = RecentTracker()
    tracker.absorb([stamped("orders", "a", 3), NO_STAMPS._replace(latest_us=at_us(20))], NEVER_US)
    a, b = renew(tracker, b=7)["orders"].nodes
    assert (a.arrived, a.departed, a.lag_in_us, a.backlog, a.backlog_s) == (0, 0, None, 0, 0)
    assert (b.backlog, b.backlog_s) == (7, None)


def test_the_backlog_takes_as_long_as_at_the_pace_of_the_span() -> None:
    """Messages that are filtered or rejected are done with, too."""
    tracker, sampler = RecentTracker(), RecentSampler()
    sampler.note_arrival(at_us(7))
    sampler.add_batch("orders", "b", at_us(5), pack_stamps(LAGS_US, LAGS_US, range(4)), 4, is_one_sided=False)
    tracker.absorb([sampler.collect()], NEVER_US)
    _, b = renew(tracker, b=30)["orders"].nodes
    assert (b.arrived, b.departed, b.stopped, b.backlog_s) == (3, 1, 2, 100)


def test_a_span_ends_before_what_is_not_read_yet() -> None:
    """In a backlog partitions advance unevenly: what the fastest has read is in no figures before the others follow."""
    tracker = RecentTracker()
    tracker.absorb([stamped("orders", "a", 5, 8, 30)], at_us(9))
    assert renew(tracker)["orders"].through_us == at_us(8)
    tracker.absorb([], at_us(40))
    assert renew(tracker)["orders"].through_us == at_us(8)
    tracker.absorb([stamped("orders", "a", 28)], NEVER_US)
    assert (renew(tracker)["orders"].nodes[0].arrived, tracker.through_us) == (0, at_us(28))
    tracker.absorb([stamped("orders", "a", 32)], NEVER_US)
    found = renew(tracker)["orders"]
    assert (found.through_us, found.nodes[0].arrived) == (at_us(31), 8)
    assert found.nodes[0].lag_out_us == RecentLag(21, 41, 41)


def test_what_comes_late_for_a_span_is_in_its_figures() -> None:
    """A micro-batch without data renews the backlog alone, and one with data all of it, in the same span, too."""
    tracker = RecentTracker()
    tracker.absorb([stamped("orders", "a", 3, 6)], NEVER_US)
    assert renew(tracker, b=1)["orders"].nodes[0].arrived == 4
    tracker.absorb([], NEVER_US)
    a, b = renew(tracker, b=7)["orders"].nodes
    assert (a.arrived, a.lag_in_us, b.backlog) == (4, RecentLag(20, 40, 40), 7)
    tracker.absorb([stamped("orders", "a", 4)], NEVER_US)
    assert renew(tracker)["orders"].nodes[0].arrived == 8
    tracker.absorb([], NEVER_US)
    other = STREAM_CONFIGS | {"returns": STREAM_CONFIGS["orders"]}
    assert renew(tracker, other)["returns"].nodes[0].arrived == 0


def test_nothing_is_renewed_before_anything_was_read() -> None:
    """No moment is known up to which figures would be."""
    assert renew(RecentTracker()) == {}


def test_what_no_span_needs_is_forgotten() -> None:
    """Parts whose last second is before the span; of others the seconds in it alone count."""
    tracker = RecentTracker()
    tracker.absorb([stamped("orders", "a", 3), stamped("orders", "a", 3, 12)], NEVER_US)
    assert renew(tracker)["orders"].nodes[0].arrived == 8
    tracker.absorb([stamped("orders", "a", 16)], NEVER_US)
    assert renew(tracker)["orders"].nodes[0].arrived == 4
    assert len(tracker.parts) == 2


def test_messages_are_kept_for_a_minute_of_arrival() -> None:
    """A departure waits so long for its arrival; of another edge than those of the pathway no time is known."""
    tracker, shown, lags_us = RecentTracker(), {}, np.array([5, 9], np.int64)
    for second, node, first_id in ((10, "a", 0), (60, "a", 2), (61, "b", 0), (62, "x", 0), (63, "b", 2)):
        sampler = RecentSampler()
        stamps = pack_stamps(lags_us * second, lags_us * second, first_id=first_id)
        sampler.add_batch("orders", node, at_us(second), stamps, 2, is_one_sided=False)
        tracker.absorb([sampler.collect()._replace(latest_us=at_us(second + 2))], NEVER_US)
        shown[second] = renew(tracker)["orders"].edges
    assert shown[60] == ()
    assert shown[61] == (RecentEdge("a", "b", 2, RecentLag(51 * 5, 51 * 9, 51 * 9)),)
    assert shown[63] == (RecentEdge("a", "b", 4, RecentLag(3 * 9, 51 * 9, 51 * 9)),)
    tracker.absorb([NO_STAMPS._replace(latest_us=at_us(72))], NEVER_US)
    assert [edge.messages for edge in renew(tracker)["orders"].edges] == [2]
    assert len(tracker.messages) == 4


def test_those_with_the_oldest_figures_come_first() -> None:
    """So that with more streams than a micro-batch renews each has its turn, whoever stamps."""
    rules = {f"s{number}": STREAM_CONFIGS["orders"] for number in range(2 * MAX_STREAMS_PER_BATCH + 1)}
    tracker, turns = RecentTracker(), []
    for second in range(1, 4):
        parts = [
            stamped("s7", "a", second),
            stamped("s900", "b", second),
            NO_STAMPS._replace(latest_us=at_us(second + 2)),
        ]
        tracker.absorb(parts, NEVER_US)
        turns.append(renew(tracker, rules))
    assert [len(turn) for turn in turns] == [MAX_STREAMS_PER_BATCH] * 3
    assert set().union(*turns) == set(rules)
    assert len(turns[1].keys() & turns[0].keys()) == 0
    assert [node.arrived for node in turns[0]["s7"].nodes] == [4, 0]
    assert [node.arrived for node in turns[1]["s900"].nodes] == [0, 8]


def test_a_node_that_counts_has_what_its_packets_say() -> None:
    """Its lags are the middles of their buckets; a backlog it has none, as nobody knows its ids."""
    rules = {"orders": StreamConfig(Pathway.parse("a -> n -> b", stamps={"n": "count"}), WINDOW_POLICY)}
    sampler, tracker = RecentSampler(), RecentTracker()
    sampler.note_arrival(at_us(7))
    for stamp, count, lags in [
        (MetricsStamp.IN, 9, count_lags(np.array([100, 100, 200]))),
        (MetricsStamp.OUT, 5, b""),
        (MetricsStamp.OUT, 0, b""),
        (MetricsStamp.FILTERED, 2, count_lags(LAGS_US)),
        (MetricsStamp.REJECTED, 1, b""),
        (MetricsStamp.DEFERRED, 1, b""),
    ]:
        sampler.add_packet("orders", "n", at_us(5), stamp, count, lags)
    tracker.absorb([sampler.collect()], NEVER_US)
    a, b, n = renew(tracker, rules, n=3)["orders"].nodes
    assert (n.node, n.arrived, n.departed, n.stopped) == ("n", 9, 5, 3)
    assert (n.lag_in_us, n.lag_out_us, n.backlog, n.backlog_s) == (RecentLag(100, 200, 200), None, None, None)
    assert (a.backlog, b.backlog) == (0, 0)


def test_nodes_are_those_of_the_pathway_at_the_end_of_the_span() -> None:
    """A node that the path has lost is not shown with the next minute, and a removed stream has none at all."""
    newer = StreamConfig(Pathway.parse("a -> c"), WINDOW_POLICY, valid_from_us=START_US + 60_000_000)
    changed = replace(newer, earlier=(STREAM_CONFIGS["orders"],))
    rules = {"orders": changed, "gone": replace(changed, is_removed=True)}
    tracker, shown = RecentTracker(), []
    for second in (50, 70):
        tracker.absorb([stamped("orders", "b", second)], NEVER_US)
        found = renew(tracker, rules)
        shown.append([[node.node for node in found[stream].nodes] for stream in rules])
    assert shown == [[["a", "b"], ["a", "b"]], [["a", "c"], []]]
