"""Style of the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.table import Table

NONE: Final = "-"


def new_table(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    """Return a table with columns of words and, behind them, of numbers."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in words:
        table.add_column(name)
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def format_ratio(amount: float | None, unit: float) -> float | None:
    """Return an amount in a larger unit; what was not measured stays so."""
    return None if amount is None else amount / unit


def format_number(number: float | None, digits: int) -> str:
    """Return a number with so many digits; what was not measured is a dash."""
    return NONE if number is None else f"{number:,.{digits}f}"
