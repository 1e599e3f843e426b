"""Tests of times on the path in words: lines in the pathway's order, shares, and of how many messages they are."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from hopwatch.display import texts
from hopwatch.display.path_times import (
    MAX_LINES,
    TimeLine,
    build_time_lines,
    describe_left_out,
    describe_mean,
    format_percentiles,
    read_window_times,
    select_lines,
)
from hopwatch.monitor.results import PathTime, Quantiles, SpanTime, SpanTimes

NODES: Final = ("ingest", "router")
TIMES: Final = (
    SpanTime("router", "router", 8, 90, 200, 300, 2_000),
    SpanTime("router", "ingest", 9, 900, 2_000, 3_000, 6_000),
    SpanTime("ingest", "ingest", 10, 90, 200, 300, -1_000),
    SpanTime("ingest", "", 10, 400, 800, 900, 3_000),
)
SPAN: Final = SpanTimes(0, 1, 10, 10, 8, TIMES)


def cells(span: SpanTimes) -> list[tuple[str, ...]]:
    """Return the cells of all lines."""
    return [line.cells for line in build_time_lines(NODES, span)]


def test_lines_follow_the_path_and_their_shares_add_up() -> None:
    """Before a node, on the edges to it, inside it; a part that is negative by the clocks has a negative share."""
    assert cells(SPAN) == [
        ("before ingest", "10", "400 µs", "800 µs", "900 µs", "375 µs", "30.0%"),
        ("inside ingest", "10", "90 µs", "200 µs", "300 µs", "-125 µs", "-10.0%"),
        ("ingest → router", "9", "900 µs", "2.0 ms", "3.0 ms", "750 µs", "60.0%"),
        ("inside router", "8", "90 µs", "200 µs", "300 µs", "250 µs", "20.0%"),
    ]
    lines = build_time_lines(NODES, SPAN)
    assert sum(line.share or 0 for line in lines) == 1
    assert sum(line.mean_us or 0 for line in lines) == 10_000 / 8
    assert describe_mean(SPAN) == "mean lag at the end of the path 1.2 ms, of 8 messages"


def test_the_percentiles_of_several_windows_are_bounds() -> None:
    """A percentile of one window is that of its messages, of several the greatest of any."""
    assert format_percentiles(TIMES[1], 1) == ("p50 900 µs", "p95 2.0 ms")
    assert format_percentiles(TIMES[1], 2) == ("p50 ≤ 900 µs", "p95 ≤ 2.0 ms")
    assert cells(SpanTimes(0, 2, 10, 10, 8, TIMES))[2][2:5] == ("≤ 900 µs", "≤ 2.0 ms", "≤ 3.0 ms")


def test_a_sample_says_of_how_many_messages_it_is() -> None:
    """Whole paths are estimated then."""
    assert describe_mean(SpanTimes(0, 1, 10, 5_000, 4_000, TIMES)) == (
        "mean lag at the end of the path 2 µs, of about 4,000 messages, by a sample of 10 of 5,000"
    )


def test_without_a_whole_path_there_is_no_mean_and_no_share() -> None:
    """As where a node sends no stamps of departure: percentiles are there, and what is missing is said."""
    times = tuple(SpanTime(one.node, one.source, 1, 1_000, 2_000, 3_000, 0) for one in TIMES)
    span = SpanTimes(0, 1, 10, 10, 0, times)
    assert describe_mean(span) == "no message's whole path is known: a stamp is missing of each"
    assert cells(span)[0] == ("before ingest", "1", "1.0 ms", "2.0 ms", "3.0 ms", texts.NONE, texts.NONE)


def test_the_window_of_a_report_has_the_times_of_its_nodes() -> None:
    """A window that is not final has none."""
    time = PathTime("a", Quantiles(3, 1, 2, 5, 6, 7), 4, 4, 2, 11)
    told = {"nodes": [{"node": "a", "times": []}, {"node": "b", "times": [asdict(time)]}]}
    assert read_window_times(told) == SpanTimes(0, 1, 4, 4, 2, (SpanTime("b", "a", 3, 2, 5, 6, 11),))
    assert read_window_times({"nodes": [{"node": "a", "times": []}]}) is None


def test_a_long_path_shows_its_greatest_parts() -> None:
    """In their order; parts whose mean is not known or negative come last."""
    means: list[float | None] = [None, -5.0, *map(float, range(MAX_LINES))]
    lines = [TimeLine((str(place),), mean, None) for place, mean in enumerate(means)]
    assert [line.mean_us for line in select_lines(lines)] == [float(mean) for mean in range(MAX_LINES)]
    assert select_lines(lines[:3]) == lines[:3]
    assert describe_left_out(lines) == "26 parts; the 24 with the greatest share are shown"
    assert describe_left_out(lines[:MAX_LINES]) == ""
