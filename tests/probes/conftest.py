"""Fixtures of tests of probes: a clock, and a sink in memory."""

from __future__ import annotations

import pytest

from hopwatch.testing import ManualClock, MemorySink


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock set by hand."""
    return ManualClock()


@pytest.fixture
def sink() -> MemorySink:
    """Return a sink that keeps what it gets."""
    return MemorySink()
