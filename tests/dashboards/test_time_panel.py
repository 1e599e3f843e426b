"""Tests of the panel of times on the path, on the pages of streams and windows, and of the edges of the pathway."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy import insert

from hopwatch.dashboards import markup
from hopwatch.dashboards.charts import pathway as drawn
from hopwatch.dashboards.queries.models import Edge, Graph
from hopwatch.dashboards.views.pathway import build_drawing
from hopwatch.display.colours import LIGHT
from hopwatch.monitor.results import SpanTime, SpanTimes
from hopwatch.monitor.store import tables
from tests.support.dashboard_stores import HOSTILE, build_windows, fill, open_page, plain, read_page, store_url
from tests.support.windows import at

TITLE: Final = "Where the time goes"
FIGURES: Final = {"count": 9, "min": 1, "p50": 1_000, "p95": 2_000, "p99": 3_000, "max": 4_000}
LOOKED_AT: Final = {"samples": 10, "messages": 10, "path_messages": 8}


def fill_times(url: str, *minutes: int) -> None:
    """Fill a store with windows, some of which have times."""
    engine = fill(url, *build_windows())
    key = [{"stream": "orders", "window_start_us": at(minute)} | FIGURES | LOOKED_AT for minute in minutes]
    parts = [("a", "", 2_000), ("a", "a", 1_000), ("b", "a", 4_000), ("b", "b", 1_000)]
    rows = [
        of_window | {"node": node, "source": source, "total_us": total_us}
        for of_window in key
        for node, source, total_us in parts
    ]
    with engine.begin() as connection:
        connection.execute(insert(tables.path_times), rows)


def read(url: str, **query: str) -> str:
    """Return the text of a page of the stream."""
    return plain(read_page(open_page(url, stream="orders", **query)))


def test_the_page_of_a_stream_adds_up_its_range(tmp_path: Path) -> None:
    """Shares are of the mean lag at the end, and percentiles are those of the slowest window."""
    fill_times(store_url(tmp_path), 3, 4)
    told = read(store_url(tmp_path), page="stream")
    assert "Mean lag at the end of the path 1.0 ms, of 16 messages, in 2 windows since 2026-01-01 00:00 UTC" in told
    assert "a → b 18 ≤ 1.0 ms ≤ 2.0 ms ≤ 3.0 ms 500 µs 50.0%" in told
    assert "25.0% before a 12.5% inside a 50.0% a → b 12.5% inside b" in told


def test_a_chosen_minute_and_the_page_of_a_window_have_their_own(tmp_path: Path) -> None:
    """Of one window percentiles are those of its messages."""
    fill_times(store_url(tmp_path), 3, 4)
    for page in ("stream", "window"):
        told = read(store_url(tmp_path), page=page, window="2026-01-01T00:03:00Z")
        assert "Mean lag at the end of the path 1.0 ms, of 8 messages." in told
        assert "a → b 9 1.0 ms 2.0 ms 3.0 ms 500 µs 50.0%" in told


def test_where_nothing_was_timed_there_is_no_panel(tmp_path: Path) -> None:
    """As in windows of an earlier version."""
    fill_times(store_url(tmp_path), 3)
    assert TITLE not in read(store_url(tmp_path), page="stream", window="2026-01-01T00:04:00Z")
    assert TITLE not in read(store_url(tmp_path), page="window", window="2026-01-01T00:04:00Z")


def test_an_edge_of_the_pathway_has_its_percentiles() -> None:
    """In the picture and in its description, beside what was lost on it; where it is drawn close in a tooltip alone."""
    graph = Graph(("a", "b", "c"), (Edge(0, 1, is_required=True), Edge(1, 2, is_required=True)))
    span = SpanTimes(at(0), 2, 10, 10, 8, (SpanTime("b", "a", 9, 1, 5_000, 6_000, 7),))
    drawing = build_drawing(graph, None, None, span)
    assert [arrow.times for arrow in drawing.arrows] == [("p50 ≤ 1 µs", "p95 ≤ 5.0 ms"), ()]
    assert drawing.description.endswith(". Time on the way: a to b: p50 ≤ 1 µs, p95 ≤ 5.0 ms")
    links = drawn.build_options(drawing, LIGHT, "")["series"][0]["links"]
    assert [link.get("label", {}).get("formatter") for link in links] == ["p50 ≤ 1 µs\np95 ≤ 5.0 ms", None]
    assert [link["value"] for link in links] == ["p50 ≤ 1 µs, p95 ≤ 5.0 ms", ""]


def test_names_in_a_bar_are_text() -> None:
    """A part without a share is left out of it."""
    told = markup.stack([(HOSTILE[0], "60.0%", 0.6), ("none", "0%", 0.0), ("less", "-1.0%", -0.01)], LIGHT, HOSTILE[0])
    assert "<img" not in told
    assert "none" not in told
    assert "less" not in told
