"""Kafka brokers of tests and benches: those of the demo, and what is done to topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from confluent_kafka import OFFSET_END, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic

from hopwatch.demo.broker_cluster import ARCHIVE, CLASS_PATH, JARS, JAVA, BrokerCluster
from servers.process import PATIENCE_S, until

__all__ = ["AGENT", "ARCHIVE", "CLASS_PATH", "JARS", "JAVA", "LOG_APPEND", "PROBE", "Kafka"]

PROBE: Final = JARS.with_name("probe")
"""Folder of the probe for the JVM, which ``make servers`` builds."""
AGENT: Final = JARS.with_name("agent")
"""Folder of OpenTelemetry's agent for the JVM."""
LOG_APPEND: Final = {"message.timestamp.type": "LogAppendTime", "max.message.bytes": "5242880"}
"""What a topic of observations needs."""


class Kafka(BrokerCluster):
    """A cluster whose topics tests make, delete and let age out."""

    def url(self, topic: str) -> str:
        """Return the URL of a topic."""
        return f"kafka://{self.bootstrap}/{topic}"

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None, replicas: int = 0
    ) -> None:
        """Make a topic, by default one that observations may go to."""
        topic = NewTopic(name, partitions, replicas or self.size, config=dict(LOG_APPEND if config is None else config))
        admin = self.admin()  # held: a client that is let go of gives up what it was asked
        (answer,) = admin.create_topics([topic], operation_timeout=PATIENCE_S).values()
        try:
            answer.result()
        except KafkaException as error:
            # A request whose answer was slow to come was sent again by the client.
            told = error.args[0]
            if not isinstance(told, KafkaError) or told.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        until(lambda: self._has(name, partitions), f"the topic {name}")

    def delete_topic(self, name: str) -> None:
        """Delete a topic; returns when no broker knows it any more."""
        admin = self.admin()
        (answer,) = admin.delete_topics([name], operation_timeout=PATIENCE_S).values()
        answer.result()
        until(lambda: name not in admin.list_topics(timeout=10).topics, f"the end of the topic {name}")

    def age_out(self, topic: str, partition: int = 0) -> None:
        """Let all records of a partition age out: the broker deletes them, as retention would."""
        admin = self.admin()
        (answer,) = admin.delete_records(
            [TopicPartition(topic, partition, OFFSET_END)], request_timeout=PATIENCE_S
        ).values()
        answer.result()

    def _has(self, name: str, partitions: int) -> bool:
        found = self.admin().list_topics(name, timeout=10).topics[name].partitions
        return len(found) == partitions and all(one.leader >= 0 for one in found.values())
