"""Program that writes the archives of classes that Spark and the brokers of the tests start with (ADR 0161)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer

from hopwatch.monitor.spark import archive, archive_writer
from servers import kafka
from servers.process import PATIENCE_S

_ENDS_WITHIN_S: Final = 60.0


def write_broker_archive(folder: Path = archive.FOLDER) -> None:
    """Let a broker take a record and hand it out again, and keep the classes that this took."""
    with tempfile.TemporaryDirectory(prefix="archiving-", dir=folder) as scratch:
        made = Path(scratch) / "made.jsa"
        broker = kafka.Kafka(Path(scratch) / "broker")
        broker.java = [*kafka.JAVA, f"-XX:ArchiveClassesAtExit={made}", *kafka.CLASS_PATH]
        try:
            broker.start()
            _use(broker)
            broker.end(0, _ENDS_WITHIN_S)
        finally:
            broker.stop()
        archive.store_archive(made, kafka.ARCHIVE, folder)


def _use(broker: kafka.Kafka) -> None:
    broker.create_topic("archived")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "archived"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("archived", b"x")
    producer.commit_transaction()
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "archived", "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe(["archived"])
        consumer.poll(PATIENCE_S)
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


if __name__ == "__main__":
    write_broker_archive()
    archive_writer.write_archive()
