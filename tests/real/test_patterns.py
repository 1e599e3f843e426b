"""The programs of docs/PATTERNS.md as they stand there, over a real broker, with a receiver that fails and kills."""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.ids import id_bytes
from servers.kafka import Kafka
from servers.process import PATIENCE_S, Process, answers, free_ports, until
from tests.support import page_blocks
from tests.support.probe_host import ROOT, rows, spooled

PAGE: Final = page_blocks.page("docs/PATTERNS.md")
COUNT: Final = 120
TOPICS: Final = ("entered", "routed", "rejected")


class Place:
    """The programs of the page, with topics of one broker and a receiver."""

    def __init__(self, kafka: Kafka, folder: Path, receiver: str) -> None:
        """Write the programs into a folder, and make the topics."""
        self.kafka, self.folder, self.spool = kafka, folder, folder / "spool"
        (self.port,) = free_ports(1)
        self.environ = os.environ | {
            "BROKERS": kafka.bootstrap,
            "SINK": f"spool:{self.spool}",
            "PORT": str(self.port),
            "RECEIVER": receiver,
            "PYTHONPATH": str(ROOT / "src"),
        }
        for name, text in page_blocks.files(PAGE).items():
            (folder / name).write_text(text)
        for topic in TOPICS:
            kafka.create_topic(topic, 2, {})

    def start(self, name: str) -> Process:
        """Start a program."""
        return Process([sys.executable, name], self.folder / f"{name}.log", self.environ, self.folder)

    def send(self, message_id: str) -> int:
        """Send an event to the entrance; return the status."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        marks = {"hopwatch-id": message_id, "hopwatch-time": str(time.time_ns() // 1_000)}
        connection.request("POST", "/", json.dumps({"order": message_id}), marks)
        return connection.getresponse().status

    def read(self, topic: str) -> Counter[str]:
        """Return how often each id is in a topic, as far as it is committed."""
        config = {"bootstrap.servers": self.kafka.bootstrap, "group.id": "looks on", "enable.partition.eof": True}
        consumer = Consumer(config)
        try:
            consumer.assign([TopicPartition(topic, number, 0) for number in range(2)])
            found, left = Counter[str](), 2
            while left:
                for one in consumer.consume(1_000, 5):
                    left -= one.error() is not None
                    found.update([(one.key() or b"").decode()] if one.error() is None else [])
            return found
        finally:
            consumer.close()


@contextmanager
def receiving(seen: Counter[str], refused: frozenset[str]) -> Iterator[str]:
    """Yield the address of a receiver that refuses some ids, and fails at each third request first."""
    failed: set[str] = set()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            name = json.loads(self.rfile.read(int(self.headers["content-length"])))["order"]
            assert self.headers["Idempotency-Key"] == name
            fails = hash(name) % 3 == 0 and name not in failed
            failed.add(name)
            if not fails:
                seen[name] += 1
            self.send_response(503 if fails else 422 if name in refused else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_what_was_acknowledged_is_not_lost_though_a_program_is_killed(own_broker: Kafka, tmp_path: Path) -> None:
    """Each event is routed once and delivered or refused; stamps say so, and killed programs go on where they were."""
    ids = [str(uuid.uuid4()) for _ in range(COUNT)]
    refused, seen = frozenset(ids[::10]), Counter[str]()
    with ExitStack() as stack:
        place = Place(own_broker, tmp_path, stack.enter_context(receiving(seen, refused)))
        running = {name: place.start(name) for name in ("entrance.py", "router.py", "deliver.py")}
        for one in running.values():
            stack.callback(one.kill)
        until(lambda: answers(place.port), "the entrance")
        with ThreadPoolExecutor(8) as senders:
            assert set(senders.map(place.send, ids[: COUNT // 2])) == {201}
            until(lambda: len(seen) > 5, "the first ones are delivered")
            for name in ("router.py", "deliver.py"):
                running[name].kill()
            assert set(senders.map(place.send, ids[COUNT // 2 :])) == {201}
        for name in ("router.py", "deliver.py"):
            running[name] = place.start(name)
            stack.callback(running[name].kill)
        until(lambda: seen.keys() == set(ids), "all are delivered or refused", PATIENCE_S)
        until(lambda: place.read("rejected").keys() == refused, "what was refused is kept")
        for one in running.values():
            one.check("a program of the page")
            one.stop()
    assert place.read("entered") == place.read("routed") == Counter(ids)
    assert place.read("rejected") == Counter(refused)
    assert sum(seen.values()) <= COUNT + 1, "at most what was under way at the kill comes again"
    stamped = [row for batches in spooled(place.spool).values() for row in rows(batches)]
    rejected = {row.message_id for row in stamped if row.outcome == Outcome.REJECTED}
    assert rejected <= {id_bytes(one) for one in refused}
    assert {row.message_id for row in stamped} == {id_bytes(one) for one in ids}
