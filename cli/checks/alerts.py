"""Whether anybody is told of alerts: rules, and notification channels that take what they say."""

from __future__ import annotations

from typing import Final

from hopwatch.cli.checks.finding import Finding, Level
from hopwatch.monitor.settings.alerting import AlertsSettings

ADVICE: Final = "add a table [alerts.channels.NAME]: docs/ALERTS.md"


def channels(alerts: AlertsSettings) -> Finding:
    """Say who is told of alerts; a note where nobody is: Prometheus may be what tells people."""
    if told := unheard(alerts):
        return Finding("alerts", Level.NOTE, told, ADVICE)
    if not alerts.in_force:
        return Finding("alerts", Level.OK, "no rule is in force: nobody is told of anything")
    names = ", ".join(alerts.hearing)
    return Finding("alerts", Level.OK, f"rules in force: {len(alerts.in_force)}, told through: {names}")


def unheard(alerts: AlertsSettings) -> str:
    """Return why alerts of the rules that are in force reach nobody; empty where they do, or there is no rule."""
    if not alerts.in_force or alerts.hearing:
        return ""
    if not alerts.channels:
        return "no notification channel is configured: alerts are kept in the store and reach nobody"
    return "no notification channel takes alerts: they are kept in the store and reach nobody"
