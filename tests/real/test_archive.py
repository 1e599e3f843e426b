"""Test of the archive of validated events: the job and the command of the page, on a real broker."""

from __future__ import annotations

import json
import shutil
import sys
import time
import uuid
from datetime import UTC
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

import pyarrow.dataset as ds

from hopwatch.monitor.results import format_iso
from hopwatch.monitor.spark.connector import connector_settings
from servers.kafka import Kafka
from servers.process import answers, free_ports, until
from tests.real.program_folder import Workplace
from tests.support import page_blocks

HOUR_US: Final = 3_600_000_000
MINUTE_US: Final = 60_000_000
SETTLED_US: Final = 8_000_000
"""Transit, settle, and a little."""
EVENTS: Final = 40
SCHEMA: Final = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "price", "type": "double"}, {"name": "item", "type": "string"}],
}
STREAMS: Final = """
[streams.orders]
path = "gate -> archive"
transit = "4s"
settle = "2s"
[gate.streams.orders]
to = "{to}"
rejected = "{rejected}"
[completeness.archived]
stream = "orders"
nodes = ["archive"]
over = "1m"
"""
BEFORE: Final = """
import os
from pyspark.sql import SparkSession

brokers, registry, sink, topic = "{brokers}", "http://127.0.0.1:{port}", "{sink}", "archive-events"
fields, folder, checkpoint = "price double, item string", "events", "checkpoint"
spark = SparkSession.builder.master("local[1]").config("spark.jars", os.environ["JARS"])
spark = spark.config("spark.sql.shuffle.partitions", "1").config("spark.ui.enabled", "false").getOrCreate()
"""
BEHIND: Final = """
query.trigger(availableNow=True).start().awaitTermination()
probe.close()
"""


def ask(port: int, method: str, path: str, body: Any) -> None:  # noqa: ANN401 - JSON
    """Send JSON to the gate, which has to take it."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == HTTPStatus.CREATED, answer.read()


def test_events_are_archived_once_by_hour_with_their_marker(kafka: Kafka, tmp_path: Path) -> None:
    """A batch that comes again after a kill replaces its files, and an hour is complete when its events are there."""
    for name in ("archive-events", "archive-rejected", "archive-stamps"):
        kafka.create_topic(name, 2)
    work = Workplace(
        tmp_path,
        kafka.url("archive-stamps"),
        streams=STREAMS.format(to=kafka.url("archive-events"), rejected=kafka.url("archive-rejected")),
    )
    (port,) = free_ports(1)
    gate = work.start("gate", "--port", str(port), "--allow-weak")
    try:
        until(lambda: answers(port), "the gate")
        ask(port, "PUT", "/subjects/orders/schemas", SCHEMA)
        # Half of them are of now, and half of an hour ago.
        now_us = time.time_ns() // 1_000
        times_us = [now_us - number % 2 * HOUR_US for number in range(EVENTS)]
        events: list[dict[str, Any]] = [
            {"id": str(uuid.uuid4()), "time": time_us, "data": {"price": number + 0.5, "item": f"item {number}"}}
            for number, time_us in enumerate(times_us)
        ]
        ask(port, "POST", "/streams/orders/events", events)
        _, job = page_blocks.of(page_blocks.page("docs/RESULTS.md"), "python")
        before = BEFORE.format(brokers=kafka.bootstrap, port=port, sink=kafka.url("archive-stamps"))
        own = {"JARS": connector_settings()["spark.jars"], "PYSPARK_PYTHON": sys.executable}
        for is_again in (False, True):
            if is_again:
                # As after a kill before Spark noted the end of the batch.
                shutil.rmtree(tmp_path / "checkpoint" / "commits")
            done = work.python(before + job + BEHIND, **own)
            assert done.returncode == 0, done.stderr[-4_000:]
    finally:
        gate.stop(60)
    rows = ds.dataset(tmp_path / "events", partitioning="hive").to_table().to_pylist()
    found = {
        row["id"]: (row["event_time"].replace(tzinfo=UTC).timestamp() * 1e6, row["price"], row["item"], row["hour"])
        for row in rows
    }
    expected = {
        str(one["id"]): (one["time"], number + 0.5, f"item {number}", format_iso(one["time"])[:13])
        for number, one in enumerate(events)
    }
    assert (found, len(rows)) == (expected, EVENTS)
    end_us = now_us - now_us % MINUTE_US + MINUTE_US
    until(lambda: time.time_ns() // 1_000 > end_us + SETTLED_US, "the end of the minute")
    assert work.run("run", "--once").returncode == 0
    ready = work.run("ready", "archived", "--until", format_iso(end_us), "--json")
    assert ready.returncode == 0, ready.stdout + ready.stderr
    assert json.loads(ready.stdout)["known"] == EVENTS // 2
