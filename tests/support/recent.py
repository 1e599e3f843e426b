"""Recent figures of a stream, as a micro-batch makes them, and a store with some."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel.recent import BatchStamps
from hopwatch.monitor.results import RecentEdge, RecentFigures, RecentLag, RecentNode
from hopwatch.monitor.store import dialect
from hopwatch.monitor.store import recent_figures as stored
from tests.support.windows import at


def recent_figures(
    stream: str = "orders", nodes: Sequence[str] = ("a", "b"), through_us: int = at(10)
) -> RecentFigures:
    """Return figures in which each node passes 200 messages a second, stops one, and has 600 to pass yet.

    Messages take 20 ms from each node to the next, or up to 45 ms.
    """
    lags = RecentLag(1_000_000, 1_500_000, 2_000_000), RecentLag(1_100_000, 1_600_000, 2_100_000)
    of_nodes = tuple(RecentNode(node, 2_010, 2_000, 10, *lags, 600) for node in nodes)
    edges = tuple(RecentEdge(*edge, 640, RecentLag(20_000, 45_000, 60_000)) for edge in pairwise(nodes))
    return RecentFigures(stream, through_us, of_nodes, edges)


def pack_stamps(
    lag_in_us: NDArray[np.int64],
    lag_out_us: NDArray[np.int64],
    outcome: Sequence[int] = (),
    first_id: int = 0,
) -> BatchStamps:
    """Return the stamps of a batch as they are packed, of messages that are numbered; what is empty says nothing."""
    count = max(len(lag_in_us), len(lag_out_us), len(outcome))
    ids = np.stack((np.zeros(count), np.arange(first_id, first_id + count)), axis=1).astype(">u8")
    came, left = (lags_us.astype("<i8").tobytes() for lags_us in (lag_in_us, lag_out_us))
    return BatchStamps(ids.tobytes(), came, left, bytes(outcome))


def save_recent(store_url: str, *figures: RecentFigures) -> None:
    """Write figures into a store."""
    engine = dialect.create_engine(store_url)
    with engine.execution_options(writes=True).begin() as connection:
        stored.save_recent(connection, figures)
    engine.dispose()
