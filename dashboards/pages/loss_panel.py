"""Loss table of a window or a range, shared by several pages."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.pages import downloads
from hopwatch.dashboards.views import sheets
from hopwatch.display import loss_table
from hopwatch.display.step_marks import StepResult

TABLE_NOTE: Final = (
    "Missing is what was expected and not seen again, lost or not. Inside is timed message by message; process "
    "duration is the p95 of lag out less that of lag in."
)

NEGATIVE_NOTE = (
    " One below 0 is no time: late messages ended at the node or are still in it, so that they count in lag in alone, "
    "or the clocks of its sides differ."
)


def draw_loss_table(context: PageContext, one: StepResult) -> None:
    """Draw the table; the column of the node that was chosen has another background."""
    table = loss_table.build_loss_table(one)
    chosen = context.address.node
    kinds = {chosen: "hw-number hw-chosen"}
    head = [("", "hw-narrow"), *((node, kinds.get(node, "hw-number")) for node in table.nodes)]
    marks = ["", *(markup.chip(seen, context.palette) for seen in table.marks)]
    rows = [
        [markup.escape_html(line.name), *(markup.emphasis(cell.text, is_bad=cell.is_bad) for cell in line.cells)]
        for line in table.rows
    ]
    with st.container(border=True):
        below = NEGATIVE_NOTE if loss_table.has_negative_duration(one) else ""
        downloads.draw_title(
            "Loss of each node", TABLE_NOTE + below, context.address.stream, "loss", lambda: sheets.build_losses(one)
        )
        st.html(markup.table(head, [marks, *rows], "hw-matrix", "Counts, loss and lag of each node"))


def format_figures(one: StepResult, query: dict[str, str] | None = None) -> str:
    """Return the figures of the whole; those of loss lead to where the query goes, if there is one."""
    cells = (
        markup.linked_figure(name, told, query, "the ids, and all else of this minute")
        if query and name in loss_table.LOSS_FIGURES
        else markup.figure(name, told)
        for name, told in loss_table.build_figures(one)
    )
    return f'<div class="hw-figures">{"".join(cells)}</div>'
