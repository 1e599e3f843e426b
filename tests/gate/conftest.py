"""Fixtures of the tests of the gate."""

from __future__ import annotations

import pytest

from tests.support.gate_client import AtEntrance


@pytest.fixture
def gate() -> AtEntrance:
    """Return an entrance without rules."""
    return AtEntrance()
