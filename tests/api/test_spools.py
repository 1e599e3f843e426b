"""Tests of the API over stores of many random spools: what it says is what ``hopwatch report --json`` says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.api.asked_api import AskedApi
from tests.model import scenario
from tests.support.examples import soak_after
from tests.support.micro_batches import run_once
from tests.support.model_comparison import prepared_store, rules_of
from tests.support.workspace import Workspace

SPOOLS: Final = 200
AT_ONCE: Final = 10
"""Spools of one case."""
Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("first", soak_after(1, range(0, SPOOLS, AT_ONCE)))
def test_the_api_says_what_the_report_says(first: int, tmp_path: Path, capsys: Captured) -> None:
    """Field for field: windows with their revisions, nodes, hours, days and the monitor's own accounts."""
    windows = 0
    for seed in range(first, first + AT_ONCE):
        workspace = Workspace(tmp_path / f"{seed}")
        workspace.folder.mkdir()
        _fill(workspace, seed)
        api = AskedApi(workspace)
        told = _report(workspace, capsys)
        read_through = told["read_through"]
        assert api.json("/v1/accounts") == told["accounts"]
        of_hours, of_days = (_report(workspace, capsys, "--by", by) for by in ("hour", "day"))
        for stream, hours, days in zip(*(one["streams"] for one in (told, of_hours, of_days)), strict=True):
            path = f"/v1/streams/{stream['stream']}"
            found = list(_read_pages(api, f"{path}/windows", "windows", read_through))
            assert found == stream["windows"]
            assert list(_read_pages(api, f"{path}/hours", "hours", read_through)) == hours["hours"]
            assert list(_read_pages(api, f"{path}/days", "days", read_through)) == days["days"]
            for window in found[:1] + found[-1:]:
                assert api.json(f"{path}/windows/{window['window_start']}", revisions=True) == window
                for node in window["nodes"]:
                    _check_node(api, path, node["node"], found)
            windows += len(found)
    assert windows > AT_ONCE


def _fill(workspace: Workspace, seed: int) -> None:
    """Judge the spool of a seed."""
    spool = workspace.folder / "spool"
    spool.mkdir()
    made = scenario.generate(seed, spool)
    paths = sorted(spool.rglob("*.seg"), key=lambda path: (path.stat().st_mtime_ns, str(path)))
    engine = prepared_store(workspace.folder, "store.db")
    run_once(engine, rules_of(workspace.folder, made.streams), paths, spool)
    engine.dispose()


def _report(workspace: Workspace, capsys: Captured, *flags: str) -> dict[str, Any]:
    more = () if flags else ("--revisions",)
    assert workspace.run("report", "--json", *flags, *more) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def _read_pages(api: AskedApi, path: str, key: str, read_through: str | None) -> Iterator[Any]:
    """Yield the items of all pages of windows, hours or days."""
    query: dict[str, object] = {"limit": 7}
    if key == "windows":
        query["revisions"] = True
    while True:
        page = api.json(path, **query)
        assert page["read_through"] == read_through
        yield from page[key]
        if page["next"] is None:
            return
        query["cursor"] = page["next"]


def _check_node(api: AskedApi, path: str, node: str, windows: list[Any]) -> None:
    named = ("window_start", "status", "verdict")
    expected = [
        {name: window[name] for name in named} | of_node
        for window in windows[:100]
        for of_node in window["nodes"]
        if of_node["node"] == node
    ]
    assert api.json(f"{path}/nodes/{node}", limit=100)["windows"] == expected
