"""Tests of ``hopwatch top``: what it says once, on a terminal, as JSON, and of a stream without figures."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from rich.console import Console

from hopwatch.cli import console, top
from hopwatch.display.texts import NONE
from hopwatch.monitor.results import RecentFigures, RecentLag, RecentNode
from tests.support.clock import ManualClock
from tests.support.recent import recent_figures, save_recent
from tests.support.windows import at
from tests.support.workspace import CONFIGURATION, Workspace

Captured = pytest.CaptureFixture[str]
IDLE = RecentFigures(
    "other", at(10), (RecentNode("x", 0, 0, 0, None, None, 4), RecentNode("n", 15, 0, 0, None, None, None))
)


@pytest.fixture(autouse=True)
def _configured(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be a store without figures, read at ten minutes and four seconds."""
    workspace.configure(CONFIGURATION + '[streams.other]\npath = "x -> n"\nstamps = { n = "count" }\n').watch()
    monkeypatch.setattr(top, "SystemClock", lambda: ManualClock(at(10) + 4_000_000))


def test_each_node_has_a_line(workspace: Workspace, capsys: Captured) -> None:
    """With its rates, lags and backlog; a dash is not known, and what nothing takes away has no end."""
    save_recent(workspace.store_url, recent_figures(), IDLE)
    assert workspace.run("top") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert " ".join(lines[0]) == "orders: 10 s of arrival up to 2026-01-01 00:10:00 UTC, 4 s ago"
    assert " ".join(lines[4]) == "a 201 200 1.0 s 1.5 s 1.1 s 1.6 s 600 3.0 s"
    assert " ".join(lines[-7]) == "a b 20.0 ms 45.0 ms 640"
    assert " ".join(lines[-2]) == f"x 0 0 {NONE} {NONE} {NONE} {NONE} 4 no end"
    assert " ".join(lines[-1]) == f"n 1.5 0 {NONE} {NONE} {NONE} {NONE} ? {NONE}"


def test_figures_that_are_old_say_so(workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """A monitor that hangs, or is stopped, does not look like a stream that goes well."""
    save_recent(workspace.store_url, recent_figures())
    monkeypatch.setattr(top, "SystemClock", lambda: ManualClock(at(12)))
    assert workspace.run("top", "--stream", "orders") == 0
    assert "UTC, 2 min 0 s ago: the monitor has read nothing since" in capsys.readouterr().out


def test_a_stream_without_figures_says_who_makes_them(workspace: Workspace, capsys: Captured) -> None:
    """As one that was read by run --once alone."""
    assert workspace.run("top", "--stream", "orders") == 0
    assert capsys.readouterr().out == "orders: no figures yet; hopwatch run makes them, and run --once does not\n"


def test_json_has_the_streams_with_figures(workspace: Workspace, capsys: Captured) -> None:
    """Each as the API has it."""
    save_recent(workspace.store_url, IDLE)
    assert workspace.run("top", "--json") == 0
    (told,) = json.loads(capsys.readouterr().out)["streams"]
    assert (told["stream"], told["through"], told["span_s"]) == ("other", "2026-01-01T00:10:00Z", 10)
    assert told["nodes"][0] == {
        "node": "x",
        "arrived_per_s": 0.0,
        "departed_per_s": 0.0,
        "stopped_per_s": 0.0,
        "lag_in_us": None,
        "lag_out_us": None,
        "backlog": 4,
        "backlog_s": None,
    }
    assert told["edges"] == []
    save_recent(workspace.store_url, recent_figures("other", ("x", "n")))
    assert workspace.run("top", "--json") == 0
    (told,) = json.loads(capsys.readouterr().out)["streams"]
    time_us = {"p50": 20_000, "p95": 45_000, "p99": 60_000}
    assert told["edges"] == [{"source": "x", "node": "n", "messages": 640, "time_us": time_us}]


def test_on_a_terminal_they_are_read_again_until_ctrl_c(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """The last figures stay, and the command ends well."""
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) > 1:
            raise KeyboardInterrupt
        save_recent(workspace.store_url, recent_figures())

    # Other threads of this process may sleep, too.
    monkeypatch.setattr(top, "time", SimpleNamespace(sleep=wait))
    monkeypatch.setattr(console, "stdout", lambda: Console(force_terminal=True, width=120, legacy_windows=False))
    assert workspace.run("top", "--stream", "orders", "--every", "3") == 0
    told = capsys.readouterr().out
    assert "no figures yet" in told
    assert "3.0 s" in told
    assert waits == [3.0, 3.0]


def test_a_stream_that_is_not_configured_is_refused(workspace: Workspace, capsys: Captured) -> None:
    """With those that there are."""
    assert workspace.run("top", "--stream", "nix") == 2
    assert "'nix'" in capsys.readouterr().err


def test_all_columns_fit_a_narrow_terminal(
    workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No figure is cut at 80 characters, also of a node that is far behind."""
    node = RecentNode("connector", 512_000, 511_990, 0, RecentLag(205_312, 620_111, 9), RecentLag(1, 7, 9), 12_741)
    save_recent(workspace.store_url, RecentFigures("orders", at(10), (node,)))
    monkeypatch.setenv("COLUMNS", "80")
    assert workspace.run("top", "--stream", "orders") == 0
    told = capsys.readouterr().out
    assert "\N{HORIZONTAL ELLIPSIS}" not in told
    assert max(len(line.rstrip()) for line in told.splitlines()) <= 80
