"""CSV downloads and tables of charts, built only on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.views import sheets
from hopwatch.dashboards.views.sheets import CellValue, Sheet
from hopwatch.display import texts

MAX_ROWS: Final = 240
"""Rows of a table on the page; a file has all."""


def draw_title(title: str, note: str, stream: str, what: str, made: Callable[[], Sheet]) -> None:
    """Draw the title of a panel, with a way to its file beside it."""
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="top", gap="small"):
        st.html(markup.title(title, note), width="stretch")
        draw_csv_button(stream, what, made)


def draw_csv_button(stream: str, what: str, made: Callable[[], Sheet]) -> None:
    """Draw a button that downloads a sheet; the sheet is built at the click, not at a refresh."""
    st.download_button(
        "CSV",
        data=lambda: made().to_csv().encode(),
        file_name=f"{sheets.build_file_name(stream, what)}.csv",
        mime="text/csv",
        key=f"csv-{what}",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
        help=f"All numbers of {what.replace('-', ' ')} as a file, lags in µs",
    )


def draw_table(what: str, made: Callable[[], Sheet]) -> None:
    """Draw a sheet as a table that is collapsed at first."""
    opened = st.expander("As a table", key=f"table-{what}", on_change="rerun", type="compact")
    if not opened.open:
        return
    sheet = made()
    with opened:
        shown = sheet.rows[-MAX_ROWS:]
        if len(shown) < len(sheet.rows):
            st.html(markup.title("", f"The last {len(shown):,} of {len(sheet.rows):,} rows; the file has all."))
        kinds = [
            "hw-number" if any(isinstance(row[at], int | float) for row in shown) else "hw-narrow"
            for at in list_columns(sheet)
        ]
        head = list(zip((name.replace("_", " ") for name in sheet.columns), kinds, strict=True))
        rows = [[markup.escape_html(format_cell(value)) for value in row] for row in shown]
        st.html(markup.table(head, rows, "hw-sheet", what.replace("-", " ")))


def list_columns(sheet: Sheet) -> range:
    """Return the places of the columns of a sheet."""
    return range(len(sheet.columns))


def format_cell(value: CellValue) -> str:
    """Return a value as a cell shows it."""
    if value is None:
        return texts.NONE
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else value
