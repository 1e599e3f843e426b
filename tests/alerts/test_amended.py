"""Tests of windows that are amended: an alert says what its windows say now, and of what they said before no more."""

from __future__ import annotations

from typing import Any, Final

import pytest

from alerts.channels import texts
from monitor.results import Verdict, iso
from tests.alerts.play import FIRING, RESOLVED, Play, rules_of
from tests.alerts.windows import at, judged, lag

LOSS: Final = "loss/page/orders"
ONLY_LOSS: Final = '[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "loss"\n'
AMENDED: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "to UNKNOWN": (
        {"verdict": Verdict.UNKNOWN, "lost": {"b": 447}, "lost_lower": 0, "nodes": {"b": {"loss_lower": 0}}},
        "UNKNOWN (0 to ? lost)",
    ),
    "to a loss that is not over the threshold": ({"lost": {"b": 8}}, "LOSSY (8 lost)"),
    "to a loss that lies about the threshold": (
        {"lost": {"b": 8}, "lost_upper": 30, "nodes": {"b": {"loss": 30, "loss_upper": 30}}},
        "LOSSY (8 to 30 lost)",
    ),
    "to CLEAN": ({}, "CLEAN"),
}


@pytest.mark.parametrize(("fields", "now"), AMENDED.values(), ids=AMENDED)
def test_a_loss_whose_only_window_is_amended_is_over_and_says_why(fields: dict[str, Any], now: str) -> None:
    """Whatever the window says now, if that is no loss over the threshold."""
    play = Play(rules_of(ONLY_LOSS)).push(0, 9).push(10, lost={"b": 447}).push(11, 12)
    play.amend(12.5, 10, **fields).want(11, 11.1, FIRING, LOSS).want(12.5, 12.6, RESOLVED, LOSS).run(30)
    told = play.told(LOSS)
    assert told.amended == f"{iso(at(10))} is now {now}"
    assert told.summary == (
        f"amended: {iso(at(10))} is now {now}; it was: lost: 447 of 1,000 messages (44.70%) surely lost at b of orders"
        f" on a -> b, over 1.00%, since {iso(at(10))}"
    )
    assert texts.body(told, 4_000).splitlines()[:2] == [f"resolved at {iso(at(12.5))}:", told.summary]
    assert not play.standing.incidents


def test_an_end_by_good_windows_says_nothing_of_amendments() -> None:
    """It ends as ever, and its text is that of what it was."""
    play = Play(rules_of(ONLY_LOSS)).push(0, lost={"b": 447}).push(1, 9)
    play.want(1, 1.1, FIRING, LOSS).want(6, 6.1, RESOLVED, LOSS).run(9)
    told = play.told(LOSS)
    assert (told.amended, told.summary[:12]) == ("", "lost: 447 of")
    assert texts.body(told, 4_000).startswith(f"resolved at {iso(at(6))}; it was:\nlost: 447 of")


def test_an_alert_says_what_its_other_bad_windows_say() -> None:
    """The newest was amended to UNKNOWN: the figures are those of the one before it, and nobody is told again."""
    play = Play(rules_of(ONLY_LOSS)).push(10, lost={"b": 20}).push(11, lost={"b": 447})
    play.amend(12.5, 11, verdict=Verdict.UNKNOWN).want(11, 11.1, FIRING, LOSS).run(13)
    (alert,) = play.told(LOSS).alerts
    assert (alert.affected, alert.window_start_us, alert.since_us) == (20, at(10), at(10))
    assert len(alert.lost_ids) == 5
    (alert,) = Play(rules_of(ONLY_LOSS)).push(10, lost={"b": 447}).push(11, lost={"b": 20}).amend(
        12.5, 10, verdict=Verdict.UNKNOWN
    ).want(11, 11.1, FIRING, LOSS).run(13).told(LOSS).alerts  # fmt: skip
    assert (alert.affected, alert.window_start_us, alert.since_us) == (20, at(11), at(11))


def test_a_lower_loss_over_the_threshold_shows_the_new_number() -> None:
    """The alert goes on; it is no news."""
    play = Play(rules_of(ONLY_LOSS)).push(10, lost={"b": 447}).amend(12.5, 10, lost={"b": 30})
    play.want(11, 11.1, FIRING, LOSS).run(13)
    assert play.told(LOSS).summary.startswith("lost: 30 of 1,000 messages (3.00%)")


def test_only_the_places_that_still_stand_are_shown() -> None:
    """One of two nodes was amended: the incident goes on with the other."""
    play = Play(rules_of(ONLY_LOSS)).push(10, lost={"a": 447, "b": 20})
    play.amend(12.5, 10, lost={"b": 20}).want(11, 11.1, FIRING, LOSS).run(13)
    assert [(alert.node, alert.affected) for alert in play.told(LOSS).alerts] == [("b", 20)]


