"""The servers that tests ask for: one of each a run, ended whatever happens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.servers.kafka import Kafka


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield a cluster of one broker."""
    yield from _running(Kafka(tmp_path_factory.mktemp("kafka")))


@pytest.fixture
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield a cluster of three brokers, for one test to kill."""
    yield from _running(Kafka(tmp_path_factory.mktemp("kafka"), 3))


def _running(cluster: Kafka) -> Iterator[Kafka]:
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
