"""Panel of a window's counts by label: one node at a time, and the values that were never seen before."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.queries.window_models import WindowDetail
from hopwatch.display.causes import describe_causes, describe_lag_causes
from hopwatch.display.label_table import LABEL_COLUMNS, LabelLine, build_label_lines, describe_new_values
from hopwatch.monitor.kernel.causes import rank_causes, rank_lag_causes
from hopwatch.monitor.results import WindowResult

MAX_ROWS: Final = 200
"""Rows of a node that are shown; ``report --json`` has all."""
MAX_NEW_VALUES: Final = 5
"""New values of a label that are named."""
_KINDS: Final = ("hw-name", "hw-narrow", "hw-name", *["hw-number"] * 8)
_HEAD: Final = tuple(zip(map(str.capitalize, LABEL_COLUMNS), _KINDS, strict=True))


def draw_labels(context: PageContext, whole: WindowDetail) -> None:
    """Draw the counts by label of one node, and links to the others; nothing where no batch has a label."""
    if not whole.labels:
        return
    chosen = select_node(whole, context.address.node)
    losses = {node.node: node.loss for node in whole.result.nodes}
    causes = [
        line
        for node, rows in whole.labels.items()
        for line in describe_causes(node, losses[node], rank_causes([rows]), rows)
    ]
    slow = [line for node, rows in whole.labels.items() for line in describe_lag_causes(node, rank_lag_causes(rows))]
    new = [line for node, rows in whole.labels.items() for line in describe_new_values(node, rows, MAX_NEW_VALUES)]
    notes, rows = causes + slow + new, whole.labels[chosen]
    lines = map(_format_line, build_label_lines(rows[:MAX_ROWS]))
    with st.container(border=True, key="labels"):
        what = f"Messages at {chosen} by the labels that probes sent with them: there, or at the nearest node before."
        told = markup.title("By label", what) + (markup.note_list(notes) if notes else "")
        others = {node: _name_node(whole.result, node) for node in whole.labels if node != chosen}
        told += context.link_nodes(others, "Other nodes by label")
        told += markup.table(_HEAD, lines, "hw-labels", f"Counts by label at {chosen}")
        if len(rows) > MAX_ROWS:
            told += markup.note(f"{len(rows):,} rows; the first {MAX_ROWS:,} are shown, and report --json has all.")
        st.html(told)


def _format_line(line: LabelLine) -> list[str]:
    label, said_at, value, messages, lost, ratio, *others = line.cells
    mark = f' <span class="hw-note">{markup.escape_html("new")}</span>' if line.is_new else ""
    return [
        markup.escape_html(label),
        markup.escape_html(said_at),
        markup.escape_html(value) + mark,
        markup.escape_html(messages),
        *(markup.emphasis(figure, is_bad=line.is_bad) for figure in (lost, ratio)),
        *map(markup.escape_html, others),
    ]


def select_node(whole: WindowDetail, asked: str) -> str:
    """Return the node whose labels are shown: the one that is asked for, else the one that misses or rejects most."""
    if asked in whole.labels:
        return asked
    weights = {node.node: (node.loss, node.rejected) for node in whole.result.nodes}
    return max(whole.labels, key=lambda node: weights[node])


def _name_node(one: WindowResult, name: str) -> str:
    node = next(node for node in one.nodes if node.node == name)
    told = [f"{node.loss:,} missing" if node.loss else "", f"{node.rejected:,} rejected" if node.rejected else ""]
    words = ", ".join(filter(None, told))
    return f"{name} ({words})" if words else name
