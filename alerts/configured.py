"""The rules of a configuration: its tables turned into values, with what they leave open taken from the streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from hopwatch.alerts.events import Kind, Severity
from hopwatch.alerts.rules import OWN, Objective, Pair, Rule, Rules, Stream
from hopwatch.monitor.settings.alerting import AnyRule, BurnRateRule, BurnWindow, StreamRule
from hopwatch.probes.contract.limits import WINDOW_US

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings
    from hopwatch.monitor.settings.model import StreamSettings

_SIDES: Final = {"both": ("in", "out"), "in": ("in",), "out": ("out",)}


def of(settings: Settings) -> Rules:
    """Return the rules that are in force."""
    rules = tuple(rule for table in settings.alerts.active_rules for rule in _rules(table, settings))
    streams = {name: Stream(stream.pathway, stream.rules.terms) for name, stream in settings.streams.items()}
    return Rules(rules, streams, settings.alerts.dashboard)


def _rules(table: AnyRule, settings: Settings) -> list[Rule]:
    """Return the rule of a table, or one for each severity of its windows."""
    if isinstance(table, BurnRateRule):
        severities = dict.fromkeys(window.severity for window in table.windows)
        return [_rule(table, settings, severity, _burning(table, severity)) for severity in severities]
    given: dict[str, Any] = {"over_us": getattr(table, "over_us", 0)}
    if hasattr(table, "stamp"):
        given["sides"] = _SIDES[table.stamp]
    return [_rule(table, settings, table.severity, given)]


def _rule(table: AnyRule, settings: Settings, severity: str, given: Mapping[str, Any]) -> Rule:
    spans = {name: getattr(table, f"{name}_us", 0) for name in ("for", "keep_firing_for")}
    return Rule(
        name=table.display_name,
        kind=Kind(table.kind),
        severity=Severity(severity),
        thresholds=_thresholds(table, settings),
        for_windows=_windows(spans["for"]),
        keep_windows=_windows(spans["keep_firing_for"]),
        least=getattr(table, "least_messages", 1),
        nodes=frozenset(getattr(table, "nodes", ())),
        labels=dict(table.labels),
        runbook=table.runbook or f"{settings.alerts.runbooks.rstrip('/')}/{table.kind}.md",
        **given,
    )


def _burning(table: BurnRateRule, severity: str) -> Mapping[str, Any]:
    pairs = tuple(_pair(window) for window in table.windows if window.severity == severity)
    return {"objective": Objective(1 - table.objective, table.target_us), "pairs": pairs}


def _pair(window: BurnWindow) -> Pair:
    return Pair(window.rate, window.long_us, window.short_us)


def _windows(span_us: int) -> int:
    """Return how many windows a span takes, one at least."""
    return max(1, -(-span_us // WINDOW_US))


def _thresholds(table: AnyRule, settings: Settings) -> dict[str, float]:
    """Return the threshold for each stream that a rule is for: its own, or the stream's."""
    own = getattr(table, "threshold_us", getattr(table, "threshold", 0))
    if not isinstance(table, StreamRule):
        return {OWN: float(own)}
    names = table.streams or settings.streams
    return {name: float(_of_stream(table, settings.streams[name]) if own is None else own) for name in names}


def _of_stream(table: AnyRule, stream: StreamSettings) -> float:
    return stream.loss_alarm if table.kind == "loss" else stream.transit_us
