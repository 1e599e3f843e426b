"""Tests of what docker-compose.yml says, run without Docker against a real broker and a real database."""

from __future__ import annotations

import json
import os
import time
import uuid
from pathlib import Path

import pytest

from hopwatch import Probe
from servers.process import until
from tests.real import compose_services
from tests.real.compose_services import Broker, Services
from tests.real.monitor_process import PATIENCE_S

TOPIC = "hopwatch.observations"
MADE = f"made the topic {TOPIC}: 6 partitions, replication 1, min.insync.replicas 1"


def test_every_property_of_the_broker_is_one() -> None:
    """A broker passes over what it does not know: a misspelt variable would never be noticed."""
    known = compose_services.known_properties()
    assert len(known) > 100
    assert set(compose_services.properties()) - known == set()


@pytest.mark.soak  # test_compose_alerts.py starts all services by default
def test_the_services_come_up_one_after_the_other(broker: Broker, services: Services, tmp_path: Path) -> None:
    """The topic is made once; the monitor gets healthy, sees what comes by the published port, and is missed later."""
    first, second = services.run("topic"), services.run("topic")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stderr.startswith(MADE)
    assert second.stdout.splitlines()[-1] == f"the topic {TOPIC} will do: 6 partitions, replication 1"
    assert second.stdout.count("weak, and allowed: ") == 2
    assert not services.is_healthy("monitor")
    assert not services.is_healthy("dashboard")
    monitor, dashboard = services.start("monitor"), services.start("dashboard")
    until(lambda: services.is_up("monitor", monitor), "a healthy monitor", PATIENCE_S)
    until(lambda: services.is_up("dashboard", dashboard), "a healthy dashboard", PATIENCE_S)
    dashboard.stop(60)
    with Probe("flights", "ingest", f"kafka://127.0.0.1:{broker.host_port}/{TOPIC}") as probe:
        probe.arrived(uuid.uuid4(), time.time_ns() // 1_000)
    until(lambda: _known(services) == 1, "the message in the report", PATIENCE_S)
    assert not services.is_healthy("demo")
    demo = services.start("demo")
    until(lambda: services.is_up("demo", demo), "a healthy demo", PATIENCE_S)
    until(lambda: _known(services) > 200, "the messages of the demo in the report", PATIENCE_S)
    demo.stop(60)
    monitor.stop(60)
    assert (demo.exit_code, dashboard.exit_code, monitor.exit_code) == (0, 0, 0)
    for commit in (tmp_path / "services" / "work" / "checkpoint" / "commits").iterdir():
        os.utime(commit, (time.time() - 180, time.time() - 180))
    assert not services.is_healthy("monitor")


def _known(services: Services) -> int:
    """Return how many messages the report knows, asked as a user would."""
    done = services.call("monitor", "hopwatch", "report", "--json", "--config", services.config())
    assert done.returncode == 0, done.stderr
    return sum(window["known"] for stream in json.loads(done.stdout)["streams"] for window in stream["windows"])
