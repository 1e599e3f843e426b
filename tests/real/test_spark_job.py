"""Spark job with a probe, over a real broker: it is killed as it likes, and each order counts once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from hopwatch import Probe
from servers.kafka import Kafka
from servers.spark import Spark
from tests.real import spark_job
from tests.support.judged_spool import judge_spool

ORDERS: Final = 3_000
LOST: Final = ORDERS // 100
KILLS: Final = 20
TRANSIT_S: Final = 60
WITHIN_S: Final = 900.0


class Shop:
    """Shop that sends orders, all of the minute before its start; every hundredth has a customer that nobody knows."""

    def __init__(self, kafka: Kafka, topic: str, folder: Path) -> None:
        """Make the topic; ``end_s`` is the end of the minute in s since 1970."""
        kafka.create_topic(topic, 3)
        self.topic, self.sent, self.end_s = topic, 0, int(time.time()) // 60 * 60
        self._producer = Producer({"bootstrap.servers": kafka.bootstrap})
        self.probe = Probe(topic, "shop", f"spool:{folder / 'spool'}")

    def send(self, count: int) -> None:
        """Send so many orders."""
        for number in range(self.sent, self.sent + count):
            at_us = self.end_s * 1_000_000 - ORDERS + number
            text = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at_us // 10**6))}.{at_us % 10**6:06}Z"
            self._producer.produce(
                self.topic, json.dumps({"id": f"order-{number}", "at": text, "customer": number % 100})
            )
            self.probe.departed(f"order-{number}", at_us)
        self._producer.flush()
        self.sent += count


class Job:
    """The job, which goes on where the one before it was killed, on a cluster or in one process."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        """Start it; ``arguments`` are master, brokers, topic."""
        environ = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        self._err = folder / "job.err"
        with self._err.open("a") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", spark_job.__name__, *arguments[:3], str(folder), *arguments[3:]],
                env=environ,
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
            )

    def read_line(self) -> str:
        """Return a line that says how many rows are written."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self._err.read_text()[-3_000:]
        return line

    def kill(self) -> None:
        """Kill the driver, and wait for its end."""
        self.process.kill()
        self.process.communicate()

    def wait(self) -> None:
        """Wait until it has ended without an error."""
        self.process.communicate(timeout=WITHIN_S)
        assert self.process.returncode == 0, self._err.read_text()[-3_000:]


def judge(folder: Path, topic: str) -> dict[str, Any]:
    """Return the window of the orders, after all that was stamped."""
    stream = f'[streams.{topic}]\npath = "shop -> enrich"\nstamps = {{ shop = "out" }}\ntransit = "{TRANSIT_S}s"\n'
    windows = judge_spool(folder, stream)[topic]["windows"]
    found: list[dict[str, Any]] = [window for window in windows if window["known"]]
    assert len(found) == 1
    return found[0]


def check_orders(window: dict[str, Any]) -> None:
    """Check that each order is known once, and that those are lost that the join has lost."""
    enrich = next(node for node in window["nodes"] if node["node"] == "enrich")
    names = ("arrived", "departed", "duplicates_in", "duplicates_out", "lost_inside", "orphans")
    assert [window["known"], *(enrich[name] for name in names)] == [ORDERS, ORDERS, ORDERS - LOST, 0, 0, LOST, 0]
    assert sorted(enrich["lost_ids"]) == sorted(f"order-{number}" for number in range(99, ORDERS, 100))


def test_a_job_that_is_killed_stamps_each_order_once(kafka: Kafka, tmp_path: Path) -> None:
    """Orders count once each, and those that the join lost are named; what was not told is unknown, and never lost."""
    shop = Shop(kafka, "spark-orders", tmp_path)
    shop.send(ORDERS)
    shop.probe.close()
    job = Job(tmp_path, "local[2]", kafka.bootstrap, shop.topic, "0")
    while int(job.read_line()) < ORDERS // 3:
        pass
    job.kill()
    Job(tmp_path, "local[2]", kafka.bootstrap, shop.topic, str(ORDERS - LOST)).wait()
    window = judge(tmp_path, shop.topic)
    check_orders(window)
    assert (window["verdict"], window["lost_lower"]) == ("UNKNOWN", 0)


@pytest.mark.soak
def test_twenty_kills_of_drivers_and_executors_change_no_figure(
    kafka: Kafka, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """On a cluster that runs slow tasks twice: the verdict, too, is that of a job that nobody has killed."""
    chance = random.Random(22)
    cluster = Spark(tmp_path_factory.mktemp("cluster") / "spark", 2)
    try:
        cluster.start()
        shop = Shop(kafka, "spark-killed", tmp_path)
        for number in range(KILLS):
            # A micro-batch after each kill shows by its number that nothing before it went without stamps.
            shop.send(ORDERS // (KILLS + 1))
            job = Job(tmp_path, cluster.url, kafka.bootstrap, shop.topic, "0")
            job.read_line()
            time.sleep(chance.uniform(0.0, 8.0))
            if number % 2:
                for executor in cluster.executors()[:1]:
                    os.kill(executor, signal.SIGKILL)
                time.sleep(chance.uniform(0.0, 6.0))
            job.kill()
        shop.send(ORDERS - shop.sent)
        shop.probe.close()
        horizon_s = int(time.time()) + TRANSIT_S + 5
        Job(tmp_path, cluster.url, kafka.bootstrap, shop.topic, str(ORDERS - LOST), str(horizon_s)).wait()
    finally:
        cluster.stop()
    window = judge(tmp_path, shop.topic)
    check_orders(window)
    figures = [window[name] for name in ("verdict", "lost_lower", "lost_upper")]
    assert figures == ["LOSSY", LOST, LOST], window["reasons"]
