"""Tests of what a person reads: golden texts, and limits that hold whatever is told."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.alerts.channels.slack import escape_text
from hopwatch.alerts.channels.texts import MAX_TITLE, format_body, format_places, format_title, to_one_line
from hopwatch.alerts.events import Event, Notification
from tests.support.deliveries import NOTIFICATIONS, firing, storm

SUMMARY = "lost: 20 of 1,000 messages (2.00%) surely lost at b of orders on a -> b, over 1.00%"
FACTS = f"""lost ids: {"0a" * 16}, {"0b" * 16}
runbook: https://wiki.example/loss.md
dashboard: https://hopwatch.example/?stream=orders&node=b
key: loss/page/orders"""


def test_one_place_is_told_in_a_sentence() -> None:
    """Then where to look, and the key."""
    assert format_body(firing(), 3_000) == f"{SUMMARY}\n\n{FACTS}"
    assert format_title(firing()) == "[page] lost in orders (loss)"


def test_an_end_says_when_and_what_it_was() -> None:
    """And the headline says so first."""
    over = firing(event=Event.RESOLVED)
    assert format_body(over, 3_000).startswith(f"resolved at 2026-01-01T00:05:00Z; it was:\n{SUMMARY}\n")
    assert format_title(over) == "[page] resolved: lost in orders (loss)"


def test_whom_it_is_with_is_told() -> None:
    """The body of an acknowledged incident says so in its second line."""
    assert format_body(firing(), 3_000, is_acknowledged=True).splitlines()[1] == "it is acknowledged"


def test_a_storm_names_the_worst_and_counts_the_others() -> None:
    """Twenty of 5,000 where there is room, fewer where there is none."""
    assert format_title(storm()) == "[page] lost in 20 streams or more, 5,000 places (loss)"
    lines = format_body(storm(), 3_000).splitlines()
    assert lines[1:3] == ["- lost: all at s0", "- lost: all at s1"]
    assert lines[20:22] == ["- lost: all at s19", "and 4,980 more"]
    short = format_body(storm(), 250)
    assert "- lost: all at s3\nand 4,996 more\n" in short
    assert len(short) <= 250
    assert format_places(storm().alerts, 5_000, 60) == "lost: all at s0\nlost: all at s1\nand 4,998 more"


@given(NOTIFICATIONS, st.integers(100, 5_000))
def test_limits_hold_whatever_is_told(told: Notification, most: int) -> None:
    """In title and text, escaped or not, and every line end is ours."""
    assert len(format_title(told)) <= MAX_TITLE
    assert len(format_body(told, most)) <= most
    assert len(format_body(told, most, escaped=escape_text)) <= most
    assert len(format_places(told.alerts, told.total, most)) <= most
    assert format_title(told) == to_one_line(format_title(told))


@given(NOTIFICATIONS, st.integers(800, 5_000))
def test_every_place_is_named_or_counted(told: Notification, most: int) -> None:
    """Those that are listed, and those that are not, are all that there are."""
    told = replace(told, alerts=tuple(replace(one, summary="here") for one in told.alerts), total=len(told.alerts) + 5)
    lines = format_places(told.alerts, told.total, most).splitlines()
    assert len(lines[:-1]) + int(lines[-1].split()[1]) == told.total
