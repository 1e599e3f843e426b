"""Alert rules built from the settings; thresholds that a rule does not set come from its streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from hopwatch.alerts.decision.rules import OWN_STREAM, AlertRule, AlertRules, BurnSpans, Objective
from hopwatch.alerts.events import AlertKind, Severity
from hopwatch.monitor.settings.alerting import AnyRule, BurnRateRule, BurnWindow, StreamRule
from hopwatch.probes.contract.limits import WINDOW_US

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings
    from hopwatch.monitor.settings.model import StreamSettings
    from hopwatch.monitor.stream_config import StreamConfig

_SIDES: Final = {"both": ("in", "out"), "in": ("in",), "out": ("out",)}


def build_rules(settings: Settings, streams: Mapping[str, StreamConfig] | None = None) -> AlertRules:
    """Build the alert rules that are in force; ``streams`` are the configured ones with their earlier versions."""
    rules = tuple(rule for table in settings.alerts.active_rules for rule in _build_rules_of_table(table, settings))
    known = settings.stream_configs() if streams is None else streams
    return AlertRules(rules, known, settings.alerts.dashboard, settings.stream_labels)


def _build_rules_of_table(table: AnyRule, settings: Settings) -> list[AlertRule]:
    """Build the rule of a table, or one for each severity of its burn windows."""
    if isinstance(table, BurnRateRule):
        severities = dict.fromkeys(window.severity for window in table.windows)
        return [_build_rule(table, settings, severity, _burn_rate_fields(table, severity)) for severity in severities]
    extra: dict[str, Any] = {name: getattr(table, name, 0) for name in ("over_us", "within_us")}
    extra["reads_open"] = getattr(table, "overdue", False) or getattr(table, "early", False)
    if hasattr(table, "stamp"):
        extra["sides"] = _SIDES[table.stamp]
    return [_build_rule(table, settings, table.severity, extra)]


def _build_rule(table: AnyRule, settings: Settings, severity: str, extra: Mapping[str, Any]) -> AlertRule:
    spans = {name: getattr(table, f"{name}_us", 0) for name in ("for", "keep_firing_for")}
    return AlertRule(
        name=table.display_name,
        kind=AlertKind(table.kind),
        severity=Severity(severity),
        thresholds=_thresholds(table, settings),
        for_windows=_count_windows(spans["for"]),
        keep_windows=_count_windows(spans["keep_firing_for"]),
        least=getattr(table, "least_messages", 1),
        nodes=frozenset(getattr(table, "nodes", ())),
        labels=dict(table.labels),
        runbook=table.runbook or f"{settings.alerts.runbooks.rstrip('/')}/{table.kind}.md",
        **extra,
    )


def _burn_rate_fields(table: BurnRateRule, severity: str) -> Mapping[str, Any]:
    pairs = tuple(_pair(window) for window in table.windows if window.severity == severity)
    return {"objective": Objective(1 - table.objective, table.target_us), "pairs": pairs}


def _pair(window: BurnWindow) -> BurnSpans:
    return BurnSpans(window.rate, window.long_us, window.short_us)


def _count_windows(span_us: int) -> int:
    """Return the number of windows in a span, at least one."""
    return max(1, -(-span_us // WINDOW_US))


def _thresholds(table: AnyRule, settings: Settings) -> dict[str, float]:
    """Return the threshold of each stream of a rule: that of the rule, or the stream's default."""
    own = getattr(table, "threshold_us", getattr(table, "threshold", 0))
    if not isinstance(table, StreamRule):
        return {OWN_STREAM: float(own)}
    names = table.streams or settings.streams
    return {name: float(_stream_threshold(table, settings.streams[name]) if own is None else own) for name in names}


def _stream_threshold(table: AnyRule, stream: StreamSettings) -> float:
    return stream.loss_alarm if table.kind == "loss" else stream.transit_us
