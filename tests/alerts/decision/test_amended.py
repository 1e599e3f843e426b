"""Tests of windows that are amended: an alert never says of a window what it does not show any more."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.alerts.storage import state_json
from hopwatch.monitor.results import Verdict, format_iso
from tests.support.alert_scenario import FIRING, RESOLVED, Play, build_rules
from tests.support.windows import at, lag

LOSS: Final = "loss/page/orders"
ONLY_LOSS: Final = '[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "loss"\n'
UNKNOWN: Final[dict[str, Any]] = {
    "verdict": Verdict.UNKNOWN, "lost": {"b": 447}, "lost_lower": 0, "nodes": {"b": {"loss_lower": 0}},
}  # fmt: skip
BETWEEN: Final[dict[str, Any]] = {
    "lost": {"b": 8}, "lost_upper": 30, "nodes": {"b": {"loss": 30, "loss_upper": 30}},
}  # fmt: skip
AMENDED: Final = {
    "to UNKNOWN": (UNKNOWN, "UNKNOWN (0 to ? lost)"),
    "to a loss that lies about the threshold": (BETWEEN, "LOSSY (8 to 30 lost)"),
}
SECOND_US: Final = 1_000_000


@pytest.mark.parametrize(("fields", "now"), AMENDED.values(), ids=AMENDED)
def test_an_alert_says_that_its_window_was_amended(fields: dict[str, Any], now: str) -> None:
    """The alert goes on without figures, as recovery is not shown, and the update is no news."""
    play = Play(build_rules(ONLY_LOSS)).push(10, lost={"b": 447}).amend(12.5, 10, **fields)
    play.want(11, 11.1, FIRING, LOSS).run(15)
    told = play.told(LOSS)
    assert not told.is_news
    (alert,) = told.alerts
    assert (alert.observed, alert.affected, alert.out_of, alert.lost_ids, alert.edge) == (0, 0, 0, (), "")
    minute = format_iso(at(10))
    assert told.summary == f"loss: window {minute} at b of orders was amended, and is {now} now, since {minute}"


def test_good_windows_end_an_alert_whose_window_was_amended() -> None:
    """As many as ever, and its end has no figures either."""
    play = Play(build_rules(ONLY_LOSS)).push(10, lost={"b": 447}).amend(10.9, 10, **UNKNOWN).push(11, 15)
    play.due[0] = (10.8, play.due[0][1])
    play.want(10.8, 10.9, FIRING, LOSS).want(16, 16.1, RESOLVED, LOSS).run(20)
    assert "was amended" in play.told(LOSS).summary


def test_a_window_that_is_good_now_ends_its_alert() -> None:
    """Nothing else was bad: the alert no longer holds."""
    play = Play(build_rules(ONLY_LOSS)).push(10, lost={"b": 447}).push(11, 12).amend(12.5, 10, lost={"b": 8})
    play.want(11, 11.1, FIRING, LOSS).want(12.5, 12.6, RESOLVED, LOSS).run(20)


@pytest.mark.parametrize("fields", [{}, UNKNOWN], ids=["CLEAN", "UNKNOWN"])
def test_the_figures_are_those_of_the_newest_window_that_stands(fields: dict[str, Any]) -> None:
    """One before it is lossy still; of one that is amended after that, the alert says that it was amended."""
    play = Play(build_rules(ONLY_LOSS)).push(10, lost={"b": 20}).push(11, lost={"b": 447}).amend(12.5, 11, **fields)
    play.want(11, 11.1, FIRING, LOSS).run(13)
    (alert,) = play.told(LOSS).alerts
    assert (alert.affected, alert.window_start_us, len(alert.lost_ids)) == (20, at(10), 5)
    play.amend(13.5, 10, **UNKNOWN).step(13.5)
    (alert,) = play.told(LOSS).alerts
    assert (alert.affected, alert.window_start_us) == (0, at(10))


def test_figures_of_an_episode_before_are_not_told() -> None:
    """Figures of an earlier episode are not in the alert; its only window is said to have been amended."""
    play = Play(build_rules(ONLY_LOSS)).push(0, lost={"b": 447}).push(1, 9).push(10, lost={"b": 20})
    play.amend(12.5, 10, **UNKNOWN)
    play.want(1, 1.1, FIRING, LOSS).want(6, 6.1, RESOLVED, LOSS).want(11, 11.1, FIRING, LOSS).run(13)
    (alert,) = play.told(LOSS).alerts
    assert (alert.affected, alert.window_start_us) == (0, at(10))


def test_a_lower_loss_over_the_threshold_shows_the_new_number() -> None:
    """The alert goes on; it is no news."""
    play = Play(build_rules(ONLY_LOSS)).push(10, lost={"b": 447}).amend(12.5, 10, lost={"b": 30})
    play.want(11, 11.1, FIRING, LOSS).run(13)
    assert play.told(LOSS).summary.startswith("lost: 30 of 1,000 messages (3.00%)")


def test_a_window_that_is_amended_again_and_again_is_told_once() -> None:
    """A window that is amended many times causes one alert, with the figures that hold."""
    play = Play(build_rules(ONLY_LOSS)).push(10, lost={"b": 447})
    for turn in range(6):
        play.amend(12 + turn / 3, 10, **UNKNOWN).amend(12 + turn / 3 + 1 / 6, 10, lost={"b": 447})
    play.want(11, 11.1, FIRING, LOSS).run(20)
    assert [alert.affected for alert in play.told(LOSS).alerts] == [447]


def test_good_windows_that_become_unknown_bring_no_alert_back() -> None:
    """An alert that they ended stays ended, and minutes that were bad alone do not add up to one."""
    play = Play(build_rules(ONLY_LOSS)).push(9).push(10, lost={"b": 447}).push(11, 45)
    for minute in range(11, 46):
        play.amend(46.5, minute, **UNKNOWN)
    play.want(11, 11.1, FIRING, LOSS).want(16, 16.1, RESOLVED, LOSS).run(60)


KINDS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "lag": ('threshold = "1s"', {"nodes": {"b": {"lag_in_us": lag(2 * SECOND_US)}}}),
    "end_to_end_lag": ('threshold = "1s"', {"lag_us": lag(2 * SECOND_US)}),
    "probe_drops": ("", {"nodes": {"b": {"dropped": 900}}}),
    "rejected": ("", {"nodes": {"b": {"rejected": 900}}}),
    "deferred": ("", {"nodes": {"b": {"deferred": 900}}}),
}


@pytest.mark.parametrize(("kind", "more", "bad"), [(kind, *case) for kind, case in KINDS.items()], ids=KINDS)
def test_alerts_of_other_kinds_say_it_too(kind: str, more: str, bad: dict[str, Any]) -> None:
    """For every kind of rule a window that is UNKNOWN now loses its earlier figures."""
    text = f'[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "{kind}"\nseverity = "page"\nfor = "1m"\n{more}\n'
    play = Play(build_rules(text)).push(10, **bad).amend(12.5, 10, verdict=Verdict.UNKNOWN)
    play.want(11, 11.1, FIRING, f"{kind}/page/orders").run(13)
    (alert,) = play.told(f"{kind}/page/orders").alerts
    assert (alert.observed, alert.affected) == (0, 0)
    assert "was amended, and is UNKNOWN now" in alert.summary


def test_what_was_deferred_and_is_delivered_ends_its_alerts() -> None:
    """A receiver that is away for forty minutes makes one alert of deferrals and none of loss, which ends with it."""
    waiting: dict[str, Any] = {"nodes": {"b": {"deferred": 900, "in_flight": 900}}, "deferred": 900, "in_flight": 900}
    play = Play(build_rules()).push(0, 9).push(10, 49, **waiting).push(50, 70)
    for minute in range(10, 50):
        play.amend(52, minute)
    play.want(15, 15.1, FIRING, "deferred/ticket/orders").want(52, 52.1, RESOLVED, "deferred/ticket/orders").run(72)
    assert play.told("deferred/ticket/orders").alerts[0].summary == (
        "deferred: 900 of 1,000 messages (90.0%) wait for a later try at b of orders, over 5.00%, "
        f"since {format_iso(at(10))}"
    )


def test_few_messages_that_wait_for_long_are_told_by_their_age() -> None:
    """One message of a window that waits for over half an hour is told of once, and its delivery ends that."""
    key = "deferred_age/ticket/orders"
    waiting: dict[str, Any] = {"nodes": {"b": {"deferred": 1}}, "deferred": 1}
    play = Play(build_rules()).push(0, 9).push(10, **waiting).push(11, 60).amend(45, 10)
    play.want(41, 41.1, FIRING, key).want(49, 49.1, RESOLVED, key).run(62)
    first = next(one for _, one in play.said if one.key == key)
    assert first.alerts[0].summary == (
        "deferred: the oldest message that waits for a later try in orders is 31.0 min old, over 30.0 min (1 wait), "
        f"since {format_iso(at(40))}"
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.sampled_from([None, 20, 447, 8, 0]), st.integers(0, 3)), min_size=1, max_size=40
    )
)
def test_an_alert_has_the_figures_of_a_window_as_it_is_now(versions: list[tuple[int, int | None, int]]) -> None:
    """Of any windows, amended in any order, what is told of one is its last version, or that it was amended."""
    play, last, moment, seen = Play(build_rules(ONLY_LOSS)), {}, 10.0, set()
    for minute, lost, pause in versions:
        moment += pause / 6
        fields = UNKNOWN if lost is None else {"lost": {"b": lost}} if lost else {}
        play.amend(moment, minute, **fields)
        last[at(minute)] = lost
        play.step(moment)
        for incident in play.snapshot.incidents.values():
            assert incident.notification is not None
            for alert in incident.notification.alerts:
                now = last[alert.window_start_us]
                seen.add(alert.affected)
                assert alert.affected == (now if now in {20, 447} else 0)
                assert ("was amended" in alert.summary) == (now not in {20, 447})


def test_a_state_of_a_version_before_is_read() -> None:
    """A state of an earlier version, which has the newest bad reading alone, is read."""
    play = Play(build_rules(ONLY_LOSS)).push(10, lost={"b": 20}).push(11, lost={"b": 447}).want(11, 11.1, FIRING, LOSS)
    play.run(13)
    (state,) = [state for series, state in play.snapshot.states.items() if series.node == "b"]
    text = state_json.format_state(state)
    assert state_json.parse_state(state.series, text) == state
    told = json.loads(text)
    before = [*told[:3], told[3][:-1], *told[4:-1]]
    assert state_json.parse_state(state.series, json.dumps(before)) == replace(state, earlier={})
