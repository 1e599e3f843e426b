"""Tests of the works that show how cost grows."""

from __future__ import annotations

import re

import pytest

from bench import growth
from bench.work import WorkError


def test_one_thing_changes_at_a_time() -> None:
    """Size, streams and batch each differ from the middle work alone."""
    works = growth.works(40_000_000)
    assert [(work.observations, work.streams, work.batch) for work in works] == [
        (10_000_000, 1, 4096),
        (40_000_000, 1, 4096),
        (120_000_000, 1, 4096),
        (40_000_000, 10, 4096),
        (40_000_000, 100, 4096),
        (40_000_000, 1, 256),
    ]


def test_too_much_is_told_before_anything_is_made() -> None:
    """Three times as many must be measurable too."""
    with pytest.raises(WorkError, match=re.escape("minutes is a whole number from 1 to 600, got 900")):
        growth.works(600_000_000)