def test_a_bad_window_that_is_settled_is_told_when_all_behind_it_are_taken_back() -> None:
    """More than an hour old, it can change no more; it has the figures that it had."""
    play = Play(rules_of(ONLY_LOSS)).push(0, lost={"b": 20}).push(70, lost={"b": 447})
    play.amend(72.5, 70, verdict=Verdict.UNKNOWN).amend(73.5, 0).want(1, 1.1, FIRING, LOSS)
    # After an hour the other figures are news no more than before.
    play.run(75)
    (alert,) = play.told(LOSS).alerts
    assert (alert.affected, alert.window_start_us) == (20, at(0))


def test_an_unknown_window_that_was_never_bad_changes_nothing() -> None:
    """Neither an alert that stands nor one that does not, however often it is judged."""
    play = Play(rules_of(ONLY_LOSS)).push(0, lost={"b": 447}).push(1, 9, verdict=Verdict.UNKNOWN)
    play.want(1, 1.1, FIRING, LOSS).run(10)
    before = play.standing
    for minute in range(1, 10):
        play.amend(10.5, minute, verdict=Verdict.UNKNOWN)
    play.run(10.9, begin=10.5)
    assert {key: state for key, state in play.standing.states.items() if key.rule == "loss"} == {
        key: state for key, state in before.states.items() if key.rule == "loss"
    }


SECOND: Final = 1_000_000
ODD: Final = "odd"
KINDS: Final[dict[str, tuple[str, dict[str, Any], dict[str, Any]]]] = {
    "lag": ('threshold = "1s"\nfor = "1m"', {"nodes": {"b": {"lag_in_us": lag(2 * SECOND)}}}, {}),
    "end_to_end_lag": ('threshold = "1s"\nfor = "1m"', {"lag_us": lag(2 * SECOND)}, {}),
    "probe_drops": ('for = "1m"', {"nodes": {"b": {"dropped": 900}}}, {"verdict": Verdict.UNKNOWN}),
    "rejected": ('for = "1m"', {"nodes": {"b": {"rejected": 900}}}, {"verdict": Verdict.UNKNOWN}),
    "clock_skew": ('for = "1m"', {"nodes": {"b": {"lag_in_us": lag(5), "lag_negative": 500}}}, {}),
    "silent": ('for = "1m"', {"nodes": {"b": {"seen": 0, "coverage": None}}}, {}),
    "unknown": ('for = "1m"', {"verdict": Verdict.UNKNOWN}, {"verdict": Verdict.SILENT}),
    "burn_rate": ("", {"lost": {"b": 900}}, {"verdict": Verdict.UNKNOWN}),
    "loss": ("", {"lost": {"b": 900}}, {"verdict": Verdict.UNKNOWN}),
}


@pytest.mark.parametrize(("kind", "more", "fields", "amended"), [(kind, *of) for kind, of in KINDS.items()])
def test_whatever_the_rule_a_window_that_says_nothing_any_more_is_taken_back(
    kind: str, more: str, fields: dict[str, Any], amended: dict[str, Any]
) -> None:
    """No rule has a case of its own."""
    play = Play(rules_of(f'[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "{kind}"\n{more}\n'))
    play.push(0, 9, known=0).push(10, **fields).amend(11.5, 10, **amended)
    for moment in (11, 11.5):
        play.step(moment)
    told = [(one.event, bool(one.amended)) for _, one in play.said if one.kind == kind and one.is_news]
    assert told == [(FIRING, False), (RESOLVED, True)]


def test_a_budget_is_summed_anew_behind_a_window_that_is_amended() -> None:
    """Of the windows that read it too: what burnt in it burns in none of them any more, and ends at once."""
    rules = rules_of('[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "burn_rate"\n')
    play = Play(rules).push(0, 9).push(10, lost={"b": 447}).push(11, 30)
    key = "burn_rate/page/orders"
    play.amend(12.5, 10, verdict=Verdict.UNKNOWN).want(11, 11.1, FIRING, key).want(12.5, 12.6, RESOLVED, key).run(30)
    assert play.told(key).amended == f"{iso(at(10))} is now UNKNOWN"


def test_a_budget_that_burns_on_has_the_figures_and_the_place_of_what_stands() -> None:
    """The newest window that burnt was amended: ids and node are those of the one before it."""
    rules = rules_of('[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "burn_rate"\n')
    play = Play(rules).push(0, 9).push(10, lost={"a": 300}).push(11, lost={"b": 447}).push(12)
    play.amend(13.5, 11).want(11, 11.1, FIRING, "burn_rate/page/orders").run(13.9)
    (alert,) = play.told("burn_rate/page/orders").alerts
    assert (alert.affected, alert.window_start_us) == (300, at(12))
    assert ", worst at a (300 of 13,000 messages)" in alert.summary


def test_an_outlier_that_was_none_is_taken_back() -> None:
    """A detector that does not look at the amended window any more says nothing of it."""
    from alerts.minute import Outlier  # noqa: PLC0415 - of this test alone

    rules = rules_of('[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "outlier"\n')
    play = Play(rules).push(10, outliers={"b": (Outlier("messages", 3, 90, 110, 7.0),)})
    play.due.append((11.5, judged(10)))
    key = "outlier/ticket/orders"
    play.want(11, 11.1, FIRING, key).want(11.5, 11.6, RESOLVED, key).run(12)
