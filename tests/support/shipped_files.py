"""Readers of the files shipped for Prometheus, Grafana and autoscalers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from tests.repository import ROOT

PROMETHEUS: Final = ROOT / "alerts" / "prometheus"
RULES: Final = PROMETHEUS / "hopwatch.rules.yml"
AUTOSCALING: Final = ROOT / "alerts" / "autoscaling"
DASHBOARD: Final[dict[str, Any]] = json.loads((ROOT / "alerts" / "grafana" / "hopwatch.json").read_text("utf-8"))

GROUPS: Final[list[dict[str, Any]]] = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
ALERTS: Final[dict[str, dict[str, Any]]] = {
    rule["alert"]: rule for group in GROUPS for rule in group["rules"] if "alert" in rule
}
RECORDED: Final[dict[str, str]] = {
    rule["record"]: rule["expr"] for group in GROUPS for rule in group["rules"] if "record" in rule
}


def panels() -> list[dict[str, Any]]:
    """Return the panels of the dashboard that show something."""
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def filled(query: str) -> str:
    """Return a query of the dashboard as Grafana sends it when all is chosen."""
    return re.sub(r"\$(stream|node)\b", ".*", query)


def dashboard_queries() -> list[str]:
    """Return the queries of all panels."""
    return [filled(target["expr"]) for panel in panels() for target in panel["targets"]]


def autoscaling() -> dict[str, Any]:
    """Return the documents by the names of their files."""
    return {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in AUTOSCALING.glob("*.yaml")}


def autoscaling_queries() -> Iterator[str]:
    """Yield what autoscalers ask Prometheus, as they ask it."""
    found = autoscaling()
    for trigger in found["keda"]["spec"]["triggers"]:
        yield trigger["metadata"]["query"]
    for rule in found["prometheus-adapter"]["rules"]["external"]:
        labels = 'stream="orders"' if "end_to_end" in rule["seriesQuery"] else 'stream="orders",node="router"'
        yield rule["metricsQuery"].replace("<<.LabelMatchers>>", labels)
