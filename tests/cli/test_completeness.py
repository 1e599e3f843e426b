"""Tests of ``hopwatch completeness``: its curve, the proposal, and what it refuses."""

from __future__ import annotations

import json
import tomllib

import pytest

from hopwatch.cli.main import main
from tests.support.workspace import Workspace, one_of_ten_lost

ASKED = ("curve", "--stream", "orders", "--days", "3650")
Captured = pytest.CaptureFixture[str]


def ask(workspace: Workspace, *arguments: str) -> int:
    """Run the command; the configuration is a flag of the curve."""
    return main(["completeness", *ASKED, "--config", str(workspace.config), *arguments])


def test_a_curve_has_a_point_a_wait_and_a_proposal_to_paste(workspace: Workspace, capsys: Captured) -> None:
    """With how many windows and arrivals it is of, and TOML that a configuration takes."""
    workspace.configure().watch(*one_of_ten_lost())
    assert ask(workspace) == 0
    told = capsys.readouterr().out
    assert "orders: 1 windows, 19 arrivals at its nodes; transit 2.5 min, settle 30.0 s" in told
    assert told.index("judged after") < told.index("5.0 s") < told.index("10.0 min")
    assert "a: the latest arrival" in told
    toml = tomllib.loads(told[told.index("# in 0 of 1 windows") :])
    assert toml == {"streams": {"orders": {"transit": "1s", "settle": "30s"}}}


def test_json_has_bounds_for_each_node(workspace: Workspace, capsys: Captured) -> None:
    """At the waits that were asked for, in order, each once."""
    workspace.configure().watch(*one_of_ten_lost())
    assert ask(workspace, "--wait", "90s", "--wait", "1s", "--wait", "90s", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["stream"], told["windows"], told["arrivals"]) == ("orders", 1, 19)
    assert [point["wait_us"] for point in told["points"]] == [1_000_000, 90_000_000]
    assert {node: found["arrivals"] for node, found in told["nodes"].items()} == {"a": 10, "b": 9}
    assert told["points"][1] == {
        "wait_us": 90_000_000, "windows_lower": 0, "windows_upper": 0, "late_lower": 0, "late_upper": 0,
        "worst_share": 0.0,
    }  # fmt: skip
    assert told["proposal"] == {
        "transit_us": 1_000_000, "settle_us": 30_000_000, "windows": 1, "slow_windows": 0, "amended_windows": 0,
    }  # fmt: skip


def test_without_windows_there_is_no_proposal(workspace: Workspace, capsys: Captured) -> None:
    """An empty range says so, in words and in JSON."""
    workspace.configure().watch(*one_of_ten_lost())
    flags = "--stream", "orders", "--days", "1", "--config", str(workspace.config)
    assert main(["completeness", "curve", *flags]) == 0
    assert "orders: the store has no final window with messages in this range" in capsys.readouterr().out
    assert main(["completeness", "curve", *flags, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["windows"], told["proposal"], told["nodes"]) == (0, None, {})


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (("--wait", "0s"), 2, "--wait: this duration is longer than zero, got '0s'"),
        (("--wait", "soon"), 2, "--wait: a duration is a whole number with ms, s, m, h or d behind it"),
        (("--risk", "0.9"), 2, "0.9"),
        (("--stream", "ordres"), 2, "ordres"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    workspace: Workspace, capsys: Captured, flags: tuple[str, ...], code: int, words: str
) -> None:
    """A wait of nothing, words, a risk over a half, and a stream that is not there."""
    workspace.configure().watch(*one_of_ten_lost())
    assert ask(workspace, *flags) == code
    assert words in capsys.readouterr().err


def test_without_a_store_the_error_says_so(workspace: Workspace, capsys: Captured) -> None:
    """As with every command that reads one."""
    workspace.configure()
    assert ask(workspace) == 3
    assert "hopwatch run" in capsys.readouterr().err
