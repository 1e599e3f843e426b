"""Tests of the panel of recent figures on the page of a stream."""

from __future__ import annotations

from pathlib import Path

from hopwatch.dashboards.queries.models import Edge, Graph
from hopwatch.dashboards.views.pathway import build_drawing
from hopwatch.monitor.results import SpanTime, SpanTimes
from tests.support.dashboard_stores import build_windows, fill, open_page, plain, read_page, store_url
from tests.support.recent import recent_figures, save_recent
from tests.support.windows import at

TITLE = "10 s of arrival up to"


def read_stream(url: str) -> str:
    """Return the text of the page of a stream."""
    return plain(read_page(open_page(url, page="stream", stream="orders")))


def test_recent_figures_say_up_to_when_they_are(tmp_path: Path) -> None:
    """And that they are provisional; a line a node."""
    url = store_url(tmp_path)
    fill(url, *build_windows())
    save_recent(url, recent_figures(through_us=at(12) - 3_000_000))
    told = read_stream(url)
    assert "Now Provisional: 10 s of arrival up to 2026-01-01 00:11:57 UTC, 3 s ago." in told
    assert "a 201 200 1.0 s 1.5 s 1.1 s 1.6 s 600 3.0 s" in told
    assert "Time on the edges now" in told
    assert "a b 20.0 ms 45.0 ms 640" in told


def test_a_stream_without_recent_figures_has_no_panel(tmp_path: Path) -> None:
    """As one that run --once has read."""
    url = store_url(tmp_path)
    fill(url, *build_windows())
    assert TITLE not in read_stream(url)


def test_nodes_of_the_pathway_say_what_passes_them_now(tmp_path: Path) -> None:
    """By the lag out, or the lag in of a node that passes nothing; figures that are old are not now."""
    graph = Graph(("a", "b", "c"), (Edge(0, 1, is_required=True), Edge(1, 2, is_required=True)))
    found = recent_figures(nodes=("a", "b"))
    stuck = found.nodes[1]._replace(departed=0, lag_out_us=None)
    drawing = build_drawing(graph, None, found._replace(nodes=(found.nodes[0], stuck)))
    assert [node.now for node in drawing.nodes] == ["now 201/s, p95 1.6 s", "now 201/s, p95 1.5 s", ""]
    assert "now 201/s, p95 1.6 s" in drawing.description
    url = store_url(tmp_path)
    fill(url, *build_windows())
    for age_s, is_now in ((60, True), (61, False)):
        save_recent(url, recent_figures(through_us=at(12) - age_s * 1_000_000))
        (chart, *_) = open_page(url, page="stream", stream="orders").get("echarts_chart")
        assert ("now 201/s" in str(getattr(chart, "proto", ""))) == is_now


def test_edges_of_the_pathway_say_how_long_messages_take_now() -> None:
    """Behind the times of windows, where there are any; an edge without a sample says nothing of now."""
    graph = Graph(("a", "b", "c"), (Edge(0, 1, is_required=True), Edge(1, 2, is_required=True)))
    span = SpanTimes(0, 1, 5, 5, 5, (SpanTime("b", "a", 5, 900, 2_000, 3_000, 4_500),))
    found = recent_figures(nodes=("a", "b"))
    assert [arrow.times for arrow in build_drawing(graph, None, found).arrows] == [("now p95 45.0 ms",), ()]
    drawing = build_drawing(graph, None, found, span)
    assert [arrow.times for arrow in drawing.arrows] == [("p50 900 µs", "p95 2.0 ms", "now p95 45.0 ms"), ()]
    assert "Time on the way: a to b: p50 900 µs, p95 2.0 ms, now p95 45.0 ms" in drawing.description
