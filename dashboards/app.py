"""The app that Streamlit runs for each viewer: which page it is, and that it asks again every few seconds.

``streamlit run dashboards/app.py -- CONFIG`` is what ``hopwatch dashboard`` does.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import streamlit as st

from hopwatch.dashboards import entrance, frame, look, looking, markup
from hopwatch.dashboards.looking import Looking
from hopwatch.dashboards.pages import alerts, empty, message, overview, probes, quality, stream, window
from hopwatch.dashboards.reading.answers import Answers
from hopwatch.dashboards.reading.questions import HowAllStands
from hopwatch.dashboards.reading.told import Standing
from hopwatch.dashboards.views import address
from hopwatch.dashboards.views.address import Page
from hopwatch.monitor import settings
from hopwatch.monitor.clock import Clock, SystemClock
from hopwatch.monitor.errors import ConfigurationError

REFRESH_S = 5
TIDY_S = 60
PAGES: Final[Mapping[Page, Callable[[Looking, Standing], None]]] = {
    Page.OVERVIEW: overview.show,
    Page.STREAM: stream.show,
    Page.WINDOW: window.show,
    Page.MESSAGE: message.show,
    Page.PROBES: probes.show,
    Page.ALERTS: alerts.show,
    Page.QUALITY: quality.show,
}


def run(config: str) -> None:
    """Draw the page over the store that a configuration names, or say what is wrong with that."""
    try:
        answers = answers_of(config)
    except ConfigurationError as error:
        told = str(error)
        _guarded(lambda: _wrong(config, told))
    else:
        show(answers, config, SystemClock())


@st.cache_resource(show_spinner=False)
def answers_of(config: str) -> Answers:
    """Return the answers of the store that a configuration names; all viewers share them.

    Raises:
        ConfigurationError: it has become wrong since the dashboard was started.
    """
    chosen = settings.load(Path(config), flags={}, environ=os.environ, without=settings.ALERTS)
    entrance.check(chosen.dashboard.login)
    return Answers(chosen.store.url, SystemClock(), chosen)


def show(answers: Answers, config: str, clock: Clock) -> None:
    """Draw the page that the URL names."""
    _guarded(lambda: _refreshed(answers, config, clock))


@st.cache_data(show_spinner=False, ttl=TIDY_S)
def _tidy() -> None:
    """Collect garbage, of all that was set aside too."""
    gc.unfreeze()
    gc.collect()


def _guarded(draw: Callable[[], None]) -> None:
    """Draw a page for who may see it, and the entrance for others."""
    st.set_page_config(page_title="Hopwatch", page_icon="〽️", layout="wide", initial_sidebar_state="collapsed")

    def page() -> None:
        if entrance.is_let_in():
            draw()
        else:
            entrance.show()

    # With pages of its own, Streamlit makes none of the folder's files.
    st.navigation([st.Page(page, title="Hopwatch", url_path="", default=True)], position="hidden").run()


@st.fragment(run_every=REFRESH_S)
def _wrong(config: str, told: str) -> None:
    """Say what is wrong with the configuration until it is right again."""
    with contextlib.suppress(ConfigurationError):
        answers_of(config)
        st.rerun()
    st.html(look.styles(looking.palette()))
    with st.container(key="entrance", width="stretch"):
        st.subheader("Hopwatch", anchor=False)
        st.error("The configuration has become wrong since the dashboard was started. Mend it, and this page goes on.")
        st.code(told, language=None, wrap_lines=True)


@st.fragment(run_every=REFRESH_S)
def _refreshed(answers: Answers, config: str, clock: Clock) -> None:
    if not entrance.is_let_in():
        # Who has just logged out; a rerun here would throw away what sends the browser to the provider.
        entrance.show()
        return
    read, wrong = address.read(st.query_params.to_dict())
    here = Looking(answers, clock, read, looking.palette(), looking.zone_of(read))
    st.html(look.styles(here.palette))
    standing = answers.ask(HowAllStands())
    here, complaints = _known(replace(here, is_down=bool(standing.trouble)), standing.value, wrong)
    frame.show(here, standing)
    for complaint in complaints:
        st.warning(markup.plain(complaint))
    if standing.value is None:
        # Of a store that could not be read nobody knows that it is empty.
        if not standing.trouble:
            empty.show(config, has_store=standing.has_store)
    elif all(one.last_us is None for one in standing.value.streams) and not here.address.page.is_of_signs:
        empty.show(config, has_store=True)
    else:
        PAGES[here.address.page](here, standing.value)
    # Streamlit looks for garbage after each run of each viewer, in all modules and all answers that are kept. That
    # would take longer than to draw a page; what is set aside it passes by.
    _tidy()
    gc.freeze()


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
    run(sys.argv[1])
