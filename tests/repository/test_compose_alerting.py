"""Tests of who tells whom by docker-compose.yml: Hopwatch of streams, Prometheus of the monitor, nobody twice."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from hopwatch.alerts.events import AlertKind
from tests.repository import ROOT
from tests.support import shipped_files

RELABELLED: Final[list[dict[str, Any]]] = yaml.safe_load((ROOT / "docker" / "prometheus.yml").read_text("utf-8"))[
    "alerting"
]["alert_relabel_configs"]
ROUTES: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker" / "alertmanager.yml").read_text("utf-8"))
OWN: Final = {"Hopwatch" + "".join(part.capitalize() for part in kind.split("_")) for kind in AlertKind}
"""The names of the alerts that Hopwatch sends itself."""


def _fired() -> list[dict[str, str]]:
    """Return the labels of all alerts that the rules' own tests make fire."""
    tests = yaml.safe_load((shipped_files.PROMETHEUS / "hopwatch.tests.yml").read_text("utf-8"))["tests"]
    asked = [one for test in tests for one in test["alert_rule_test"]]
    return [{"alertname": one["alertname"], **alert["exp_labels"]} for one in asked for alert in one["exp_alerts"]]


def _is_sent(labels: dict[str, str]) -> bool:
    """Return whether Prometheus sends an alert with these labels to Alertmanager."""
    assert {rule["action"] for rule in RELABELLED} == {"drop"}
    return not any(
        re.fullmatch(rule["regex"], ";".join(labels.get(name, "") for name in rule["source_labels"]))
        for rule in RELABELLED
    )


def test_prometheus_tells_what_hopwatch_cannot() -> None:
    """Of the rules that are shipped, those on the monitor; each of the two ways to a person has its own heartbeat."""
    fired = _fired()
    assert {labels["alertname"] for labels in fired} == set(shipped_files.ALERTS)
    sent = {labels["alertname"] for labels in fired if _is_sent(labels)}
    dropped = {labels["alertname"] for labels in fired if not _is_sent(labels)}
    (of_monitor,) = [group for group in shipped_files.GROUPS if group["name"] == "hopwatch.monitor"]
    assert sent == {rule["alert"] for rule in of_monitor["rules"]} - {"HopwatchSetAside"}
    assert sent & OWN == {"HopwatchHeartbeat"}
    assert sent & dropped == set()


def test_the_example_of_a_prometheus_tells_the_same() -> None:
    """The example drops the same alerts, so that nobody is paged twice with it."""
    example = yaml.safe_load((shipped_files.PROMETHEUS / "prometheus.yml").read_text("utf-8"))
    assert example["alerting"]["alert_relabel_configs"] == RELABELLED


def test_every_receiver_is_routed_to_and_tells_nobody_yet() -> None:
    """So that the first start sends nothing anywhere."""
    routes = [ROUTES["route"], *ROUTES["route"]["routes"]]
    assert {route["receiver"] for route in routes} == {one["name"] for one in ROUTES["receivers"]}
    assert [set(one) for one in ROUTES["receivers"]] == 4 * [{"name"}]
