"""What tests of the gate are handed."""

from __future__ import annotations

import pytest

from tests.gate.entrances import AtEntrance


@pytest.fixture
def gate() -> AtEntrance:
    """Return an entrance without rules."""
    return AtEntrance()
