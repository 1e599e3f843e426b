"""The servers that tests ask for: one of each a run, ended whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.kafka import Kafka
from servers.postgres import PASSWORD, Postgres
from tests.real.compose_services import Broker, Services


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield a cluster of one broker, for one test to kill, or to be the first who uses it."""
    yield from _running(Kafka(tmp_path_factory.mktemp("kafka")))


@pytest.fixture
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield a cluster of three brokers, for one test to kill, of which two acknowledge what is not to be lost."""
    yield from _running(Kafka(tmp_path_factory.mktemp("kafka"), 3, {"min.insync.replicas": "2"}))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """Yield a broker with the properties of docker-compose.yml's service ``kafka``."""
    made = Broker(tmp_path / "kafka")
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def services(broker: Broker, postgres: Postgres, tmp_path: Path) -> Services:
    """Return the services of docker-compose.yml, at that broker and an empty database."""
    return Services(tmp_path / "services", broker, postgres.database().partition("@")[2], PASSWORD)


def _running(cluster: Kafka) -> Iterator[Kafka]:
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
