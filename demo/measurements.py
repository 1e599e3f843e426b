"""The monitor's results for the demo's stream: the sums and ids that ``compare`` holds against the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from hopwatch.demo.stream import NODES, STREAM

MAX_STORED_LOST_IDS: Final = 10_000
"""Lost ids that the store keeps for a node and window; more are counted only."""
FINAL_STATUSES: Final = ("FINAL", "AMENDED")

Json = dict[str, Any]


def parse_start_us(window: Json) -> int:
    """Return a window's start in µs since 1970."""
    start = datetime.fromisoformat(window["window_start"])
    return int(start.timestamp()) * 1_000_000


def is_final(window: Json) -> bool:
    """Return whether the monitor has judged the window, with nothing in it left to wait for."""
    return window["status"] in FINAL_STATUSES and window["in_flight"] == 0


def select_windows(report: Json) -> list[Json]:
    """Return the windows of the demo's stream, as far as there are any."""
    return next((stream["windows"] for stream in report["streams"] if stream["stream"] == STREAM), [])


class Measurements:
    """The report of a finished run, and the ids that the store keeps as lost."""

    def __init__(self, report: Json, lost_ids: Callable[[str], set[bytes]], nodes: Sequence[str] = NODES) -> None:
        """Take the object of ``hopwatch report --json``, and what returns the lost ids of a node."""
        self.windows = select_windows(report)
        self._accounts = report["accounts"]
        self._lost_ids = {node: lost_ids(node) for node in nodes}

    def total(self, name: str) -> int:
        """Return the sum of a number over all windows."""
        return sum(window[name] for window in self.windows)

    def at(self, node: str) -> list[Json]:
        """Return what is said of ``node``, window by window."""
        return [entry for window in self.windows for entry in window["nodes"] if entry["node"] == node]

    def node_total(self, node: str, *names: str) -> int:
        """Return the sum of some numbers of ``node`` over all windows."""
        return sum(entry[name] for entry in self.at(node) for name in names)

    def lost_ids(self, node: str) -> set[bytes]:
        """Return the ids that are kept as lost at ``node``."""
        return self._lost_ids[node]

    def kept_count(self, node: str) -> int:
        """Return how many lost ids of ``node`` the store should have kept."""
        return sum(min(entry["loss"], MAX_STORED_LOST_IDS) for entry in self.at(node))

    def surely_lost_starts_us(self, node: str) -> set[int]:
        """Return the windows in which the monitor calls surely lost all that is lost at ``node``."""
        return {start for start, entry in self._entries(node) if 0 < entry["loss_lower"] >= entry["loss"]}

    def partly_lost(self, node: str) -> dict[int, int]:
        """Return how many are surely lost at ``node`` where it is not known which, by the start of their window.

        Those whose ids are not kept may be among them, and are not counted.
        """
        return {
            start: entry["loss_lower"] - max(0, entry["loss"] - MAX_STORED_LOST_IDS)
            for start, entry in self._entries(node)
            if 0 < entry["loss_lower"] < entry["loss"]
        }

    def _entries(self, node: str) -> Iterator[tuple[int, Json]]:
        for window in self.windows:
            yield from ((parse_start_us(window), entry) for entry in window["nodes"] if entry["node"] == node)

    @property
    def refused(self) -> int:
        """Return how much of what the probes sent the monitor could not use."""
        accounts = self._accounts
        return int(accounts["too_late"] + accounts["implausible"] + sum(accounts["set_aside"].values()))

    def fullest(self, node: str) -> Json | None:
        """Return what is said of ``node`` in the window in which most messages arrived there."""
        return max(self.at(node), key=lambda entry: int(entry["arrived"]), default=None)
