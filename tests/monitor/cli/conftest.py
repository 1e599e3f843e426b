"""What tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.monitor.cli.workplace import Workplace


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    """Return a configured place where nothing has happened yet."""
    return Workplace(tmp_path).configure()
