"""What a person chooses on the pages of all streams: one of them, the range, whether all rows are shown."""

from __future__ import annotations

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.looking import Looking
from hopwatch.dashboards.pages import choosing
from hopwatch.dashboards.reading.told import Standing
from hopwatch.dashboards.views import texts
from hopwatch.dashboards.views.address import Folded, Page
from hopwatch.dashboards.views.span import Span

ALL_STREAMS = "all streams"


def show(looking: Looking, standing: Standing, *, has_range: bool = True, has_search: bool = False) -> None:
    """Draw the choices; whatever is chosen goes into the URL."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if has_range:
            choosing.ranges(looking)
        stream(looking, standing)
        if has_search:
            _search(looking)


def fold(looking: Looking, words: str) -> None:
    """Draw the choice whether what is folded away is shown."""
    here = looking.address
    key = f"folded-{here.folded}"
    shown = here.folded is Folded.SHOWN
    change = looking.changes(key, lambda is_on: {"folded": Folded.SHOWN if is_on else Folded.AWAY, "part": 1}, shown)
    st.toggle(words, value=shown, key=key, on_change=change)


def ends(looking: Looking, shown: Span) -> str:
    """Return which range is shown, in words."""
    return " to ".join(texts.moment(at, looking.zone) for at in (shown.from_us, shown.to_us))


def place(looking: Looking, stream: str, node: str, window_us: int | None = None) -> str:
    """Return the link to a node of a stream, or to the stream; what is of none is the monitor's own."""
    if not stream:
        return markup.link("the monitor itself", looking.there(page=Page.QUALITY))
    where = {"page": Page.STREAM, "stream": stream, "node": node, "window_us": window_us}
    away = {} if window_us is None else {"from_us": None, "to_us": None}
    return markup.link(node or stream, looking.there(**where | away))


def place_of(looking: Looking, stream: str, node: str, window_us: int | None = None) -> str:
    """Return the link to a node, and its stream below it."""
    link = place(looking, stream, node, window_us)
    return f'<span class="hw-first">{link}</span><span class="hw-second">{markup.text(stream)}</span>'


def stream(looking: Looking, standing: Standing, width_px: int = 260) -> None:
    """Draw the choice of one stream, or of all."""
    here = looking.address
    names = ["", *(one.stream for one in standing.streams)]
    shown = here.stream if here.stream in names else ""
    key = f"stream-{here.stream}"
    st.selectbox(
        "Stream",
        names,
        index=names.index(shown),
        format_func=lambda name: name or ALL_STREAMS,
        key=key,
        on_change=looking.changes(key, lambda name: {"stream": name, "part": 1}, shown),
        width=width_px,
    )


def _search(looking: Looking) -> None:
    here = looking.address
    key = f"find-{here.search}"
    change = looking.changes(key, lambda wanted: {"search": wanted.strip(), "part": 1}, here.search)
    st.text_input("Node, probe or stream", here.search, key=key, on_change=change, width=260, max_chars=200)
