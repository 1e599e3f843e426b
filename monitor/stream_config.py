"""Configuration of a stream: its pathway, its window policy, its number of shards, and the versions before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel.rollup import SpanShape
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import MAX_LOST_IDS
from hopwatch.probes.contract.limits import WINDOW_US

NO_DEADLINE_US: Final = 2**62
"""Deadline of a node that has none: it never passes."""


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """Configuration of one stream; ``shards`` is the number of state keys that each of its windows is split over.

    Records of ``ignore_nodes`` are left out: these nodes are not of the pathway, and not meant to be. ``order`` says
    whether the order of messages is counted, ``max_lost_ids`` how many ids of a window's and node's loss are kept.
    ``deadlines`` are those of nodes, in the order of the path, µs; a node without one never has overdue messages.
    This version is valid for windows that start at ``valid_from_us`` or later, ``earlier`` ones, the newest first, for
    those before; the oldest is valid for all windows before its own start, too. By one that ``is_removed`` the stream
    is not declared: it has no windows then.
    """

    pathway: Pathway
    terms: WindowPolicy
    shards: int = 1
    ignore_nodes: tuple[str, ...] = ()
    order: bool = False
    max_lost_ids: int = MAX_LOST_IDS
    is_removed: bool = False
    deadlines: tuple[tuple[str, int], ...] = ()
    valid_from_us: int = 0
    earlier: tuple[StreamConfig, ...] = ()

    @property
    def versions(self) -> tuple[StreamConfig, ...]:
        """All versions, the newest first."""
        return (self, *self.earlier)

    @property
    def ends(self) -> tuple[tuple[StreamConfig, int], ...]:
        """Earlier versions, the newest first, each with the minute from which on the next one is valid, µs."""
        pairs = zip(self.earlier, self.versions, strict=False)
        return tuple((version, following.valid_from_us) for version, following in pairs)

    @property
    def known_nodes(self) -> tuple[str, ...]:
        """Nodes with ids of all versions: those of the newest in their order, then those that it has no more."""
        return tuple(dict.fromkeys(node for version in self.versions for node in version.pathway.nodes))

    @property
    def known_edges(self) -> tuple[tuple[str, str], ...]:
        """Edges of all versions, by the names of their nodes."""
        return tuple(dict.fromkeys(edge for version in self.versions for edge in version.pathway.named_edges))

    @property
    def nodes_by_age(self) -> tuple[str, ...]:
        """Nodes with ids of all versions, in the order in which they came: no later version changes their places."""
        return tuple(dict.fromkeys(node for version in reversed(self.versions) for node in version.pathway.nodes))

    @property
    def deadlines_us(self) -> NDArray[np.int64]:
        """The deadline of each node with ids, NO_DEADLINE_US without one; shape (nodes,)."""
        named = dict(self.deadlines)
        return np.array([named.get(node, NO_DEADLINE_US) for node in self.pathway.nodes], np.int64)

    def at(self, start_us: int) -> StreamConfig:
        """Return the version by which a window is judged, given its start."""
        if not self.earlier or start_us >= self.valid_from_us:
            return self
        return next((version for version in self.earlier if start_us >= version.valid_from_us), self.earlier[-1])

    def ignores_always(self, node: str) -> bool:
        """Return whether each version ignores a node."""
        return all(node in version.ignore_nodes for version in self.versions)

    def find_declared(self, node: str, starts_us: Iterable[int]) -> list[bool]:
        """Return of each window, by its start, whether a node is declared in it."""
        versions = map(self.at, starts_us)
        return [node in version.pathway.declared and not version.is_removed for version in versions]

    def split_starts(self, starts_us: Sequence[int]) -> Iterator[tuple[StreamConfig, list[int]]]:
        """Yield each version, the oldest first, with the windows among sorted starts that are judged by it, if any."""
        if not self.earlier and starts_us:
            yield self, list(starts_us)
            return
        for version in reversed(self.versions):
            own = [start_us for start_us in starts_us if self.at(start_us) is version]
            if own:
                yield version, own

    def describe_span(self, from_us: int, to_us: int) -> SpanShape:
        """Return what the nodes of the windows that start in ``[from_us, to_us)`` are."""
        return SpanShape.from_pathways([version.pathway for version in self.select_versions(from_us, to_us)])

    def find_longest_terms(self, from_us: int, to_us: int) -> WindowPolicy:
        """Return the longest of each term over the versions of the windows that start in ``[from_us, to_us)``."""
        terms = [astuple(version.terms) for version in self.select_versions(from_us, to_us)]
        return WindowPolicy(*map(max, zip(*terms, strict=True)))

    def select_versions(self, from_us: int, to_us: int) -> tuple[StreamConfig, ...]:
        """Return the versions of the windows that start in ``[from_us, to_us)``, the newest first."""
        newest, oldest = self.at(to_us - 1), self.at(from_us)
        return self.versions[self.versions.index(newest) : self.versions.index(oldest) + 1]

    def differs_from(self, other: StreamConfig) -> bool:
        """Return whether two versions say different things, apart from when they are valid."""
        return replace(self, valid_from_us=0, earlier=()) != replace(other, valid_from_us=0, earlier=())

    def drop_past(self, watermark_us: int) -> StreamConfig:
        """Return the newest version with those of the earlier ones of which some window may still be judged."""
        return replace(self, earlier=self.find_in_force(watermark_us)[1:])

    def find_in_force(self, watermark_us: int) -> tuple[StreamConfig, ...]:
        """Return the versions of which some window may still be judged, the newest first."""
        last = ((version, end_us - WINDOW_US) for version, end_us in self.ends)
        return (self, *(version for version, last_us in last if version.terms.judged_until_us(last_us) >= watermark_us))
