"""The app that Streamlit runs for each viewer: which page it is, and that it asks again every few seconds.

``streamlit run dashboards/app.py -- CONFIG`` is what ``hopwatch dashboard`` does.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import streamlit as st

from dashboards import frame, look, looking, markup
from dashboards.looking import Looking
from dashboards.pages import alerts, empty, message, overview, probes, quality, stream, window
from dashboards.reading.answers import Answers
from dashboards.reading.questions import HowAllStands
from dashboards.reading.told import Standing
from dashboards.views import address
from dashboards.views.address import Page
from monitor import settings
from monitor.clock import Clock, SystemClock

REFRESH_S = 5
PAGES: Final[Mapping[Page, Callable[[Looking, Standing], None]]] = {
    Page.OVERVIEW: overview.show,
    Page.STREAM: stream.show,
    Page.WINDOW: window.show,
    Page.MESSAGE: message.show,
    Page.PROBES: probes.show,
    Page.ALERTS: alerts.show,
    Page.QUALITY: quality.show,
}


@st.cache_resource(show_spinner=False)
def answers_of(config: str) -> Answers:
    """Return the answers of the store that a configuration names; all viewers share them."""
    # Streamlit collects garbage after each run of each viewer, and would look through all modules each time.
    gc.freeze()
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
    frame.show(here, standing)
    for complaint in complaints:
        st.warning(markup.plain(complaint))
    if standing.value is None:
        empty.show(config, has_store=standing.has_store)
    elif not standing.value.streams or all(one.last_us is None for one in standing.value.streams):
        empty.show(config, has_store=True)
    else:
        PAGES[here.address.page](here, standing.value)


def _known(here: Looking, standing: Standing | None, wrong: tuple[str, ...]) -> tuple[Looking, tuple[str, ...]]:
    """Return the look at what there is: all streams instead of one that nobody knows."""
    asked = here.address
    if standing is None or not asked.stream or standing.of(asked.stream):
        return here, wrong
    page = Page.OVERVIEW if asked.page.is_of_a_stream else asked.page
    there = replace(asked, page=page, stream="", node="", window_us=None)
    told = f"there is no stream {asked.stream!r:.{address.MOST_SHOWN}}: showing all of them"
    return replace(here, address=there), (*wrong, told)


if __name__ == "__main__":
    show(answers_of(sys.argv[1]), sys.argv[1], SystemClock())
