"""The app that Streamlit runs for each viewer: the frame of every page, and which page it is.

``streamlit run dashboards/app.py -- CONFIG`` is what ``hopwatch dashboard`` does.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import streamlit as st

from dashboards import look, looking, markup
from dashboards.looking import Looking
from dashboards.pages import empty, overview, stream
from dashboards.reading.answers import Answer, Answers
from dashboards.reading.questions import HowAllStands
from dashboards.reading.told import Standing
from dashboards.views import address, freshness
from dashboards.views.address import Address, Page, Zone
from monitor import settings
from monitor.clock import Clock, SystemClock

REFRESH_S = 5


@st.cache_resource(show_spinner=False)
def answers_of(config: str) -> Answers:
    """Return the answers of the store that a configuration names; all viewers share them."""
    chosen = settings.load(Path(config), flags={}, environ=os.environ)
    return Answers(chosen.store.url, SystemClock())


def show(answers: Answers, config: str, clock: Clock) -> None:
    """Draw the page that the URL names."""
    st.set_page_config(page_title="Hopwatch", page_icon="〽️", layout="wide", initial_sidebar_state="collapsed")

    def page() -> None:
        _refreshed(answers, config, clock)

    # With pages of its own, Streamlit makes none of the folder's files.
    st.navigation([st.Page(page, title="Hopwatch", url_path="", default=True)], position="hidden").run()


@st.fragment(run_every=REFRESH_S)
def _refreshed(answers: Answers, config: str, clock: Clock) -> None:
    read, wrong = address.read(st.query_params.to_dict())
    here = Looking(answers, clock, read, looking.palette(), looking.zone_of(read))
    st.html(look.styles(here.palette))
    standing = answers.ask(HowAllStands())
    here, complaints = _known(here, standing.value, wrong)
    _frame(here, standing)
    for complaint in complaints:
        st.warning(markup.plain(complaint))
    if standing.value is None:
        empty.show(config, has_store=standing.has_store)
    elif not standing.value.streams or all(one.last_us is None for one in standing.value.streams):
        empty.show(config, has_store=True)
    elif here.address.page is Page.STREAM and (now := standing.value.of(here.address.stream)):
        stream.show(here, now)
    else:
        overview.show(here, standing.value)


def _known(here: Looking, standing: Standing | None, wrong: tuple[str, ...]) -> tuple[Looking, tuple[str, ...]]:
    """Return the look at what there is: all streams instead of one that nobody knows."""
    asked = here.address
    if standing is None or asked.page is not Page.STREAM or standing.of(asked.stream):
        return here, wrong
    there = Address(range=asked.range, zone=asked.zone)
    told = f"there is no stream {asked.stream!r:.{address.MOST_SHOWN}}: showing all of them"
    return replace(here, address=there), (*wrong, told)


def _frame(here: Looking, standing: Answer[Standing]) -> None:
    brand, times = st.columns([5, 2], vertical_alignment="center")
    trail = '<b><a href="?" target="_self">Hopwatch</a></b>'
    home = markup.link("Overview", here.query(page=Page.OVERVIEW, stream="", node="", window_us=None))
    if here.address.page is Page.STREAM:
        of_stream = f'<span class="hw-here">{markup.text(here.address.stream)}</span>'
        trail += f'<span class="hw-sep">/</span>{home}<span class="hw-sep">/</span>{of_stream}'
    else:
        trail += '<span class="hw-sep">/</span><span class="hw-here">Overview</span>'
    watermark_us = standing.value.watermark_us if standing.value else None
    now_us = here.clock.now_us()
    fresh = freshness.line(now_us, standing.read_us, watermark_us) if standing.value else ""
    brand.html(f'<div class="hw-brand">{trail}<span class="hw-fresh">{markup.text(fresh)}</span></div>')
    with times.container(horizontal=True, horizontal_alignment="right"):
        _zone(here)
    for notice in freshness.notices(now_us, standing.read_us, watermark_us, standing.trouble):
        (st.error if notice.is_grave else st.warning)(markup.plain(notice.words), icon="⚠️")


def _zone(here: Looking) -> None:
    chosen = st.segmented_control(
        "Time zone",
        list(Zone),
        default=here.address.zone,
        format_func=lambda zone: {Zone.UTC: "UTC", Zone.LOCAL: "Local time"}[zone],
        label_visibility="collapsed",
        required=True,
        key=f"zone-{here.address.zone}",
    )
    if chosen != here.address.zone:
        here.go(zone=chosen)


if __name__ == "__main__":
    show(answers_of(sys.argv[1]), sys.argv[1], SystemClock())
