"""Nodes that a tap stamps nothing for, and of which it has refused something.

Each is spoken for by an instance that begins with the refusal, completes nothing, and ends without a bye: so the node
is unknown for as long as an instance may be silent, however well others vouch for it.
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
"""For so many nodes at a time; one more, and the one that was refused longest ago has another instance next time."""
MAX_WINDOWS: Final = 1_000
"""So many windows and causes of each wait to be told."""


class UnstampedNodes:
    """The instances that complete nothing; not safe for threads by itself."""

    def __init__(self, name: str) -> None:
        """Take the name of the probe that they are of."""
        self._name = name
        self._nodes: dict[NodeName, _SilentInstance] = {}

    def drop(self, node: NodeName, drops: Refusals, now_us: int) -> None:
        """Count what was refused of a node."""
        instance = self._nodes.pop(node, None) or _SilentInstance(now_us)
        instance.drop(drops)
        self._nodes[node] = instance
        if len(self._nodes) > MAX_NODES:
            self._nodes.pop(next(iter(self._nodes)))

    def send(self, send: Callable[[bytes], bool], now_us: int) -> None:
        """Tell what was not told yet, as far as it is taken."""
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
    """What of one node is untold."""

    def __init__(self, epoch_us: int) -> None:
        self.epoch_us, self.seq = epoch_us, 0
        self.drops = DropCounts(MAX_WINDOWS)

    def drop(self, drops: Refusals) -> None:
        self.drops.add(drops, self.epoch_us // WINDOW_US * WINDOW_MS)
