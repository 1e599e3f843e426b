"""Tests of the service map: the nodes of all streams, each name once, and its page."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from hopwatch.dashboards.charts.service_map import draw_map
from hopwatch.dashboards.pages.filters import NOTHING_FOUND
from hopwatch.dashboards.queries.models import Edge, Graph, StreamsOverview, StreamSummary
from hopwatch.dashboards.queries.service_map import StreamGraphs
from hopwatch.dashboards.views import service_map, sheets
from hopwatch.dashboards.views.service_map import Service, ServiceMap, build_map
from hopwatch.display import texts
from hopwatch.display.colours import DARK, LIGHT
from hopwatch.monitor.results import RecentFigures, Verdict, WindowResult
from hopwatch.monitor.selftest.stream import SELFTEST_STREAM
from hopwatch.monitor.texts.read_progress import ReadProgress
from tests.support.dashboard_stores import HOSTILE, build_windows, chain, fill, open_page, plain, read_page, store_url
from tests.support.recent import recent_figures, save_recent
from tests.support.windows import at, lag, window

NOW_US = at(12)


def draw(
    *newest: WindowResult | str,
    recent: Mapping[str, RecentFigures] | None = None,
    graphs: Mapping[str, Graph] | None = None,
    **chosen: str,
) -> ServiceMap:
    """Return the map of chains with these newest windows; a stream that is a name alone has none."""
    streams = [
        StreamSummary(one, None) if isinstance(one, str) else StreamSummary(one.stream, one, (), at(0), at(9))
        for one in newest
    ]
    built = {
        one.stream: make_graph(*(node.node for node in one.newest.nodes)) for one in streams if one.newest is not None
    }
    progress = ReadProgress(through_us=NOW_US, is_once=False)
    known = StreamGraphs(built | dict(graphs or {}), dict(recent or {}))
    return build_map(StreamsOverview(tuple(streams), progress), known, NOW_US, **chosen)


def make_graph(*nodes: str, is_required: bool = True) -> Graph:
    """Return a chain."""
    return Graph(nodes, tuple(Edge(place, place + 1, is_required) for place in range(len(nodes) - 1)))


def get_service(drawn: ServiceMap, name: str) -> Service:
    """Return a service that is on the map."""
    found = drawn.find_service(name)
    assert found is not None
    return found


# What is on the map


def test_a_service_of_several_streams_is_there_once() -> None:
    """With all of its streams, and each edge between two services once."""
    drawn = draw(window(9), window(9, stream="clicks"), window(9, stream="views", names=("b", "c")))
    assert [one.name for one in drawn.services] == ["a", "b", "c"]
    assert [node.stream for node in get_service(drawn, "b").nodes] == ["clicks", "orders", "views"]
    assert [(one.source, one.target) for one in drawn.connections] == [(0, 1), (1, 2)]


def test_messages_and_losses_of_streams_add_up() -> None:
    """Messages of two streams are never the same; a sum without an upper bound of each part has none."""
    first, second = window(9, lost={"b": 30}), window(9, stream="clicks", lost={"b": 12})
    service = get_service(draw(first, second), "b")
    assert (service.mark.word, service.rate, service.lost, service.is_lossy) == ("LOSSY", "1,958/min", "42 lost", True)
    blind = window(9, stream="views", verdict=Verdict.UNKNOWN)
    assert get_service(draw(first, second, blind), "b").lost == "42 to ? lost"
    drawn = draw(first, second)
    assert [(one.missing, one.is_lossy) for one in drawn.connections] == [(42, True)]


def test_what_is_not_known_to_be_lost_is_not_called_lost() -> None:
    """Messages are missing, by their bounds, on the card and at the edge."""
    maybe = {"b": {"lost_in_transit": 5, "loss": 5, "loss_lower": 0, "loss_upper": 9}}
    drawn = draw(window(9, nodes=maybe, verdict=Verdict.UNKNOWN))
    service = get_service(drawn, "b")
    assert (service.mark.word, service.lost, service.is_lossy) == ("UNKNOWN", "0 to 9, unknown", False)
    assert [(one.missing, one.is_lossy) for one in drawn.connections] == [(5, False)]


def test_a_service_is_as_bad_as_the_worst_of_its_streams() -> None:
    """UNKNOWN is worse than CLEAN, and a stream without a final window says nothing."""
    blind = window(9, stream="clicks", verdict=Verdict.UNKNOWN)
    drawn = draw(window(9), blind, "new", graphs={"new": make_graph("a", "z")})
    assert get_service(drawn, "a").mark.word == "UNKNOWN"
    assert [node.stream for node in get_service(drawn, "a").worst_first] == ["clicks", "orders", "new"]
    unread = get_service(drawn, "z")
    assert (unread.mark.word, unread.rate, unread.lag, unread.lost) == ("NO DATA", "", "", "")


def test_percentiles_of_several_streams_are_not_added_up() -> None:
    """Of one stream it is p95; of several that which none exceeds."""
    slow, quick = ({"a": {"lag_out_us": lag(p95)}} for p95 in (3_000_000, 200_000))
    assert get_service(draw(window(9, nodes=slow)), "a").lag == "p95 3.0 s"
    drawn = draw(window(9, nodes=slow), window(9, stream="clicks", nodes=quick))
    assert get_service(drawn, "a").lag == "p95 ≤ 3.0 s"


def test_recent_figures_stand_where_each_stream_has_them() -> None:
    """A sum of some streams now, and of others a minute ago, would be neither."""
    recent = {"orders": recent_figures(through_us=NOW_US)}
    service = get_service(draw(window(9), recent=recent), "b")
    assert (service.rate, service.lag) == ("201/s", "p95 1.6 s")
    both = window(9), window(9, stream="clicks")
    assert get_service(draw(*both, recent=recent), "b").rate == "2,000/min"
    recent["clicks"] = recent_figures(stream="clicks", through_us=NOW_US)
    assert get_service(draw(*both, recent=recent), "b").rate == "402/s"
    old = {"orders": recent_figures(through_us=NOW_US - 61_000_000)}
    assert get_service(draw(window(9), recent=old), "b").rate == "1,000/min"


def test_edges_to_and_from_a_service_are_those_that_are_timed_now() -> None:
    """Of each of its streams; old figures say nothing of now."""
    recent = {"orders": recent_figures(nodes=("a", "b", "c", "d"), through_us=NOW_US)}
    (node,) = get_service(draw(window(9), recent=recent), "b").nodes
    assert [(edge.source, edge.node) for edge in node.edges] == [("a", "b"), ("b", "c")]
    old = {"orders": recent_figures(through_us=NOW_US - 61_000_000)}
    assert get_service(draw(window(9), recent=old), "b").nodes[0].edges == ()


def test_a_service_with_an_old_minute_says_so() -> None:
    """A figure of then is none of now."""
    assert get_service(draw(window(0), window(9, stream="clicks", names=("c",))), "a").old == "⚠ 11 min 0 s ago"
    assert get_service(draw(window(9)), "a").old == ""


def test_edges_of_which_a_message_takes_one_have_no_loss() -> None:
    """Nobody knows on which it was lost."""
    drawn = draw(window(9, lost={"b": 5}), graphs={"orders": make_graph("a", "b", is_required=False)})
    assert [(one.is_required, one.missing) for one in drawn.connections] == [(False, 0)]


def test_one_stream_can_be_chosen() -> None:
    """The stream of the self-test is on the map in this way alone."""
    tested = window(9, stream=SELFTEST_STREAM, names=("probe",), lost={"probe": 40})
    assert [one.name for one in draw(window(9), tested).services] == ["a", "b"]
    assert [one.name for one in draw(window(9), tested, stream=SELFTEST_STREAM).services] == ["probe"]


def test_streams_without_room_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that need a person first have room; one that has the same services as another needs none."""
    monkeypatch.setattr(service_map, "MAX_SERVICES", 3)
    lossy = window(9, stream="views", names=("x", "y"), lost={"y": 5})
    drawn = draw(window(9), window(9, stream="same", names=("x", "y")), lossy)
    assert [one.name for one in drawn.services] == ["x", "y"]
    assert drawn.streams_left_out == 1


