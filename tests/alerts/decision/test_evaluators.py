"""Tests of what each kind of rule makes of one window: tables of figures and what they show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from hopwatch.alerts.decision import burn_rate, evaluators
from hopwatch.alerts.decision.inputs import ObjectiveCounts, SeriesOutlier, WindowInput
from hopwatch.alerts.decision.reading import Reading, bad_reading, good_reading
from hopwatch.alerts.decision.rules import AlertRules, Objective
from hopwatch.alerts.events import AlertKind
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.count_lags import NO_LAGS, CountLags, digest_histograms
from hopwatch.monitor.kernel.tally import NodeLags
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.results import NodeCounts, Verdict
from hopwatch.probes.contract.lag_histograms import count_lags
from tests.support.alert_scenario import build_rules
from tests.support.windows import START_US, Memory, at, lag, node, window, window_input

SECOND: Final = 1_000_000
LAGS: Final = "".join(f'[[alerts.rules]]\nkind = "{kind}"\nthreshold = "1s"\n' for kind in ("lag", "end_to_end_lag"))


def made(minute: WindowInput, kind: AlertKind, rules: AlertRules | None = None) -> dict[str, Reading]:
    """Return what the rule of a kind makes of a window, by node."""
    rules = rules or build_rules(LAGS)
    rule = next(rule for rule in rules.rules if rule.kind is kind)
    found = evaluators.evaluate_rule(rule, rules.streams["orders"], minute, Memory())
    return {reading.node: reading for reading in found}


def signs(minute: WindowInput, kind: AlertKind, rules: AlertRules | None = None) -> dict[str, bool]:
    """Return whether it is bad, by node."""
    return {name: reading.is_bad for name, reading in made(minute, kind, rules).items()}


LOSSES: Final[dict[str, tuple[dict[str, Any], dict[str, bool]]]] = {
    "nothing lost": ({}, {"": False, "a": False, "b": False}),
    "nothing came": ({"known": 0}, {"": False, "a": False, "b": False}),
    "as much as the threshold": ({"lost": {"b": 10}}, {"": False, "a": False, "b": False}),
    "more": ({"lost": {"b": 11}}, {"": True, "a": False, "b": True}),
    "unknown": ({"lost": {"b": 900}, "verdict": Verdict.UNKNOWN}, {}),
    "silent": ({"verdict": Verdict.SILENT}, {}),
    "perhaps more": ({"lost": {"b": 1}, "nodes": {"a": {"loss_upper": None}}, "lost_upper": 30}, {"b": False}),
}


@pytest.mark.parametrize(("fields", "expected"), LOSSES.values(), ids=LOSSES)
def test_loss(fields: dict[str, Any], expected: dict[str, bool]) -> None:
    """Bad by the lower bound, good by the upper one, and else neither."""
    assert signs(window_input(0, **fields), AlertKind.LOSS) == expected


def test_a_loss_names_the_edge_that_most_of_it_is_on() -> None:
    """Into a node from the one before it, or out of it at a branch; none where there are several, or it is inside."""
    rules = build_rules("", path="a -> b | c -> d")
    cases = {
        ("d", "lost_in_transit"): "",
        ("a", "lost_after"): "a -> b | c",
        ("b", "lost_inside"): "",
        ("a", "lost_inside"): "",
    }
    for (name, where), edge in cases.items():
        counts = dict.fromkeys(("lost_in_transit", "lost_inside", "lost_after"), 0) | {where: 20}
        fields = {name: counts | {"loss": 20, "loss_lower": 20, "loss_upper": 20}}
        found = made(
            window_input(0, names=("a", "b", "c", "d"), nodes=fields, verdict=Verdict.LOSSY), AlertKind.LOSS, rules
        )
        assert (found[name].is_bad, found[name].edge) == (True, edge), (name, where)


def test_a_loss_by_count_says_that_it_is_one() -> None:
    """A loss fires at the node that counts, by its lower bound; equal fingerprints end it, and nothing else does."""
    counted = NodeCounts("n", 980, 980, 0, 0, 1.0, "b", 1_000, None, 20, None, None, None)
    (found,) = [one for name, one in made(_counting(counted), AlertKind.LOSS).items() if name == "n"]
    assert (found.is_bad, found.affected, found.out_of) == (True, 20, 1_000)
    assert (found.edge, found.note) == ("b -> n", "by count")
    assert "n" not in signs(_counting(replace(counted, lost_before_lower=0)), AlertKind.LOSS)
    assert signs(_counting(replace(counted, lost_before_lower=0, same_before=True)), AlertKind.LOSS)["n"] is False


def _counting(counted: NodeCounts) -> WindowInput:
    return window_input(0, verdict=Verdict.LOSSY, counts=(counted,))


def test_a_loss_says_how_many_were_delivered_elsewhere() -> None:
    """Of the stream and of its nodes, where any were; what is good says nothing."""
    told = "of 20 missing in the stream 15 were delivered elsewhere"
    found = made(window_input(0, lost={"b": 20}, partial=15), AlertKind.LOSS)
    assert {name: reading.note for name, reading in found.items()} == {"": told, "a": "", "b": told}
    assert {reading.note for reading in made(window_input(0, lost={"b": 20}), AlertKind.LOSS).values()} == {""}


def test_a_loss_names_its_likely_cause() -> None:
    """At the node, before what was delivered elsewhere."""
    cause = "97.0% of 20 missing have version 1.1"
    minute = replace(window_input(0, lost={"b": 20}, partial=15), explanations={"b": cause})
    notes = {name: reading.note for name, reading in made(minute, AlertKind.LOSS).items()}
    told = "of 20 missing in the stream 15 were delivered elsewhere"
    assert notes == {"": told, "a": "", "b": f"{cause}; {told}"}


def test_too_few_messages_show_nothing() -> None:
    """A rule says how many it takes to be bad; fewer of them are good if nothing was lost."""
    rules = build_rules('[[alerts.rules]]\nkind = "loss"\nleast_messages = 100')
    assert signs(window_input(0, known=99, lost={"b": 90}), AlertKind.LOSS, rules) == {"a": False}


def test_a_rule_looks_at_its_own_nodes() -> None:
    """And at the stream as a whole."""
    rules = build_rules('[[alerts.rules]]\nkind = "loss"\nnodes = ["a"]')
    assert signs(window_input(0, lost={"b": 500}), AlertKind.LOSS, rules) == {"": True, "a": False}


def test_lag_is_the_worse_of_both_sides() -> None:
    """With the side, and how many stamps were over, by the digest."""
    values = np.array([2 * SECOND] * 10 + [SECOND // 2] * 90, np.int64)
    digest = tdigest.build(values)
    lags = tuple(NodeLags(tdigest.EMPTY, digest, tdigest.EMPTY) for _ in "ab")
    sides = {"lag_in_us": lag(SECOND // 2, 100), "lag_out_us": lag(2 * SECOND, 100)}
    minute = WindowInput(window(0, nodes={"b": sides}, lag_us=lag(2 * SECOND, 100)), lags)
    assert made(minute, AlertKind.LAG) == {"b": bad_reading("b", 2 * SECOND, SECOND, (10, 100), "out")}
    assert made(minute, AlertKind.END_TO_END_LAG) == {"": bad_reading("", 2 * SECOND, SECOND, (10, 100))}


def test_a_late_node_names_the_likely_cause() -> None:
    """Beside the side; a node that is in time names none."""
    told = {"a": "100% of 5 slowest departures have host h1", "b": "100% of 5 slowest departures have host h2"}
    figures = {"b": {"lag_in_us": None, "lag_out_us": lag(2 * SECOND, 100)}}
    minute = WindowInput(window(0, nodes=figures), lag_explanations=told)
    found = made(minute, AlertKind.LAG)
    assert (found["b"].note, found["b"].because) == ("out", told["b"])
    assert {reading.because for node, reading in found.items() if node != "b"} <= {""}


def test_lag_by_count_fires_as_that_of_stamps_does_and_says_so() -> None:
    """With the worse side and how many were over; where no packet told a lag there is no reading."""
    histogram = count_lags(np.array([2 * SECOND, SECOND // 2]), np.array([10, 90]))
    told = CountLags(digest_histograms([histogram]), digest_histograms([]))
    counted = NodeCounts("n", 200, 200, 0, 0, 1.0, "a", 200, None, 0, "b", 200, None)
    late = replace(counted, **told.figures)
    minute = WindowInput(window(0, counts=(late,)), count_lags=(told,))
    assert late.lag_in_us is not None
    reading = bad_reading("n", late.lag_in_us.p95, SECOND, (10, 100), "in")
    assert made(minute, AlertKind.LAG) == {"n": reading._replace(note="by count")}
    assert "n" not in made(WindowInput(window(0, counts=(counted,)), count_lags=(NO_LAGS,)), AlertKind.LAG)
    well = replace(counted, lag_in_us=lag(SECOND // 2), lag_out_us=lag(SECOND // 2))
    assert signs(WindowInput(window(0, counts=(well,))), AlertKind.LAG) == {"n": False}
    assert signs(WindowInput(window(0, counts=(well,), verdict=Verdict.UNKNOWN)), AlertKind.LAG) == {}


def test_what_was_seen_late_was_late_and_what_was_in_time_says_nothing_of_the_unseen() -> None:
    """In an UNKNOWN window a lag is bad or nothing; without stamps it is nothing in any."""
    for lag_us, verdict, expected in (
        (2 * SECOND, Verdict.UNKNOWN, True),
        (SECOND, Verdict.UNKNOWN, None),
        (SECOND, Verdict.CLEAN, False),
        (None, Verdict.CLEAN, None),
    ):
        figures = lag(lag_us) if lag_us else None
        minute = window_input(0, verdict=verdict, nodes={"b": {"lag_in_us": figures}}, lag_us=figures)
        assert signs(minute, AlertKind.LAG).get("b") is expected
        assert signs(minute, AlertKind.END_TO_END_LAG).get("") is expected


def test_ignorance_and_silence_are_two_things() -> None:
    """Each verdict, and what it is to the two rules."""
    expected = {
        Verdict.CLEAN: (False, False),
        Verdict.LOSSY: (False, False),
        Verdict.IDLE: (False, False),
        Verdict.UNKNOWN: (True, False),
        Verdict.SILENT: (None, True),
    }
    found = {
        one: (
            signs(window_input(0, verdict=one), AlertKind.UNKNOWN),
            signs(window_input(0, verdict=one), AlertKind.SILENT),
        )
        for one in Verdict
    }
    assert {verdict: (unknown.get(""), silent.get("")) for verdict, (unknown, silent) in found.items()} == expected


def test_a_node_is_silent_that_saw_nothing_and_has_no_whole_account() -> None:
    """One with an account that there was nothing is only idle."""
    nodes = {"a": {"seen": 0, "coverage": 1.0}, "b": {"seen": 0, "coverage": None}}
    assert signs(window_input(0, nodes=nodes), AlertKind.SILENT) == {"": False, "a": False, "b": True}


def test_drops_are_a_part_of_what_was_seen_or_dropped() -> None:
    """An account with a hole may hide some: it is not good."""
    nodes = {"a": {"dropped": 90, "coverage": 0.5}, "b": {"coverage": 0.5}}
    minute = window_input(0, verdict=Verdict.UNKNOWN, known=910, nodes=nodes)
    assert made(minute, AlertKind.PROBE_DROPS) == {"a": bad_reading("a", 0.09, 0.01, (90, 1_000))}
    assert signs(window_input(0), AlertKind.PROBE_DROPS) == {"a": False, "b": False}


def test_what_is_rejected_is_a_part_of_what_was_seen() -> None:
    """Over the threshold, not at it; an account with a hole may hide some, and without messages none is rejected."""
    nodes = {
        "a": {"seen": 1_000, "rejected": 51, "coverage": 0.5},
        "b": {"seen": 1_000, "rejected": 50, "coverage": 1.0},
    }
    minute = window_input(0, verdict=Verdict.UNKNOWN, nodes=nodes)
    assert made(minute, AlertKind.REJECTED) == {"a": bad_reading("a", 0.051, 0.05, (51, 1_000)), "b": good_reading("b")}
    none: dict[str, Any] = {"a": {"seen": 0, "coverage": None}, "b": {"coverage": 0.5}}
    assert signs(window_input(0, verdict=Verdict.UNKNOWN, nodes=none), AlertKind.REJECTED) == {}
    assert signs(window_input(0), AlertKind.REJECTED) == {"a": False, "b": False}


def test_what_is_deferred_is_a_part_of_what_was_seen() -> None:
    """Over the threshold, not at it; an account with a hole may hide some, and without messages none is deferred."""
    nodes = {
        "a": {"seen": 1_000, "deferred": 51, "coverage": 0.5},
        "b": {"seen": 1_000, "deferred": 50, "coverage": 1.0},
    }
    minute = window_input(0, verdict=Verdict.UNKNOWN, nodes=nodes)
    assert made(minute, AlertKind.DEFERRED) == {"a": bad_reading("a", 0.051, 0.05, (51, 1_000)), "b": good_reading("b")}
    none: dict[str, Any] = {"a": {"seen": 0, "coverage": None}, "b": {"coverage": 0.5}}
    assert signs(window_input(0, verdict=Verdict.UNKNOWN, nodes=none), AlertKind.DEFERRED) == {}
    assert signs(window_input(0), AlertKind.DEFERRED) == {"a": False, "b": False}


def test_deferred_messages_are_no_loss() -> None:
    """A window of which most messages wait for a later try is good to a rule of loss while they are in flight."""
    nodes = {"b": {"seen": 1_000, "deferred": 900, "in_flight": 900}}
    minute = window_input(0, nodes=nodes, deferred=900, in_flight=900)
    assert signs(minute, AlertKind.LOSS) == {"": False, "a": False, "b": False}
    assert signs(minute, AlertKind.DEFERRED) == {"a": False, "b": True}


AGES: Final[dict[str, tuple[dict[int, int], Verdict, dict[str, Reading]]]] = {
    "none waits": ({}, Verdict.CLEAN, {"": good_reading("")}),
    "nobody knows": ({}, Verdict.UNKNOWN, {}),
    "as old as the threshold": ({31: 5}, Verdict.CLEAN, {"": good_reading("")}),
    "older": ({30: 5, 40: 2}, Verdict.CLEAN, {"": bad_reading("", 31 * 60 * SECOND, 30 * 60 * SECOND, (7, 7))}),
    "unknown and old": ({30: 5}, Verdict.UNKNOWN, {"": bad_reading("", 31 * 60 * SECOND, 30 * 60 * SECOND, (5, 5))}),
    "a later one": ({61: 5}, Verdict.CLEAN, {"": good_reading("")}),
    "of a window that is amended no more": ({-1: 5}, Verdict.CLEAN, {"": good_reading("")}),
}


@pytest.mark.parametrize(("waiting", "verdict", "expected"), AGES.values(), ids=AGES)
def test_the_oldest_message_that_waits_has_an_age(
    waiting: dict[int, int], verdict: Verdict, expected: dict[str, Reading]
) -> None:
    """Age runs from the start of the oldest window that can be amended to the end of the one that is judged."""
    rules = build_rules()
    rule = next(rule for rule in rules.rules if rule.kind is AlertKind.DEFERRED_AGE)
    past = Memory(deferred={("orders", at(minute)): count for minute, count in waiting.items()})
    stream = replace(rules.streams["orders"], terms=WindowPolicy(0, 0, 3_600 * SECOND, 86_400 * SECOND))
    found = evaluators.evaluate_rule(rule, stream, window_input(60, verdict=verdict), past)
    assert {reading.node: reading for reading in found} == expected


def test_a_clock_is_judged_by_its_stamps() -> None:
    """Negative lags are a part of all stamps; without any nothing is known."""
    both = {"lag_in_us": lag(5, 100), "lag_out_us": lag(5, 100)}
    minute = window_input(
        0, nodes={"a": both | {"lag_negative": 3}, "b": {"lag_in_us": lag(5, 300), "lag_negative": 3}}
    )
    assert made(minute, AlertKind.CLOCK_SKEW) == {
        "a": bad_reading("a", 0.015, 0.01, (3, 200)),
        "b": good_reading("b"),
    }
    assert signs(window_input(0), AlertKind.CLOCK_SKEW) == {}


def test_an_outlier_is_what_the_detector_says() -> None:
    """The rarest of a node, with what was expected; of a node at which nobody looked there is nothing to say."""
    said = {
        "b": (SeriesOutlier("lag_in_p95_us", 9e6, 1e3, 2e3, 7.5), SeriesOutlier("messages", 3, 90, 110, 6.5)),
        "a": (),
    }
    found = made(window_input(0, outliers=said), AlertKind.OUTLIER)
    assert found == {
        "b": bad_reading("b", 7.5, 0, note="lag_in_p95_us is 9e+06, expected 1000 to 2000"),
        "a": good_reading("a"),
    }
    assert made(window_input(0), AlertKind.OUTLIER) == {}
    young = {"a": (SeriesOutlier("messages", 3, None, None, 7.0),)}
    assert made(window_input(0, outliers=young), AlertKind.OUTLIER)["a"].note == "messages is 3"
    strict = build_rules('[[alerts.rules]]\nkind = "outlier"\nthreshold = 8')
    assert signs(window_input(0, outliers=said), AlertKind.OUTLIER, strict) == {"a": False, "b": False}


def test_bad_messages_of_a_lag_objective_are_those_over_the_target() -> None:
    """By the distribution function of the digests at the ends of the pathway."""
    slow = NodeLags(tdigest.EMPTY, tdigest.build(np.arange(0, 1_000, dtype=np.int64)), tdigest.EMPTY)
    lags = (NodeLags(tdigest.EMPTY, tdigest.build(np.full(50, 10**9, np.int64)), tdigest.EMPTY), slow)
    stream = build_rules().streams["orders"]
    objective = Objective(0.01, target_us=899)
    assert burn_rate.count_window(objective, stream, WindowInput(window(0), lags)) == ObjectiveCounts(1_000, 100)
    assert burn_rate.count_window(objective, stream, WindowInput(window(0, verdict=Verdict.UNKNOWN), lags)) is None
    nothing = NodeLags(tdigest.EMPTY, tdigest.EMPTY, tdigest.EMPTY)
    assert burn_rate.count_window(
        objective, stream, WindowInput(window(0, known=0), (nothing, nothing))
    ) == ObjectiveCounts(0, 0)


def test_bad_messages_of_a_loss_objective_are_those_surely_lost() -> None:
    """Bad are the messages surely lost, out of all that are known."""
    stream, objective = build_rules().streams["orders"], Objective(0.001)
    assert burn_rate.count_window(objective, stream, window_input(0, lost={"b": 7})) == ObjectiveCounts(1_000, 7)
    assert burn_rate.count_window(objective, stream, window_input(0, lost={"b": 7}, verdict=Verdict.UNKNOWN)) is None


BURNING: Final = {
    # Lost of 1,000 a minute over the last minutes, least messages, what is shown.
    "none": ([0] * 60, 100, (False, 0.0)),
    "both spans over 14.4": ([0] * 55 + [1_000] * 5, 100, (True, 83.33)),
    "it is over since five minutes": ([1_000] * 50 + [0] * 5, 100_000, (False, 0.0)),
    "too few to say": ([1_000] * 60, 60_001, (False, 0.0)),
    "just as many": ([1_000] * 60, 5_000, (True, 1_000.0)),
}


@pytest.mark.parametrize(("lost", "least", "expected"), BURNING.values(), ids=BURNING)
def test_a_budget_burns_when_both_spans_say_so(lost: list[int], least: int, expected: tuple[bool, float]) -> None:
    """And there are enough messages in both."""
    rules = build_rules(f'[[alerts.rules]]\nkind = "burn_rate"\nleast_messages = {least}')
    rule = next(rule for rule in rules.rules if rule.kind is AlertKind.BURN_RATE and rule.severity == "page")
    memory = Memory()
    found = [window_input(minute, lost={"b": of_minute}) for minute, of_minute in enumerate(lost)]
    for minute in found:
        memory.count(minute)
    reading = burn_rate.evaluate_burn_rate(rule, rules.streams["orders"], found[-1], memory)
    assert reading is not None
    assert (reading.is_bad, round(reading.observed, 2)) == expected
    place = ("worst at b", tuple(f"{n:032x}" for n in range(5))) if reading.is_bad else ("", ())
    assert (reading.note, reading.lost_ids) == place


def test_a_burnt_budget_names_the_node_that_lost_most_in_its_window() -> None:
    """With no more than five of its ids; no node where the window itself lost none."""
    rules = build_rules('[[alerts.rules]]\nkind = "burn_rate"')
    rule = next(rule for rule in rules.rules if rule.kind is AlertKind.BURN_RATE and rule.severity == "page")
    memory = Memory()
    both = window_input(0, lost={"a": 400, "b": 300})
    many = replace(both, lost_ids={"a": tuple("abcdefg"), "b": tuple("hijklmn")})
    for minute in (both, quiet := window_input(1)):
        memory.count(minute)
    found = [burn_rate.evaluate_burn_rate(rule, rules.streams["orders"], minute, memory) for minute in (many, quiet)]
    assert [(one.is_bad, one.note, one.lost_ids) for one in found if one] == [
        (True, "worst at a", tuple("abcde")),
        (True, "", ()),
    ]


def test_a_burnt_budget_of_lag_names_the_end_where_most_came_late() -> None:
    """Of several ends; ids of what was late are not kept."""
    text = '[[alerts.rules]]\nkind = "burn_rate"\nof = "lag"\ntarget = "1ms"'
    rules = build_rules(text, path="a -> b & c")
    rule = next(rule for rule in rules.rules if rule.kind is AlertKind.BURN_RATE and rule.severity == "page")
    late = [tdigest.build(np.full(count, 9_000, np.int64)) for count in (900, 5, 9)]
    lags = tuple(NodeLags(tdigest.EMPTY, digest, tdigest.EMPTY) for digest in late)
    minute, memory = WindowInput(window(0, names=("a", "b", "c")), lags, {"c": ("x",)}), Memory()
    memory.put("orders", rule.objective.name if rule.objective else "", START_US, ObjectiveCounts(1_000, 900))
    reading = burn_rate.evaluate_burn_rate(rule, rules.streams["orders"], minute, memory)
    assert reading is not None
    assert (reading.is_bad, reading.note, reading.lost_ids) == (True, "worst at c", ())


def test_a_node_has_the_defaults_of_a_node_that_is_well() -> None:
    """A node without arguments has 1,000 seen messages and full coverage."""
    assert (node("a").seen, node("a", seen=3).arrived, node("a").coverage) == (1_000, 3, 1.0)
