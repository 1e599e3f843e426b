"""The worked example of docs/SEMANTICS.md as probes tell it: ten messages, four nodes, five lost on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hopwatch import Probe

NODES: Final = ("node-1", "node-2", "node-3", "node-4")
PASSED: Final = {
    1: "1111", 2: "1111", 3: "1000", 4: "1111", 5: "1111",
    6: "1111", 7: "1110", 8: "1110", 9: "1100", 10: "1100",
}  # fmt: skip
EVENT_US: Final = 1_760_000_040_000_000


class _Clock:
    """A clock that the test moves: the example's minute is long past."""

    def __init__(self) -> None:
        self.ns = EVENT_US * 1_000

    def wall_ns(self) -> int:
        """Return the time."""
        return self.ns

    def monotonic_ns(self) -> int:
        """Return the same."""
        return self.ns


def stamp(spool: Path) -> None:
    """Let the messages pass the nodes, each stamped by a probe that spools."""
    for place, node in enumerate(NODES):
        clock = _Clock()
        probe = Probe(stream="example", node=node, sink=f"spool:{spool}", probe="example", strict=True, clock=clock)
        for message, passed in PASSED.items():
            if passed[place] == "1":
                clock.ns = (EVENT_US + message * 1_000_000 + place * 1_000) * 1_000
                with probe.passing(message, EVENT_US + message * 1_000_000):
                    clock.ns += 500_000
        probe.close()
