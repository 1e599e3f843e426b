"""Tests of the search for streams, and of their labels on the pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from hopwatch.dashboards.pages.filters import NOTHING_FOUND
from hopwatch.dashboards.queries.models import StreamsOverview, StreamSummary
from hopwatch.dashboards.queries.query_cache import QueryCache
from hopwatch.dashboards.views.stream_search import find_streams, format_labels
from hopwatch.monitor import settings
from hopwatch.monitor.texts.read_progress import ReadProgress
from tests.support.dashboard_stores import clock, fill, plain, read_page, run_app, store_url
from tests.support.windows import at, window

LABELS = {"orders": ("team=payments", "tier=1"), "clicks": ("team=web",)}
CONFIG = """
[transport]
url = "spool:./spool"
[store]
url = "{url}"
[streams.orders]
path = "a -> b"
labels = {{ team = "payments", tier = "1" }}
[streams.clicks]
path = "x -> y"
labels = {{ team = "web<b>" }}
"""


def overview(*streams: StreamSummary) -> StreamsOverview:
    """Return the overview of streams."""
    return StreamsOverview(streams, ReadProgress(at(9)))


STANDING = overview(
    StreamSummary("orders", window(9), (), at(0), at(9)),
    StreamSummary("clicks", window(9, stream="clicks", names=("x", "y")), (), at(0), at(9)),
    StreamSummary("views", None),
)


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("", {"orders", "clicks", "views"}),
        ("CLI", {"clicks"}),
        ("team=", {"orders", "clicks"}),
        ("Team=Payments", {"orders"}),
        ("payments  tier=1", {"orders"}),
        ("pay tier=", {"orders"}),
        ("team=pay", set()),
        ("tier=10", set()),
        ("payments tier=2", set()),
        ("team=web x", {"clicks"}),
        ("nix", set()),
    ],
)
def test_a_search_keeps_streams_that_have_each_of_its_words_somewhere(search: str, found: set[str]) -> None:
    """In a name of the stream, a node or a label, in any case of letters; a label with its value as a whole."""
    assert {one.stream for one in find_streams(STANDING, LABELS, search).streams} == found


@given(st.text(), st.text())
def test_more_words_never_find_more(search: str, more: str) -> None:
    """A stream that two words find is one that each of them finds."""
    both = set(find_streams(STANDING, LABELS, f"{search} {more}").streams)
    alone = [set(find_streams(STANDING, LABELS, one).streams) for one in (search, more)]
    assert both == alone[0] & alone[1]


def test_labels_are_shown_as_they_are_searched_for() -> None:
    """Name and value with nothing between them but the sign."""
    assert format_labels({"team": "payments", "tier": "1"}) == LABELS["orders"]


def open_page(tmp_path: Path, **query: str) -> AppTest:
    """Return a page over two streams with labels."""
    url, now = store_url(tmp_path), clock()
    fill(url, window(9), window(9, stream="clicks", names=("x", "y")))
    config = tmp_path / "hopwatch.toml"
    config.write_text(CONFIG.format(url=url))
    return run_app(QueryCache(url, now, settings.load(config, flags={}, environ={})), now, **query)


def test_the_overview_shows_labels_that_lead_to_all_streams_that_have_them(tmp_path: Path) -> None:
    """A team's own home is such a link; foreign text in a label is text."""
    tested = open_page(tmp_path)
    assert not tested.exception
    told = read_page(tested)
    assert '<a href="?find=team%3Dpayments" target="_self" title="all streams with this label">team=pay' in told
    assert "team=web&lt;b&gt;" in told
    assert "2 streams: 2 CLEAN" in plain(told)


def test_the_overview_of_a_team_has_its_streams_alone(tmp_path: Path) -> None:
    """The line above them says of how many."""
    told = plain(read_page(open_page(tmp_path, find="team=payments")))
    assert "1 of 2 streams: 1 CLEAN" in told
    assert "clicks" not in told


def test_a_search_that_finds_nothing_says_so(tmp_path: Path) -> None:
    """An empty table would look like a monitor without streams."""
    told = plain(read_page(open_page(tmp_path, find="team=nix")))
    assert NOTHING_FOUND in told
    assert "0 of 2 streams" in told


def test_a_stream_has_its_labels_on_its_page_and_on_the_map(tmp_path: Path) -> None:
    """The map finds streams by them, too."""
    assert "tier=1" in plain(read_page(open_page(tmp_path, page="stream", stream="orders")))
    drawn = read_page(open_page(tmp_path, page="map", find="team=web<b>"))
    assert 'aria-label="y:' in drawn
    assert 'aria-label="b:' not in drawn


def test_a_map_of_one_stream_that_a_search_leaves_out_is_empty(tmp_path: Path) -> None:
    """The choice of a stream and a search may stand in one link; the page says that nothing has both."""
    tested = open_page(tmp_path, page="map", stream="orders", find="team=web<b>")
    assert not tested.exception
    assert NOTHING_FOUND in read_page(tested)


def test_few_streams_without_labels_have_no_search(tmp_path: Path) -> None:
    """A few can be seen at once; more than five have one."""
    url, now = store_url(tmp_path), clock()
    fill(url, *(window(9, stream=f"s{number}") for number in range(5)))
    assert not run_app(QueryCache(url, now), now).text_input
    fill(url, window(9, stream="s5"))
    (search,) = run_app(QueryCache(url, now), now).text_input
    assert search.label == "Stream, node or label"
    shown = search.set_value("s3").run()
    assert "1 of 6 streams" in plain(read_page(shown))
