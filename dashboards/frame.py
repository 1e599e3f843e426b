"""Frame of every page: navigation, breadcrumbs, time zone, age of the data and notices."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import login_page, markup
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.queries.models import StreamsOverview
from hopwatch.dashboards.queries.query_cache import QueryResult
from hopwatch.dashboards.views import freshness
from hopwatch.dashboards.views.address import PageName, Zone
from hopwatch.display import texts

PAGE_TITLES: Final = {
    PageName.OVERVIEW: "Overview",
    PageName.MAP: "Service map",
    PageName.ALERTS: "Outliers and alerts",
    PageName.PROBES: "Probes",
    PageName.QUALITY: "Quality",
    PageName.MESSAGE: "Find a message",
}
"""The pages that every page links to, and what they are called."""


def draw_frame(context: PageContext, standing: QueryResult[StreamsOverview]) -> None:
    """Draw it."""
    reached = standing.value.reached if standing.value else None
    now_us = context.clock.now_us()
    fresh = freshness.format_freshness(now_us, standing.read_us, reached, context.zone) if reached else ""
    ways, times = st.columns([5, 2], vertical_alignment="center")
    ways.html(f'<nav class="hw-brand" aria-label="Pages"><b>Hopwatch</b>{_format_page_links(context, standing)}</nav>')
    with times.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        _draw_zone_control(context)
        login_page.draw_logout()
    st.html(
        f'<div class="hw-trail">{_format_breadcrumbs(context)}'
        f'<span class="hw-fresh">{markup.escape_html(fresh)}</span></div>'
    )
    for notice in freshness.build_notices(now_us, standing.read_us, reached, standing.error, context.zone):
        (st.error if notice.is_grave else st.warning)(markup.escape_markdown(notice.words), icon="⚠️")


def _format_page_links(context: PageContext, standing: QueryResult[StreamsOverview]) -> str:
    """Return links to all pages, and how many incidents are open; range and zone go along."""
    here, firing = context.address.page, standing.value.open_incidents if standing.value else 0
    ways = {
        page: markup.link(name, context.fresh_url_query(page=page))
        if page is not here
        else f'<span class="hw-here" aria-current="page">{markup.escape_html(name)}</span>'
        for page, name in PAGE_TITLES.items()
    }
    if firing:
        told = markup.link(f"⚠ {firing:,} firing", context.fresh_url_query(page=PageName.ALERTS))
        ways[PageName.ALERTS] += f'<span class="hw-loud">{told}</span>'
    return "".join(ways.values())


def _format_breadcrumbs(context: PageContext) -> str:
    """Return the way to a stream or one of its windows, each step of it a link."""
    here = context.address
    if not here.page.needs_stream:
        return ""
    over = markup.link("Overview", context.url_query(page=PageName.OVERVIEW, stream="", node="", window_us=None))
    steps = [over, f'<span class="hw-here">{markup.escape_html(here.stream)}</span>']
    if here.page is PageName.WINDOW and here.window_us is not None:
        stream = markup.link(here.stream, context.url_query(page=PageName.STREAM))
        at = markup.escape_html(texts.format_moment(here.window_us, context.zone))
        steps = [over, stream, f'<span class="hw-here">{at}</span>']
    return '<span class="hw-sep">/</span>'.join(steps)


def _draw_zone_control(context: PageContext) -> None:
    key = f"zone-{context.address.zone}"
    st.segmented_control(
        "Time zone",
        list(Zone),
        default=context.address.zone,
        format_func=lambda zone: {Zone.UTC: "UTC", Zone.LOCAL: "Local time"}[zone],
        label_visibility="collapsed",
        required=True,
        key=key,
        on_change=context.on_change(key, lambda zone: {"zone": zone}, context.address.zone),
    )
