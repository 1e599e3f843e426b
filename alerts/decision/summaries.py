"""Summaries of alerts: the sentence that a person reads, with place, time, figures and links."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from hopwatch.alerts.decision.episode import AlertState
from hopwatch.alerts.decision.rules import AlertRule, AlertRules
from hopwatch.alerts.events import Alert, AlertKind, Unit, Word
from hopwatch.display import texts
from hopwatch.monitor.results import Verdict, WindowResult, format_iso
from hopwatch.monitor.texts import loss_bounds

_WORDS: Final = {
    AlertKind.LOSS: (Word.LOST, Unit.RATIO),
    AlertKind.LAG: (Word.LATE, Unit.MICROSECONDS),
    AlertKind.END_TO_END_LAG: (Word.LATE, Unit.MICROSECONDS),
    AlertKind.UNKNOWN: (Word.UNKNOWN, Unit.MINUTES),
    AlertKind.SILENT: (Word.SILENT, Unit.MINUTES),
    AlertKind.OUTLIER: (Word.ODD, Unit.SCORE),
    AlertKind.PROBE_DROPS: (Word.DROPPED, Unit.RATIO),
    AlertKind.CLOCK_SKEW: (Word.SKEWED, Unit.RATIO),
    AlertKind.REJECTED: (Word.REJECTED, Unit.RATIO),
    AlertKind.DEFERRED: (Word.DEFERRED, Unit.RATIO),
    AlertKind.DEFERRED_AGE: (Word.DEFERRED, Unit.MICROSECONDS),
    AlertKind.FORECAST: (Word.LATE, Unit.MICROSECONDS),
    AlertKind.SET_ASIDE: (Word.SET_ASIDE, Unit.RECORDS),
    AlertKind.SELFTEST: (Word.SELFTEST, Unit.MINUTES),
    AlertKind.BURN_RATE: (Word.LOST, Unit.BURN_RATE),
    AlertKind.HEARTBEAT: (Word.ALIVE, Unit.MINUTES),
}
_DURATIONS: Final = frozenset({AlertKind.UNKNOWN, AlertKind.SILENT, AlertKind.HEARTBEAT})
"""Kinds whose figure is how long it has been so."""
MAX_NOTE: Final = 300
"""Characters of the monitor's own note on a window."""


_SENTENCES: Final = {
    AlertKind.LOSS: "lost: {parts} messages ({ratio}) surely lost {where}{edge}{because}, over {most}, since {since}",
    AlertKind.LAG: "late: p95 of lag {note} {lag} {where}{cause}, over {target} ({parts} stamps), since {since}",
    AlertKind.END_TO_END_LAG: "late: p95 end to end {lag} {where}, over {target} ({parts} messages), since {since}",
    AlertKind.UNKNOWN: "unknown: for {minutes} neither loss nor its absence can be shown "
    "{where}{because}, since {since}",
    AlertKind.SILENT: "silent: for {minutes} no probe reports anything {where}, since {since}",
    AlertKind.OUTLIER: "odd: {note} {where}, since {since}",
    AlertKind.PROBE_DROPS: "dropped: probes dropped {parts} observations ({ratio}) {where}, over {most}, since {since}",
    AlertKind.CLOCK_SKEW: "skewed: {parts} stamps ({ratio}) are earlier than their message {where}, since {since}",
    AlertKind.REJECTED: "rejected: {parts} messages ({ratio}) rejected as bad {where}, over {most}, since {since}",
    AlertKind.DEFERRED: "deferred: {parts} messages ({ratio}) wait for a later try {where}, over {most}, since {since}",
    AlertKind.DEFERRED_AGE: "deferred: the oldest message that waits for a later try {where} is {lag} old, "
    "over {target} ({records} wait), since {since}",
    AlertKind.FORECAST: "late soon: p95 of lag {where} will be over {target} {note}, since {since}",
    AlertKind.SET_ASIDE: "set aside: {records} records of the transport could not be used, since {since}",
    AlertKind.SELFTEST: "self-test failed: in {minutes} what was injected was not measured{because}, since {since}",
    AlertKind.BURN_RATE: "{word}: errors at {rate} {where}{worst} ({parts} messages), since {since}",
    AlertKind.HEARTBEAT: "alive: the monitor has judged up to {newest}",
}

_EARLY: Final = {
    AlertKind.LOSS: "overdue: {parts} messages ({ratio}) are missing {where} beyond their deadline{because}, over "
    "{most}, since {since}",
    AlertKind.LAG: "late so far: p95 of lag {note} {lag} {where}, over {target} ({parts} stamps), since {since}",
}
"""Sentences of alerts whose newest bad window is not final."""

