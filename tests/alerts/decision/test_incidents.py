"""Tests of which alerts a person is told of: joined, covered, folded into a storm, grown."""

from __future__ import annotations

from dataclasses import replace

from hopwatch.alerts.events import Severity
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import Verdict
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.alert_scenario import FIRING, RESOLVED, Play, build_rules
from tests.support.windows import at, lag

ONLY_LOSS = '[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "loss"\n'
LOSS = "loss/page/orders"


def test_a_node_that_breaks_later_joins_its_stream_s_incident() -> None:
    """Its content says so at once; it is news when an hour has passed since the last."""
    play = Play(build_rules(ONLY_LOSS)).push(0, 9, lost={"a": 20}).push(10, 75, lost={"a": 20, "b": 30})
    play.want(1, 1.1, FIRING, LOSS).want(61, 61.1, FIRING, LOSS).run(75)
    assert [one.total for moment, one in play.said if moment == 11] == [2]
    assert [alert.node for alert in play.told(LOSS).alerts] == ["b", "a"]


def breaking(count: int) -> Play:
    """Return a play in which so many streams break at once and get well one after the other."""
    streams = tuple(f"s{number}" for number in range(count))
    play = Play(build_rules(ONLY_LOSS, streams))
    for number, stream in enumerate(streams):
        play.push(1, 3 + number, stream=stream, lost={"b": 50}).push(4 + number, 20, stream=stream)
    return play


def test_five_streams_are_told_one_by_one() -> None:
    """Each begins and ends by itself."""
    play = breaking(5)
    for number in range(5):
        key = f"loss/page/s{number}"
        play.want(2, 2.1, FIRING, key).want(9 + number, 9.1 + number, RESOLVED, key)
    play.run(20)


def test_six_streams_are_a_storm() -> None:
    """Six streams are one storm, which ends when the last of them is well."""
    play = breaking(6)
    play.want(2, 2.1, FIRING, "loss/page/*").want(14, 14.1, RESOLVED, "loss/page/*").run(20)
    assert play.said[0][1].summary.startswith("6 places of 6 streams: loss; the worst: lost: 50 of 1,000")


def test_what_breaks_during_a_storm_or_soon_after_five_others_is_of_it() -> None:
    """Streams that fall one after the other within ten minutes are one cause too: five pages and one."""
    streams = tuple(f"s{number}" for number in range(9))
    play = Play(build_rules(ONLY_LOSS, streams))
    for number, stream in enumerate(streams):
        play.push(0, number, stream=stream).push(number + 1, 30, stream=stream, lost={"b": 50})
        if number < 5:
            play.want(number + 2, number + 2.1, FIRING, f"loss/page/{stream}")
    play.want(7, 7.1, FIRING, "loss/page/*").run(30)
    assert play.told("loss/page/*").total == 4


def test_a_ticket_stands_for_no_page() -> None:
    """A page is notified beside a ticket of the same problem; a page covers both."""
    rules = build_rules(
        ONLY_LOSS + 'severity = "ticket"\n[[alerts.rules]]\nname = "hard"\nkind = "loss"\nthreshold = 0.1\n'
    )
    play = Play(rules).push(0, 4, lost={"b": 20}).push(5, 9, lost={"b": 200}).push(10, 20)
    play.want(1, 1.1, FIRING, "loss/ticket/orders").want(6, 6.1, FIRING, "hard/page/orders")
    play.want(15, 15.1, RESOLVED, "hard/page/orders").want(15, 15.1, RESOLVED, "loss/ticket/orders").run(20)
    play = Play(rules).push(0, 9, lost={"b": 200}).push(10, 30)
    play.want(1, 1.1, FIRING, "hard/page/orders").want(15, 15.1, RESOLVED, "hard/page/orders").run(30)


def test_a_budget_that_goes_on_burning_is_told_once_the_loss_that_stood_for_it_is_over() -> None:
    """Not at its end, but when the short span has only seen what came behind it."""
    rules = build_rules(
        ONLY_LOSS
        + '[[alerts.rules]]\nkind = "burn_rate"\nobjective = 0.9999\n'
        + 'windows = [{ rate = 10, long = "1h", short = "30m", severity = "page" }]\n'
    )
    play = Play(rules).push(0, 9, lost={"b": 20}).push(10, 60, lost={"b": 5})
    play.want(1, 1.1, FIRING, LOSS).want(15, 15.1, RESOLVED, LOSS)
    play.want(44, 46, FIRING, "burn_rate/page/orders").run(60)


