"""Check of alerting: rules, and notification channels that receive their alerts."""

from __future__ import annotations

from typing import Final

from hopwatch.cli.checks.finding import Finding, Level
from hopwatch.monitor.settings.alerting import AlertsSettings

ADVICE: Final = "add a table [alerts.channels.NAME]: docs/ALERTS.md"


def check_channels(alerts: AlertsSettings) -> Finding:
    """Check that alerts reach a channel; if not it is only a note, since Prometheus may notify instead."""
    if told := explain_unheard(alerts):
        return Finding("alerts", Level.NOTE, told, ADVICE)
    if not alerts.active_rules:
        return Finding("alerts", Level.OK, "no rule is in force: nothing is notified")
    names = ", ".join(alerts.receiving_channels)
    return Finding("alerts", Level.OK, f"rules in force: {len(alerts.active_rules)}, channels: {names}")


def explain_unheard(alerts: AlertsSettings) -> str:
    """Return the reason why alerts reach nobody; empty if they reach a channel, or no rule is active."""
    if not alerts.active_rules or alerts.receiving_channels:
        return ""
    if not alerts.channels:
        return "no notification channel is configured: alerts are kept in the store and not sent"
    return "no notification channel takes alerts: they are kept in the store and not sent"
