"""Tests of markers near a window in words."""

from __future__ import annotations

from hopwatch.display.markers import BEFORE_US, MAX_NAMED, describe_markers
from hopwatch.monitor.markers import Marker

START_US = 1_800_000_000_000_000
END_US = START_US + 60_000_000


def test_markers_of_the_minute_and_shortly_before_it_are_named() -> None:
    """Those of the stream and of all, in order of time."""
    markers = [
        Marker(START_US + 34_900_000, "deploy norm", "ada", "orders", {"version": "1.1"}),
        Marker(START_US, "restart", "bob"),
        Marker(START_US - 200_000_000, "config", "ada", "orders"),
        Marker(START_US - 1, "other", "ada", "payments"),
        Marker(END_US, "later", "ada", "orders"),
        Marker(START_US - BEFORE_US - 1, "long ago", "ada", "orders"),
    ]
    assert describe_markers(markers, "orders", START_US) == [
        "marked 3 min 20 s before this minute: config, by ada",
        "marked 0 s into this minute: restart, by bob",
        "marked 34 s into this minute: deploy norm (version=1.1), by ada",
    ]


def test_the_latest_markers_are_named_of_many() -> None:
    """So that a program that marks each second fills no page."""
    markers = [Marker(START_US + number, f"m{number}", "ada") for number in range(9)]
    found = describe_markers(markers, "orders", START_US)
    assert [line.split(": ")[1] for line in found] == [f"m{number}, by ada" for number in range(9 - MAX_NAMED, 9)]
