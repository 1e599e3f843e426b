"""Tests of tables on narrow terminals: every line fits, every figure is there whole."""

from __future__ import annotations

import io
import os
import pty
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hopwatch.cli import wide_tables
from tests.repository import ROOT
from tests.support.workspace import CONFIGURATION, Workspace, one_of_ten_lost

Captured = pytest.CaptureFixture[str]
KEY = "2026-01-01 00:00Z"
PROGRAM = (sys.executable, "-m", "hopwatch")


def drawn(table: Table, width: int) -> list[str]:
    """Return the lines of a table on a terminal of this width."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None, markup=False, emoji=False)
    wide_tables.print_wide_table(console, table)
    return out.getvalue().splitlines()


def table_of(figures: list[tuple[str, str]], rows: int = 2) -> Table:
    """Return a table with a title: the hour, and a column for each head and figure."""
    table = Table(title="stream orders", title_justify="left")
    for head in ("hour", *(head for head, _ in figures)):
        table.add_column(head, no_wrap=True)
    for _ in range(rows):
        table.add_row(KEY, *(Text(figure) for _, figure in figures))
    return table


NAMES = st.text("abcdefghij-_.", min_size=1, max_size=128)
FIGURES = st.lists(st.tuples(NAMES, st.integers(0, 10**12).map("{:,}".format)), max_size=40)


@given(FIGURES, st.integers(80, 200))
def test_no_line_is_wider_than_the_terminal(figures: list[tuple[str, str]], width: int) -> None:
    """No line is wider than the terminal, for any nodes, and each figure is whole in every row."""
    lines = drawn(table_of(figures), width)
    assert max(map(cell_len, lines)) <= width
    words = [word for line in lines for word in line.split()]
    for _, figure in figures:
        assert words.count(figure) == 2 * sum(other == figure for _, other in figures)


def test_each_block_begins_with_the_first_column_and_the_first_with_the_title() -> None:
    """So that a row is known again further down."""
    lines = drawn(table_of([(f"loss n{number}", "1,234") for number in range(20)]), 80)
    heads = [line for line in lines if "hour" in line]
    assert len(heads) == 4
    assert [name for line in heads for name in line.split() if name.startswith("n")] == [f"n{n}" for n in range(20)]
    assert sum(KEY in line for line in lines) == 2 * 4
    assert [place for place, line in enumerate(lines) if "stream orders" in line] == [0]


def test_what_fits_is_one_table() -> None:
    """As it is where nobody looks, at 1,000 characters a line."""
    assert sum("hour" in line for line in drawn(table_of([("loss", "1")] * 40), 1_000)) == 1


def test_a_terminal_that_is_too_narrow_for_figures_folds_them_itself() -> None:
    """Nothing is cut there either."""
    assert any("123,456,789,012" in line for line in drawn(table_of([("known", "123,456,789,012")]), 20))


@pytest.mark.parametrize("arguments", [(), ("--by", "hour"), ("--by", "day")], ids=" ".join)
def test_a_report_fits_a_terminal_of_80_columns(
    arguments: tuple[str, ...], workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal, as a person has it."""
    workspace.watch(*one_of_ten_lost())
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    text = on_a_terminal("report", "--config", str(workspace.config), *arguments, home=workspace.folder)
    lines = text.replace("\r", "").splitlines()
    as_of = "a store that was filled once, as of 2026-01-01T00:06:40Z"
    assert lines[-2:] == ["4 records, 19 observations", as_of]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(("columns", "most"), [(None, 120), ("0", 120), ("wide", 120), ("90", 90), ("300", 300)])
def test_a_report_of_many_nodes_is_no_wider_through_a_pipe(
    columns: str | None, most: int, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """In blocks of columns, as on a terminal; COLUMNS says how wide."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    nodes = " -> ".join(["a", "b", *(f"normalise-{place}" for place in range(40))])
    workspace.configure(CONFIGURATION.replace("a -> b", nodes)).watch(*one_of_ten_lost())
    assert workspace.run("report") == 0
    widest = max(map(cell_len, capsys.readouterr().out.splitlines()))
    assert most - 40 < widest <= most


def on_a_terminal(*arguments: str, home: Path) -> str:
    """Run the program on a terminal of its own, without colours, and return what it shows."""
    shown = home / "shown"

    def read(terminal: int) -> bytes:
        data = os.read(terminal, 65_536)
        with shown.open("ab") as file:
            file.write(data)
        return data

    assert pty.spawn(["/usr/bin/env", "TERM=dumb", *PROGRAM, *arguments], read, lambda _: b"") == 0
    return shown.read_text("utf-8")
