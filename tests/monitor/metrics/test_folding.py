"""Tests of folding: who is shown by name is decided by the configuration alone."""

from __future__ import annotations

from hopwatch.monitor.metrics.folding import MONITOR_SERIES, SERIES_PER_NODE, SERIES_PER_STREAM, plan_folding
from hopwatch.monitor.settings.metrics import MIN_SERIES

NODES = ("a", "b", "c")


def test_what_fits_is_all_shown() -> None:
    """Nothing is folded."""
    made = plan_folding({"orders": NODES, "refunds": NODES}, 10_000)
    assert made.streams == {"orders", "refunds"}
    assert made.nodes == {"orders": frozenset(NODES), "refunds": frozenset(NODES)}
    assert made.folded_series == 0


def test_streams_come_before_nodes_and_both_in_the_order_of_the_configuration() -> None:
    """With room for four nodes beside the streams, the first ones have it; the rest is counted."""
    others = SERIES_PER_STREAM + SERIES_PER_NODE
    room = MONITOR_SERIES + others + 3 * SERIES_PER_STREAM + 4 * SERIES_PER_NODE
    made = plan_folding({"z": NODES, "b": NODES, "a": NODES}, room)
    assert made.streams == {"z", "b", "a"}
    assert made.nodes == {"z": frozenset(NODES), "b": frozenset({"a"}), "a": frozenset()}
    assert made.folded_series == 5 * SERIES_PER_NODE


def test_too_many_streams_are_folded_with_their_nodes() -> None:
    """Then no node has room."""
    made = plan_folding({f"s{number:03}": NODES for number in range(100)}, MIN_SERIES)
    room = (MIN_SERIES - MONITOR_SERIES - SERIES_PER_STREAM - SERIES_PER_NODE) // SERIES_PER_STREAM
    assert made.streams == {f"s{number:03}" for number in range(room)}
    assert made.folded_series == (100 - room) * SERIES_PER_STREAM + 300 * SERIES_PER_NODE
