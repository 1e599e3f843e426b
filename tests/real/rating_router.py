"""Router for ratings: takes each message of a topic to another one, with its headers, as a small service would.

A program by itself: BROKERS SOURCE SINK SPOOL WAIT_MS COMPUTE_MS. Each batch of messages costs it so many ms of waiting
or of computing per message. SIGTERM ends it.
"""

from __future__ import annotations

import signal
import sys
import time
from threading import Event
from typing import Final

from confluent_kafka import Consumer, Message, Producer

from hopwatch import Probe
from hopwatch.probes.message_headers import parse_headers

STREAM: Final = "orders"
NODE: Final = "router"
MAX_POLLED: Final = 3
"""A batch of messages arrives and leaves together: the smaller, the smoother its lag grows."""


def route(brokers: str, source: str, sink: str, spool: str, wait_s: float, compute_s: float) -> None:
    """Route as one of the group until SIGTERM."""
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    consumer = Consumer(
        {"bootstrap.servers": brokers, "group.id": "router", "auto.offset.reset": "earliest", "log_level": 0}
    )
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 5, "acks": "all", "log_level": 0})
    probe = Probe(STREAM, NODE, f"spool:{spool}", close_on_sigterm=False)
    consumer.subscribe([source])
    while not stop.is_set():
        messages = consumer.consume(1, 0.1)
        if messages:
            messages += consumer.consume(MAX_POLLED - 1, 0)
            take([one for one in messages if one.error() is None], producer, probe, sink, wait_s, compute_s)
        producer.poll(0)
    producer.flush()
    consumer.close()
    probe.close()


def take(messages: list[Message], producer: Producer, probe: Probe, sink: str, wait_s: float, compute_s: float) -> None:
    """Take some messages on."""
    marks = [mark for one in messages if (mark := parse_headers(one.headers())) is not None]
    ids, times = [mark.message_id for mark in marks], [mark.event_us for mark in marks]
    probe.arrived_many(ids, times)
    time.sleep(wait_s * len(messages))
    until_s = time.thread_time() + compute_s * len(messages)
    while time.thread_time() < until_s:
        pass
    for one in messages:
        producer.produce(sink, one.value(), one.key(), headers=list(one.headers() or ()))
    probe.departed_many(ids, times)


if __name__ == "__main__":
    wait_ms, compute_ms = map(float, sys.argv[5:7])
    route(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], wait_ms / 1e3, compute_ms / 1e3)
