"""Real traffic through a chain of nodes, in real time, with a loss that is known id by id."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from hopwatch import Probe
from hopwatch.probes.sinks import Sink
from tests.real.monitor_process import minute_of

NODES: Final = ("a", "b", "c")
PATH: Final = " -> ".join(NODES)
STREAMS: Final = f'[streams.orders]\npath = "{PATH}"\ntransit = "10s"\nsettle = "3s"'
TICK_S: Final = 0.1
LOSS: Final = 0.01


class Traffic:
    """Messages that pass all nodes, a part of them lost on the way; it goes on until it is ended."""

    def __init__(
        self, sink: str | Callable[[str], Sink | str], *, a_second: int = 1_000, seed: int = 1, stream: str = "orders"
    ) -> None:
        """Take the transport, or what makes that of each node."""
        of_node = sink if callable(sink) else lambda _: sink
        self.probes = {node: Probe(stream, node, of_node(node), probe=node) for node in NODES}
        self.lost: Mapping[str, set[str]] = defaultdict(set)
        self.lost_at: Counter[tuple[str, str]] = Counter()
        """How many messages each node lost, by node and minute of the message."""
        self.sent = 0
        self._a_tick = int(a_second * TICK_S)
        self._chance = np.random.default_rng(seed)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Traffic:
        """Let it flow."""
        self._thread.start()
        return self

    def end(self) -> None:
        """Send what is left; every probe says bye."""
        self._ended.set()
        self._thread.join()
        for probe in self.probes.values():
            probe.flush(60)
            probe.close()

    @property
    def dropped(self) -> dict[str, int]:
        """Return the number of drops of each probe."""
        return {node: probe.dropped for node, probe in self.probes.items()}

    def _run(self) -> None:
        while not self._ended.wait(TICK_S):
            ids = self._chance.integers(0, 2**64, (self._a_tick, 2), np.uint64).view(np.uint8).reshape(-1, 16)
            moments_us = np.full(self._a_tick, time.time_ns() // 1_000)
            self.sent += len(ids)
            for place, (node, probe) in enumerate(self.probes.items()):
                if place:
                    goes_on = self._chance.random(len(ids)) >= LOSS
                    self.lost[node].update(row.tobytes().hex() for row in ids[~goes_on])
                    self.lost_at[node, minute_of(int(moments_us[0]) / 1e6)] += int((~goes_on).sum())
                    ids, moments_us = ids[goes_on], moments_us[goes_on]
                probe.arrived_many(ids, moments_us)
                probe.departed_many(ids, moments_us)
