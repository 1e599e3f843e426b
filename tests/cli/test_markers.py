"""Tests of ``hopwatch mark`` and ``hopwatch markers``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hopwatch.cli.main import main
from hopwatch.probes.contract.batch import BatchKind
from tests.support.spool import at_us, make_batch, observation_batch, write_segment
from tests.support.workspace import Workspace, one_of_ten_lost

Captured = pytest.CaptureFixture[str]
AT = "2026-11-27T10:00:00Z"


def run(workspace: Workspace, *arguments: str) -> int:
    """Run a command with the configuration of the place."""
    return main([*arguments, "--config", str(workspace.config)])


LANE = {"partition": "3"}
RESTARTED = [
    make_batch(BatchKind.HEARTBEAT, complete_through_us=at_us(20)),
    make_batch(BatchKind.BYE, epoch_us=at_us(30), complete_through_us=at_us(400)),
]
"""Batches of a probe that ended, and began again under its name."""


def test_a_rebalance_is_marked(workspace: Workspace, tmp_path: Path, capsys: Captured) -> None:
    """By Hopwatch, at the arrival of the first batch of a partition that another probe had before."""
    readings = [
        (second, observation_batch(range(2), probe=probe, seq=seq, labels=LANE))
        for second, probe, seq in ((20, "p", 0), (25, "q", 0), (60, "q", 1))
    ]
    paths = [write_segment(tmp_path / f"{second}.seg", batch, arrival_us=at_us(second)) for second, batch in readings]
    workspace.configure().watch(*one_of_ten_lost(), more=paths)
    assert run(workspace, "markers", "list", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["markers"]
    assert (found["at"], found["text"], found["by"], found["stream"]) == (
        "2026-01-01T00:00:25Z",
        "rebalance at a: moved partitions 3",
        "hopwatch",
        "orders",
    )


def test_a_probe_that_begins_again_is_marked(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """By Hopwatch, at the moment when it began."""
    workspace.watch(*RESTARTED)
    assert run(workspace, "markers", "list", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["markers"]
    assert (found["at"], found["text"], found["by"]) == (
        "2026-01-01T00:00:30Z",
        "restart at a: probe-of-a",
        "hopwatch",
    )


def test_a_moment_is_marked_listed_and_removed(workspace: Workspace, capsys: Captured) -> None:
    """Each in words and as JSON."""
    workspace.watch(*one_of_ten_lost())
    given = ("--at", AT, "--by", "ada", "--label", "version=1.4.2")
    assert run(workspace, "mark", "deploy 1.4.2", "--stream", "orders", *given) == 0
    line = f"marker 1: {AT}, orders: deploy 1.4.2 (version=1.4.2), by ada\n"
    assert capsys.readouterr().out == line
    assert run(workspace, "mark", "outage", "--at", "2026-11-27T11:00", "--by", "bob", "--json") == 0
    outage = {"number": 2, "at": "2026-11-27T11:00:00Z", "stream": None, "text": "outage", "labels": {}, "by": "bob"}
    assert json.loads(capsys.readouterr().out) == outage
    assert run(workspace, "markers", "list", "--stream", "orders", "--to", "2026-11-27T11:00") == 0
    assert capsys.readouterr().out == line
    assert run(workspace, "markers", "remove", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"number": 1}
    assert run(workspace, "markers", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"markers": [outage]}
    assert run(workspace, "markers", "remove", "2") == 0
    assert run(workspace, "markers", "list") == 0
    assert capsys.readouterr().out == "marker 2 is removed\nno marker is there\n"


def test_without_a_moment_and_a_name_it_is_now_and_the_user(
    workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A marker without ``--at`` and ``--by`` is of now, by the current user."""
    monkeypatch.setenv("LOGNAME", "eve")
    workspace.watch(*one_of_ten_lost())
    assert run(workspace, "mark", "deploy") == 0
    told = capsys.readouterr().out
    assert "all streams: deploy, by eve" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("mark", "deploy", "--label", "version"), 'a --label is NAME=VALUE, such as version=1.4.2, got "version"'),
        (("mark", "deploy", "--stream", "nothing"), "nothing"),
        (("mark", "deploy", "--at", "soon"), "--at is a time such as 2026-11-21T06:40:00Z, got 'soon'"),
        (("markers", "list", "--from", "2026-01-02", "--to", "2026-01-01"), "let --from be the earlier"),
        (("mark", "a\x1bb"), "of a marker are one line of printable text"),
        (("markers", "remove", "7"), "there is no marker 7: hopwatch markers list shows them"),
    ],
)
def test_what_is_wrong_is_told(arguments: tuple[str, ...], told: str, workspace: Workspace, capsys: Captured) -> None:
    """Exit 2, with what is to be given; nothing is marked."""
    workspace.watch(*one_of_ten_lost())
    assert run(workspace, *arguments) == 2
    assert told in capsys.readouterr().err
    assert run(workspace, "markers", "list") == 0
    assert capsys.readouterr().out == "no marker is there\n"


def test_without_a_store_nothing_is_marked(workspace: Workspace, capsys: Captured) -> None:
    """A store is made by the monitor."""
    assert run(workspace, "mark", "deploy") == 3
    assert "store" in capsys.readouterr().err
