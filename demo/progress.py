"""Throughput of the pipeline, and size of what its probes have written; read from the files, not from the nodes."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from hopwatch.demo.layout import Layout
from hopwatch.demo.stream import NODES
from hopwatch.demo.truth import count_entries

GATED_SAMPLES: Final = 5


class Progress:
    """Turns the growth of the truth logs into messages per second."""

    def __init__(self, layout: Layout, now_s: Callable[[], float] = time.monotonic) -> None:
        """Start counting now."""
        self._layout = layout
        self._now_s = now_s
        # Behind a gate messages come by segments, one a second or so.
        self._seen = deque([(now_s(), self._handled())], GATED_SAMPLES if layout.gate else 1)

    def status(self) -> str:
        """Return the pipeline's state in words, the rate being that since the last call; with a gate since a few."""
        (before_s, before), now_s, handled = self._seen[0], self._now_s(), self._handled()
        self._seen.append((now_s, handled))
        rate_per_s = (handled - before) / max(now_s - before_s, 1e-3)
        through = f"pipeline: {rate_per_s:,.0f} msg/s through {NODES[-1]}"
        if self._layout.observations_url:
            return through
        return f"{through}, spool {_segment_bytes(self._layout.spool) / 1e6:,.1f} MB"

    def _handled(self) -> int:
        return count_entries(self._layout.truth_log(NODES[-1]))


def _segment_bytes(spool: Path) -> int:
    """Return the size of all whole segments; one that is removed meanwhile counts as nothing."""
    total = 0
    for folder, _, names in os.walk(spool):
        for name in names:
            if name.endswith(".seg"):
                with contextlib.suppress(FileNotFoundError):
                    total += (Path(folder) / name).stat().st_size
    return total
