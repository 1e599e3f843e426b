"""Filters of the pages of all streams: stream, range, folded rows, search."""

from __future__ import annotations

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.pages import stream_controls
from hopwatch.dashboards.queries.models import StreamsOverview
from hopwatch.dashboards.views.address import FoldState, PageName
from hopwatch.dashboards.views.display_range import DisplayRange
from hopwatch.display import texts

ALL_STREAMS = "all streams"
NOTHING_FOUND = "No stream has all of this in its name, its labels and the names of its nodes."


def draw_filters(
    context: PageContext, standing: StreamsOverview, *, has_range: bool = True, search_label: str = ""
) -> None:
    """Draw the choices; whatever is chosen goes into the URL. A search says what it looks for."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if has_range:
            stream_controls.draw_range_control(context)
        draw_stream_control(context, standing)
        if search_label:
            draw_search(context, search_label)


def draw_fold_control(context: PageContext, words: str) -> None:
    """Draw the choice whether what is folded away is shown."""
    here = context.address
    key = f"folded-{here.folded}"
    shown = here.folded is FoldState.SHOWN
    change = context.on_change(
        key, lambda is_on: {"folded": FoldState.SHOWN if is_on else FoldState.AWAY, "part": 1}, shown
    )
    st.toggle(words, value=shown, key=key, on_change=change)


def format_range(context: PageContext, shown: DisplayRange) -> str:
    """Return which range is shown, in words."""
    return " to ".join(texts.format_moment(at, context.zone) for at in (shown.from_us, shown.to_us))


def link_node(context: PageContext, stream: str, node: str, window_us: int | None = None) -> str:
    """Return the link to a node of a stream, or to the stream; what is of none is the monitor's own."""
    if not stream:
        return markup.link("the monitor itself", context.fresh_url_query(page=PageName.QUALITY))
    where = {"page": PageName.STREAM, "stream": stream, "node": node, "window_us": window_us}
    away = {} if window_us is None else {"from_us": None, "to_us": None}
    return markup.link(node or stream, context.fresh_url_query(**where | away))


def link_node_and_stream(context: PageContext, stream: str, node: str, window_us: int | None = None) -> str:
    """Return the link to a node, and its stream below it."""
    link = link_node(context, stream, node, window_us)
    return f'<span class="hw-first">{link}</span><span class="hw-second">{markup.escape_html(stream)}</span>'


def draw_stream_control(context: PageContext, standing: StreamsOverview, width_px: int = 260) -> None:
    """Draw the choice of one stream, or of all."""
    here = context.address
    names = ["", *(one.stream for one in standing.streams)]
    shown = here.stream if here.stream in names else ""
    key = f"stream-{here.stream}"
    st.selectbox(
        "Stream",
        names,
        index=names.index(shown),
        format_func=lambda name: name or ALL_STREAMS,
        key=key,
        on_change=context.on_change(key, lambda name: {"stream": name, "part": 1}, shown),
        width=width_px,
    )


def draw_search(context: PageContext, label: str) -> None:
    """Draw the field of a search; the label says what it looks for."""
    here = context.address
    key = f"find-{here.search}"
    change = context.on_change(key, lambda wanted: {"search": wanted.strip(), "part": 1}, here.search)
    st.text_input(label, here.search, key=key, on_change=change, width=260, max_chars=200)
