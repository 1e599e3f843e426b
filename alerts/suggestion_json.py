"""Suggestions of thresholds as JSON, and as TOML with what each would have caught."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any, Final

from hopwatch.alerts.decision.suggestion import PastAlert
from hopwatch.alerts.events import AlertKind
from hopwatch.alerts.suggestions import DAY_US, RuleSuggestion
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.settings.durations import format_duration_us
from hopwatch.probes.contract.limits import WINDOW_US

MINUTES_PER_DAY: Final = DAY_US // WINDOW_US
MAX_NAME: Final = 64
"""Characters that the name of a rule may have."""


def suggestion_to_json(one: RuleSuggestion) -> dict[str, Any]:
    """Return a suggestion as ``--json`` shows it: thresholds as numbers, lags in µs."""
    return {
        "stream": one.stream,
        "node": one.node,
        "rule": one.rule.name,
        "kind": one.rule.kind.value,
        "threshold": one.suggestion.threshold,
        "threshold_now": one.now,
        "windows": one.suggestion.windows,
        "alerts": [
            {"since": format_iso(alert.since_us), "until": format_iso(alert.until_us), "peak": alert.peak}
            for alert in one.suggestion.alerts
        ],
    }


def format_toml(one: RuleSuggestion) -> list[str]:
    """Return a rule to paste, below comments: of how much it was learnt, and what it would have caught."""
    where = f"{one.node} of {one.stream}" if one.node else one.stream
    days = one.suggestion.windows / MINUTES_PER_DAY
    fired = len(one.suggestion.alerts)
    times = {0: "would not have fired", 1: "would have fired once"}.get(fired, f"would have fired {fired} times")
    return [
        f"# {one.rule.kind.value} at {where}: {times} in {days:.1f} days; the threshold is {_format(one, one.now)} now",
        *(f"#   {_describe(one, alert)}" for alert in one.suggestion.alerts),
        "[[alerts.rules]]",
        f'kind = "{one.rule.kind.value}"',
        f'name = "{_build_name(one)}"',
        f'severity = "{one.rule.severity.value}"',
        f"streams = [{json.dumps(one.stream)}]",
        *([f"nodes = [{json.dumps(one.node)}]"] if one.node else []),
        f"threshold = {_format_value(one)}",
        f'for = "{one.rule.for_windows}m"',
        f'keep_firing_for = "{one.rule.keep_windows}m"',
        "",
    ]


def _build_name(one: RuleSuggestion) -> str:
    """Build a name for the rule, of the letters that a name may have; what had others has a sum behind it."""
    plain = "-".join(part for part in (one.rule.name, one.stream, one.node) if part)
    name = re.sub(r"[^a-z0-9_-]", "-", plain.lower())[: MAX_NAME - 9]
    return plain if plain == name else f"{name}-{zlib.crc32(plain.encode()):08x}"


def _describe(one: RuleSuggestion, alert: PastAlert) -> str:
    minutes = (alert.until_us - alert.since_us) // WINDOW_US
    return f"{format_iso(alert.since_us)} for {minutes:,} min, up to {_format(one, alert.peak)}"


def _format(one: RuleSuggestion, value: float) -> str:
    return f"{value:.4g}" if one.rule.kind is AlertKind.LOSS else f"{value / 1e6:,.4g} s"


def _format_value(one: RuleSuggestion) -> str:
    value = one.suggestion.threshold
    if one.rule.kind is AlertKind.LOSS:
        return f"{value:.9f}".rstrip("0").rstrip(".") if value else "0"
    return f'"{format_duration_us(max(1_000, round(value)))}"'
