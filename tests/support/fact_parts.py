"""Facts of an instance cut into the parts that micro-batches bring."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from hopwatch.monitor.kernel.books import BatchFact

ENDS = st.lists(st.integers(0, 8), max_size=3)
"""Places at which parts end."""


def cut(facts: list[BatchFact], ends: list[int]) -> list[list[BatchFact]]:
    """Return facts in parts that end at some places."""
    bounds = [0, *sorted(end % (len(facts) + 1) for end in ends), len(facts)]
    return [facts[start:end] for start, end in pairwise(bounds)]
