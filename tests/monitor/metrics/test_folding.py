"""Tests of folding: who is shown by name is decided by the configuration alone."""

from __future__ import annotations

from hopwatch.monitor.metrics.folding import (
    MONITOR_SERIES,
    SERIES_PER_EDGE,
    SERIES_PER_NODE,
    SERIES_PER_STREAM,
    count_edges,
    plan_folding,
)
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.settings.metrics import MIN_SERIES
from hopwatch.monitor.stream_config import StreamConfig
from tests.support.spool import WINDOW_POLICY
from tests.support.windows import at

NODES = {"a": 0, "b": 1, "c": 2}


def test_what_fits_is_all_shown() -> None:
    """Nothing is folded."""
    made = plan_folding({"orders": NODES, "refunds": NODES}, 10_000)
    assert made.streams == {"orders", "refunds"}
    assert made.nodes == {"orders": frozenset(NODES), "refunds": frozenset(NODES)}
    assert made.folded_series == 0


def test_streams_come_before_nodes_and_both_in_the_order_of_the_configuration() -> None:
    """With room for four nodes beside the streams, the first ones have it; the rest is counted."""
    others = SERIES_PER_STREAM + SERIES_PER_NODE
    room = MONITOR_SERIES + others + 3 * SERIES_PER_STREAM + 4 * SERIES_PER_NODE + 3 * SERIES_PER_EDGE
    made = plan_folding({"z": NODES, "b": NODES, "a": NODES}, room)
    assert made.streams == {"z", "b", "a"}
    assert made.nodes == {"z": frozenset(NODES), "b": frozenset({"a"}), "a": frozenset()}
    assert made.folded_series == 5 * SERIES_PER_NODE + 6 * SERIES_PER_EDGE
    made = plan_folding({"z": NODES, "b": NODES, "a": NODES}, room - 1)
    assert made.nodes == {"z": frozenset(NODES), "b": frozenset(), "a": frozenset()}


def test_too_many_streams_are_folded_with_their_nodes() -> None:
    """Then no node has room."""
    made = plan_folding({f"s{number:03}": NODES for number in range(100)}, MIN_SERIES)
    room = (MIN_SERIES - MONITOR_SERIES - SERIES_PER_STREAM - SERIES_PER_NODE) // SERIES_PER_STREAM
    assert made.streams == {f"s{number:03}" for number in range(room)}
    assert made.folded_series == (100 - room) * SERIES_PER_STREAM + 300 * (SERIES_PER_NODE + SERIES_PER_EDGE)


def test_edges_of_all_versions_are_counted_at_their_ends() -> None:
    """A node that is fed by two others in one version or the other takes the series of both edges."""
    older = StreamConfig(Pathway.parse("a -> b -> c"), WINDOW_POLICY)
    newest = StreamConfig(Pathway.parse("a -> c & d"), WINDOW_POLICY, valid_from_us=at(5), earlier=(older,))
    assert count_edges(newest) == {"a": 0, "c": 2, "d": 1, "b": 1}
