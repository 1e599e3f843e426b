"""Suggestions of thresholds for the rules of a configuration, from the windows that a store keeps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from sqlalchemy import Connection

from hopwatch.alerts.decision.rules import AlertRule, AlertRules
from hopwatch.alerts.decision.suggestion import Suggestion, suggest_threshold
from hopwatch.alerts.events import AlertKind
from hopwatch.monitor.results import UNINFORMATIVE, WindowResult
from hopwatch.monitor.store import reader

DAY_US: Final = 86_400_000_000
FOUR_WEEKS_US: Final = 28 * DAY_US
KINDS: Final = (AlertKind.LOSS, AlertKind.LAG, AlertKind.END_TO_END_LAG)
"""Kinds of rules that thresholds are suggested for."""
LOWEST: Final = {AlertKind.LOSS: 0.0, AlertKind.LAG: 1_000.0, AlertKind.END_TO_END_LAG: 1_000.0}
"""Lowest threshold of each kind: a ratio, or µs."""


class RuleSuggestion(NamedTuple):
    """Suggestion for a rule at one place of a stream, and its threshold now; a stream as a whole has no node."""

    rule: AlertRule
    stream: str
    node: str
    now: float
    suggestion: Suggestion


def suggest_rules(
    connection: Connection, rules: AlertRules, stream: str, from_us: int, to_us: int
) -> Iterator[RuleSuggestion]:
    """Yield suggestions for the rules of a stream, from its final windows that start in ``[from_us, to_us)``.

    A threshold may have fired once, and once more for each further four weeks that were observed.
    """
    chosen = [one for one in rules.by_stream[stream] if one.kind in KINDS]
    starts, values = list[int](), defaultdict[tuple[int, str], dict[int, float]](dict)
    for window in _read_windows(connection, stream, from_us, to_us):
        starts.append(window.window_start_us)
        for number, rule in enumerate(chosen):
            for node, value in _observe(rule, window):
                if rule.is_for(stream, node):
                    values[number, node][window.window_start_us] = value
    if not starts:
        return
    moments = np.array(starts, np.int64)
    most = max(1, (starts[-1] - starts[0]) // FOUR_WEEKS_US)
    for (number, node), observed in sorted(values.items()):
        series = np.array([observed.get(start_us, np.nan) for start_us in starts])
        rule = chosen[number]
        found = suggest_threshold(moments, series, rule, int(most), LOWEST[rule.kind])
        if found is not None:
            yield RuleSuggestion(rule, stream, node, rule.thresholds[stream], found)


def _read_windows(connection: Connection, stream: str, from_us: int, to_us: int) -> Iterator[WindowResult]:
    for window in reader.read_final_windows(connection, stream, from_us):
        if window.window_start_us >= to_us:
            return
        yield window


def _observe(rule: AlertRule, window: WindowResult) -> Iterator[tuple[str, float]]:
    """Yield what a rule compares with its threshold, by node; nothing where nothing can be known."""
    if window.verdict in UNINFORMATIVE:
        return
    if rule.kind is AlertKind.LOSS:
        if window.known >= rule.least:
            yield "", window.lost_lower / window.known if window.known else 0.0
        for node in window.nodes:
            if node.expected_or_seen >= rule.least:
                yield node.node, node.loss_lower / node.expected_or_seen if node.expected_or_seen else 0.0
    elif rule.kind is AlertKind.LAG:
        for node in window.nodes:
            sides = (node.lag_in_us if side == "in" else node.lag_out_us for side in rule.sides)
            lags = [lag.p95 for lag in sides if lag and lag.count >= rule.least]
            if lags:
                yield node.node, float(max(lags))
    elif window.lag_us is not None and window.lag_us.count >= rule.least:
        yield "", float(window.lag_us.p95)
