"""Rules: the dashboard is asked where it listens, and links of alerts lead to where it is published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from tests.repository.deployment.deployment import Deployment, dashboard_place, is_monitor
from tests.repository.deployment.variables import valid_settings

HEALTH: Final = "/_stcore/health"
"""Streamlit's own page, which ``tests/real`` asks."""


def dashboards_are_asked(deployment: Deployment) -> Iterator[str]:
    """The healthcheck asks the port that it listens on."""
    for name, service in deployment.services.items():
        _, port = dashboard_place(service)
        asked = " ".join(map(str, service.get("healthcheck", {}).get("test", [])))
        if port and f"http://127.0.0.1:{port}{HEALTH}" not in asked:
            yield f"{name}: its healthcheck does not ask http://127.0.0.1:{port}{HEALTH}"


def links_lead_to_a_dashboard(deployment: Deployment) -> Iterator[str]:
    """Links of alerts begin with a URL at which a dashboard is published to this machine."""
    published = {
        f"localhost:{str(port).split(':')[-2]}"
        for service in deployment.services.values()
        for port in service.get("ports", [])
        if dashboard_place(service)[1] == str(port).rpartition(":")[2]
    }
    for name, service in deployment.services.items():
        chosen = valid_settings(deployment, name) if is_monitor(service) else None
        if chosen and chosen.alerts.dashboard and urlsplit(chosen.alerts.dashboard).netloc not in published:
            yield f"{name}: links of its alerts lead to {chosen.alerts.dashboard}, where no dashboard is"


RULES: Final = (dashboards_are_asked, links_lead_to_a_dashboard)
