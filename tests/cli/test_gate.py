"""Tests of ``hopwatch gate`` before it serves; how it serves is tested on a real one."""

from __future__ import annotations

import pytest

from hopwatch.cli.main import main
from servers.process import free_ports
from tests.support.workspace import Workspace


def test_health_has_a_port_of_its_own(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is served where both are one."""
    ports = ("--port", "8081", "--health-port", "8081")
    assert main(["gate", "--config", str(workspace.config), *ports]) == 2
    assert "--health-port is another port than --port, got 8081 for both" in capsys.readouterr().err


def test_metrics_have_a_port_of_their_own(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """A gate whose own port is that of its metrics says so, and serves nothing."""
    (port,) = free_ports(1)
    to = workspace.config.parent / "events"
    with workspace.config.open("a", encoding="utf-8") as file:
        file.write(f'[gate.streams.orders]\nto = "spool:{to}"\nnode = "a"\n')
    metrics = ("--metrics-listen", f"127.0.0.1:{port}")
    assert main(["gate", "--config", str(workspace.config), "--port", str(port), *metrics]) == 3
    assert f"127.0.0.1 port {port} cannot be listened on: Address already in use" in capsys.readouterr().err
