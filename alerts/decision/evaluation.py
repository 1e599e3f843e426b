"""Evaluation of alert rules: takes rules, window results, states and a time; returns states and notifications. Pure.

The time is the watermark of the micro-batch, so that a replayed batch decides the same. The numbered rules here select
the readings that count; :mod:`alerts.decision.episode` decides when an alert fires and ends,
:mod:`alerts.decision.incidents` which alerts notify.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hopwatch.alerts.decision import evaluators, summaries
from hopwatch.alerts.decision.episode import (
    BEGINNING_US,
    AlertSeries,
    AlertState,
    Phase,
    apply_reading,
    is_expired,
    settle_windows,
    withdraw_figures,
)
from hopwatch.alerts.decision.incidents import Incident, IncidentBoard
from hopwatch.alerts.decision.inputs import PastWindows, WindowInput
from hopwatch.alerts.decision.reading import Reading, bad_reading, good_reading
from hopwatch.alerts.decision.rules import OWN_STREAM, AlertRule, AlertRules
from hopwatch.alerts.events import AlertKind, Notification
from hopwatch.monitor.results import WindowResult
from hopwatch.probes.contract.limits import WINDOW_US

MAX_MISSING: Final = 1_440
"""Most windows of a silent stream that are counted at once: a day."""


@dataclass(frozen=True, slots=True)
class AlertSnapshot:
    """State of all alerts between two micro-batches; ``begun_us`` is the watermark of the first."""

    states: Mapping[AlertSeries, AlertState] = field(default_factory=dict)
    incidents: Mapping[str, Incident] = field(default_factory=dict)
    begun_us: int = 0
    clock_us: int = BEGINNING_US


@dataclass(frozen=True, slots=True)
class Decision:
    """Result of a micro-batch: the new snapshot, and the notifications to send."""

    snapshot: AlertSnapshot
    notifications: tuple[Notification, ...]


def evaluate(
    rules: AlertRules, minutes: Sequence[WindowInput], before: AlertSnapshot, now_us: int, past: PastWindows
) -> Decision:
    """Evaluate all rules for one micro-batch.

    ``past`` answers queries about other windows, those that this batch has written included.
    """
    # 0. Before the first arrival there is no watermark.
    if now_us <= 0:
        return Decision(before, ())
    begun_us = before.begun_us or now_us
    board = IncidentBoard(
        rules, _select_in_force(rules, before.states, now_us), dict(before.incidents), now_us, before.clock_us, []
    )
    by_start = _group_by_start(rules, minutes)
    missing = _find_missing(rules, before.states, begun_us, now_us, past)
    figures_index = _index_figures(board.states)
    # 1. Windows are evaluated in order of time, so that their split into batches does not matter.
    for start_us in sorted(by_start.keys() | missing.keys()):
        changes = [
            has_changed
            for minute in by_start.get(start_us, ())
            for rule in rules.by_stream[minute.result.stream]
            for has_changed in _evaluate_window(board, rule, minute, past, figures_index)
        ]
        for stream in missing.get(start_us, ()):
            changes += [
                _apply_reading(board.states, rule, stream, start_us, bad_reading("", 0, rule.for_windows))
                for rule in rules.by_stream[stream]
                if rule.kind is AlertKind.SILENT
            ]
        if start_us in missing or any(minute.result.status.is_final for minute in by_start[start_us]):
            board.clock_us = max(board.clock_us, start_us + WINDOW_US)
        if any(changes):
            board.update_incidents()
    # 2. The monitor's own rules have no windows: they are evaluated in the window that holds the watermark.
    minute_us = now_us - now_us % WINDOW_US
    for rule in rules.by_stream[OWN_STREAM]:
        _apply_reading(board.states, rule, OWN_STREAM, minute_us, _evaluate_own(rule, now_us, past))
    board.clock_us = max(board.clock_us, minute_us)
    board.update_incidents()
    states = dict(_drop_expired(rules, board.states, now_us))
    return Decision(AlertSnapshot(states, board.incidents, begun_us, board.clock_us), tuple(board.notifications))


def _select_in_force(
    rules: AlertRules, states: Mapping[AlertSeries, AlertState], now_us: int
) -> dict[AlertSeries, AlertState]:
    """Select the states whose rule, stream and node still exist: 3. the alerts of others are over.

    A node of an earlier version of the path exists as long as a window of it may be judged.
    """
    in_force: dict[AlertSeries, AlertState] = {}
    for series, state in states.items():
        rule = rules.by_name.get((series.rule, series.severity))
        if (
            rule is not None
            and rule.is_for(series.stream, series.node)
            and rules.has_node(series.stream, series.node, now_us)
        ):
            in_force[series] = state
    return in_force


def _group_by_start(rules: AlertRules, minutes: Sequence[WindowInput]) -> dict[int, list[WindowInput]]:
    """Group the windows that count by their start: 4. their stream is configured."""
    by_start: dict[int, list[WindowInput]] = {}
    for minute in sorted(minutes, key=lambda minute: minute.result.stream):
        result: WindowResult = minute.result
        if result.stream in rules.streams:
            by_start.setdefault(result.window_start_us, []).append(minute)
    return by_start


def _find_missing(
    rules: AlertRules, states: Mapping[AlertSeries, AlertState], begun_us: int, now_us: int, past: PastWindows
) -> dict[int, list[str]]:
    """Find the windows that would be final by now and do not exist, with their streams.

    5. A stream without any observation has no windows, so its silence is derived from the watermark.
    """
    missing: dict[int, list[str]] = {}
    for rule in (rule for rule in rules.rules if rule.kind is AlertKind.SILENT):
        for stream in sorted(rule.thresholds):
            terms, last_us = rules.streams[stream].terms, past.find_last_window_us(stream)
            state = states.get(AlertSeries(rule.name, rule.severity, stream, ""))
            read_us = state.run.upto_us if state else BEGINNING_US
            newest_us = now_us - now_us % WINDOW_US - WINDOW_US
            newest_us -= -(-(terms.transit_us + terms.settle_us) // WINDOW_US) * WINDOW_US
            first_us = begun_us - begun_us % WINDOW_US if last_us is None else last_us + WINDOW_US
            first_us = max(first_us, read_us + WINDOW_US, newest_us - MAX_MISSING * WINDOW_US)
            for start_us in range(first_us, newest_us + 1, WINDOW_US):
                if stream not in missing.setdefault(start_us, []):
                    missing[start_us].append(stream)
    return missing


def _evaluate_own(rule: AlertRule, now_us: int, past: PastWindows) -> Reading:
    if rule.kind is AlertKind.HEARTBEAT:
        return bad_reading("", 0, 0)
    threshold = rule.thresholds[OWN_STREAM]
    span_us, note = (now_us - rule.over_us, now_us + 1), ""
    if rule.kind is AlertKind.SELFTEST:
        failures = past.find_selftest_failures(*span_us)
        count, note = len(failures), next(iter(failures), "")
    else:
        count = past.count_set_aside(*span_us)
    return bad_reading("", count, threshold, (count, 0), note) if count > threshold else good_reading("")


FiguresIndex = Mapping[tuple[str, str, str, int], Sequence[AlertSeries]]
"""Series that hold figures of a window, by rule, severity, stream and start of that window."""


def _index_figures(states: Mapping[AlertSeries, AlertState]) -> FiguresIndex:
    index: dict[tuple[str, str, str, int], list[AlertSeries]] = {}
    for series, state in states.items():
        for start_us in (*state.earlier, state.worst_us):
            index.setdefault((series.rule, series.severity, series.stream, start_us), []).append(series)
    return index


def _evaluate_window(
    board: IncidentBoard, rule: AlertRule, minute: WindowInput, past: PastWindows, figures_index: FiguresIndex
) -> list[bool]:
    """Apply the readings of a rule for a window; return for each whether the phase of its alert changed."""
    result = minute.result
    readings = list(evaluators.evaluate_rule(rule, board.rules.find_config(result), minute, past))
    held = figures_index.get((rule.name, rule.severity, result.stream, result.window_start_us), ())
    if not result.status.is_final:
        # 6. A window that is not final ends what was overdue in it, and says nothing good of anything else.
        readings = [one for one in readings if one.is_bad or _is_marked_bad(board, rule, result, one.node)]
        held = [series for series in held if any(reading.node == series.node for reading in readings)]
    for reading in readings:
        series = AlertSeries(rule.name, rule.severity, result.stream, reading.node)
        if not reading.is_bad and _was_overdue(rule, board.states.get(series), result.window_start_us):
            board.arrivals[series] = summaries.count_missing(result, reading.node)
    changes = [
        _apply_reading(board.states, rule, result.stream, result.window_start_us, reading) for reading in readings
    ]
    # 7. Figures that an amended window no longer shows are withdrawn.
    bad_nodes = {reading.node for reading in readings if reading.is_bad}
    for series in held:
        if series.node not in bad_nodes:
            amendment = summaries.describe_amendment(rule, result, series.node)
            board.states[series] = withdraw_figures(board.states[series], result.window_start_us, amendment)
    return changes


def _is_marked_bad(board: IncidentBoard, rule: AlertRule, result: WindowResult, node: str) -> bool:
    state = board.states.get(AlertSeries(rule.name, rule.severity, result.stream, node))
    return state is not None and state.marks.get(result.window_start_us) is True


def _was_overdue(rule: AlertRule, state: AlertState | None, start_us: int) -> bool:
    """Return whether the newest bad window of an alert is this one, by what was overdue in it."""
    return rule.kind is AlertKind.LOSS and state is not None and state.worst_us == start_us and state.worst.is_early


def _apply_reading(
    states: dict[AlertSeries, AlertState], rule: AlertRule, stream: str, start_us: int, reading: Reading
) -> bool:
    """Apply a reading to its series, and return whether the phase of the alert changed."""
    series = AlertSeries(rule.name, rule.severity, stream, reading.node)
    known = states.get(series)
    # 8. A place that was never bad has no state.
    if known is None and not reading.is_bad:
        return False
    before = known or AlertState(series)
    after = apply_reading(before, start_us, rule, reading)
    states[series] = after
    return before.run.phase is not after.run.phase


def _drop_expired(
    rules: AlertRules, states: Mapping[AlertSeries, AlertState], now_us: int
) -> Iterator[tuple[AlertSeries, AlertState]]:
    """Yield the states still needed: 9. readings while their windows can be amended, states until they expire."""
    for series, state in states.items():
        rule = rules.by_name[series.rule, series.severity]
        settled = settle_windows(state, _settled_before_us(rules, series.stream, now_us), rule)
        if settled.run.phase is Phase.FIRING or not is_expired(settled, now_us):
            yield series, settled


def _settled_before_us(rules: AlertRules, stream: str, now_us: int) -> int:
    if stream == OWN_STREAM:
        return now_us - now_us % WINDOW_US
    return now_us - max(version.terms.kept_until_us(0) for version in rules.streams[stream].versions)