def test_services_in_a_circle_are_drawn() -> None:
    """One stream leads from a to b, the other one back."""
    drawn = draw(window(9), window(9, stream="back", names=("b", "a")))
    assert {(one.source, one.target) for one in drawn.connections} == {(0, 1), (1, 0)}
    assert draw_map(drawn, LIGHT, "", lambda _: {}).count("hw-service") == 4


# How it is drawn


def read_svg(markup: str) -> list[str]:
    """Return the pictures of connections, for wide and for narrow pages."""
    return [b64decode(data).decode() for data in re.findall(r"base64,([^\"]+)", markup)]


def test_a_map_is_drawn_for_wide_and_for_narrow_pages() -> None:
    """Each has every service as a link, and every connection; the page shows the one that fits."""
    drawn = draw(window(9), window(9, stream="clicks", names=("b", "c")))
    markup = draw_map(drawn, LIGHT, "", lambda node: {"node": node})
    wide, narrow = markup.split('class="hw-map hw-map-narrow"')
    for one in (wide, narrow):
        assert sorted(re.findall(r'href="\?node=(\w)"', one)) == ["a", "b", "c"]
    assert [svg.count('<path d="M') for svg in read_svg(markup)] == [2 + 4, 2 + 4]


def test_connections_of_the_chosen_service_stand_out() -> None:
    """Those that lose keep their colour."""
    drawn = draw(window(9, names=("a", "b", "c"), lost={"b": 5}), window(9, stream="clicks", names=("x", "y")))
    svg, _ = read_svg(draw_map(drawn, DARK, "c", lambda _: {}))
    strokes = re.findall(r'fill="none" stroke="([^"]+)"', svg)
    assert sorted(strokes) == sorted([DARK.lossy, DARK.link, DARK.line])


