"""What tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.workplace import Workplace


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the width of what is written to the commands: workers of pytest-xdist set one."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    """Return a configured place where nothing has happened yet."""
    return Workplace(tmp_path).configure()
