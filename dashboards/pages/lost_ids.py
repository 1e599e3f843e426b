"""Panel of the ids that are missing in a window: search, copy and download."""

from __future__ import annotations

from functools import partial

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.queries.window_models import NodeLostIds, WindowDetail
from hopwatch.dashboards.views import lost_ids
from hopwatch.dashboards.views.address import PageName
from hopwatch.monitor.results import WindowResult
from hopwatch.monitor.texts.escaping import escape_line

COLUMNS = (("Message id", "hw-name"), ("Last seen", ""))


def draw_lost_ids(context: PageContext, whole: WindowDetail) -> None:
    """Draw a page of the ids that are kept as missing at one node, and choices of node, id and page."""
    with st.container(border=True, key="lost"):
        shown = next((one for one in whole.lost_ids if one.ids), None)
        if shown is None:
            overdue = _format_overdue(context, whole.result)
            title = markup.title("Overdue ids" if overdue else "Missing ids")
            st.html(title + (overdue or markup.note(_explain_none(whole.result))))
            return
        is_sure = lost_ids.is_sure(whole.result, shown.node)
        what = (
            f"Each was {lost_ids.format_certainty(whole.result, shown.node)}. Each leads to the journey of its message."
        )
        st.html(markup.title("Lost ids" if is_sure else "Missing ids", what))
        page = lost_ids.select_page(shown.ids, context.address.search, context.address.part)
        _draw_controls(context, whole, shown, page)
        node = next((one for one in whole.result.nodes if one.node == shown.node), None)
        seen = lost_ids.format_last_seen(whole.graph, whole.result, shown.node)
        rows = [_format_row(context, one, seen) for one in page.ids]
        lines = (
            lost_ids.format_counts(page, shown.node, shown.count),
            lost_ids.format_left_out(node, shown.count),
            lost_ids.format_hash_note(page),
        )
        told = "".join(markup.note(line) for line in lines if line)
        st.html(told + (markup.table(COLUMNS, rows, "hw-ids", f"Ids that are missing at {shown.node}") if rows else ""))
        _draw_page_links(context, page)


def _format_overdue(context: PageContext, one: WindowResult) -> str:
    """Return the ids of what is overdue at each node, each with a link to its journey; empty of nothing."""
    told = ""
    for node in one.nodes:
        if node.overdue_ids:
            told += markup.note(lost_ids.format_overdue(node))
            rows = [(_link_journey(context, shown, lost_ids.parse_shown(shown)),) for shown in node.overdue_ids]
            told += markup.table(COLUMNS[:1], rows, "hw-ids", f"Ids of what is overdue at {node.node}")
    return told


def _explain_none(one: WindowResult) -> str:
    if not one.status.is_final:
        return "None so far: until the window is judged, what is missing is in flight."
    if any(node.loss for node in one.nodes):
        return "Messages are missing, and no id of them is kept."
    return "None: no message is missing. What a hole hid has no id."


def _draw_controls(context: PageContext, whole: WindowDetail, shown: NodeLostIds, page: lost_ids.LostIdPage) -> None:
    kept = {one.node: one.count for one in whole.lost_ids}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        key = f"lost-at-{shown.node}"
        st.selectbox(
            "Missing at",
            list(kept),
            index=list(kept).index(shown.node),
            format_func=lambda name: f"{name} ({kept[name]:,})",
            key=key,
            on_change=context.on_change(key, lambda node: {"node": node, "part": 1}, shown.node),
            width=240,
        )
        key = f"search-{context.address.search}"
        st.text_input(
            "Look for an id",
            value=context.address.search,
            placeholder="a part of it, or the id itself",
            key=key,
            on_change=context.on_change(
                key, lambda part: {"search": part or "", "node": shown.node, "part": 1}, context.address.search
            ),
            width=340,
        )
        with st.popover("Copy", icon=":material/content_copy:", disabled=not page.ids):
            st.code("\n".join(shown for _, shown in page.ids), language=None)
        one = whole.result
        if commands := lost_ids.build_redrive_commands(one, whole.graph, shown.node):
            _draw_redrive(*commands)
        st.download_button(
            f"CSV of all {shown.count:,}",
            data=partial(lost_ids.build_csv, one, whole.graph, shown.node, shown.ids),
            file_name=lost_ids.build_file_name(one, shown.node),
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
            key=f"csv-{shown.node}-{one.window_start_us}",
        )


def _draw_redrive(find: str, send: str) -> None:
    """Draw the commands of a redrive: whoever may send messages runs them, the page itself sends nothing."""
    with st.popover("Redrive", icon=":material/replay:"):
        st.html(markup.note("Find these messages in the topic of the node before; nothing is sent."))
        st.code(find, language=None, wrap_lines=True)
        st.html(markup.note("Send them again, 100 a second. The state keeps what was sent, so that a kill is no harm."))
        st.code(send, language=None, wrap_lines=True)


def _format_row(context: PageContext, one: tuple[bytes, str], seen: str) -> tuple[str, str]:
    message_id, shown = one
    return _link_journey(context, shown, lost_ids.format_uuid(message_id)), markup.escape_html(seen)


def _link_journey(context: PageContext, shown: str, message_id: str) -> str:
    query = context.url_query(page=PageName.MESSAGE, message_id=message_id, node="", window_us=None)
    journey = markup.link(escape_line(shown), query, "the journey of this message")
    return f'<span class="hw-id">{journey}{context.link_trace(shown)}</span>'


def _draw_page_links(context: PageContext, page: lost_ids.LostIdPage) -> None:
    if page.parts == 1:
        return
    ends = ((page.previous, "← the ones before"), (page.next, "the next ones →"))
    ways = [markup.link(name, context.url_query(part=part)) for part, name in ends if part is not None]
    told = f'<span class="hw-off">page {page.part:,} of {page.parts:,}</span>'
    st.html(f'<nav class="hw-steps" aria-label="Pages of missing ids">{told}{"".join(ways)}</nav>')
