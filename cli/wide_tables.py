"""Tables wider than the terminal: printed in blocks of columns, one below the other, with no figure cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import TextType

from hopwatch.monitor.texts.escaping import escape_line

MAX_WIDTH: Final = 10_000


def print_wide_table(console: Console, table: Table) -> None:
    """Print a table; if it is wider than the terminal, in blocks of columns, each with the first column.

    Long heads are folded. Figures are never cut: a line that is still too long is wrapped by the terminal.
    """
    for number, places in enumerate(_split_columns(console, table)):
        block = _select_columns(table, places, table.title if number == 0 else None)
        needed = _measure_width(console, block)
        if needed > console.width:
            _fold_head(block, needed - console.width)
            block.width = max(console.width, _measure_width(console, block))
        console.print(block, soft_wrap=True)


def _split_columns(console: Console, table: Table) -> Iterator[list[int]]:
    """Split the columns into blocks: as many as fit beside the first column."""
    sample = _select_columns(table, range(len(table.columns)), None, is_sample=True)
    block = [0]
    for place in range(1, len(table.columns)):
        if len(block) > 1 and _measure_width(console, _select_columns(sample, [*block, place], None)) > console.width:
            yield block
            block = [0]
        block.append(place)
    yield block


def _select_columns(table: Table, places: Sequence[int], title: TextType | None, *, is_sample: bool = False) -> Table:
    """Return a table of some columns; a sample has only the widest cell of each, which is enough to measure it."""
    columns = [table.columns[place] for place in places]
    block = Table(title=title, title_justify="left", box=table.box, pad_edge=table.pad_edge)
    for column in columns:
        block.add_column(column.header, justify=column.justify, no_wrap=column.no_wrap)
    cells = [[max(column.cells, key=_cell_width, default="")] if is_sample else column.cells for column in columns]
    for row in zip(*cells, strict=True):
        block.add_row(*row)
    return block


def _fold_head(table: Table, excess: int) -> None:
    """Fold the head of the last column, if only its head makes it too wide."""
    column = table.columns[-1]
    widest = max(map(_cell_width, column.cells), default=1)
    room = _cell_width(column.header) - excess
    if room >= widest:
        column.no_wrap, column.overflow, column.width = False, "fold", room


def _cell_width(cell: RenderableType) -> int:
    return cell_len(escape_line(str(cell)))


def _measure_width(console: Console, table: Table) -> int:
    return Measurement.get(console, console.options.update(max_width=MAX_WIDTH), table).maximum
