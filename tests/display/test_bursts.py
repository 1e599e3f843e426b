"""Tests of bursts of loss in words."""

from __future__ import annotations

from typing import Final
from zoneinfo import ZoneInfo

from hopwatch.display.bursts import describe_bursts, summarize_bursts
from hopwatch.monitor.markers import Marker
from hopwatch.monitor.results import LossBurst
from tests.support.spool import START_US, at_us

OUTAGE: Final = LossBurst(12, 49, 97, 300, 3, 30_000)
SECOND: Final = LossBurst(55, 60, 2, 2, 98, 30_298)
NINE_AHEAD: Final = ZoneInfo("Asia/Tokyo")


def test_a_burst_says_when_it_was_its_share_and_how_the_others_fare() -> None:
    """Each burst has a sentence, by the clocks of a zone; an alert names the likeliest one, in UTC."""
    assert describe_bursts("norm", START_US, (OUTAGE, SECOND), zone=NINE_AHEAD) == [
        (
            "burst at norm from 09:00:12 JST to 09:00:49 JST: 97.0% of 100 missing; of its messages 32.3% are missing, "
            "of all others of the minute 0.0100%"
        ),
        (
            "burst at norm from 09:00:55 JST to 09:01:00 JST: 2.00% of 100 missing; of its messages 100% are missing, "
            "of all others of the minute 0.32%"
        ),
    ]
    told = "97.0% of 100 missing have event times from 00:00:12 UTC to 00:00:49 UTC"
    assert summarize_bursts(START_US, (OUTAGE, SECOND)) == told


def test_the_markers_next_to_a_burst_are_named() -> None:
    """The last one of the ten minutes before it, and the first one in it or in the minute behind it."""
    times_s = {"long before": -589, "earlier": -30, "deploy 1.4.2": -28, "restart": 13, "later": 14, "far": 110}
    markers = [Marker(at_us(second), text, "ada") for text, second in times_s.items()]
    (told,) = describe_bursts("norm", START_US, (OUTAGE,), markers)
    assert told.endswith("; it begins 40 s after deploy 1.4.2; 1 s after its start came restart")
    (told,) = describe_bursts("norm", START_US, (OUTAGE,), markers[1:3])
    assert told.endswith("; it begins 40 s after deploy 1.4.2")
    for few in (markers[:1], markers[5:], []):
        (told,) = describe_bursts("norm", START_US, (OUTAGE,), few)
        assert told.endswith("of all others of the minute 0.0100%")


def test_without_a_burst_nothing_is_said() -> None:
    """No sentence, and nothing in an alert."""
    assert describe_bursts("norm", START_US, ()) == []
    assert summarize_bursts(START_US, ()) == ""
