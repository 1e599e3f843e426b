"""What an alert says to a person: lost, late or unknown; where, since when, how many of how many, where to look."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from hopwatch.alerts.episode import State
from hopwatch.alerts.events import Alert, Kind, Unit, Word
from hopwatch.alerts.rules import Rule, Rules
from hopwatch.monitor.results import Verdict, WindowResult, format_iso
from hopwatch.monitor.texts import loss_bounds

_WORDS: Final = {
    Kind.LOSS: (Word.LOST, Unit.RATIO),
    Kind.LAG: (Word.LATE, Unit.MICROSECONDS),
    Kind.END_TO_END_LAG: (Word.LATE, Unit.MICROSECONDS),
    Kind.UNKNOWN: (Word.UNKNOWN, Unit.MINUTES),
    Kind.SILENT: (Word.SILENT, Unit.MINUTES),
    Kind.OUTLIER: (Word.ODD, Unit.SCORE),
    Kind.PROBE_DROPS: (Word.DROPPED, Unit.RATIO),
    Kind.CLOCK_SKEW: (Word.SKEWED, Unit.RATIO),
    Kind.REJECTED: (Word.REJECTED, Unit.RATIO),
    Kind.SET_ASIDE: (Word.SET_ASIDE, Unit.RECORDS),
    Kind.BURN_RATE: (Word.LOST, Unit.BURN_RATE),
    Kind.HEARTBEAT: (Word.ALIVE, Unit.MINUTES),
}
MOST_NOTE: Final = 300
"""Characters of what the monitor itself says of a window."""


_SENTENCES: Final = {
    Kind.LOSS: "lost: {parts} messages ({ratio}) surely lost {where}{edge}{because}, over {most}, since {since}",
    Kind.LAG: "late: p95 of lag {note} {lag} {where}, over {target} ({parts} stamps), since {since}",
    Kind.END_TO_END_LAG: "late: p95 end to end {lag} {where}, over {target} ({parts} messages), since {since}",
    Kind.UNKNOWN: "unknown: for {minutes} neither loss nor its absence can be shown {where}{because}, since {since}",
    Kind.SILENT: "silent: for {minutes} no probe tells anything {where}, since {since}",
    Kind.OUTLIER: "odd: {note} {where}, since {since}",
    Kind.PROBE_DROPS: "dropped: probes dropped {parts} observations ({ratio}) {where}, over {most}, since {since}",
    Kind.CLOCK_SKEW: "skewed: {parts} stamps ({ratio}) are earlier than their message {where}, since {since}",
    Kind.REJECTED: "rejected: {parts} messages ({ratio}) rejected as bad {where}, over {most}, since {since}",
    Kind.SET_ASIDE: "set aside: {records} records of the transport could not be used, since {since}",
    Kind.BURN_RATE: "{word}: the budget burns {rate} times too fast {where}{worst} ({parts} messages), since {since}",
    Kind.HEARTBEAT: "alive: the monitor has judged up to {newest}",
}

_AMENDED: Final = "{subject}: window {window} {where} was amended, and is {amended} now, since {since}"
"""Of an alert whose newest bad window shows nothing bad any more."""


def alert(rule: Rule, rules: Rules, state: State) -> Alert:
    """Return what a state says, with the figures of its newest bad window."""
    word, unit = _WORDS[rule.kind]
    if rule.subject == "lag":
        word = Word.LATE
    bad = state.worst
    # Of silence and ignorance the figure is for how long.
    observed = float(state.run.bads) if unit is Unit.MINUTES else float(bad.observed)
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
        labels=rule.labels,
    )


def amended(rule: Rule, window: WindowResult, node: str) -> str:
    """Return what an amended window is now; of a rule of loss with how much may be lost at the place."""
    if rule.kind is not Kind.LOSS or window.verdict not in {Verdict.LOSSY, Verdict.UNKNOWN}:
        return str(window.verdict)
    place = next((one for one in window.nodes if one.node == node), None)
    loss = (place.loss, place.loss_lower, place.loss_upper) if place else None
    lost = loss_bounds.format_bounds(*(loss or (window.lost, window.lost_lower, window.lost_upper)))
    return f"{window.verdict} ({lost} lost)"


def storm(first: Alert, total: int, streams: int) -> str:
    """Return the sentence of an incident with several alerts: how many, and the worst of them."""
    over = f" of {streams} streams" if streams > 1 else ""
    return f"{total:,} places{over}: {first.rule}; the worst: {first.summary}"


def _link(dashboard: str, state: State) -> str:
    if not dashboard:
        return ""
    place = {"stream": state.series.stream, "node": state.series.node, "window": format_iso(state.worst_us)}
    return f"{dashboard}?{urlencode({name: value for name, value in place.items() if value})}"


def _summary(rule: Rule, state: State, observed: float) -> str:
    series, bad = state.series, state.worst
    sentence = _AMENDED if bad.amended else _SENTENCES[rule.kind]
    return sentence.format(
        where=f"at {series.node} of {series.stream}" if series.node else f"in {series.stream}",
        amended=bad.amended,
        window=format_iso(state.worst_us),
        subject=rule.kind.value.replace("_", " "),
        parts=f"{bad.affected:,} of {bad.out_of:,}",
        ratio=f"{bad.observed:.2%}",
        most=f"{bad.threshold:.2%}",
        lag=f"{bad.observed / 1e6:,.3f} s",
        target=f"{bad.threshold / 1e6:,.3f} s",
        minutes=f"{observed:.0f} min",
        rate=f"{bad.observed:.1f}",
        records=f"{bad.affected:,}",
        edge=f" on {bad.edge}" if bad.edge else "",
        note=bad.note[:MOST_NOTE],
        because=f" ({bad.note[:MOST_NOTE]})" if bad.note else "",
        worst=f", {bad.note[:MOST_NOTE]}" if bad.note else "",
        word="late" if rule.subject == "lag" else "lost",
        since=format_iso(state.run.since_us),
        newest=format_iso(state.worst_us),
    )
