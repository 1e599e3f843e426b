"""How fast the pipeline runs, and how much its probes have written: read off the files, the nodes are not asked."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from demo.config import Layout
from demo.nodes import NODES
from demo.truth import entry_count


class Progress:
    """Turns the growth of the truth logs into messages per second."""

    def __init__(self, layout: Layout, now_s: Callable[[], float] = time.monotonic) -> None:
        """Start counting now."""
        self._layout = layout
        self._now_s = now_s
        self._seen = (now_s(), self._handled())

    def status(self) -> str:
        """Return the pipeline's state in words, the rate being that since the last call."""
        before_s, before = self._seen
        self._seen = (self._now_s(), self._handled())
        rate_per_s = (self._seen[1] - before) / max(self._seen[0] - before_s, 1e-3)
        through = f"pipeline: {rate_per_s:,.0f} msg/s through {NODES[-1]}"
        if self._layout.observations_url:
            return through
        return f"{through}, spool {_segment_bytes(self._layout.spool) / 1e6:,.1f} MB"

    def _handled(self) -> int:
        return entry_count(self._layout.truth_log(NODES[-1]))


def _segment_bytes(spool: Path) -> int:
    """Return the size of all whole segments; one that is removed meanwhile counts as nothing."""
    total = 0
    for folder, _, names in os.walk(spool):
        for name in names:
            if name.endswith(".seg"):
                with contextlib.suppress(FileNotFoundError):
                    total += (Path(folder) / name).stat().st_size
    return total
