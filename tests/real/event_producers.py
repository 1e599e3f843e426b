"""Producers of events that send until they are answered; they know what was acknowledged, and how often it was sent."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import orjson
from confluent_kafka import Consumer, TopicPartition

from hopwatch.gate import ids
from hopwatch.gate.codec import Codec
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER, generate_id
from servers.kafka import Kafka

PATIENCE_S: Final = 240.0
BATCH: Final = 10


def payload(event_id: str) -> dict[str, Any]:
    """Return what the event of an id says, and no other: by it a record is known to be the one that was sent."""
    return {"price": int(event_id[-6:], 16) / 64, "item": event_id[::-1]}


@dataclass
class Producers:
    """Some threads, each with a batch after the other; a batch is sent until it is acknowledged."""

    port: int
    count: int = 4
    acknowledged: set[str] = field(default_factory=set)
    sent: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Let them begin."""
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(self.count)
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let each get its last batch acknowledged, and end."""
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a producer's last batch was never acknowledged"

    def _run(self, number: int) -> None:
        chance = Random(number)
        while not self._stop.is_set():
            events = [ids.format_uuid(generate_id(time.time_ns() // 1_000)) for _ in range(chance.randint(1, BATCH))]
            body = orjson.dumps([{"id": one, "data": payload(one)} for one in events])
            give_up_s = time.monotonic() + PATIENCE_S
            while (status := self._ask(events, body)) != 201:
                assert time.monotonic() < give_up_s, f"the gate answers {status}"
                time.sleep(0.05)
            with self._lock:
                self.acknowledged.update(events)

    def _ask(self, events: list[str], body: bytes) -> int:
        """Send a batch once, and return the status, 0 without an answer."""
        status = 0
        with self._lock:
            self.sent.update(events)
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            connection.request("POST", "/streams/orders/events", body, {"content-type": "application/json"})
            status = connection.getresponse().status
            connection.close()
        with self._lock:
            self.statuses[status] += 1
        return status


@dataclass(frozen=True)
class Found:
    """Comparison of a topic's records with those sent."""

    lost: set[str]
    phantom: set[str]
    corrupt: list[str]
    more_than_sent: set[str]
    duplicates: int


def compared(kafka: Kafka, topic: str, codec: Codec, producers: Producers) -> Found:
    """Read a topic to its end, and hold it against the producers."""
    seen: Counter[str] = Counter()
    corrupt = []
    for headers, value in records(kafka, topic):
        event_id = headers[ID_HEADER].decode()
        seen[event_id] += 1
        time_us = int(headers[TIME_HEADER])
        if codec.decode(value) != payload(event_id) or time_us != ids.uuid_time_us(ids.parse_uuid(event_id)):
            corrupt.append(event_id)
    return Found(
        producers.acknowledged - seen.keys(),
        seen.keys() - producers.sent.keys(),
        corrupt,
        {one for one, times in seen.items() if times > producers.sent[one]},
        seen.total() - len(seen),
    )


def records(kafka: Kafka, topic: str) -> list[tuple[dict[str, bytes], bytes]]:
    """Return headers and value of all records of a topic."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "oracle", "enable.auto.commit": False})
    parts = [TopicPartition(topic, number, 0) for number in consumer.list_topics(topic).topics[topic].partitions]
    left = {one.partition: consumer.get_watermark_offsets(one, timeout=30)[1] for one in parts}
    consumer.assign(parts)
    left = {number: high for number, high in left.items() if high}
    found = []
    while left:
        for message in consumer.consume(1_000, 30):
            assert message.error() is None, message.error()
            found.append(({name: bytes(value) for name, value in message.headers() or []}, message.value() or b""))
            if (message.offset() or 0) + 1 >= left.get(message.partition() or 0, 0):
                left.pop(message.partition() or 0, None)
    consumer.close()
    return found
