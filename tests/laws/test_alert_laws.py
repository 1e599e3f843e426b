"""Laws of alerts: neither order nor batching of windows, nor a replay, changes what is told; flapping is bounded."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.alerts.decision.episode import AlertSeries, AlertState, Phase, apply_reading, settle_windows
from hopwatch.alerts.decision.evaluation import AlertSnapshot, evaluate
from hopwatch.alerts.decision.inputs import WindowInput
from hopwatch.alerts.decision.reading import bad_reading, good_reading
from hopwatch.alerts.decision.rules import AlertRule, AlertRules
from hopwatch.alerts.events import AlertKind, Event, Notification, Severity
from hopwatch.alerts.storage import state_json
from hopwatch.monitor.results import Status, Verdict
from tests.support.alert_scenario import build_rules
from tests.support.examples import examples
from tests.support.windows import Memory, at, window_input

STREAMS: Final = ("orders", "refunds", "trades")
RULES: Final = build_rules("", STREAMS)
LOSS: Final = build_rules('[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "loss"\n', STREAMS)

minutes = st.builds(
    window_input,
    st.integers(0, 30),
    stream=st.sampled_from(STREAMS),
    lost=st.dictionaries(st.sampled_from("ab"), st.sampled_from([5, 20, 500]), max_size=2),
    verdict=st.sampled_from([None, None, None, Verdict.UNKNOWN, Verdict.SILENT]),
    known=st.sampled_from([0, 1_000, 2_000]),
).filter(lambda minute: minute.result.known >= minute.result.lost)
each_once = st.lists(minutes, max_size=40, unique_by=lambda one: (one.result.stream, one.result.window_start_us))
seeds = st.integers(0, 2**31)


def run(
    rules: AlertRules, batches: Sequence[Sequence[WindowInput]], now: float = 31
) -> tuple[AlertSnapshot, list[Notification]]:
    """Return where alerts stand after batches that all end at one moment, and what was told."""
    standing, memory, said = AlertSnapshot(), Memory(), list[Notification]()
    for batch in batches:
        for minute in batch:
            memory.count(minute)
        decision = evaluate(rules, batch, standing, at(now), memory)
        standing = decision.snapshot
        said += decision.notifications
    return standing, said


def news(said: Sequence[Notification]) -> list[tuple[Event, str]]:
    """Return what of it is told to people."""
    return [(one.event, one.key) for one in said if one.is_news]


@given(each_once, seeds)
def test_the_order_of_windows_in_a_batch_changes_nothing(found: list[WindowInput], seed: int) -> None:
    """Nor that of streams: states, incidents and what is told are the same."""
    mixed = random.Random(seed).sample(found, len(found))
    assert run(RULES, [found]) == run(RULES, [mixed])


@given(each_once, st.lists(st.integers(1, 5), min_size=40, max_size=40))
def test_the_batching_of_a_stream_s_windows_changes_nothing_that_is_told(
    found: list[WindowInput], sizes: list[int]
) -> None:
    """One rule and one stream after the other: begun and ended the same, in one batch or in many."""
    for stream in STREAMS:
        own = sorted((one for one in found if one.result.stream == stream), key=lambda one: one.result.window_start_us)
        batches, rest = [], own
        for size in sizes:
            batches.append(rest[:size])
            rest = rest[size:]
        assert news(run(LOSS, [own])[1]) == news(run(LOSS, batches)[1])


@given(each_once)
def test_a_batch_that_is_replayed_adds_nothing(found: list[WindowInput]) -> None:
    """Everything stands where it stood, and nothing more is said."""
    once, said = run(RULES, [found])
    twice, said_twice = run(RULES, [found, found])
    assert said_twice == said
    assert twice.incidents == once.incidents
    assert {key: state.run for key, state in twice.states.items()} == {k: one.run for k, one in once.states.items()}


@given(each_once)
def test_what_is_not_known_fires_no_alert_of_loss(found: list[WindowInput]) -> None:
    """Unknown windows fire no alert of loss, whatever their other figures are."""
    blind = [replace(one, result=replace(one.result, verdict=Verdict.UNKNOWN)) for one in found]
    _, said = run(RULES, [blind])
    assert {one.kind for one in said}.isdisjoint({AlertKind.LOSS, AlertKind.BURN_RATE})


@given(each_once, st.integers(31, 90))
def test_what_is_not_known_ends_no_alert_of_loss(found: list[WindowInput], until: int) -> None:
    """Unknown windows end no alert of loss, however long they last."""
    memory = Memory()
    before = evaluate(LOSS, found, AlertSnapshot(), at(31), memory).snapshot
    blind = [
        window_input(minute, stream=stream, verdict=Verdict.UNKNOWN, known=1_000)
        for minute in range(31, until)
        for stream in STREAMS
    ]
    said = evaluate(LOSS, blind, before, at(until), memory).notifications
    assert Event.RESOLVED not in {one.event for one in said}


@given(each_once, each_once)
def test_an_amendment_leaves_what_it_would_have_been(first: list[WindowInput], second: list[WindowInput]) -> None:
    """Alerts that fire after windows were judged anew are those of the last judgements, but for flaps."""
    amended = [replace(one, result=replace(one.result, status=Status.AMENDED)) for one in second]
    last = {(one.result.stream, one.result.window_start_us): one for one in (*first, *amended)}
    quick = AlertRules(tuple(replace(rule, keep_windows=1_000) for rule in LOSS.rules), LOSS.streams)
    standing, _ = run(quick, [first, amended])
    directly, _ = run(quick, [list(last.values())])
    lossy = {key for key, state in directly.states.items() if state.run.phase is Phase.FIRING}
    assert lossy <= {key for key, state in standing.states.items() if state.run.phase is Phase.FIRING}


readings = st.lists(st.tuples(st.integers(0, 200), st.booleans()), max_size=80)
rule = st.builds(
    AlertRule,
    name=st.just("loss"),
    kind=st.just(AlertKind.LOSS),
    severity=st.just(Severity.PAGE),
    thresholds=st.just({"orders": 0.01}),
    for_windows=st.integers(1, 4),
    keep_windows=st.integers(1, 8),
)


def folded(of_rule: AlertRule, found: Sequence[tuple[int, bool]]) -> AlertState:
    """Return the state after readings of windows, in the order that they came in."""
    state = AlertState(AlertSeries("loss", "page", "orders", "b"))
    for minute, is_bad in found:
        state = apply_reading(state, at(minute), of_rule, bad_reading("b", 1, 0) if is_bad else good_reading("b"))
    return state


@given(rule, readings, seeds)
def test_where_an_alert_stands_is_a_matter_of_the_last_readings(
    of_rule: AlertRule, found: list[tuple[int, bool]], seed: int
) -> None:
    """In whatever order windows came, and however often each was judged."""
    last = list(dict(found).items())
    mixed = random.Random(seed).sample(last, len(last))
    assert folded(of_rule, found).run == folded(of_rule, mixed).run == folded(of_rule, sorted(last)).run


@given(rule, readings, st.integers(0, 200))
def test_settling_changes_nothing_of_where_an_alert_stands(
    of_rule: AlertRule, found: list[tuple[int, bool]], before: int
) -> None:
    """Settled states give the same alerts as unsettled ones, also after they were stored as text."""
    state = folded(of_rule, found)
    settled = settle_windows(state, at(before), of_rule)
    assert settled.run == state.run
    assert min(settled.marks, default=at(before)) >= at(before)
    assert state_json.parse_state(settled.series, state_json.format_state(settled)) == settled
    for minute in range(201, 210):
        state, settled = (apply_reading(one, at(minute), of_rule, good_reading("b")) for one in (state, settled))
    assert settled.run == state.run


@settings(max_examples=examples(50))
@given(rule, st.lists(st.booleans(), min_size=1, max_size=60), st.integers(1, 40))
def test_flapping_is_bounded(of_rule: AlertRule, pattern: list[bool], times: int) -> None:
    """Any pattern of up to an hour, over and over: it begins at most six times more than once in an hour."""
    state, begun = AlertState(AlertSeries("loss", "page", "orders", "b")), 0
    length = len(pattern) * times
    for minute in range(length):
        reading = bad_reading("b", 1, 0) if pattern[minute % len(pattern)] else good_reading("b")
        after = apply_reading(state, at(minute), of_rule, reading)
        begun += after.run.phase is Phase.FIRING and state.run.phase is not Phase.FIRING
        state = after
    assert begun <= 7 + length // 60


@given(st.integers(1, 40), st.integers(1, 30), seeds)
def test_many_streams_at_once_are_few_notifications(streams: int, nodes: int, seed: int) -> None:
    """One a stream up to five of them, and one for all of more; each place is counted."""
    names = tuple(f"s{number}" for number in range(streams))
    places = tuple(f"n{number}" for number in range(nodes))
    of_streams = build_rules(
        '[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "loss"\n', names, " -> ".join(places)
    )
    found = [window_input(1, stream=name, names=places, lost=dict.fromkeys(places, 20), known=1_000) for name in names]
    _, said = run(of_streams, [random.Random(seed).sample(found, len(found))])
    assert len(said) == (streams if streams <= 5 else 1)
    assert sum(one.total for one in said) == streams * nodes
