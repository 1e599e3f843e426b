"""Tests of ``hopwatch gate`` before it serves; how it serves is tested on a real one."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

import pytest

from hopwatch.cli import gate
from hopwatch.cli.configuration import load_settings
from hopwatch.cli.gate_builder import open_change_topic, open_registry
from hopwatch.cli.main import main
from hopwatch.gate.registry.changes import ChangeRecord
from servers.process import free_ports
from tests.support.schemas import FIRST, schema
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


def test_registrations_are_written_while_the_gate_is_served(workspace: Workspace) -> None:
    """Those that commands made, too; the client of the topic is released at the end."""
    with workspace.config.open("a", encoding="utf-8") as file:
        file.write('[gate.registry]\nchanges_topic = "kafka://broker:9092/schemas"\n')
    chosen = load_settings(workspace.config)
    topic, is_written = open_change_topic(chosen), Event()
    assert topic is not None
    assert topic.place.topic == "schemas"

    def write(records: Sequence[ChangeRecord]) -> str:
        assert [one.key for one in records] == [b"orders/1"]
        is_written.set()
        return ""

    topic.write = write  # type: ignore[method-assign]
    open_registry(chosen).register("orders", schema(FIRST))
    with gate._writing_changes(chosen, topic):
        assert is_written.wait(20)
    with gate._writing_changes(chosen, None):
        pass


def test_a_gate_needs_its_topic_of_registrations(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """A gate that could not write them does not start."""
    with workspace.config.open("a", encoding="utf-8") as file:
        file.write('[gate.registry]\nchanges_topic = "kafka://127.0.0.1:1/schemas"\n')
    (port,) = free_ports(1)
    assert main(["gate", "--config", str(workspace.config), "--port", str(port)]) == 3
    assert "the brokers 127.0.0.1:1 cannot be reached" in capsys.readouterr().err
