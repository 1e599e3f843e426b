"""Acceptance of alerts, in a small language of time: what happens when, and what is told between when and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hopwatch.alerts.events import Unit, Word
from hopwatch.monitor.results import Verdict, format_iso
from tests.support.alert_scenario import FIRING, RESOLVED, Play, build_rules
from tests.support.loss_rules import BURN, LOSS, ONLY_LOSS
from tests.support.windows import at, lag

ONLY_BURN = '[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "burn_rate"\nkeep_firing_for = "1m"\n'


def test_a_drop_at_one_node_is_one_page_that_names_it_and_ends() -> None:
    """Within one window after FINAL; the burn rate of the same stream is not told beside it."""
    play = Play().push(0, 9).push(10, 14, lost={"b": 20}).push(15, 40)
    play.want(11, 12, FIRING, LOSS).want(19.9, 21, RESOLVED, LOSS).run(40)
    first = next(one for _, one in play.said if one.key == LOSS)
    (alert,) = first.alerts
    assert (alert.word, alert.node, alert.edge, alert.affected, alert.out_of) == (Word.LOST, "b", "a -> b", 20, 1_000)
    assert (alert.observed, alert.threshold, alert.unit) == (0.02, 0.01, Unit.RATIO)
    assert (alert.since_us, len(alert.lost_ids), alert.runbook) == (at(10), 5, "docs/runbooks/loss.md")
    assert alert.summary == (
        "lost: 20 of 1,000 messages (2.00%) surely lost at b of orders on a -> b, over 1.00%, "
        f"since {format_iso(at(10))}"
    )


def test_an_alert_links_to_the_dashboard_s_window() -> None:
    """With stream, node and window, once it is known where the dashboard is."""
    rules = build_rules('[alerts]\ndashboard = "http://127.0.0.1:8501/"')
    play = Play(rules).push(0, lost={"b": 20}).want(1, 1.1, FIRING, LOSS).run(1)
    assert play.told(LOSS).alerts[0].link == (
        "http://127.0.0.1:8501/?stream=orders&node=b&window=2026-01-01T00%3A00%3A00Z"
    )


def test_a_loss_below_the_threshold_is_not_told() -> None:
    """Over means over; what is exactly the threshold is not. The budget of 99.9 % burns meanwhile."""
    Play(build_rules(ONLY_LOSS)).push(0, 30, lost={"b": 10}).run(31)


def test_a_loss_in_parts_too_small_at_each_node_is_told_of_the_stream() -> None:
    """Six in a thousand at each of two nodes is more than one in a hundred end to end."""
    play = Play().push(0, 3, lost={"a": 6, "b": 6}).want(1, 1.1, FIRING, LOSS).run(4)
    assert [alert.node for alert in play.told(LOSS).alerts] == [""]


def test_what_is_not_known_fires_no_loss_and_ends_none() -> None:
    """An UNKNOWN window neither fires an alert of loss nor ends one, whatever its figures."""
    unknown = {"verdict": Verdict.UNKNOWN, "lost": {"b": 900}}
    Play(build_rules(ONLY_LOSS)).push(0, 30, **unknown).run(31)
    play = Play(build_rules(ONLY_LOSS)).push(0, lost={"b": 20}).push(1, 90, verdict=Verdict.UNKNOWN).push(91, 99)
    play.want(1, 1.1, FIRING, LOSS).want(95.9, 96.1, RESOLVED, LOSS).run(99)


def test_ignorance_has_an_alert_of_its_own() -> None:
    """After a quarter of an hour of it, with what the monitor says of why."""
    play = Play().push(0, 9).push(10, 40, verdict=Verdict.UNKNOWN, reasons=("b: a hole",)).push(41, 60)
    key = "unknown/ticket/orders"
    play.want(25, 25.1, FIRING, key).want(46, 46.1, RESOLVED, key).run(60)
    assert "neither loss nor its absence can be shown in orders (b: a hole)" in play.told(key).summary


def test_a_silent_node_is_told_and_stands_for_the_ignorance_that_it_makes() -> None:
    """One ticket, that names the node; UNKNOWN of the same stream is not told beside it."""
    silent = {"b": {"seen": 0, "coverage": None}}
    play = Play().push(0, 9).push(10, 40, verdict=Verdict.UNKNOWN, nodes=silent).push(41, 60)
    key = "silent/ticket/orders"
    play.want(20, 20.1, FIRING, key).want(46, 46.1, RESOLVED, key).run(60)
    assert play.told(key).alerts[0].node == "b"


def test_a_stream_that_falls_silent_has_no_windows_and_is_told() -> None:
    """By the watermark, which the monitor's own pulse moves on; it ends when the stream is heard again."""
    play = Play().push(0, 9).push(40, 60)
    key = "silent/ticket/orders"
    play.want(20, 20.1, FIRING, key).want(45, 45.1, RESOLVED, key).run(60)
    assert play.told(key).alerts[0].since_us == at(10)


