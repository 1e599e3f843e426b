"""Tests of alerts on windows that are not final: what is overdue becomes a loss of the same incident, or arrives."""

from __future__ import annotations

from typing import Any, Final, Self

from hopwatch.alerts.channels.texts import format_facts
from hopwatch.alerts.decision.episode import AlertSeries
from hopwatch.monitor.results import Status, Verdict, format_iso
from tests.support.alert_scenario import FIRING, RESOLVED, Play, build_rules
from tests.support.windows import at, window_input

LOSS: Final = "loss/page/orders"
ONLY_LOSS: Final = '[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "loss"\n'
LATE: Final = f"{ONLY_LOSS}overdue = false\n"
SILENT: Final = '[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "silent"\nfor = "1m"\n'


class EarlyPlay(Play):
    """A play in which windows are heard of before they are final."""

    def early(
        self,
        when: float,
        minute: int,
        overdue: int,
        missing: int,
        status: Status = Status.OPEN,
        ids: tuple[str, ...] = (),
    ) -> Self:
        """Let so many messages be overdue at b, and so many missing there, at a moment."""
        at_node: dict[str, Any] = {"seen": 1_000 - missing, "expected": 1_000, "in_flight": missing, "overdue": overdue}
        at_node |= {"overdue_ids": ids}
        fields: dict[str, Any] = {
            "nodes": {"b": at_node},
            "in_flight": missing,
            "overdue": overdue,
            "verdict": Verdict.CLEAN,
        }
        self.due.append((when, window_input(minute, status=status, **fields)))
        return self


def play(text: str = ONLY_LOSS) -> EarlyPlay:
    """Return a play with one rule."""
    return EarlyPlay(build_rules(text))


def test_what_is_overdue_pages_before_its_window_is_final() -> None:
    """The alert says how many are overdue, of how many that are known so far, and at which node."""
    one = play().early(10.5, 10, 447, 460).want(10.5, 10.6, FIRING, LOSS).run(10.9)
    told = one.told(LOSS)
    (alert,) = told.alerts
    minute = format_iso(at(10))
    assert (alert.word, alert.node, alert.affected, alert.out_of) == ("overdue", "b", 447, 1_000)
    assert told.summary == (
        "overdue: 447 of 1,000 messages (44.7%) are missing at b of orders beyond their deadline, over 1.00%, "
        f"since {minute}"
    )


def test_an_alert_names_five_of_what_is_overdue() -> None:
    """Ids stand where lost ids stand, on one line each; a text calls them overdue."""
    one = play().early(10.5, 10, 447, 460, ids=("a\nb", *"cdefg")).want(10.5, 10.6, FIRING, LOSS).run(10.9)
    told = one.told(LOSS)
    assert told.alerts[0].lost_ids == ("a\\nb", *"cdef")
    assert "overdue ids: a\\nb, c, d, e, f" in format_facts(told)


def test_what_is_lost_at_last_is_told_by_the_same_incident() -> None:
    """The final window updates the incident, and notifies nobody again."""
    one = play().early(10.5, 10, 447, 460).push(10, lost={"b": 450}).want(10.5, 10.6, FIRING, LOSS).run(12)
    told = one.told(LOSS)
    assert not told.is_news
    assert told.summary.startswith("lost: 450 of 1,000 messages (45.0%) surely lost at b of orders")


def test_what_arrives_after_all_ends_the_alert() -> None:
    """Before the window is final, or when it is clean: the end says so."""
    for one in (
        play().early(10.5, 10, 447, 460).early(10.8, 10, 0, 0).want(10.8, 10.9, RESOLVED, LOSS),
        play().early(10.5, 10, 447, 460).push(10).want(11, 11.1, RESOLVED, LOSS),
    ):
        one.want(10.5, 10.6, FIRING, LOSS).run(12)
        assert one.told(LOSS).summary.endswith("; what was overdue has arrived after all")


def test_an_end_does_not_hide_what_is_missing_still() -> None:
    """An alert that ends as too few are missing says how many, be they in flight or lost."""
    for one, moment, missing in (
        (play().early(10.5, 10, 447, 460).early(10.8, 10, 0, 3), 10.8, "3 messages are"),
        (play().early(10.5, 10, 447, 460).push(10, lost={"b": 1}), 11, "1 message is"),
    ):
        one.want(10.5, 10.6, FIRING, LOSS).want(moment, moment + 0.1, RESOLVED, LOSS).run(12)
        assert one.told(LOSS).summary.endswith(f"; {missing} missing still, within the threshold")


def test_other_windows_that_are_overdue_hold_an_alert() -> None:
    """An alert of two windows goes on when what was overdue in the newer one has arrived; it says of which that is."""
    one = play().early(10.5, 10, 447, 460).early(11.2, 11, 447, 460).early(11.5, 11, 0, 0)
    one.want(10.5, 10.6, FIRING, LOSS).run(11.9)
    (alert,) = one.told(LOSS).alerts
    assert (alert.window_start_us, alert.affected) == (at(10), 447)


def test_an_account_that_falls_silent_ends_nothing() -> None:
    """A message that cannot be shown to be overdue any more, and is missing still, has not arrived."""
    one = play().early(10.5, 10, 447, 460).early(10.8, 10, 0, 460).want(10.5, 10.6, FIRING, LOSS)
    one.amend(11.2, 10, verdict=Verdict.UNKNOWN, lost={"b": 447}, lost_lower=0, nodes={"b": {"loss_lower": 0}})
    one.run(12)
    assert "is UNKNOWN (0 to ? lost) now" in one.told(LOSS).summary


def test_a_window_that_begins_ends_no_alert() -> None:
    """Good news of a window that is not final counts for what was overdue in that window alone."""
    one = play().early(10.5, 10, 447, 460).early(11.1, 11, 0, 0).early(11.3, 11, 200, 230)
    one.push(10, lost={"b": 450}).push(11, lost={"b": 230}).want(10.5, 10.6, FIRING, LOSS).run(13)
    series = AlertSeries("loss", "page", "orders", "b")
    assert one.snapshot.states[series].marks == {at(10): True, at(11): True}


def test_few_messages_are_no_alert() -> None:
    """At most the threshold may be overdue, and less than least_messages known."""
    play().early(10.5, 10, 10, 460).push(10).run(12)
    play(f"{ONLY_LOSS}least_messages = 1001\n").early(10.5, 10, 447, 460).push(10).run(12)


def test_a_rule_may_leave_out_what_is_overdue() -> None:
    """With overdue = false it waits until windows are final."""
    play(LATE).early(10.5, 10, 447, 460).push(10, lost={"b": 450}).want(11, 11.1, FIRING, LOSS).run(12)


def test_other_rules_read_final_windows_alone() -> None:
    """No rule of another kind reads a window that is not final, as its counts so far say nothing."""
    play(SILENT).push(0, 10).early(10.5, 11, 0, 460).run(10.9)
