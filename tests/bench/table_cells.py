"""Cells of a table, as a pipe gets them."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, RenderableType


def drawn(table: RenderableType) -> list[list[str]]:
    """Return the cells of each line, as a pipe gets them."""
    console = Console(file=StringIO(), width=1_000)
    console.print(table)
    assert isinstance(console.file, StringIO)
    lines = console.file.getvalue().splitlines()
    return [[cell for cell in line.split("  ") if cell.strip()] for line in lines]


def cells(table: RenderableType) -> dict[str, list[str]]:
    """Return the cells behind the first of each line."""
    return {line[0].strip(): [cell.strip() for cell in line[1:]] for line in drawn(table) if line}
