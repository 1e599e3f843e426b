"""Panel of consumer lag: how far the consumer groups of a stream's nodes are behind, by partition."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.pages.recent_panel import fetch_recent
from hopwatch.display import texts
from hopwatch.display.consumer_lag import LAG_COLUMNS, build_lag_rows, describe_lag
from hopwatch.monitor.texts.escaping import escape_line

MAX_PARTITIONS: Final = 10
"""Partitions of a group that are shown, the ones that are furthest behind."""
_HEAD: Final = tuple((name.capitalize(), "hw-number") for name in LAG_COLUMNS)


def draw_lags(context: PageContext) -> None:
    """Draw the lag of the consumer groups of the selected stream; nothing where the configuration names none."""
    answer = context.query_cache.consumer_lags.find_latest(context.address.stream)
    if answer is None:
        return
    recent = fetch_recent(context)
    nodes = {node.node: node for node in recent.nodes} if recent else {}
    asked = f"As the brokers said at {texts.format_second(answer.read_us, context.zone)}." if answer.read_us else ""
    with st.container(border=True, key="lag"):
        st.html(markup.title("Consumer lag", asked or "The brokers are asked."))
        if answer.error:
            st.warning(markup.escape_markdown(answer.error))
        for group in answer.groups:
            told = markup.escape_html(escape_line(describe_lag(group, nodes.get(group.node))))
            rows = [[markup.escape_html(cell) for cell in row] for row in build_lag_rows(group, MAX_PARTITIONS)]
            left = len(group.partitions) - len(rows)
            note = markup.note(f"{left:,} more partitions, none of them further behind.") if left else ""
            table = markup.table(_HEAD, rows, "hw-labels", f"Lag of the consumer group of {group.node} by partition")
            st.html(f"<p>{told}</p>{table}{note}")
