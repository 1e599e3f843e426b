"""Garbage collection of processes that hold many objects for a short time."""

from __future__ import annotations

import gc
from typing import Final

ALLOCATIONS: Final = 100_000
"""Objects after which the youngest generation is looked through; 700 by default."""
GENERATIONS: Final = 10
"""Looks at a generation after which the older one is looked through, as by default."""


def collect_rarely() -> None:
    """Let the garbage collector run rarely, and leave out what is loaded by now.

    A trigger or a delivery makes hundreds of thousands of small objects that hold no cycles and go by themselves. By
    default the collector would look through all of them for each few hundred new ones.
    """
    gc.freeze()
    gc.set_threshold(ALLOCATIONS, GENERATIONS, GENERATIONS)
