"""Tests of the nodes that ``hopwatch tap http`` is told of: by a configuration, by name, or not at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hopwatch.cli.main import main
from hopwatch.cli.tap import parse_allowed_nodes
from hopwatch.probes.taps.http.refusals import NodeName

CONFIG = '[streams.orders]\npath = "router -> sink"\n[streams."a.b"]\npath = "x -> y"\n'


def test_nodes_are_those_of_the_file_and_those_that_are_named(tmp_path: Path) -> None:
    """Either may be left out; without both any name is taken."""
    file = tmp_path / "hopwatch.toml"
    file.write_text(CONFIG)
    of_file = frozenset(
        NodeName(*one) for one in (("orders", "router"), ("orders", "sink"), ("a.b", "x"), ("a.b", "y"))
    )
    assert parse_allowed_nodes(None, []) is None
    named = frozenset({NodeName("orders", "router"), NodeName("a.b", "x")})
    assert parse_allowed_nodes(None, ["orders/router", "a.b/x"]) == named
    assert parse_allowed_nodes(file, []) == of_file
    assert parse_allowed_nodes(file, ["bills/in"]) == of_file | {NodeName("bills", "in")}


@pytest.mark.parametrize("said", ["orders", "orders/", "/router", "orders/a/b", "or ders/router", ""])
def test_a_name_that_cannot_be_is_refused(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With what was got, before anything is listened on."""
    assert main(["tap", "http", "--port", "9", "--allow", said]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"hopwatch: --allow is STREAM/NODE, such as orders/router, got {said!r}"


def test_a_file_that_declares_no_stream_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing could be posted."""
    file = tmp_path / "hopwatch.toml"
    file.write_text("")
    assert main(["tap", "http", "--port", "9", "--config", str(file)]) == 2
    assert "no stream is declared" in capsys.readouterr().err


def test_a_file_needs_what_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tap that is installed without the monitor is told its nodes by name."""
    monkeypatch.setitem(sys.modules, "hopwatch.monitor.settings", None)
    monkeypatch.delattr("hopwatch.monitor.settings")
    assert main(["tap", "http", "--port", "9", "--config", str(tmp_path / "hopwatch.toml")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    needs = "hopwatch: --config needs hopwatch[monitor], of which hopwatch.monitor.settings is missing"
    assert line == f"{needs}: install it, or name each node with --allow"
