"""The ids that are missing in a window, node by node: to look for one, to copy them, to take them along."""

from __future__ import annotations

from functools import partial

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.looking import Looking
from hopwatch.dashboards.reading.window_told import LostOf, WholeWindow
from hopwatch.dashboards.views import lost_ids
from hopwatch.dashboards.views.address import Page
from hopwatch.monitor.results import WindowResult
from hopwatch.monitor.texts.escaping import escape_line

HEAD = (("Message id", "hw-name"), ("Last seen", ""))


def show(looking: Looking, whole: WholeWindow) -> None:
    """Draw a page of the ids that are kept as missing at one node, and choices of node, id and page."""
    with st.container(border=True, key="lost"):
        shown = next((one for one in whole.lost if one.ids), None)
        if shown is None:
            st.html(markup.title("Missing ids") + markup.note(_none(whole.result)))
            return
        is_sure = lost_ids.is_sure(whole.result, shown.node)
        what = f"Each was {lost_ids.known_of(whole.result, shown.node)}. Each leads to the journey of its message."
        st.html(markup.title("Lost ids" if is_sure else "Missing ids", what))
        page = lost_ids.page(shown.ids, looking.address.search, looking.address.part)
        _choices(looking, whole, shown, page)
        node = next((one for one in whole.result.nodes if one.node == shown.node), None)
        seen = lost_ids.last_seen(whole.graph, whole.result, shown.node)
        rows = [_row(looking, one, seen) for one in page.ids]
        lines = (
            lost_ids.counted(page, shown.node, shown.kept),
            lost_ids.beyond(node, shown.kept),
            lost_ids.hashed(page),
        )
        told = "".join(markup.note(line) for line in lines if line)
        st.html(told + (markup.table(HEAD, rows, "hw-ids", f"Ids that are missing at {shown.node}") if rows else ""))
        _pages(looking, page)


def _none(one: WindowResult) -> str:
    if not one.status.is_final:
        return "None so far: until the window is judged, what is missing is in flight."
    if any(node.loss for node in one.nodes):
        return "Messages are missing, and no id of them is kept."
    return "None: no message is missing. What a hole hid has no id."


def _choices(looking: Looking, whole: WholeWindow, shown: LostOf, page: lost_ids.Page) -> None:
    kept = {one.node: one.kept for one in whole.lost}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        key = f"lost-at-{shown.node}"
        st.selectbox(
            "Missing at",
            list(kept),
            index=list(kept).index(shown.node),
            format_func=lambda name: f"{name} ({kept[name]:,})",
            key=key,
            on_change=looking.changes(key, lambda node: {"node": node, "part": 1}, shown.node),
            width=240,
        )
        key = f"search-{looking.address.search}"
        st.text_input(
            "Look for an id",
            value=looking.address.search,
            placeholder="a part of it, or the id itself",
            key=key,
            on_change=looking.changes(
                key, lambda part: {"search": part or "", "node": shown.node, "part": 1}, looking.address.search
            ),
            width=340,
        )
        with st.popover("Copy", icon=":material/content_copy:", disabled=not page.ids):
            st.code("\n".join(shown for _, shown in page.ids), language=None)
        one = whole.result
        st.download_button(
            f"CSV of all {shown.kept:,}",
            data=partial(lost_ids.table, one, whole.graph, shown.node, shown.ids),
            file_name=lost_ids.file_name(one, shown.node),
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
            key=f"csv-{shown.node}-{one.window_start_us}",
        )


def _row(looking: Looking, one: tuple[bytes, str], seen: str) -> tuple[str, str]:
    message_id, shown = one
    query = looking.query(page=Page.MESSAGE, message_id=lost_ids.unmistakable(message_id), node="", window_us=None)
    return (
        f'<span class="hw-id">{markup.link(escape_line(shown), query, "the journey of this message")}</span>',
        markup.text(seen),
    )


def _pages(looking: Looking, page: lost_ids.Page) -> None:
    if page.parts == 1:
        return
    ends = ((page.before, "← the ones before"), (page.after, "the next ones →"))
    ways = [markup.link(name, looking.query(part=part)) for part, name in ends if part is not None]
    told = f'<span class="hw-off">page {page.part:,} of {page.parts:,}</span>'
    st.html(f'<nav class="hw-steps" aria-label="Pages of missing ids">{told}{"".join(ways)}</nav>')
