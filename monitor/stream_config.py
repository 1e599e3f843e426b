"""Configuration of a stream: its pathway, its window policy, and its number of shards."""

from __future__ import annotations

from dataclasses import dataclass

from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import MAX_LOST_IDS


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """Configuration of one stream; ``shards`` is the number of state keys that each of its windows is split over.

    Records of ``ignore_nodes`` are left out: these nodes are not of the pathway, and not meant to be. ``order`` says
    whether the order of messages is counted, ``max_lost_ids`` how many ids of a window's and node's loss are kept.
    """

    pathway: Pathway
    terms: WindowPolicy
    shards: int = 1
    ignore_nodes: tuple[str, ...] = ()
    order: bool = False
    max_lost_ids: int = MAX_LOST_IDS