def test_a_stream_that_never_spoke_is_told() -> None:
    """Its silence counts from the first moment of the monitor."""
    Play(build_rules("", ("orders", "refunds"))).push(0, 15).want(10, 10.1, FIRING, "silent/ticket/refunds").run(15)


def test_an_amended_window_resolves_its_alert() -> None:
    """A probe's late account shows that nothing was lost: the alert that no longer holds ends at once."""
    play = Play().push(0, 9).push(10, lost={"b": 500}).push(11, 30)
    play.amend(12.5, 10).want(11, 11.1, FIRING, LOSS).want(12.5, 12.6, RESOLVED, LOSS).run(30)


def test_an_amended_window_can_fire() -> None:
    """A window that is amended to a loss fires late, once, and names its own time."""
    play = Play(build_rules(ONLY_LOSS)).push(0, 9).push(10, verdict=Verdict.UNKNOWN).push(11, 60)
    play.amend(31.5, 10, lost={"b": 500}).amend(44.5, 10, lost={"b": 499})
    play.want(31.5, 31.6, FIRING, LOSS).want(36, 36.1, RESOLVED, LOSS).run(60)
    assert play.said[0][1].alerts[0].since_us == at(10)


def test_what_ended_within_a_backlog_is_told_all_the_same() -> None:
    """An incident that began and ended during a stop of an hour is notified."""
    play = Play(build_rules(ONLY_LOSS)).push(0, 9).push(10, 12, lost={"b": 500}).push(13, 60)
    play.want(61, 61, FIRING, LOSS).want(61, 61, RESOLVED, LOSS).run(61, begin=61)


def test_a_rule_waits_as_long_as_it_says() -> None:
    """``for`` takes so many bad windows with no good one between; UNKNOWN ones are not counted."""
    rules = build_rules(ONLY_LOSS + 'for = "3m"')
    play = Play(rules).push(0, 1, lost={"b": 50}).push(2).push(3, 4, lost={"b": 50})
    play.push(5, 9, verdict=Verdict.UNKNOWN).push(10, lost={"b": 50})
    play.want(11, 11.1, FIRING, LOSS).run(11)
    assert play.told(LOSS).since_us == at(3)


def test_a_total_loss_pages_at_minute_1_and_a_small_one_at_minute_58() -> None:
    """Of 99.9 %, from a clean start: 100 % of errors burn 16.7 budgets at minute 1, 1.5 % burn 14.5 at minute 58."""
    for lost, minute in ((1_000, 1), (15, 58)):
        play = Play(build_rules(ONLY_BURN)).push(0, 4_319).push(4_320, 4_400, lost={"b": lost})
        # The page stands for the ticket of the same objective.
        play.want(4_320 + minute, 4_320 + minute, FIRING, BURN).run(4_320 + minute + 10, begin=4_320)


def test_a_page_of_a_burnt_budget_names_the_worst_node_and_lost_ids() -> None:
    """In its sentence and its alert; they stay while the budget burns on and nothing more is lost."""
    play = Play(build_rules(ONLY_BURN)).push(0, 99).push(100, lost={"a": 200, "b": 700}).push(101, 103)
    play.want(101, 101, FIRING, BURN).run(103.5, begin=100)
    ids = tuple(f"{n:032x}" for n in range(5))
    page = next(one for _, one in play.said if one.key == BURN)
    now = play.snapshot.incidents[BURN].notification
    assert now is not None
    for told in (page, now):
        (alert,) = told.alerts
        assert ", worst at b (900 of " in alert.summary
        assert alert.lost_ids == ids