_AMENDED: Final = "{subject}: window {window} {where} was amended, and is {amended} now, since {since}"
"""Sentence of an alert whose newest bad window is not bad after an amendment."""


def build_alert(rule: AlertRule, rules: AlertRules, state: AlertState) -> Alert:
    """Build the alert of a state, with the figures of its newest bad window."""
    word, unit = _WORDS[rule.kind]
    if rule.subject == "lag":
        word = Word.LATE
    bad = state.worst
    if bad.is_early and rule.kind is AlertKind.LOSS:
        word = Word.OVERDUE
    observed = float(state.run.bads) if rule.kind in _DURATIONS else float(bad.observed)
    return Alert(
        rule=rule.name,
        kind=rule.kind,
        severity=rule.severity,
        word=word,
        stream=state.series.stream,
        node=state.series.node,
        edge=bad.edge,
        since_us=state.run.since_us,
        window_start_us=state.worst_us,
        observed=observed,
        threshold=float(bad.threshold),
        unit=unit,
        affected=bad.affected,
        out_of=bad.out_of,
        lost_ids=bad.lost_ids,
        runbook=rule.runbook,
        link=_link(rules.dashboard, state),
        summary=_summary(rule, state, observed),
        labels=rules.merge_labels(rule, state.series.stream),
    )


def describe_amendment(rule: AlertRule, window: WindowResult, node: str) -> str:
    """Describe an amended window by its verdict; for a rule of loss with the bounds of the loss at the place.

    One that is not final was bad by what was overdue.
    """
    if not window.status.is_final:
        return f"{window.status} ({describe_arrival(count_missing(window, node))})"
    if rule.kind is not AlertKind.LOSS or window.verdict not in {Verdict.LOSSY, Verdict.UNKNOWN}:
        return str(window.verdict)
    place = next((result for result in window.nodes if result.node == node), None)
    loss = (place.loss, place.loss_lower, place.loss_upper) if place else None
    lost = loss_bounds.format_bounds(*(loss or (window.lost, window.lost_lower, window.lost_upper)))
    return f"{window.verdict} ({lost} lost)"


def count_missing(window: WindowResult, node: str) -> int:
    """Return how many messages are missing at a node, or without one in the stream, lost, in flight or unknown."""
    place = next((result for result in window.nodes if result.node == node), None)
    return window.lost + window.in_flight if place is None else place.loss + place.in_flight


def describe_arrival(missing: int) -> str:
    """Describe what became of overdue messages of which so few are missing still."""
    if not missing:
        return "what was overdue has arrived after all"
    return f"{missing:,} {'message is' if missing == 1 else 'messages are'} missing still, within the threshold"


def describe_storm(first: Alert, total: int, streams: int) -> str:
    """Describe an incident with several alerts: their number, and the worst of them."""
    over = f" of {streams} streams" if streams > 1 else ""
    return f"{total:,} places{over}: {first.rule}; the worst: {first.summary}"


def _link(dashboard: str, state: AlertState) -> str:
    if not dashboard:
        return ""
    place = {"stream": state.series.stream, "node": state.series.node, "window": format_iso(state.worst_us)}
    return f"{dashboard}?{urlencode({name: value for name, value in place.items() if value})}"


def _summary(rule: AlertRule, state: AlertState, observed: float) -> str:
    series, bad = state.series, state.worst
    sentences = _EARLY if bad.is_early else _SENTENCES
    sentence = _AMENDED if bad.amended else sentences[rule.kind]
    return sentence.format(
        where=f"at {series.node} of {series.stream}" if series.node else f"in {series.stream}",
        amended=bad.amended,
        window=format_iso(state.worst_us),
        subject=rule.kind.value.replace("_", " "),
        parts=f"{bad.affected:,} of {bad.out_of:,}",
        ratio=texts.format_ratio(bad.observed),
        most=texts.format_ratio(bad.threshold),
        lag=texts.format_lag(bad.observed),
        target=texts.format_lag(bad.threshold),
        minutes=texts.format_minutes(observed),
        rate=texts.format_burn_rate(bad.observed),
        records=f"{bad.affected:,}",
        edge=f" on {bad.edge}" if bad.edge else "",
        note=bad.note[:MAX_NOTE],
        because=f" ({bad.note[:MAX_NOTE]})" if bad.note else "",
        cause=f" ({bad.because[:MAX_NOTE]})" if bad.because else "",
        worst=f", {bad.note[:MAX_NOTE]}" if bad.note else "",
        word="late" if rule.subject == "lag" else "lost",
        since=format_iso(state.run.since_us),
        newest=format_iso(state.worst_us),
    )
