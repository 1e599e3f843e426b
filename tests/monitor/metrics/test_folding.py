"""Tests of folding: who is shown by name is decided by the configuration alone."""

from __future__ import annotations

from hopwatch.monitor.metrics.folding import A_NODE, A_STREAM, LEAST_SERIES, OF_ITS_OWN, plan

NODES = ("a", "b", "c")


def test_what_fits_is_all_shown() -> None:
    """Nothing is folded."""
    made = plan({"orders": NODES, "refunds": NODES}, 10_000)
    assert made.streams == {"orders", "refunds"}
    assert made.nodes == {"orders": frozenset(NODES), "refunds": frozenset(NODES)}
    assert made.folded_series == 0


def test_streams_come_before_nodes_and_both_in_the_order_of_the_configuration() -> None:
    """With room for four nodes beside the streams, the first ones have it; the rest is counted."""
    others = A_STREAM + A_NODE
    room = OF_ITS_OWN + others + 3 * A_STREAM + 4 * A_NODE
    made = plan({"z": NODES, "b": NODES, "a": NODES}, room)
    assert made.streams == {"z", "b", "a"}
    assert made.nodes == {"z": frozenset(NODES), "b": frozenset({"a"}), "a": frozenset()}
    assert made.folded_series == 5 * A_NODE


def test_too_many_streams_are_folded_with_their_nodes() -> None:
    """Then no node has room."""
    made = plan({f"s{number:03}": NODES for number in range(100)}, LEAST_SERIES)
    room = (LEAST_SERIES - OF_ITS_OWN - A_STREAM - A_NODE) // A_STREAM
    assert made.streams == {f"s{number:03}" for number in range(room)}
    assert made.folded_series == (100 - room) * A_STREAM + 300 * A_NODE
