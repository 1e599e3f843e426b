"""Times of messages on the path, message by message as SEMANTICS.md defines them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from tests.model.lag import quantiles
from tests.model.pathway import Pathway
from tests.model.record import Observation

FARTHEST_US = 2**43
Firsts = dict[str, dict[bytes, int]]


class PathTimes:
    """First arrivals and departures of the messages of a window, and what lies between them."""

    def __init__(self, pathway: Pathway, observed: Iterable[tuple[str, Observation]]) -> None:
        """Take all observations of the window."""
        self.pathway = pathway
        self.came: Firsts = defaultdict(dict)
        self.left: Firsts = defaultdict(dict)
        observed = list(observed)
        self.messages = len({seen.message_id for _, seen in observed})
        for node, seen in observed:
            came_us, left_us = seen.lag_in_us, seen.lag_out_us
            if node in pathway.one_sided:
                came_us, left_us = (left_us if came_us is None else came_us), (came_us if left_us is None else left_us)
            _note(self.came[node], seen.message_id, came_us)
            _note(self.left[node], seen.message_id, left_us if seen.passed else None)
        for node in pathway.one_sided:
            self.came[node] |= self.left[node]
        left = {one for node in pathway.terminals for one in self.left[node]}
        paths = [path for one in left if (path := self._path(one)) is not None]
        self.paths = len(paths)
        self.on_paths: dict[tuple[str, str], int] = defaultdict(int)
        for path in paths:
            for source, node, time_us in path:
                self.on_paths[source, node] += time_us

    def shown(self, node: str) -> list[dict[str, Any]]:
        """Give the times of a node, by source."""
        came, left = self.came[node], self.left[node]
        times = {before: _between(self.left[before], came) for before in self._before(node)}
        if node in self.pathway.origins:
            times[""] = list(came.values())
        if node not in self.pathway.one_sided:
            times[node] = _between(came, left)
        return [
            {
                "source": source,
                "time_us": quantiles(times[source]),
                "samples": self.messages,
                "messages": self.messages,
                "path_messages": self.paths,
                "total_us": self.on_paths[source, node],
            }
            for source in sorted(times, key=str.encode)
            if times[source]
        ]

    def _before(self, node: str) -> list[str]:
        return [other for other in self.pathway.nodes if node in self.pathway.next_nodes(other)]

    def _path(self, one: bytes) -> list[tuple[str, str, int]] | None:
        """Give the times of a message from its event time to where it left the pathway last; None if one is missing."""
        node = self._last(self.pathway.terminals, one)
        path = []
        while True:
            if one not in self.came[node]:
                return None
            came_us = self.came[node][one]
            path.append((node, node, self.left[node][one] - came_us))
            if node in self.pathway.origins:
                return [*path, ("", node, came_us)]
            before = [other for other in self._before(node) if one in self.left[other]]
            if not before:
                return None
            last = self._last(before, one)
            path.append((last, node, came_us - self.left[last][one]))
            node = last

    def _last(self, nodes: Iterable[str], one: bytes) -> str:
        """Give the node that a message left last, the first in the pathway's order of equal ones."""
        left = [node for node in self.pathway.nodes if node in nodes and one in self.left[node]]
        return max(left, key=lambda node: self.left[node][one])


def _note(firsts: dict[bytes, int], one: bytes, lag_us: int | None) -> None:
    if lag_us is not None and -FARTHEST_US <= lag_us <= FARTHEST_US:
        firsts[one] = min(lag_us, firsts.get(one, lag_us))


def _between(since: dict[bytes, int], until: dict[bytes, int]) -> list[int]:
    return [until[one] - since[one] for one in since.keys() & until.keys()]