# The page


def open_map(url: str, **query: str) -> AppTest:
    """Return the page."""
    return open_page(url, page="map", **query)


def test_the_page_draws_all_streams(tmp_path: Path) -> None:
    """A card says verdict, messages and loss in words too; the chosen service stands stream by stream below."""
    url = store_url(tmp_path)
    fill(url, *build_windows(), window(9, stream="clicks", lost={"b": 7}))
    told = read_page(open_map(url))
    assert 'aria-label="b: LOSSY, 2 streams, 1,993/min, 7 lost"' in told
    assert "stream by stream" not in told
    told = plain(read_page(open_map(url, node="b")))
    assert "b, stream by stream" in told
    none = texts.NONE
    assert f"clicks ✕ LOSSY 00:09 UTC 2 min 0 s ago 993 7 ({none}) {none} {none}" in told
    assert f"orders ✓ CLEAN 00:09 UTC 2 min 0 s ago 1,000 0 ({none}) {none} {none}" in told


def test_the_page_shows_what_passes_now(tmp_path: Path) -> None:
    """On the card, and stream by stream."""
    url = store_url(tmp_path)
    fill(url, *build_windows())
    save_recent(url, recent_figures(through_us=NOW_US - 3_000_000))
    told = read_page(open_map(url, node="b"))
    assert 'aria-label="b: CLEAN, 1 stream, 201/s, p95 1.6 s"' in told
    assert "1.6 s 201/s, p95 1.6 s" in plain(told)
    assert "Time to and from b now" in plain(told)
    assert "orders a b 20.0 ms 45.0 ms 640" in plain(told)


def test_names_on_the_map_are_text(tmp_path: Path) -> None:
    """A name that is markup elsewhere is none here, and a link to it leads to it."""
    url = store_url(tmp_path)
    fill(url, window(9, names=HOSTILE), pathways={"orders": chain(*HOSTILE)})
    page = open_map(url, node=HOSTILE[0])
    told = read_page(page)
    assert "<img src=x" not in told
    assert "&lt;img src=x onerror=alert(1)&gt;, stream by stream" in told
    assert not page.exception


def test_a_node_that_is_not_on_the_map_is_named(tmp_path: Path) -> None:
    """The map is drawn nevertheless."""
    url = store_url(tmp_path)
    fill(url, *build_windows())
    told = read_page(open_map(url, node="nix"))
    assert "no node nix is on this map" in told
    assert "hw-service" in told


def test_a_search_without_a_result_says_so(tmp_path: Path) -> None:
    """An empty map would look like a pipeline that is gone."""
    url = store_url(tmp_path)
    fill(url, *build_windows())
    assert NOTHING_FOUND in read_page(open_map(url, find="nix"))


def test_the_page_names_the_number_of_streams_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do to see them."""
    monkeypatch.setattr(service_map, "MAX_SERVICES", 2)
    url = store_url(tmp_path)
    fill(url, *build_windows(), window(9, stream="clicks", names=("c",)))
    told = read_page(open_map(url))
    assert "1 stream has no room: search for a name, or choose a stream." in told


def test_a_file_has_a_row_a_service_and_stream() -> None:
    """With its bounds; of what is not known nothing."""
    drawn = draw(window(9, lost={"b": 30}), "new", graphs={"new": make_graph("b")})
    sheet = sheets.build_service_map(drawn)
    assert sheet.columns == (
        *("node", "stream", "seen_as", "window_start", "seen_messages"),
        *("lost_lower_messages", "lost_upper_messages", "missing_messages", "missing_ratio", "lag_p95_us"),
    )
    assert sheet.rows[1:] == (
        ("b", "orders", "LOSSY", "2026-01-01T00:09:00Z", 970, 30, 30, 30, None, None),
        ("b", "new", "NO DATA", None, None, None, None, None, None, None),
    )
