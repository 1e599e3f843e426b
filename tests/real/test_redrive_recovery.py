"""Redrive in a pipeline that runs: what two nodes lost arrives after all, and the store has it as recovered."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Message, Producer

from hopwatch import Probe
from hopwatch.deliver.redrive.messages import REDRIVEN_HEADER
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from servers.kafka import Kafka
from servers.process import PATIENCE_S
from tests.real.monitor_process import Monitor, Report, minute_of, windows_of
from tests.real.program_folder import Workplace

MESSAGES: Final = 40_000
LOST_AT_EACH: Final = 5_000
RATE_PER_S: Final = 500
BOUND_S: Final = 120.0
PARTITIONS: Final = 4


class Service(threading.Thread):
    """Service of a node: reads a topic, loses some messages the first time, and writes the others to the next topic."""

    def __init__(
        self, kafka: Kafka, node: str, probe: Probe, topics: tuple[str, str | None], dropped: frozenset[str]
    ) -> None:
        """Take the parts; ``dropped`` are ids."""
        super().__init__(daemon=True)
        self._probe, self._dropped = probe, dropped
        source, self._target = topics
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap, "acks": "all"})
        self._consumer = Consumer(
            {"bootstrap.servers": kafka.bootstrap, "group.id": f"recovery-{node}", "auto.offset.reset": "earliest"}
        )
        self._consumer.subscribe([source])
        self._ended = threading.Event()
        self.seen: Counter[str] = Counter()
        self.seen_again: Counter[str] = Counter()

    def run(self) -> None:
        """Serve until it is ended."""
        while not self._ended.is_set():
            for message in self._consumer.consume(1_000, 0.1):
                if message.error() is None:
                    self._serve(message)
            self._producer.poll(0)
        self._producer.flush(PATIENCE_S)
        self._consumer.close()

    def end(self) -> None:
        """End it."""
        self._ended.set()
        self.join()

    def _serve(self, message: Message) -> None:
        headers = dict(message.headers() or ())
        name, event_us = headers[ID_HEADER].decode(), int(headers[TIME_HEADER])
        message_id = uuid.UUID(name)
        is_again = REDRIVEN_HEADER in headers
        (self.seen_again if is_again else self.seen)[name] += 1
        self._probe.arrived(message_id, event_us)
        if name in self._dropped and not is_again:
            return
        if self._target is not None:
            # The next node knows nothing of what was sent again to this one.
            kept: dict[str, str | bytes] = {part: headers[part] for part in (ID_HEADER, TIME_HEADER)}
            self._producer.produce(self._target, message.value(), message.key(), headers=kept)
        self._probe.departed(message_id, event_us)


def send_messages(kafka: Kafka, probe: Probe, topic: str, began_us: int) -> list[str]:
    """Send messages of one moment, and return their ids."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "acks": "all"})
    names = []
    for event_us in range(began_us, began_us + MESSAGES):
        message_id = uuid.uuid4()
        headers: list[tuple[str, str | bytes]] = [(ID_HEADER, str(message_id)), (TIME_HEADER, str(event_us))]
        with probe.passing(message_id, event_us):
            producer.produce(topic, str(message_id), str(message_id), headers=headers)
        names.append(str(message_id))
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    return names


def select_window(report: Report, start: str) -> Report:
    """Return one window of a report; those behind it are idle."""
    (found,) = [window for window in windows_of(report) if window["window_start"] == start]
    return found


@pytest.mark.soak
def test_what_two_nodes_lost_is_recovered_in_two_minutes(kafka: Kafka, tmp_path: Path) -> None:
    """Ten thousand of forty thousand: all are found, sent and recovered, no other is sent, and the window is CLEAN."""
    topics = ["recovery-a", "recovery-b"]
    for topic in topics:
        kafka.create_topic(topic, PARTITIONS, {})
    named = f'{{ a = "{kafka.url(topics[0])}", b = "{kafka.url(topics[1])}" }}'
    streams = f'[streams.orders]\npath = "a -> b -> c"\ntransit = "30s"\nsettle = "10s"\ntopics = {named}'
    work = Workplace(tmp_path, "spool:./spool", streams=streams)
    probes = {node: Probe("orders", node, f"spool:{tmp_path}/spool") for node in "abc"}
    began_us = time.time_ns() // 1_000
    window = minute_of(began_us / 1e6)
    names = send_messages(kafka, probes["a"], topics[0], began_us)
    at_b, at_c = frozenset(names[::8]), frozenset(names[1::8])
    assert len(at_b) == len(at_c) == LOST_AT_EACH
    services = [
        Service(kafka, "b", probes["b"], (topics[0], topics[1]), at_b),
        Service(kafka, "c", probes["c"], (topics[1], None), at_c),
    ]
    for service in services:
        service.start()
    monitor = Monitor(work).start()
    try:
        before = select_window(monitor.until_judged(window), window)
        assert (before["status"], before["verdict"], before["lost"]) == ("FINAL", "LOSSY", 2 * LOST_AT_EACH)
        began_s = time.monotonic()
        for node, lost in (("b", at_b), ("c", at_c)):
            flags = ("--window", window, "--rate", str(RATE_PER_S), "--state", f"{node}.redrive", "--wait", "60")
            done = work.run("redrive", "--stream", "orders", "--node", node, *flags, "--json")
            assert done.returncode == 0, done.stderr
            told = json.loads(done.stdout)
            counts = [told[name] for name in ("lost", "found", "sent", "recovered")]
            assert counts == [len(lost)] * 4
            assert (told["repeated"], told["refused"]) == ([], [])
        took_s = time.monotonic() - began_s
        after = select_window(monitor.until_judged(window), window)
    finally:
        monitor.stop()
        for service in services:
            service.end()
        for probe in probes.values():
            probe.close()
    assert [service.seen_again for service in services] == [Counter(at_b), Counter(at_c)]
    assert (after["status"], after["verdict"], after["lost"]) == ("AMENDED", "CLEAN", 0)
    assert after["recovered"] == 2 * LOST_AT_EACH
    assert took_s <= BOUND_S