@pytest.mark.parametrize("period", [2, 3, 5, 7, 11, 30, 59])
def test_flapping_makes_a_bounded_number_of_notifications(period: int) -> None:
    """A day of it: each time that it fires again it waits longer for its end, up to an hour."""
    play = Play(build_rules(ONLY_LOSS))
    for minute in range(1_440):
        play.push(minute, lost={"b": 0 if minute % period else 500})
    for number in range(1_440):
        play.step(number + 1)
    assert len([one for _, one in play.said if one.is_news]) <= 10


def test_five_thousand_nodes_that_break_at_once_are_one_page() -> None:
    """Twenty streams of 250 nodes: one incident that counts them all and names the first."""
    streams = tuple(f"s{number:02}" for number in range(20))
    names = tuple(f"n{number:03}" for number in range(250))
    play = Play(build_rules("", streams, " -> ".join(names)))
    for stream in streams:
        play.push(1, stream=stream, names=names, lost=dict.fromkeys(names, 1_100), known=100_000)
    play.want(2, 2.1, FIRING, "loss/page/*").run(2.2, begin=1.9)
    told = play.told("loss/page/*")
    assert (told.total, len(told.alerts), "stream" in told.labels) == (5_000, 20, False)


def test_lag_is_told_by_its_95th_percentile() -> None:
    """At the node, with the side; end to end lag of the same stream is not told beside it."""
    rules = build_rules(
        "".join(f'[[alerts.rules]]\nkind = "{kind}"\nthreshold = "2s"\n' for kind in ("lag", "end_to_end_lag"))
    )
    slow = {"b": {"lag_in_us": lag(3_000_000), "lag_out_us": lag(4_000_000)}}
    quick = {"b": {"lag_in_us": lag(1_000), "lag_out_us": lag(2_000)}}
    well = {"nodes": quick, "lag_us": lag(2_000)}
    key = "lag/ticket/orders"
    play = Play(rules).push(0, 9, **well).push(10, 20, nodes=slow, lag_us=lag(4_000_000)).push(21, 30, **well)
    play.want(15, 15.1, FIRING, key).want(26, 26.1, RESOLVED, key).run(31)
    assert play.told(key).summary.startswith("late: p95 of lag out 4.0 s at b of orders, over 2.0 s")


def test_a_late_node_says_what_its_slowest_have_in_common() -> None:
    """Behind the place, where a label tells of it."""
    play = Play(build_rules('[[alerts.rules]]\nkind = "lag"\nthreshold = "2s"\n'))
    cause = "95.0% of 100 slowest departures have host h2"
    play.push(0, 9).push(10, 20, nodes={"b": {"lag_out_us": lag(4_000_000)}})
    play.due = [(when, replace(minute, lag_explanations={"b": cause})) for when, minute in play.due]
    play.want(15, 15.1, FIRING, "lag/ticket/orders").run(16)
    told = play.told("lag/ticket/orders").summary
    assert told.startswith(f"late: p95 of lag out 4.0 s at b of orders ({cause}), over 2.0 s (")


def test_what_cannot_be_read_is_told() -> None:
    """Records set aside are the monitor's own; the alert ends when none came for ten minutes, and five more."""
    play = Play().push(0, 40).set_aside(5.05, 5.06)
    key = "set_aside/ticket/*"
    play.want(5.1, 5.4, FIRING, key).want(19, 21, RESOLVED, key).run(40)
    assert play.told(key).summary.startswith("set aside: 2 records of the transport could not be used")


def test_the_heartbeat_fires_from_the_first_batch_and_never_ends() -> None:
    """The heartbeat is news once, and its content moves on with the watermark."""
    play = Play().push(0, 9).run(10)
    beats = [one for _, one in play.said if one.key == "heartbeat/ticket/*"]
    assert [one.is_news for one in beats] == [True] + [False] * 10
    assert [one.alerts[0].window_start_us for one in beats] == [at(minute) for minute in range(11)]
