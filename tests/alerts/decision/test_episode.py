"""Tests of when an alert fires and ends: tables that hold where it stands behind every window."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from hopwatch.alerts.decision.episode import (
    FLAP_MEMORY_US,
    MAX_MARKS,
    AlertEpisode,
    AlertSeries,
    AlertState,
    Phase,
    apply_reading,
    fold_window,
    is_expired,
    settle_windows,
)
from hopwatch.alerts.decision.reading import bad_reading, good_reading
from hopwatch.alerts.decision.rules import AlertRule
from hopwatch.alerts.events import AlertKind, Severity
from tests.support.windows import at

RULE: Final = AlertRule("loss", AlertKind.LOSS, Severity.PAGE, {"orders": 0.01}, for_windows=2, keep_windows=3)
SERIES: Final = AlertSeries("loss", "page", "orders", "b")
SIGNS: Final = {Phase.OVER: "-", Phase.PENDING: "p", Phase.FIRING: "F"}

TABLE: Final = {
    # Readings by minute (x bad, . good, ? none), where the alert stands behind each, bad and good windows counted.
    "one bad window is too short": ("x.", "p-", [1, 0], [0, 0]),
    "two in a row fire": ("xx", "pF", [1, 2], [0, 0]),
    "a good one between begins anew": ("x.xx", "p-pF", [1, 0, 1, 2], [0, 0, 0, 0]),
    "none between does not": ("x??x", "pppF", [1, 1, 1, 2], [0, 0, 0, 0]),
    "three good ones end it": ("xx...", "pFFF-", [1, 2, 2, 2, 0], [0, 0, 1, 2, 0]),
    "a bad one between counts anew": ("xx..x...", "pFFFFFF-", [1, 2, 2, 2, 3, 3, 3, 0], [0, 0, 1, 2, 0, 1, 2, 0]),
    "none does not end it": ("xx.??..", "pFFFFF-", [1, 2, 2, 2, 2, 2, 0], [0, 0, 1, 1, 1, 2, 0]),
}


@pytest.mark.parametrize(("readings", "phases", "bads", "goods"), TABLE.values(), ids=TABLE)
def test_where_it_stands_behind_every_window(readings: str, phases: str, bads: list[int], goods: list[int]) -> None:
    """The phase after each window of a rule that fires after two bad windows and ends after three good ones."""
    state = AlertState(SERIES)
    found = []
    for minute, reading in enumerate(readings):
        if reading != "?":
            state = apply_reading(
                state, at(minute), RULE, bad_reading("b", 1, 0) if reading == "x" else good_reading("b")
            )
        found.append((SIGNS[state.run.phase], state.run.bads, state.run.goods))
    assert found == list(zip(phases, bads, goods, strict=True))


def test_each_flap_doubles_how_long_it_waits_for_its_end() -> None:
    """Three windows, six, twelve, … up to an hour; six quiet hours later it is three again."""
    run, minute, waited = AlertEpisode(), 0, []
    for _ in range(8):
        for _ in range(2):
            run, minute = fold_window(run, at(minute), RULE, is_bad=True), minute + 1
        begun = minute
        while run.phase is Phase.FIRING:
            run, minute = fold_window(run, at(minute), RULE, is_bad=False), minute + 1
        waited.append(minute - begun)
    assert waited == [3, 6, 12, 24, 48, 60, 60, 60]
    late = run.ended_us + FLAP_MEMORY_US
    for minute in (1, 2):
        run = fold_window(run, late + minute * 60_000_000, RULE, is_bad=True)
    assert (run.phase, run.flaps) == (Phase.FIRING, 0)


def test_a_rule_that_waits_longer_than_an_hour_waits_so_long() -> None:
    """The bound on what flaps add shortens nothing."""
    run = AlertEpisode(Phase.FIRING, bads=2, flaps=3)
    patient = replace(RULE, keep_windows=90)
    for minute in range(89):
        run = fold_window(run, at(minute), patient, is_bad=False)
    assert run.phase is Phase.FIRING
    assert fold_window(run, at(90), patient, is_bad=False).phase is Phase.OVER


def test_an_amendment_folds_what_is_behind_it_again() -> None:
    """The second of two bad windows was none after all: it never fired; and back."""
    state = AlertState(SERIES)
    for minute in (0, 1):
        state = apply_reading(state, at(minute), RULE, bad_reading("b", 1, 0))
    state = apply_reading(state, at(2), RULE, good_reading("b"))
    assert (state.run.phase, state.run.goods) == (Phase.FIRING, 1)
    amended = apply_reading(state, at(1), RULE, good_reading("b"))
    assert (amended.run.phase, amended.marks) == (Phase.OVER, {at(0): True, at(1): False, at(2): False})
    assert apply_reading(amended, at(1), RULE, bad_reading("b", 1, 0)).run == state.run


def test_figures_are_those_of_the_newest_bad_window() -> None:
    """An older one that is amended changes them not, the newest itself does."""
    state = apply_reading(AlertState(SERIES), at(1), RULE, bad_reading("b", 0.5, 0.01))
    assert apply_reading(state, at(0), RULE, bad_reading("b", 0.9, 0.01)).worst.observed == 0.5
    assert apply_reading(state, at(1), RULE, bad_reading("b", 0.4, 0.01)).worst.observed == 0.4


def test_what_cannot_change_is_folded_and_heeded_no_more() -> None:
    """A window that is older than any amendment changes nothing; a place keeps so many readings and no more."""
    state = apply_reading(AlertState(SERIES), at(0), RULE, bad_reading("b", 1, 0))
    settled = settle_windows(state, at(1), RULE)
    assert (settled.marks, settled.base) == ({}, state.run)
    assert apply_reading(settled, at(0), RULE, good_reading("b")) is settled
    assert settle_windows(settled, at(9), RULE) is settled
    for minute in range(MAX_MARKS + 10):
        state = apply_reading(state, at(minute), RULE, bad_reading("b", 1, 0))
    kept = settle_windows(state, at(0), RULE)
    assert (len(kept.marks), kept.run.bads) == (MAX_MARKS, MAX_MARKS + 10)


def test_a_state_is_spent_when_it_can_say_nothing_more() -> None:
    """Not while it is told, pending, has a bad window that may be judged anew, or could flap."""
    over = AlertState(SERIES, run=AlertEpisode(ended_us=at(0)))
    assert is_expired(over, at(0) + FLAP_MEMORY_US + 1)
    assert not is_expired(over, at(0) + FLAP_MEMORY_US)
    assert is_expired(AlertState(SERIES), at(0))
    for kept in (
        replace(over, incident_key="loss/page/orders"),
        replace(over, run=AlertEpisode(Phase.PENDING)),
        replace(over, marks={at(0): True}),
    ):
        assert not is_expired(kept, at(100_000))
