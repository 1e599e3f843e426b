"""Tests of what a chain makes of stamps: the same as the monitor's own sets."""

from __future__ import annotations

import numpy as np

from bench.peers.bits import ALL, lossy_sql, lost_at_sql, lost_ids, seen_counts
from bench.work import NODES, pathway
from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.sets import classify


def test_a_number_of_stamps_shows_the_loss_that_the_monitor_sees() -> None:
    """For each of the 255 combinations of stamps the node of the loss is the one of SEMANTICS.md."""
    for mask in range(1, ALL + 1):
        stamps = [mask >> 2 * node & 0b11 for node in range(len(NODES))]
        codes = np.array([code for code in stamps if code], np.uint8)
        at = np.array([node for node, code in enumerate(stamps) if code], np.uint8)
        groups = masks.group_by_id(np.ones((len(codes), 2), np.uint64))
        words, _ = masks.find_distinct(masks.build_masks(groups, codes, at, len(NODES)))
        (loss,) = classify(pathway(), words).loss
        assert np.flatnonzero(loss).tolist() == [node for node in [lost_at_sql(mask)] if node is not None]


def test_messages_are_counted_at_each_node_that_saw_them() -> None:
    """Counts by stamps add up to counts by node."""
    assert seen_counts([(0, 1, ALL, 5), (0, 1, 0b1111, 2), (0, 1, 0b0100, 1)]) == {
        (0, 1, 0): 7,
        (0, 1, 1): 8,
        (0, 1, 2): 5,
        (0, 1, 3): 5,
    }


def test_lost_ids_are_told_by_the_node_that_lost_them() -> None:
    """Ids go to the node behind the last that they left, or to the one that they never left."""
    stream, window, mask = np.array([[0, 0, 0], [1, 1, 1], [0b0011, 0b0111, 0b0011]])
    found = lost_ids(stream, window, mask, np.array([[1, 1], [2, 2], [3, 3]]))
    assert {key: sorted(ids[:, 0].tolist()) for key, ids in found.items()} == {(0, 1, 1): [1, 2, 3]}
    assert ALL not in lossy_sql()
