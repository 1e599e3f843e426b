"""What stands above every page: where one is, where else one may go, how old what is shown is, and what is wrong."""

from __future__ import annotations

from typing import Final

import streamlit as st

from hopwatch.dashboards import entrance, markup
from hopwatch.dashboards.looking import Looking
from hopwatch.dashboards.reading.answers import Answer
from hopwatch.dashboards.reading.told import Standing
from hopwatch.dashboards.views import freshness, texts
from hopwatch.dashboards.views.address import Page, Zone

PAGES: Final = {
    Page.OVERVIEW: "Overview",
    Page.ALERTS: "Outliers and alerts",
    Page.PROBES: "Probes",
    Page.QUALITY: "Quality",
    Page.MESSAGE: "Find a message",
}
"""The pages that every page links to, and what they are called."""


def show(looking: Looking, standing: Answer[Standing]) -> None:
    """Draw it."""
    reached = standing.value.reached if standing.value else None
    now_us = looking.clock.now_us()
    fresh = freshness.line(now_us, standing.read_us, reached, looking.zone) if reached else ""
    ways, times = st.columns([5, 2], vertical_alignment="center")
    ways.html(f'<nav class="hw-brand" aria-label="Pages"><b>Hopwatch</b>{_ways(looking, standing)}</nav>')
    with times.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        _zone(looking)
        entrance.leave()
    st.html(f'<div class="hw-trail">{_trail(looking)}<span class="hw-fresh">{markup.text(fresh)}</span></div>')
    for notice in freshness.notices(now_us, standing.read_us, reached, standing.trouble, looking.zone):
        (st.error if notice.is_grave else st.warning)(markup.plain(notice.words), icon="⚠️")


def _ways(looking: Looking, standing: Answer[Standing]) -> str:
    """Return links to all pages, and how many incidents are open; range and zone go along."""
    here, firing = looking.address.page, standing.value.firing if standing.value else 0
    ways = {
        page: markup.link(name, looking.there(page=page))
        if page is not here
        else f'<span class="hw-here" aria-current="page">{markup.text(name)}</span>'
        for page, name in PAGES.items()
    }
    if firing:
        told = markup.link(f"⚠ {firing:,} firing", looking.there(page=Page.ALERTS))
        ways[Page.ALERTS] += f'<span class="hw-loud">{told}</span>'
    return "".join(ways.values())


def _trail(looking: Looking) -> str:
    """Return the way to a stream or one of its windows, each step of it a link."""
    here = looking.address
    if not here.page.is_of_a_stream:
        return ""
    over = markup.link("Overview", looking.query(page=Page.OVERVIEW, stream="", node="", window_us=None))
    steps = [over, f'<span class="hw-here">{markup.text(here.stream)}</span>']
    if here.page is Page.WINDOW and here.window_us is not None:
        stream = markup.link(here.stream, looking.query(page=Page.STREAM))
        at = markup.text(texts.moment(here.window_us, looking.zone))
        steps = [over, stream, f'<span class="hw-here">{at}</span>']
    return '<span class="hw-sep">/</span>'.join(steps)


def _zone(looking: Looking) -> None:
    key = f"zone-{looking.address.zone}"
    st.segmented_control(
        "Time zone",
        list(Zone),
        default=looking.address.zone,
        format_func=lambda zone: {Zone.UTC: "UTC", Zone.LOCAL: "Local time"}[zone],
        label_visibility="collapsed",
        required=True,
        key=key,
        on_change=looking.changes(key, lambda zone: {"zone": zone}, looking.address.zone),
    )
