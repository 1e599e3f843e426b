"""Tests of ``hopwatch pathway deadlines``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hopwatch.cli.main import main
from hopwatch.probes.contract.batch import Batch
from tests.support.spool import observation_batch, pack_lags
from tests.support.workspace import CONFIGURATION, Workspace, closing_batches

Captured = pytest.CaptureFixture[str]
COMMENTED = CONFIGURATION.replace('path = "a -> b"', 'path = "a -> b" # the path\ndeadline = { b = "9s" } # ours')
MANY = range(1_200)
SPAN = "orders: 1 window from 2026-01-01T00:00:00Z to 2026-01-01T00:01:00Z"


def passed(node: str, in_ms: int, out_ms: int, numbers: range = MANY) -> Batch:
    """Return a batch in which messages passed a node, so long after they were made."""
    lags = {"lag_in_us": in_ms, "lag_out_us": out_ms}
    return observation_batch(
        numbers, node, **{name: pack_lags(*[1_000 * ms] * len(numbers)) for name, ms in lags.items()}
    )


def watch(workspace: Workspace, *records: Batch, text: str = COMMENTED) -> Workspace:
    """Let messages take 7.4 s from a to b, and what else is given."""
    own = records or (passed("a", 1, 2), passed("b", 7_402, 7_404))
    return workspace.configure(text).watch(*own, *closing_batches(seq=1))


def run(workspace: Workspace, *flags: str) -> int:
    """Run the command, and return its exit code."""
    return main(["pathway", "deadlines", *flags, "--config", str(workspace.config)])


def test_deadlines_are_learnt_from_final_windows(workspace: Workspace, capsys: Captured) -> None:
    """With the slowest part of each node; nothing is written."""
    watch(workspace)
    assert run(workspace) == 0
    assert capsys.readouterr().out.splitlines() == [
        SPAN,
        "  a: 5s (none now): 99.9 % of about 1,200 messages inside a took at most 0.001 s",
        "  b: 8s (9s now): 99.9 % of about 1,200 messages from a to b took at most 7.400 s",
    ]
    assert workspace.config.read_text() == COMMENTED


def test_deadlines_are_written_and_comments_stay(workspace: Workspace, capsys: Captured) -> None:
    """A second time there is nothing to write."""
    watch(workspace)
    assert run(workspace, "--write", "--floor", "500ms") == 0
    changes = ['-deadline = { b = "9s" } # ours', '+deadline = {a = "1s", b = "8s"} # ours']
    assert [line for line in capsys.readouterr().out.splitlines() if line in changes] == changes
    assert workspace.config.read_text() == COMMENTED.replace('{ b = "9s" }', '{a = "1s", b = "8s"}')
    assert run(workspace, "--write", "--floor", "500ms") == 0
    assert capsys.readouterr().out.endswith("the file has these deadlines already\n")


def test_deadlines_have_their_json(workspace: Workspace, capsys: Captured) -> None:
    """With the diff of what was written."""
    watch(workspace)
    assert run(workspace, "--write", "--json", "--stream", "orders", "--over", "90s") == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (told["file"], told["is_written"]) == (str(workspace.config), True)
    assert told["diff"][-1] == '+deadline = {a = "5s", b = "8s"} # ours'
    (stream,) = told["streams"]
    assert stream | {"nodes": stream["nodes"][1:]} == {
        "stream": "orders",
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-01T00:01:00Z",
        "windows": 1,
        "nodes": [
            {
                "node": "b",
                "deadline_us": 9_000_000,
                "learnt_us": 8_000_000,
                "slowest": {"source": "a", "target": "b", "messages": 1_200, "time_us": 7_400_000},
                "obstacle": "",
            }
        ],
    }


def test_a_node_without_enough_messages_keeps_its_deadline(workspace: Workspace, capsys: Captured) -> None:
    """The reason is said, and the file stays as it is."""
    few = range(10)
    watch(workspace, passed("a", 1, 2, few), passed("b", 7_402, 7_404, few))
    assert run(workspace, "--write") == 0
    assert capsys.readouterr().out.splitlines() == [
        SPAN,
        "  a: 10 messages were timed, 1,000 are needed (none now)",
        "  b: 10 messages were timed, 1,000 are needed (9s now)",
        "the file has these deadlines already",
    ]
    assert workspace.config.read_text() == COMMENTED


def test_a_stream_without_windows_is_told(workspace: Workspace, capsys: Captured) -> None:
    """The store has another stream alone."""
    watch(workspace, text=COMMENTED + '[streams.trades]\npath = "p -> q"\n')
    assert run(workspace, "--stream", "trades") == 0
    assert capsys.readouterr().out == "trades: no window has times of messages yet\n"
    assert run(workspace, "--stream", "trades", "--json") == 0
    (stream,) = json.loads(capsys.readouterr().out)["streams"]
    assert stream == {"stream": "trades", "from": None, "to": None, "windows": 0, "nodes": []}


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--over", "59s"), "--over is from 1m to 24h, got '59s'"),
        (("--over", "25h"), "--over is from 1m to 24h, got '25h'"),
        (
            ("--floor", "0s"),
            "--floor: this duration is longer than zero, got '0s'",
        ),
        (("--stream", "x"), "--stream names 'x', the configuration has: orders"),
    ],
)
def test_wrong_flags_are_refused(flags: tuple[str, str], told: str, workspace: Workspace, capsys: Captured) -> None:
    """Each with what it takes."""
    workspace.configure(COMMENTED)
    assert run(workspace, *flags) == 2
    assert capsys.readouterr().err == f"hopwatch: {told}\n"


def test_a_stream_that_the_file_does_not_have_is_not_written(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Its path is a variable of the environment."""
    watch(workspace)
    workspace.configure(COMMENTED.replace("orders", "trades"))
    monkeypatch.setenv("HOPWATCH_STREAMS__ORDERS__PATH", "a -> b")
    assert run(workspace, "--stream", "orders", "--write") == 2
    assert "the configuration has no path of 'orders': it is set elsewhere" in capsys.readouterr().err
