"""The stamps of a message as one number: an ``in`` and an ``out`` bit a node, and what a chain makes of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.result_check import by_key
from bench.truth import Key
from bench.work import NODES

ALL: Final = (1 << 2 * len(NODES)) - 1

STAMPS: Final = "((lag_in_us IS NOT NULL)::INT | ((lag_out_us IS NOT NULL)::INT << 1)) << (2 * node::INT)"
"""What one row adds to its message's number, in the words of DuckDB and of Spark alike."""
LAGS_SQL: Final = ("lag_in_us", "lag_out_us", "lag_out_us - lag_in_us")
"""The lags in the order of :data:`bench.truth.LAGS`."""


def seen_sql(node: int) -> int:
    """Return the bits that say that a message was at a node."""
    return 0b11 << 2 * node


def lost_at_sql(mask: int) -> int | None:
    """Return the node at which a message with these stamps was lost in a chain, none if it came through.

    It is the node that saw it last if it did not leave that, else the node behind.
    """
    last = (mask.bit_length() - 1) // 2
    if not mask >> (2 * last + 1) & 1:
        return last
    return last + 1 if last + 1 < len(NODES) else None


def lossy_sql() -> dict[int, int]:
    """Return the node of the loss for every number of stamps that shows one."""
    return {mask: node for mask in range(1, ALL + 1) if (node := lost_at_sql(mask)) is not None}


def seen_counts(messages: Iterable[tuple[int, int, int, int]]) -> Mapping[Key, int]:
    """Return how many messages each node saw; given are stream, window, stamps, and the messages that have these."""
    counts: dict[Key, int] = defaultdict(int)
    for stream, window, mask, count in messages:
        for node in range(len(NODES)):
            if mask & seen_sql(node):
                counts[stream, window, node] += count
    return counts


def lost_ids(
    stream: NDArray[Any], window: NDArray[Any], mask: NDArray[Any], ids: NDArray[Any]
) -> dict[Key, NDArray[Any]]:
    """Return the ids of messages that did not come through, shape (n, 2), by the node that lost them."""
    node_of = np.full(ALL + 1, -1)
    for stamps, node in lossy_sql().items():
        node_of[stamps] = node
    return by_key([stream, window, node_of[mask.astype(np.int64)]], ids)
