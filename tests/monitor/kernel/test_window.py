"""Tests of a window's life, on the boundaries: transit 150 s, settle 30 s, amended for an hour, at most a day old.

The window that is looked at starts at 100,000 min since 1970, which is second 0 here.
"""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel.books import IMPLAUSIBLE, IN_WINDOW, TOO_LATE
from hopwatch.monitor.kernel.window import WindowPolicy, window_starts
from hopwatch.monitor.results import Status

TERMS: Final = WindowPolicy(150_000_000, 30_000_000, 3_600_000_000, 86_400_000_000)
START_US: Final = 100_000 * 60_000_000
JUST: Final = 1e-6
"""A microsecond, in seconds."""


def at(seconds: float) -> int:
    """Return the moment so many seconds after the window's start, in µs."""
    return START_US + round(seconds * 1e6)


STATUS = {
    "before it starts": (-1, Status.OPEN),
    "before its end": (60 - JUST, Status.OPEN),
    "at its end": (60, Status.PROVISIONAL),
    "before transit and settle have passed": (240 - JUST, Status.PROVISIONAL),
    "when they have": (240, Status.FINAL),
    "for ever": (1e6, Status.FINAL),
}


@pytest.mark.parametrize(("watermark_s", "status"), STATUS.values(), ids=STATUS)
def test_a_window_is_open_then_provisional_then_final(watermark_s: float, status: Status) -> None:
    """The watermark of arrivals decides, and a boundary belongs to what follows."""
    assert TERMS.status(START_US, at(watermark_s)) is status


STANDINGS = {
    "starts 5 min ahead": (-300, IN_WINDOW),
    "starts further ahead": (-300 - JUST, IMPLAUSIBLE),
    "in the window": (30, IN_WINDOW),
    "the last moment of amending": (3_840, IN_WINDOW),
    "a moment later": (3_840 + JUST, TOO_LATE),
    "ended a day ago": (86_460, TOO_LATE),
    "ended longer ago": (86_460 + JUST, IMPLAUSIBLE),
}


@pytest.mark.parametrize(("arrival_s", "standing"), STANDINGS.values(), ids=STANDINGS)
def test_a_batch_stands_by_its_own_arrival(arrival_s: float, standing: int) -> None:
    """In its window, too late for it, or of a window that cannot be."""
    assert TERMS.standing(START_US // 1_000, at(arrival_s)) == standing


def test_what_is_implausible_is_not_too_late() -> None:
    """If amending lasts longer than the greatest age, the age decides that a stamp is implausible."""
    patient = WindowPolicy(0, 0, amend_for_us=10**12, max_age_us=10**6)
    assert patient.standing(0, 61_000_001) == IMPLAUSIBLE
    assert patient.standing(0, 61_000_000) == IN_WINDOW


HORIZONS = {
    "nothing sighted": (None, 210, 240),
    "sighted in the window": (30, 210, 240),
    "sighted at its end": (60, 210, 240),
    "sighted later": (1_000, 1_150, 1_180),
}


@pytest.mark.parametrize(("sighted_s", "horizon_s", "settled_s"), HORIZONS.values(), ids=HORIZONS)
def test_the_horizon_is_behind_the_last_first_sighting(
    sighted_s: float | None, horizon_s: float, settled_s: float
) -> None:
    """The later of the end and that sighting, plus transit; with settle too, nothing is in flight any more."""
    sighted_us = 0 if sighted_s is None else at(sighted_s)
    assert TERMS.horizon_us(START_US, sighted_us) == at(horizon_s)
    assert TERMS.settled_at_us(START_US, sighted_us) == at(settled_s)


def test_when_a_window_is_judged_and_when_it_is_closed() -> None:
    """End, transit and settle, and then the time for amending."""
    assert TERMS.final_at_us(START_US) == at(240)
    assert TERMS.amendable_until_us(START_US) == at(3_840)
    assert TERMS.judged_until_us(START_US) == at(3_840 + 60 + 180)


IN_FLIGHT = {"transit and settle ago": (180, False), "a moment less": (180 - JUST, True), "now": (0, True)}


@pytest.mark.parametrize(("ago_s", "in_flight"), IN_FLIGHT.values(), ids=IN_FLIGHT)
def test_in_flight_is_first_sighted_less_than_transit_and_settle_ago(ago_s: float, in_flight: bool) -> None:  # noqa: FBT001
    """A message is in flight if it was sighted less than transit and settle ago."""
    watermark_us = at(1_000)
    assert (at(1_000 - ago_s) >= TERMS.settled_before_us(watermark_us)) is in_flight


SPANS = st.integers(0, 10**11)
TERMS_DRAWN = st.builds(WindowPolicy, SPANS, SPANS, SPANS, SPANS)


@given(TERMS_DRAWN, st.integers(0, 10**6).map(lambda minute: minute * 60_000_000), st.integers(0, 10**13))
def test_a_window_is_settled_when_its_last_message_is(terms: WindowPolicy, start_us: int, sighted_us: int) -> None:
    """The moment at which all is settled is the first at which the last first sighting is, and the window final."""
    settled_at_us = terms.settled_at_us(start_us, sighted_us)
    for watermark_us in (settled_at_us - 1, settled_at_us):
        is_final = terms.status(start_us, watermark_us) is Status.FINAL
        is_settled = is_final and sighted_us < terms.settled_before_us(watermark_us)
        assert is_settled is (watermark_us >= settled_at_us)


MINUTES = {
    "one": (60_000, 60_000, [60_000]),
    "three, gaps included": (0, 120_000, [0, 60_000, 120_000]),
    "none": (60_000, 0, []),
}


@pytest.mark.parametrize(("first_ms", "last_ms", "starts_ms"), MINUTES.values(), ids=MINUTES)
def test_every_minute_is_listed(first_ms: int, last_ms: int, starts_ms: list[int]) -> None:
    """From the first window to the last."""
    assert list(window_starts(first_ms, last_ms)) == starts_ms
