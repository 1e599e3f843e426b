"""Series of windows, and a shelf that keeps their state."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hopwatch.monitor.outliers import state
from hopwatch.monitor.outliers.findings import FindingChanges, OutlierFinding
from hopwatch.monitor.outliers.quantities import Ints
from hopwatch.monitor.outliers.series_tracker import SeriesTracker
from hopwatch.monitor.outliers.state import States
from hopwatch.monitor.outliers.window_values import TRACKED_QUANTITIES
from hopwatch.monitor.results import Quantiles, WindowResult
from tests.support.windows import window

NODES: Final = ("a", "b")


@dataclass
class Shelf:
    """A :class:`monitor.outliers.series_tracker.SavedMemory` in memory, and what was found, as the store keeps it."""

    memory: States = field(default_factory=lambda: state.new_states(len(NODES) * len(TRACKED_QUANTITIES)))
    found: dict[tuple[int, str, str], OutlierFinding] = field(default_factory=dict)

    def states(self, rows: Ints) -> States:
        """Return the memory of some series."""
        kept: States = self.memory[rows]
        return kept

    def write(self, news: FindingChanges) -> None:
        """Strike out what holds no more, and note what does."""
        for gone in news.erased:
            keys = [key for key in self.found if key[1:] == (gone.node, gone.quantity) and key[0] >= gone.from_us]
            for key in keys:
                del self.found[key]
        self.found |= {(one.window_start_us, one.node, one.why.quantity): one for one in news.findings}

    def outliers(self, before_us: int) -> list[OutlierFinding]:
        """Return the latest outlier of each series before a moment."""
        latest = {key[1:]: one for key, one in sorted(self.found.items()) if one.is_outlier and key[0] < before_us}
        return list(latest.values())


def lag(p95_us: int) -> Quantiles:
    """Return a lag of a hundred stamps."""
    return Quantiles(100, p95_us, p95_us, p95_us, p95_us, p95_us)


def minute(number: int, chance: random.Random, **fields: Any) -> WindowResult:  # noqa: ANN401 - of a window
    """Return a final window like those before it."""
    nodes = {
        name: {"seen": chance.randint(90, 110), "lag_in_us": lag(chance.randint(900, 1_100)), "coverage": 1.0}
        for name in NODES
    }
    return window(number, nodes=nodes, **fields)


def struck(result: WindowResult, node: int = 1, times: int = 40) -> WindowResult:
    """Return a window with so many times the messages at a node."""
    nodes = list(result.nodes)
    nodes[node] = replace(nodes[node], seen=nodes[node].seen * times)
    return replace(result, nodes=tuple(nodes))


def straight(results: list[WindowResult]) -> tuple[SeriesTracker, Shelf]:
    """Return the watch that has seen all windows in order, and what it has found."""
    watched, shelf = SeriesTracker(NODES), Shelf()
    for result in sorted(results, key=lambda one: one.window_start_us):
        shelf.write(watched.enter([result], Shelf()))
    return watched, shelf
