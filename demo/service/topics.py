"""Topics of a run of the service, and what is in those that deliveries write."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaException

from hopwatch.demo.deliveries import DeliveryPlan
from hopwatch.demo.entrance.outlets import GateOutlets
from hopwatch.demo.links.ends import TransactionalEnds
from hopwatch.demo.links.run_links import RETENTION_HOURS, load_access
from hopwatch.demo.links.topics import ADVICE, build_client_settings
from hopwatch.demo.stream import RECEIVERS
from hopwatch.monitor import topics
from hopwatch.monitor.errors import HopwatchError, TransportError
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.kafka.client import describe_kafka_error
from hopwatch.probes.kafka.consumer import read_to_end

PARTITIONS: Final = 4
ID_HEADER: Final = "hopwatch-id"
READ_ANSWER_S: Final = 60.0
"""Brokers abort a transaction that was left open 10 s after its begin, and look for such ones every 10 s."""


class ServiceTopics:
    """Topics between the nodes, and of the deliveries. They are made for one run."""

    def __init__(self, brokers: str, *, replication: int = 1) -> None:
        """Name the topics after the run; none is made yet.

        Raises:
            SettingsError: what the environment says of access to the brokers cannot be.
        """
        self._prefix = f"hopwatch-demo-{uuid.uuid4().hex[:12]}"
        self.brokers = brokers
        self.replication = replication
        self.min_insync = max(1, replication - 1)
        self._access = load_access()
        self.gate = GateOutlets(str(self._place("router")), str(self._place("rejected")))
        self.words = f"topics of this run, deleted at its end: {self._prefix}-… on {brokers}"
        self.left_behind = ""

    def create(self) -> None:
        """Make the topics; those of the deliveries are made by ``hopwatch deliver create-topics``.

        Raises:
            TransportError: no broker answers, or none lets us in.
            ConfigurationError: the brokers do not take such topics.
        """
        try:
            for node in ("router", "rejected", "norm", *RECEIVERS):
                topics.create_topic(
                    self._place(node),
                    self._access,
                    partitions=PARTITIONS,
                    replication=self.replication,
                    min_insync=self.min_insync,
                    retention_hours=RETENTION_HOURS,
                )
        except HopwatchError:
            self.delete()
            raise

    def check(self) -> None:
        """Ask the brokers for a topic.

        Raises:
            TransportError: no broker answers, or none lets us in.
        """
        topics.describe_topic(self._place("router"), self._access)

    def ends(self, node: str) -> TransactionalEnds:
        """Return the topics before and behind router or norm."""
        following = RECEIVERS if node == "norm" else ("norm",)
        outlets = {one: self._place(one).topic for one in following}
        return TransactionalEnds(self.brokers, self._place(node).topic, outlets, is_gated=node == "router")

    def plan_deliveries(self, ports: Sequence[int]) -> tuple[DeliveryPlan, ...]:
        """Return the deliveries to receivers at these ports of this machine."""
        return tuple(
            DeliveryPlan(name, str(self._place(name)), port) for name, port in zip(RECEIVERS, ports, strict=True)
        )

    def delete(self) -> None:
        """Delete the topics and groups; what hinders it is kept to be told."""
        plans = self.plan_deliveries([0] * len(RECEIVERS))
        made = [self._place(node) for node in ("router", "rejected", "norm", *RECEIVERS)]
        made += [KafkaPlace.parse(url) for plan in plans for url in (*plan.retry_urls, plan.rejected_url)]
        groups = [self._place(node).topic for node in ("router", "norm")]
        groups += [group for plan in plans for group in (plan.group, f"{plan.group}.retrier")]
        try:
            topics.delete_topics(made, self._access, groups)
        except TransportError as failed:
            self.left_behind = f"the topics {self._prefix}-… are left behind: {failed}"

    def _place(self, node: str) -> KafkaPlace:
        """Return the topic that leads to a node."""
        return KafkaPlace(self.brokers, f"{self._prefix}-{node}")


def read_topic_ids(url: str, answer_s: float = READ_ANSWER_S) -> list[bytes]:
    """Return the message id in the header of each committed record of a topic, as text in bytes.

    Raises:
        TransportError: the topic cannot be read.
    """
    place = KafkaPlace.parse(url)
    asked = {"group.id": "hopwatch-demo", "enable.partition.eof": True, "enable.auto.commit": False}
    consumer = Consumer(build_client_settings(place.brokers) | asked)
    try:
        found = read_to_end(consumer, place.topic, answer_s)
        return [bytes(dict(one.headers() or ())[ID_HEADER]) for one in found]
    except KafkaException as error:
        why = describe_kafka_error(error)
        raise TransportError(f"the topic {place.topic} cannot be read for the account: {why}; {ADVICE}") from None
    finally:
        consumer.close()
