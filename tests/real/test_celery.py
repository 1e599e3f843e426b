"""Celery over a real Redis: tasks that a broker has lost are named, and those that wait or fail are no loss."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from servers.process import PATIENCE_S, until
from servers.redis import Redis
from tests.support.judged_spool import judge_spool

TASKS: Final = 40
LOST: Final = 3
APP: Final = """
import os

from celery import Celery
from redis import Redis

from hopwatch.integrations.celery import instrument

app = Celery("shop", broker=os.environ["BROKER"])
app.conf.worker_prefetch_multiplier = 1
instrument(stream="tasks", publisher="shop", worker="worker")
done = Redis.from_url(os.environ["BROKER"])


@app.task(bind=True)
def work(self, number):
    if number % 10 == 1 and not self.request.retries:
        raise self.retry(countdown=1)
    done.incr("done")
    if number % 10 == 2:
        raise ValueError(number)


if __name__ == "__main__":
    for number in range(int(os.environ["TASKS"])):
        work.apply_async((number,), countdown=2 if number % 10 == 3 else None)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Redis]:
    """Yield a broker."""
    server = Redis(tmp_path)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.mark.usefixtures("early_in_a_minute")
def test_tasks_that_a_broker_has_lost_are_named(server: Redis, tmp_path: Path) -> None:
    """A pool of two processes runs the others, of which some are tried again, wait for an ETA, or fail."""
    (tmp_path / "shop.py").write_text(APP)
    broker = f"redis://127.0.0.1:{server.port}/0"
    variables = {"BROKER": broker, "TASKS": str(TASKS), "HOPWATCH_SINK": f"spool:{tmp_path / 'spool'}"}
    environment = os.environ | variables
    subprocess.run([sys.executable, "shop.py"], cwd=tmp_path, env=environment, check=True, timeout=PATIENCE_S)
    client: Any = redis.Redis.from_url(broker)
    lost = [json.loads(client.lpop("celery"))["headers"]["id"] for _ in range(LOST)]
    command = [sys.executable, "-m", "celery", "-A", "shop", "worker", "-c", "2", "--without-gossip", "-l", "error"]
    with (tmp_path / "worker.log").open("w") as told:
        worker = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=told, stderr=told)
    try:
        until(lambda: int(client.get("done") or 0) == TASKS - LOST, "all tasks")
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(PATIENCE_S)
    assert "stamped" not in (tmp_path / "worker.log").read_text()
    found = judge_spool(tmp_path, '[streams.tasks]\npath = "shop -> worker"\nstamps = { shop = "out" }\n')
    windows = found["tasks"]["windows"]
    failed = TASKS // 10
    assert [sum(window[name] for window in windows) for name in ("known", "rejected", "delivered")] == [
        TASKS,
        failed,
        TASKS - LOST - failed,
    ]
    assert [sum(window[name] for window in windows) for name in ("lost", "lost_lower", "lost_upper")] == [LOST] * 3
    nodes = [node for window in windows for node in window["nodes"] if node["node"] == "worker"]
    assert sorted(one for node in nodes for one in node["lost_ids"]) == sorted(lost)
    assert sum(node["duplicates_in"] + node["duplicates_out"] for node in nodes) == 0
