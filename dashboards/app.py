"""Streamlit app of the dashboard: it selects the page and refreshes it every few seconds.

``streamlit run dashboards/app.py -- CONFIG`` is what ``hopwatch dashboard`` does.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import streamlit as st

from hopwatch.dashboards import context, frame, login_page, markup, theme
from hopwatch.dashboards.context import PageContext
from hopwatch.dashboards.pages import (
    alerts,
    getting_started,
    message,
    overview,
    probes,
    quality,
    service_map,
    stream,
    window,
)
from hopwatch.dashboards.queries.models import StreamsOverview
from hopwatch.dashboards.queries.query_cache import QueryCache
from hopwatch.dashboards.queries.stream_queries import StreamsOverviewQuery
from hopwatch.dashboards.views import address
from hopwatch.dashboards.views.address import PageName
from hopwatch.monitor import settings
from hopwatch.monitor.clock import Clock, SystemClock
from hopwatch.monitor.errors import ConfigurationError

REFRESH_S = 5
GC_INTERVAL_S = 60
PAGES: Final[Mapping[PageName, Callable[[PageContext, StreamsOverview], None]]] = {
    PageName.OVERVIEW: overview.draw_page,
    PageName.MAP: service_map.draw_page,
    PageName.STREAM: stream.draw_page,
    PageName.WINDOW: window.draw_page,
    PageName.MESSAGE: message.draw_page,
    PageName.PROBES: probes.draw_page,
    PageName.ALERTS: alerts.draw_page,
    PageName.QUALITY: quality.draw_page,
}


def run(config: str) -> None:
    """Draw the page over the store that a configuration names, or say what is wrong with that."""
    try:
        answers = open_query_cache(config)
    except ConfigurationError as error:
        told = str(error)
        _draw_with_login(lambda: _draw_configuration_error(config, told))
    else:
        draw_app(answers, config, SystemClock())


@st.cache_resource(show_spinner=False)
def open_query_cache(config: str) -> QueryCache:
    """Return the answers of the store that a configuration names; all viewers share them.

    Raises:
        ConfigurationError: it has become wrong since the dashboard was started.
    """
    chosen = settings.load(Path(config), flags={}, environ=os.environ, without=settings.ALERTS)
    login_page.check_login(chosen.dashboard.login)
    return QueryCache(chosen.store.url, SystemClock(), chosen)


def draw_app(answers: QueryCache, config: str, clock: Clock) -> None:
    """Draw the page that the URL names."""
    _draw_with_login(lambda: _draw_page(answers, config, clock))


@dataclass(slots=True)
class GarbageTimer:
    """Collects garbage once in an interval, whatever number of viewers asks; safe from any thread."""

    due_s: float = -math.inf
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def collect_if_due(self, now_s: float) -> bool:
        """Collect garbage, of all that was set aside too, if the interval is over; return whether it was."""
        with self._lock:
            if now_s < self.due_s:
                return False
            self.due_s = now_s + GC_INTERVAL_S
        gc.unfreeze()
        gc.collect()
        return True


@st.cache_resource(show_spinner=False)
def _open_garbage_timer() -> GarbageTimer:
    """Return the timer that all viewers share."""
    return GarbageTimer()


def _draw_with_login(draw: Callable[[], None]) -> None:
    """Draw a page for a user with access, else the login page."""
    st.set_page_config(page_title="Hopwatch", page_icon="〽️", layout="wide", initial_sidebar_state="collapsed")

    def page() -> None:
        if login_page.has_access():
            draw()
        else:
            login_page.draw_login()

    # With pages of its own, Streamlit makes none of the folder's files.
    st.navigation([st.Page(page, title="Hopwatch", url_path="", default=True)], position="hidden").run()


@st.fragment(run_every=REFRESH_S)
def _draw_configuration_error(config: str, told: str) -> None:
    """Say what is wrong with the configuration until it is right again."""
    with contextlib.suppress(ConfigurationError):
        open_query_cache(config)
        st.rerun()
    st.html(theme.build_styles(context.read_palette()))
    with st.container(key="entrance", width="stretch"):
        st.subheader("Hopwatch", anchor=False)
        st.error(
            "The configuration has become wrong since the dashboard was started. Fix it; this page reloads by itself."
        )
        st.code(told, language=None, wrap_lines=True)


@st.fragment(run_every=REFRESH_S)
def _draw_page(answers: QueryCache, config: str, clock: Clock) -> None:
    if not login_page.has_access():
        # Who has just logged out; a rerun here would throw away what sends the browser to the provider.
        login_page.draw_login()
        return
    read, wrong = address.parse_address(st.query_params.to_dict())
    user = login_page.read_user_name()
    here = PageContext(answers, clock, read, context.read_palette(), context.read_zone(read), user=user)
    st.html(theme.build_styles(here.palette))
    standing = answers.fetch(StreamsOverviewQuery())
    here, complaints = _resolve_stream(replace(here, is_down=bool(standing.error)), standing.value, wrong)
    frame.draw_frame(here, standing)
    for complaint in complaints:
        st.warning(markup.escape_markdown(complaint))
    if standing.value is None:
        # A store that could not be read is not known to be empty.
        if not standing.error:
            getting_started.draw_page(config, has_store=standing.has_store)
    elif _is_empty(standing.value, here.address.page):
        getting_started.draw_page(config, has_store=True)
    else:
        PAGES[here.address.page](here, standing.value)
    # Streamlit looks for garbage after each run of each viewer, in all modules and all answers that are kept. That
    # would take longer than to draw a page; what is set aside it passes by.
    _open_garbage_timer().collect_if_due(clock.monotonic_s())
    gc.freeze()


def _is_empty(standing: StreamsOverview, page: PageName) -> bool:
    """Return whether a page has nothing to show: no stream has a window; of the overview none but the self-test."""
    streams = standing.listed_streams if page is PageName.OVERVIEW else standing.streams
    return all(one.last_us is None for one in streams) and not page.works_without_windows


def _resolve_stream(
    here: PageContext, standing: StreamsOverview | None, wrong: tuple[str, ...]
) -> tuple[PageContext, tuple[str, ...]]:
    """Return the context with a known stream: all streams where the named one does not exist."""
    asked = here.address
    if standing is None or not asked.stream or standing.find_stream(asked.stream):
        return here, wrong
    page = PageName.OVERVIEW if asked.page.needs_stream else asked.page
    there = replace(asked, page=page, stream="", node="", window_us=None)
    told = f"there is no stream {asked.stream!r:.{address.MAX_SHOWN}}: showing all of them"
    return replace(here, address=there), (*wrong, told)


if __name__ == "__main__":
    run(sys.argv[1])
