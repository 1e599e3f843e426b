"""Fixtures of tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.workspace import Workspace


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the width of what is written to the commands: workers of pytest-xdist set one."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Return a configured place where nothing has happened yet."""
    return Workspace(tmp_path).configure()
