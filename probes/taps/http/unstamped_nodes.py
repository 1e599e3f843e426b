"""Reports of drops for nodes without a sender, of which the tap has refused observations.

Each node gets an instance that starts with the refusal, completes no window and ends without a bye: so the node is
unknown for as long as an instance may be silent, whatever other instances complete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.envelope import encode
from hopwatch.probes.contract.limits import WINDOW_MS, WINDOW_US
from hopwatch.probes.drop_counts import DropCounts
from hopwatch.probes.recorder import Refusals
from hopwatch.probes.taps.http.refusals import NodeName

MAX_NODES: Final = 256
"""Nodes at a time; beyond that the one refused longest ago is removed, and gets a new instance next time."""
MAX_WINDOWS: Final = 1_000
"""Unreported pairs of window and cause per node, at most."""


class UnstampedNodes:
    """Instances for nodes without a sender; not thread-safe."""

    def __init__(self, name: str) -> None:
        """Set the probe name of the instances."""
        self._name = name
        self._nodes: dict[NodeName, _SilentInstance] = {}

    def drop(self, node: NodeName, drops: Refusals, now_us: int) -> None:
        """Count refused observations of a node."""
        instance = self._nodes.pop(node, None) or _SilentInstance(now_us)
        instance.drop(drops)
        self._nodes[node] = instance
        if len(self._nodes) > MAX_NODES:
            self._nodes.pop(next(iter(self._nodes)))

    def send(self, send: Callable[[bytes], bool], now_us: int) -> None:
        """Send unreported drops, until ``send`` refuses a record."""
        for node, instance in self._nodes.items():
            while instance.drops and send(encode(self._build_batch(node, instance, now_us))):
                instance.drops.remove(instance.drops.next_drops())
                instance.seq += 1

    def _build_batch(self, node: NodeName, instance: _SilentInstance, now_us: int) -> Batch:
        minute_ms = now_us // WINDOW_US * WINDOW_MS
        told = instance.drops.next_drops()
        return Batch(
            self._name, instance.epoch_us, instance.seq, BatchKind.HEARTBEAT, node.stream, node.node, minute_ms, now_us,
            instance.epoch_us, drops=told,
        )  # fmt: skip


class _SilentInstance:
    """Instance of one node, with its unreported drops."""

    def __init__(self, epoch_us: int) -> None:
        self.epoch_us, self.seq = epoch_us, 0
        self.drops = DropCounts(MAX_WINDOWS)

    def drop(self, drops: Refusals) -> None:
        self.drops.add(drops, self.epoch_us // WINDOW_US * WINDOW_MS)
