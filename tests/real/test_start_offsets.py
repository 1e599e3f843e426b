"""Tests of where a group begins, with a real broker."""

from __future__ import annotations

import sys
from pathlib import Path

from servers.kafka import Kafka
from servers.process import Process, until

ROOT = Path(__file__).parents[2]


def test_a_broker_that_goes_behind_an_assignment_ends_no_reader(own_broker: Kafka, tmp_path: Path) -> None:
    """In one poll the client calls back for the assignment and for the error; both are heard."""
    own_broker.create_topic("orders", 2)
    log = tmp_path / "log"
    reader = Process([sys.executable, "-m", "tests.real.outage_reader", own_broker.url("orders")], log, folder=ROOT)
    until(lambda: "assigned" in log.read_text("utf-8"), "an assignment")
    own_broker.kill(0)
    assert reader.wait(60) == 0, log.read_text("utf-8")
    assert "has trouble" in log.read_text("utf-8")
