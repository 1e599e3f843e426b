"""The demo through Kafka as a newcomer runs it, shortened: a real broker, a real database, a node that is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from hopwatch.demo.links.run_links import TopicLinks
from hopwatch.probes.contract.kafka import KafkaAccess
from servers.kafka import Kafka
from servers.postgres import PASSWORD, Postgres
from servers.process import free_ports, until
from tests.real.program_folder import ROOT

PATIENCE_S: Final = 600
RUN: Final = (sys.executable, "-m", "hopwatch")


def hopwatch(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run([*RUN, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def topics_of(kafka: Kafka) -> set[str]:
    """Return the topics that there are."""
    return set(kafka.admin().list_topics(timeout=10).topics)


@pytest.mark.soak  # test_demo_kills.py kills a node over Kafka by default
def test_over_kafka_a_killed_node_loses_nothing(own_broker: Kafka, postgres: Postgres, tmp_path: Path) -> None:
    """Drops are named to the id, kills take nothing and repeat some, and no topic is left behind."""
    url, folder = postgres.database(), tmp_path / "demo"
    flags = "--minutes 0.4 --rate 1000 --drop router=0.02 --kill norm@12 --kill norm@22 --no-dashboard"
    where = ("--kafka", own_broker.bootstrap, "--store", url, "--workdir", str(folder))
    ended = hopwatch("demo", *flags.split(), *where)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert PASSWORD not in ended.stdout + ended.stderr
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert ["lost", "by", "kills", "0", "=", "0", "surely", "ok"] in lines
    (repeated,) = [line for line in lines if line[:3] == ["duplicates", "in", "connector"]]
    assert int(repeated[3].replace(",", "")) > 0
    assert repeated[4:] == ["=", repeated[3], "ok"]
    assert "injected = measured, as far as the probes could tell; of norm nothing is claimed beyond" in ended.stdout
    until(lambda: topics_of(own_broker) <= {"__consumer_offsets"}, "topics that are gone")
    told = hopwatch("report", "--config", str(folder / "hopwatch.toml"), "--json")
    (stream,) = json.loads(told.stdout)["streams"]
    (norm,) = {node["loss_lower"] for window in stream["windows"] for node in window["nodes"] if node["node"] == "norm"}
    assert norm == 0


@pytest.mark.soak  # test_gate_faults.py kills a gate over Kafka by default
def test_over_kafka_a_gate_rejects_bad_events_and_a_killed_ingest_loses_none(own_broker: Kafka, tmp_path: Path) -> None:
    """Ingest reads the gate's topic with the marks in its headers, and again what it held when it was killed."""
    flags = "--gate --minutes 0.4 --rate 500 --drop router=0.02 --kill ingest@14 --no-dashboard"
    ended = hopwatch("demo", *flags.split(), "--kafka", own_broker.bootstrap, "--workdir", str(tmp_path / "demo"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert ["lost", "by", "kills", "0", "=", "0", "surely", "ok"] in lines
    (rejected,) = [line for line in lines if line[:2] == ["rejected", "gate"]]
    assert int(rejected[2]) > 0
    assert rejected[3:] == ["=", rejected[2], "ok"]
    assert ["lost", "ids", "gate", "0", "⊆", "0", "ok"] in lines
    until(lambda: topics_of(own_broker) <= {"__consumer_offsets"}, "topics that are gone")


def test_a_run_that_nobody_read_leaves_nothing_behind(own_broker: Kafka) -> None:
    """Also on brokers that never had a reader, and know of no groups."""
    links = TopicLinks(own_broker.bootstrap, KafkaAccess())
    links.check()
    with links:
        until(lambda: len(topics_of(own_broker)) == 4, "the topics of a run")
    assert links.left_behind == ""
    until(lambda: topics_of(own_broker) <= {"__consumer_offsets"}, "topics that are gone")


def test_brokers_that_do_not_answer_are_named(tmp_path: Path) -> None:
    """Exit 3 and one line, before anything is written."""
    (port,) = free_ports(1)
    ended = hopwatch("demo", "--kafka", f"127.0.0.1:{port}", "--workdir", str(tmp_path / "demo"))
    assert ended.returncode == 3
    assert ended.stderr.startswith(f"hopwatch: the Kafka brokers 127.0.0.1:{port} cannot be reached: ")
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""
    assert list(tmp_path.iterdir()) == []
