"""Tests of ``hopwatch scale`` on a real broker, with consumers whose work is to wait for 50 ms a message."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.scale import MAX_PROCESSES, TrafficPhase, run_policy
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.scale.group_backlog import GroupBacklog
from hopwatch.scale.metric import MetricUnavailableError
from servers.kafka import Kafka
from servers.process import free_ports

FAST = ("--every", "500ms", "--down-window", "5s", "--down-rate", "1/1s")


def test_by_lag_processes_come_and_go_and_nothing_is_lost(kafka: Kafka, tmp_path: Path) -> None:
    """More start while the traffic is more than one can take, and end when it falls; each message is received."""
    run = run_policy(kafka, tmp_path, "lag", 40, (TrafficPhase(60, 10), TrafficPhase(2, 30)), FAST)
    assert (run.sent, run.lost) == (660, 0)
    assert run.most_processes > 2
    assert run.last_processes == 1
    # The newest seconds of the traffic may still wait.
    assert run.received + run.waiting == run.sent
    assert run.waiting < 20


def test_by_processor_share_a_consumer_that_waits_is_never_helped(kafka: Kafka, tmp_path: Path) -> None:
    """By processor share one waiting consumer is enough, so that the backlog grows."""
    run = run_policy(kafka, tmp_path, "cpu", 0.7, (TrafficPhase(60, 20),), FAST)
    assert run.most_processes == 1 < MAX_PROCESSES
    assert run.waiting > 500
    assert run.lost == 0


def test_a_backlog_that_cannot_be_had_is_said(kafka: Kafka) -> None:
    """A group that has committed nothing, a topic that is not there, and no broker."""
    kafka.create_topic("scaled.nobody", 2, {})

    def read(brokers: str, topic: str) -> None:
        GroupBacklog(KafkaPlace(brokers, topic), "nobody", KafkaAccess()).read()

    for brokers, topic, told in (
        (kafka.bootstrap, "scaled.nobody", "the group nobody has committed nothing of scaled.nobody yet"),
        (kafka.bootstrap, "scaled.nowhere", "the topic scaled.nowhere cannot be read: "),
        (f"127.0.0.1:{free_ports(1)[0]}", "x", "the backlog of the group nobody cannot be read: none answers"),
    ):
        with pytest.raises(MetricUnavailableError, match=re.escape(told)):
            read(brokers, topic)
