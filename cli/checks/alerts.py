"""Whether anybody is told of alerts: rules, and notification channels that take what they say."""

from __future__ import annotations

from typing import Final

from hopwatch.cli.checks.finding import Finding, Level
from hopwatch.monitor.settings.alerting import AlertsSettings

ADVICE: Final = "add a table [alerts.channels.NAME]: docs/ALERTS.md"


def check_channels(alerts: AlertsSettings) -> Finding:
    """Say who is told of alerts; a note where nobody is: Prometheus may be what tells people."""
    if told := explain_unheard(alerts):
        return Finding("alerts", Level.NOTE, told, ADVICE)
    if not alerts.active_rules:
        return Finding("alerts", Level.OK, "no rule is in force: nobody is told of anything")
    names = ", ".join(alerts.receiving_channels)
    return Finding("alerts", Level.OK, f"rules in force: {len(alerts.active_rules)}, told through: {names}")


def explain_unheard(alerts: AlertsSettings) -> str:
    """Return why alerts of the rules that are in force reach nobody; empty where they do, or there is no rule."""
    if not alerts.active_rules or alerts.receiving_channels:
        return ""
    if not alerts.channels:
        return "no notification channel is configured: alerts are kept in the store and reach nobody"
    return "no notification channel takes alerts: they are kept in the store and reach nobody"
