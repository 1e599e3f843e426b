"""Page of the service map: the nodes of all streams, each name once."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.charts.service_map import draw_map
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.pages import downloads, filters
from hopwatch.dashboards.pages.recent_panel import EDGE_HEAD
from hopwatch.dashboards.queries.models import StreamsOverview
from hopwatch.dashboards.queries.service_map import ServiceMapQuery
from hopwatch.dashboards.views import service_map, sheets
from hopwatch.dashboards.views.address import PageName
from hopwatch.dashboards.views.service_map import Service, ServiceNode
from hopwatch.dashboards.views.stream_search import find_streams
from hopwatch.display import loss, texts
from hopwatch.display.recent import build_edge_row, describe_traffic

COLUMNS: Final = (
    ("Stream", "hw-name"),
    ("Verdict", "hw-narrow"),
    ("Newest final window", "hw-narrow"),
    ("Messages", "hw-number"),
    ("Missing", "hw-number"),
    ("Lag p95", "hw-number"),
    ("Now", "hw-narrow"),
)
_EDGE_HEAD: Final = (("Stream", "hw-name"), *EDGE_HEAD)
NOTE: Final = (
    "A node is shown once, as the worst of its streams, with messages and loss of the newest final minute of each; "
    "a second (/s) and its lag are of now. Dashed: one of several ways, or a card with an old minute."
)


def draw_page(context: PageContext, standing: StreamsOverview) -> None:
    """Draw the page."""
    here = context.address
    filters.draw_filters(context, standing, has_range=False, search_label="Stream, node or label")
    answer = context.fetch(ServiceMapQuery())
    if answer.value is None:
        st.error(markup.escape_markdown(answer.error or "nothing was read"))
        return
    graphs = answer.value.graphs
    names = {name: (*context.stream_labels(name), *graph.nodes) for name, graph in graphs.items()}
    found = find_streams(standing, names, here.search)
    shown = service_map.build_map(found, answer.value, context.clock.now_us(), here.stream)
    downloads.draw_title("Service map", NOTE, here.stream, "service-map", lambda: sheets.build_service_map(shown))
    if shown.streams_left_out:
        left_out = f"{shown.streams_left_out:,} {'stream has' if shown.streams_left_out == 1 else 'streams have'}"
        st.html(markup.note(f"{left_out} no room: search for a name, or choose a stream."))
    if not shown.services:
        st.info(filters.NOTHING_FOUND if here.search else "Nothing to show yet.")
        return

    def query(node: str) -> dict[str, str]:
        return context.url_query(node="" if node == here.node else node)

    chosen = shown.find_service(here.node)
    if chosen:
        _draw_service(context, chosen)
    elif here.node:
        st.warning(markup.escape_markdown(f"no node {here.node} is on this map"))
    st.html(draw_map(shown, context.palette, here.node, query))


def _draw_service(context: PageContext, service: Service) -> None:
    """Draw what a service is in each of its streams."""
    rows = [_format_row(context, service.name, node) for node in service.worst_first]
    with st.container(border=True, key="service"):
        told = markup.title(f"{service.name}, stream by stream")
        st.html(told + markup.table(COLUMNS, rows, "hw-labels", f"{service.name} in each of its streams"))
        if edges := [(node.stream, *build_edge_row(edge)) for node in service.worst_first for edge in node.edges]:
            told = markup.title(f"Time to and from {service.name} now")
            cells = [[markup.escape_html(cell) for cell in row] for row in edges]
            st.html(told + markup.table(_EDGE_HEAD, cells, "hw-labels", f"Time to and from {service.name} now"))


def _format_row(context: PageContext, name: str, node: ServiceNode) -> tuple[str, ...]:
    stream = context.fresh_url_query(page=PageName.STREAM, stream=node.stream, node=name)
    lost = f"{loss.format_node_loss(node.result)} ({loss.format_node_loss_ratio(node.result)})" if node.result else ""
    return (
        markup.link(node.stream, stream),
        markup.chip(node.mark, context.palette),
        _format_window(context, name, node),
        markup.escape_html(texts.NONE if node.messages is None else texts.format_count(node.messages)),
        markup.escape_html(lost or texts.NONE),
        markup.escape_html(texts.format_lag(node.lag_p95_us)),
        markup.escape_html(describe_traffic(node.recent) if node.recent else texts.NONE),
    )


def _format_window(context: PageContext, name: str, node: ServiceNode) -> str:
    """Return the newest final window as a link to its page, and how long ago it ended."""
    if node.window_us is None:
        return texts.NONE
    query = context.fresh_url_query(page=PageName.WINDOW, stream=node.stream, node=name, window_us=node.window_us)
    link = markup.link(texts.format_moment(node.window_us, context.zone, "%H:%M"), query)
    age = f"⚠ {node.age} ago" if node.is_old else f"{node.age} ago" if node.age else ""
    return f'{link}<span class="hw-second{" hw-old" if node.is_old else ""}">{markup.escape_html(age)}</span>'
