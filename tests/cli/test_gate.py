"""Tests of ``hopwatch gate`` before it serves; how it serves is tested on a real one."""

from __future__ import annotations

import pytest

from hopwatch.cli.main import main
from tests.support.workspace import Workspace


def test_health_has_a_port_of_its_own(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is served where both are one."""
    ports = ("--port", "8081", "--health-port", "8081")
    assert main(["gate", "--config", str(workspace.config), *ports]) == 2
    assert "--health-port is another port than --port, got 8081 for both" in capsys.readouterr().err
