"""The worked example of docs/SEMANTICS.md, from probe to report: ten messages, four nodes, five lost on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.support.command_call import called
from tests.support.program import run_program
from tests.support.worked_example import NODES, stamp

PATIENCE_S: Final = 240


def _hopwatch(*arguments: str) -> str:
    ended = called(*arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _run_once(config: Path) -> str:
    """Run the monitor over all there is, and return what it says on stderr."""
    ended = run_program(["hopwatch", "run", "--config", str(config), "--once"], timeout=PATIENCE_S)
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


def test_the_table_comes_out_to_the_digit(tmp_path: Path) -> None:
    """Counts 10, 9, 7, 5; losses 0, 1, 2, 2; five of ten lost: in JSON, by id, and drawn."""
    spool, config = tmp_path / "spool", tmp_path / "hopwatch.toml"
    stamp(spool)
    stream = f'[streams.example]\npath = "{" -> ".join(NODES)}"\nmax_age = "3650d"\namend_for = "3650d"\n'
    config.write_text(f'[transport]\nurl = "spool:./spool"\n{stream}')
    _run_once(config)
    report = json.loads(_hopwatch("report", "--config", str(config), "--json"))
    window, *_ = report["streams"][0]["windows"]
    nodes = window["nodes"]
    assert [node["seen"] for node in nodes] == [10, 9, 7, 5]
    assert [node["loss"] for node in nodes] == [0, 1, 2, 2]
    assert [[int(lost) for lost in node["lost_ids"]] for node in nodes] == [[], [3], [9, 10], [7, 8]]
    assert (window["known"], window["delivered"], window["lost"], window["loss_ratio"]) == (10, 5, 5, 0.5)
    assert (window["verdict"], window["lost_lower"], window["lost_upper"]) == ("LOSSY", 5, 5)
    *drawn, as_of = _hopwatch("report", "--config", str(config)).splitlines(keepends=True)
    assert "".join(drawn) == (Path(__file__).parent / "worked_example.txt").read_text("utf-8")
    assert as_of == f"a store that was filled once, as of {report['read_through'][:19]}Z\n"


@pytest.mark.soak  # its table comes out by default
def test_once_ends_with_what_it_made_final_and_what_it_set_aside(tmp_path: Path) -> None:
    """On stderr: the windows of ten messages and of the byes after them, and a file that is no segment."""
    spool, config = tmp_path / "spool", tmp_path / "hopwatch.toml"
    stamp(spool)
    (spool / "0000000000.seg").write_text("a foreign file")
    config.write_text('[transport]\nurl = "spool:./spool"\n[streams.example]\npath = "node-1"\nmax_age = "3650d"\n')
    words = _run_once(config)
    report = json.loads(_hopwatch("report", "--config", str(config), "--json"))
    windows = len(report["streams"][0]["windows"])
    set_aside = sum(report["accounts"]["set_aside"].values())
    assert words == (f"windows that are final: {windows}, records set aside: {set_aside}; see hopwatch report\n")
    assert set_aside > 1
