"""Panel of a window's loss by second: bursts of all nodes, and the seconds of one."""

from __future__ import annotations

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.charts import second_chart
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.queries.window_models import WindowDetail
from hopwatch.display.bursts import describe_bursts
from hopwatch.monitor.kernel.bursts import find_bursts


def draw_seconds(context: PageContext, whole: WindowDetail) -> None:
    """Draw the seconds of the node that is chosen, else of the one that misses most; nothing where none misses any."""
    if not whole.seconds:
        return
    start_us = whole.result.window_start_us
    losses = {node: sum(counts.lost) for node, counts in whole.seconds.items()}
    asked = context.address.node
    chosen = asked if asked in losses else max(losses, key=lambda node: losses[node])
    lines = [
        line
        for node, counts in whole.seconds.items()
        for line in describe_bursts(node, start_us, find_bursts(counts), whole.markers, context.zone)
    ]
    is_sure = any(node.node == chosen and node.loss_lower > 0 for node in whole.result.nodes)
    picture = second_chart.draw_seconds(whole.seconds[chosen], start_us, context.palette, context.zone, is_sure=is_sure)
    said = second_chart.describe_seconds(chosen, whole.seconds[chosen])
    with st.container(border=True, key="seconds"):
        what = f"Messages of {chosen} by the second of their event time; those on top are missing."
        told = markup.title("Loss by second", what)
        told += markup.note_list(lines or ["no second stands out: the loss is spread over the minute"])
        others = {node: f"{node} ({lost:,} missing)" for node, lost in losses.items() if node != chosen}
        st.html(told + context.link_nodes(others, "Other nodes by second") + markup.image(picture, said, "hw-wide"))
