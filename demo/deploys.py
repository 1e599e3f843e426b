"""Deploys of the demo: from some message on a node runs a new version, which loses messages of one of its lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from sqlalchemy import Engine

from hopwatch.demo.faults import Faults
from hopwatch.demo.records import wall_clock_us
from hopwatch.demo.stream import STREAM
from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.markers import Marker
from hopwatch.monitor.store.markers import add_marker

NAME: Final = "hopwatch demo"


class DeployMarkers:
    """Marks each deploy in the store when the first message of the new version is made."""

    def __init__(
        self,
        faults: Faults,
        engine: Engine,
        count_messages: Callable[[], int],
        now_us: Callable[[], int] = wall_clock_us,
    ) -> None:
        """Take what is to be deployed, the monitor's store, and how many messages there are so far."""
        nodes = faults.nodes.items()
        self._left = sorted((own.deployed_from, node, own.version) for node, own in nodes if own.deployed_from)
        self._engine, self._count_messages, self._now_us = engine, count_messages, now_us

    def mark_due(self) -> Iterator[str]:
        """Mark what was deployed since the last call, and yield a line for each; later where there is no store yet."""
        while self._left and self._count_messages() >= self._left[0][0]:
            _, node, version = self._left[0]
            try:
                add_marker(self._engine, Marker(self._now_us(), f"deploy {node}", NAME, STREAM, {"version": version}))
            except StoreError:
                return
            del self._left[0]
            yield f"deployed version {version} of {node}"