def test_an_outlier_is_told_only_where_nothing_else_is() -> None:
    """An outlier causes an alert only if nothing else is known of the stream."""
    from hopwatch.alerts.decision.inputs import SeriesOutlier  # noqa: PLC0415 - of this test alone

    odd, even = {"b": (SeriesOutlier("messages", 3, 90, 110, 7.0),)}, {"a": (), "b": ()}
    play = Play().push(0, 3, outliers=odd).push(4, 20, outliers=even)
    key = "outlier/ticket/orders"
    play.want(1, 1.1, FIRING, key).want(9, 9.1, RESOLVED, key).run(20)
    play = Play().push(0, 3, outliers=odd, lost={"b": 50}).push(4, 20, outliers=even)
    play.want(1, 1.1, FIRING, LOSS).want(9, 9.1, RESOLVED, LOSS).run(20)


def test_alerts_of_other_subjects_are_told_beside_each_other() -> None:
    """An alert of loss does not cover one of lag."""
    rules = build_rules(
        ONLY_LOSS + '[[alerts.rules]]\nkind = "lag"\nthreshold = "1s"\nfor = "1m"\nlabels = { team = "payments" }\n'
    )
    late = {"b": {"lag_in_us": lag(2_000_000)}}
    play = Play(rules).push(0, 3, lost={"b": 50}, nodes=late)
    play.want(1, 1.1, FIRING, LOSS).want(1, 1.1, FIRING, "lag/ticket/orders").run(4)
    told = play.told("lag/ticket/orders")
    assert (told.labels["team"], told.alerts[0].labels, told.severity) == (
        "payments",
        {"team": "payments"},
        Severity.TICKET,
    )


def test_an_alert_has_the_labels_of_its_stream_and_of_its_rule() -> None:
    """The rule's count where both name one; a storm over many streams has those of the rule alone."""
    streams = tuple(f"s{number}" for number in range(6))
    made = build_rules(ONLY_LOSS + 'labels = { team = "sre" }\n', streams)
    rules = replace(made, stream_labels={key: {"team": "payments", "tier": "1"} for key in streams})
    play = Play(rules).push(0, 1, stream="s0", lost={"b": 50}).want(1, 1.1, FIRING, "loss/page/s0").run(2)
    told = play.told("loss/page/s0")
    both = {"team": "sre", "tier": "1"}
    assert told.alerts[0].labels == both
    assert told.labels == {**both, "rule": "loss", "severity": "page", "stream": "s0"}
    play = Play(rules)
    for stream in streams:
        play.push(0, 1, stream=stream, lost={"b": 50})
    told = play.want(1, 1.1, FIRING, "loss/page/*").run(2).told("loss/page/*")
    assert told.labels == {"team": "sre", "rule": "loss", "severity": "page"}


def test_the_incident_says_how_it_was_when_it_is_over() -> None:
    """With the alerts that it had last, and since when."""
    play = Play(build_rules(ONLY_LOSS)).push(0, 9, lost={"b": 20}).push(10, 20, verdict=Verdict.CLEAN)
    play.want(1, 1.1, FIRING, LOSS).want(15, 15.1, RESOLVED, LOSS).run(20)
    told = play.told(LOSS)
    assert (told.event, told.alerts[0].node, told.alerts[0].window_start_us) == (
        RESOLVED,
        "b",
        told.since_us + 9 * 60_000_000,
    )


def test_an_alert_of_a_node_that_was_taken_out_of_the_path_ends_with_its_last_window() -> None:
    """As long as a window of a version with the node may be judged again it lasts; later ones say nothing of it."""
    rules = build_rules(ONLY_LOSS)
    play = Play(rules).push(0, 9).push(10, 11, lost={"b": 447}).want(10, 11.1, FIRING, LOSS).run(12)
    before = rules.streams["orders"]
    edited = replace(before, pathway=Pathway.parse("a -> c"), valid_from_us=at(12), earlier=(before,))
    play.rules = replace(rules, streams={"orders": edited})
    over = (before.terms.judged_until_us(at(11)) - at(0)) / WINDOW_US
    play.step(over)
    assert {series.node for series in play.snapshot.states} == {"", "b"}
    play.step(over + 0.2)
    assert {series.node for series in play.snapshot.states} == {""}
