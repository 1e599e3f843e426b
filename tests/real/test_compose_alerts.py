"""Tests of alerts by docker-compose.yml: its Prometheus and Alertmanager take their files, and tell each thing once."""

from __future__ import annotations

import json
import urllib.request
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from servers.alertmanager import amtool
from servers.process import until
from servers.prometheus import promtool
from tests.real.compose_services import Services
from tests.real.monitor_process import PATIENCE_S
from tests.repository import ROOT
from tests.repository.deployment import compose
from tests.repository.deployment.deployment import Deployment

ROUTES: Final = ROOT / "docker" / "alertmanager.yml"
EVALUATION_S: Final = 15
Alert = dict[str, Any]


def test_promtool_takes_the_configuration_as_it_is_mounted(tmp_path: Path) -> None:
    """With its rules, at the places that the container has."""
    for source, target, _ in compose.mounts(Deployment().services["prometheus"]):
        if source.startswith("."):
            copy = tmp_path / Path(target).name
            copy.write_bytes((ROOT / source).read_bytes())
    code, said = promtool("check", "config", str(tmp_path / "prometheus.yml"))
    assert code == 0, said
    assert "1 rule files found" in said
    assert "FAILED" not in said


def test_amtool_takes_the_configuration() -> None:
    """With its four receivers."""
    done = amtool("check-config", str(ROUTES))
    assert done.returncode == 0, done.stderr
    assert " - 4 receivers" in done.stdout


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ({"alertname": "HopwatchLoss", "kind": "loss", "severity": "page", "stream": "flights"}, "pages"),
        ({"alertname": "HopwatchAbsent", "severity": "page"}, "pages"),
        ({"alertname": "HopwatchBehind", "severity": "ticket"}, "tickets"),
        ({"alertname": "HopwatchHeartbeat", "kind": "heartbeat", "severity": "ticket"}, "heartbeat-of-hopwatch"),
        ({"alertname": "HopwatchHeartbeat", "severity": "none"}, "heartbeat-of-prometheus"),
    ],
)
def test_each_alert_goes_where_it_belongs(labels: dict[str, str], receiver: str) -> None:
    """Pages, tickets, and the heartbeats by the two ways that they come."""
    pairs = [f"{name}={value}" for name, value in labels.items()]
    assert amtool("config", "routes", "test", f"--config.file={ROUTES}", *pairs).stdout.split() == [receiver]


@pytest.mark.soak  # by default test_alertmanager.py and test_prometheus.py run the same two servers
def test_what_the_demo_loses_is_one_page_that_names_the_node(services: Services) -> None:
    """By Hopwatch itself: Prometheus sees the loss as well, and tells Alertmanager of the monitor alone."""
    made = services.run("topic")
    assert made.returncode == 0, made.stderr
    with ExitStack() as ends:
        for name in ("alertmanager", "prometheus", "monitor", "demo"):
            process = services.start(name)
            ends.callback(process.stop, 60)
            until(lambda: services.is_up(name, process), f"a healthy {name}", PATIENCE_S)  # noqa: B023 - called at once
        until(lambda: _of_streams(services) != [], "the page", 2 * PATIENCE_S)
        until(lambda: _is_told_twice(services), "what Prometheus makes of it", PATIENCE_S)
        until(lambda: len(_named(services, "HopwatchHeartbeat")) == 2, "both heartbeats", PATIENCE_S)
        told = _of_streams(services)
        heartbeats = [_receivers(one) for one in _named(services, "HopwatchHeartbeat")]
        targets = _asked(services, "prometheus", "/api/v1/targets")["data"]["activeTargets"]
    (page,) = told
    assert (page["labels"]["alertname"], page["labels"]["kind"]) == ("HopwatchLoss", "loss")
    assert (page["annotations"]["node"], page["annotations"]["word"]) == ("router", "lost")
    assert _receivers(page) == ["pages"]
    assert sorted(heartbeats) == [["heartbeat-of-hopwatch"], ["heartbeat-of-prometheus"]]
    assert {one["labels"]["job"]: one["health"] for one in targets} == {"hopwatch": "up", "prometheus": "up"}


def _asked(services: Services, name: str, path: str) -> Any:  # noqa: ANN401 - JSON
    with urllib.request.urlopen(f"http://127.0.0.1:{services.ports[name]}{path}", timeout=20) as answer:
        return json.load(answer)


def _named(services: Services, name: str) -> list[Alert]:
    """Return the alerts of a name that Alertmanager has."""
    return [one for one in _asked(services, "alertmanager", "/api/v2/alerts") if one["labels"]["alertname"] == name]


def _of_streams(services: Services) -> list[Alert]:
    """Return the alerts about streams that Alertmanager has."""
    return [one for one in _asked(services, "alertmanager", "/api/v2/alerts") if "stream" in one["labels"]]


def _receivers(alert: Alert) -> list[str]:
    return [receiver["name"] for receiver in alert["receivers"]]


def _is_told_twice(services: Services) -> bool:
    """Return whether Prometheus' rule on the loss fires, and has done so for long enough to be sent."""
    groups = _asked(services, "prometheus", "/api/v1/rules")["data"]["groups"]
    (group,) = [one for one in groups if one["name"] == "hopwatch.streams"]
    (rule,) = [one for one in group["rules"] if one["name"] == "HopwatchLoss"]
    firing = [_moment(one["activeAt"]) for one in rule["alerts"] if one["state"] == "firing"]
    evaluated = _moment(group["lastEvaluation"])
    return any((evaluated - since).total_seconds() >= EVALUATION_S - 1 for since in firing)


def _moment(text: str) -> datetime:
    """Return a moment of Prometheus', which has nanoseconds."""
    return datetime.fromisoformat(text[:19] + "+00:00")
