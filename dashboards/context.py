"""Context of one page view: queries, clock, address, colours and time zone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.queries.query_cache import Query, QueryCache, QueryResult, Value
from hopwatch.dashboards.views import address, freshness, stream_search
from hopwatch.dashboards.views.address import PageAddress, Zone, format_address
from hopwatch.display.colours import DARK, LIGHT, Palette
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.memo import Identity, Memo
from hopwatch.monitor.texts.trace_url import build_trace_url

Built = TypeVar("Built")
_SHARED: Final = Memo(256)


@dataclass(frozen=True, slots=True)
class PageContext:
    """Context of one view of a page; while the store ``is_down`` the page says so above all else.

    ``user`` is the name of who has logged in, and may acknowledge and silence; empty without a login.
    """

    query_cache: QueryCache
    clock: Clock
    address: PageAddress
    palette: Palette
    zone: tzinfo
    is_down: bool = False
    user: str = ""

    def link_nodes(self, names: Mapping[str, str], said: str) -> str:
        """Return links to the same page with other nodes chosen, in these words; nothing where there is none."""
        links = (markup.link(words, self.url_query(node=node, search="", part=1)) for node, words in names.items())
        return f'<nav class="hw-steps" aria-label="{markup.escape_html(said)}">{"".join(links)}</nav>' if names else ""

    def url_query(self, **fields: Any) -> dict[str, str]:  # noqa: ANN401 - the fields of an address
        """Return the query string of what is looked at, with some of it changed.

        On another page what is searched for, and which part of a list is shown, mean something else: they stay behind.
        """
        fresh: dict[str, Any] = {"search": "", "part": 1} if "page" in fields else {}
        return format_address(replace(self.address, **fresh | fields))

    def fresh_url_query(self, **fields: Any) -> dict[str, str]:  # noqa: ANN401 - the fields of an address
        """Return the query string of another page: of what is looked at only range, zone and colours go along."""
        kept = ("range", "from_us", "to_us", "zone", "heat", "compare")
        return format_address(PageAddress(**{name: getattr(self.address, name) for name in kept} | fields))

    def stream_labels(self, stream: str) -> tuple[str, ...]:
        """Return the labels of a stream, as the configuration had them when the dashboard was started."""
        settings = self.query_cache.settings
        known = settings.streams.get(stream) if settings else None
        return stream_search.format_labels(known.labels) if known else ()

    def link_trace(self, message_id: str) -> str:
        """Return a link to the trace of a message; nothing where the configuration names none, or it has none."""
        settings = self.query_cache.settings
        url = build_trace_url(settings.dashboard.trace_url, message_id) if settings else None
        return f" {markup.external_link('trace', url)}" if url else ""

    def link_labels(self, stream: str) -> str:
        """Return links from the labels of a stream to all streams that have them; nothing without any."""
        labels = self.stream_labels(stream)
        links = (markup.link(one, self.fresh_url_query(search=one), "all streams with this label") for one in labels)
        return f'<span class="hw-second">{" ".join(links)}</span>' if labels else ""

    def fetch(self, question: Query[Value]) -> QueryResult[Value]:
        """Return the answer; one that could not be had anew says so on the page."""
        answer = self.query_cache.fetch(question)
        if answer.value is not None and answer.error and not self.is_down:
            notice = freshness.build_stale_notice(self.clock.now_us(), answer.read_us, answer.error)
            st.error(markup.escape_markdown(notice.words), icon="⚠️")
        return answer

    def memoize(self, answer: object, name: str, make: Callable[[], Built]) -> Built:
        """Return what is made of an answer, made once for all who look at the same in the same way."""
        return _SHARED.get_or_build((Identity(answer), name, self.address, self.palette, str(self.zone)), make)

    @staticmethod
    def on_change(
        key: str,
        means: Callable[[Any], Mapping[str, Any]],
        shown: Any = None,  # noqa: ANN401 - of any widget
    ) -> Callable[[], None]:
        """Return what Streamlit is to call when a person has changed the widget of this key, before the page is drawn.

        The URL then has those fields of an address that the value of the widget means; without any it stays. It stays
        too where the value is the one that was ``shown``: Streamlit calls this also when a browser, which does not know
        yet that the page has changed, tells of a widget that is gone. Streamlit keeps what is returned here as long as
        its session lasts: ``means`` is to hold nothing large.
        """

        def changed() -> None:
            value = st.session_state[key]
            if value != shown and (fields := means(value)):
                # Not from what was drawn: of two changes that come together neither is lost.
                there, _ = address.parse_address(st.query_params.to_dict())
                st.query_params.from_dict(format_address(replace(there, **fields)))

        return changed


def read_palette() -> Palette:
    """Return the colours of the theme that the browser shows."""
    return DARK if st.context.theme.type == "dark" else LIGHT


def read_zone(address: PageAddress) -> tzinfo:
    """Return the time zone of the browser; UTC if it names no zone that is known here."""
    if address.zone is Zone.UTC or not st.context.timezone:
        return UTC
    try:
        return ZoneInfo(st.context.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder of zones is no zone
        return UTC
