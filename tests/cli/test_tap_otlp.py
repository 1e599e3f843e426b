"""Tests of ``hopwatch tap otlp``: what it is told of services, and what it refuses."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hopwatch.cli.main import main
from hopwatch.cli.tap import parse_instances
from servers.process import free_ports


def test_numbers_of_processes_are_read_by_service() -> None:
    """The last one of a service counts."""
    assert parse_instances([]) == {}
    assert parse_instances(["billing=2", "a.b-c_d=10", "billing=3"]) == {"billing": 3, "a.b-c_d": 10}


@pytest.mark.parametrize(
    "said", ["billing", "billing=", "=2", "billing=0", "billing=-1", "billing=x", "bil ling=1", "a=²"]
)
def test_a_number_that_cannot_be_is_refused(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With what was got, before anything is listened on."""
    assert main(["tap", "otlp", "--instances", said]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"hopwatch: --instances is SERVICE=N, such as billing=2, got {said!r}"


def test_a_tap_needs_a_sink(capsys: pytest.CaptureFixture[str]) -> None:
    """As every tap does."""
    assert main(["tap", "otlp"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("hopwatch: there is no sink: name one with --sink")


def test_a_sink_that_cannot_be_written_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is listened on, with what to do."""
    (tmp_path / "file").touch()
    assert main(["tap", "otlp", "--port", "1", "--sink", f"spool:{tmp_path / 'file'}"]) == 3
    assert "see to it and start again" in capsys.readouterr().err


def test_each_protocol_has_a_port_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Both on one port would leave one of them without."""
    assert main(["tap", "otlp", "--port", "4317", "--grpc-port", "4317"]) == 2
    assert capsys.readouterr().err == "hopwatch: OTLP over HTTP and over gRPC need a port each, got 4317 for both\n"


def test_a_port_of_grpc_that_is_taken_is_named_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    """The library of gRPC would print lines of its own."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["tap", "otlp", "--port", str(free_ports(1)[0]), "--grpc-port", str(port)]) == 3
    assert capsys.readouterr().err == (
        f"hopwatch: 127.0.0.1 port {port} cannot be listened on: Address already in use: choose another\n"
    )
