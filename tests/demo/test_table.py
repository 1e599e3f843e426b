"""Tests of the tables: what a person reads of a window."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from hopwatch.demo.comparison_line import ComparisonLine
from hopwatch.demo.stream import GATED_NODES
from hopwatch.demo.table import (
    build_comparison_table,
    build_headings,
    build_window_table,
    format_window_cells,
    format_window_line,
)
from tests.demo.report_window import window


def test_a_final_window_shows_its_losses() -> None:
    """Start, status, verdict, numbers, the loss of each node, and the lag in ms."""
    expected = ("03:04", "FINAL", "LOSSY", "1,200", "1,188", "12", "0", "12", "0", "0", "12.3 ms")
    assert format_window_cells(window()) == expected


@pytest.mark.parametrize(
    "changes", [{"status": "PROVISIONAL", "verdict": None, "lost": 0}, {"status": "OPEN"}, {"in_flight": 3}]
)
def test_what_is_not_judged_yet_is_no_loss(changes: dict[str, Any]) -> None:
    """Until a window is final its losses are dashes: neither 0 nor a number."""
    assert format_window_cells(window(**changes))[5:10] == ("\u2013",) * 5


def test_behind_a_gate_there_is_what_it_rejected() -> None:
    """Beside what is delivered, and not among the losses; the gate has a column like every node."""
    gate = {"node": "gate", "loss": 0, "loss_lower": 0, "loss_upper": 0}
    gated = window(rejected=7, nodes=[gate, *window()["nodes"]])
    expected = ("03:04", "FINAL", "LOSSY", "1,200", "1,188", "7", "12", "0", "0", "12", "0", "0", "12.3 ms")
    assert format_window_cells(gated, GATED_NODES) == expected
    cells = format_window_cells(gated, GATED_NODES)
    lines = [format_window_line((), GATED_NODES), format_window_line(cells, GATED_NODES)]
    assert len(set(map(len, lines))) == 1
    assert lines[0].split()[4:8] == ["delivered", "rejected", "lost", "gate"]
    assert "rejected" in written(build_window_table([gated], 200, GATED_NODES))


def test_a_window_whose_path_lacks_a_node_has_a_dash_for_it() -> None:
    """A path may be edited while a demo runs: its nodes stay in their columns, and one that is new has none."""
    nodes = [one | {"node": "new"} if one["node"] == "connector" else one for one in window()["nodes"]]
    assert format_window_cells(window(nodes=nodes))[5:10] == ("12", "0", "12", "0", "\u2013")


def test_what_is_not_certain_is_shown_as_bounds() -> None:
    """An UNKNOWN window shows the bounds of the loss, and a question mark for a bound that is unknown."""
    cells = format_window_cells(window(verdict="UNKNOWN", lost_lower=0, lost_upper=None))
    assert cells[5] == "0 to ?"
    assert format_window_cells(window(lost_lower=3, lost_upper=1500))[5] == "3 to 1,500"


def test_without_a_lag_there_is_a_dash_and_long_ones_are_in_seconds() -> None:
    """A window in which nothing was delivered has no end-to-end lag."""
    assert format_window_cells(window(lag_us=None))[-1] == "\u2013"
    assert format_window_cells(window(lag_us={"p95": 3_210_000}))[-1] == "3.2 s"


def test_plain_lines_stand_under_their_headings() -> None:
    """In a pipe every row is one line, as wide as the headings."""
    lines = [format_window_line(), format_window_line(format_window_cells(window()))]
    assert len(set(map(len, lines))) == 1
    assert lines[0].split()[-6:] == ["ingest", "router", "norm", "connector", "lag", "p95"]


def written(table: object) -> str:
    """Return what a table looks like on a wide console."""
    console = Console(file=StringIO(), width=200)
    console.print(table)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_the_table_has_a_row_a_window() -> None:
    """All cells of a window are in the terminal's table."""
    text = written(build_window_table([window()], 200))
    for cell in (*build_headings(), *format_window_cells(window())):
        assert all(part in text for part in cell.split("\n"))


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_a_narrow_terminal_has_fewer_columns_and_whole_figures(width: int) -> None:
    """Columns are left out until the table fits; what is known and lost is always there, and nothing is cut."""
    text = written(build_window_table([window(known=1_234_567)], width))
    assert max(map(len, (line.rstrip() for line in text.splitlines()))) <= width
    assert "1,234,567" in text
    assert "…" not in text.replace("0…", "")
    assert all(heading in text for heading in ("window", "verdict", "known", "lost"))
    assert ("status" in text) == (width >= 100)


@pytest.mark.parametrize("plain", [True, False])
def test_the_comparison_says_which_line_differs(plain: bool) -> None:  # noqa: FBT001 - both ways
    """Every line ends in ok or DIFFERS."""
    lines = [
        ComparisonLine("lost ids", "norm", "3", "=", "3", holds=True),
        ComparisonLine("delivered", "", "9", "=", "8", holds=False),
    ]
    rows = [row.split() for row in written(build_comparison_table(lines, plain=plain)).splitlines()]
    assert ["lost", "ids", "norm", "3", "=", "3", "ok"] in rows
    assert ["delivered", "9", "=", "8", "DIFFERS"] in rows
