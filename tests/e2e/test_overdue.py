"""Tests of what is overdue, with a monitor that runs: real Spark tallies it, and its alert is open in time."""

from __future__ import annotations

import io
import json
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final

from sqlalchemy import Engine

from hopwatch.alerts.storage import history_queries
from hopwatch.cli.main import main
from hopwatch.monitor.results import Status
from hopwatch.monitor.settings import load
from hopwatch.monitor.store import dialect, reader, schema
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.running_monitor import await_line, running
from tests.support.spool import make_batch, observation_batch, write_segment
from tests.support.spool_traffic import NODES, pulse, rest

STREAM: Final = "s0"
PATIENCE_S: Final = 240
SECOND_US: Final = 1_000_000
STEP_US: Final = 50_000


def await_overdue(store: Engine, spool: Path, start_us: int, expected: list[int]) -> None:
    """Wait until so many messages are overdue at each node of an open window, and its alert is open.

    Time goes on in little steps meanwhile: a busy monitor may read any number of them at once.
    """
    told: object = None
    for number, _ in enumerate(rest(PATIENCE_S)):
        pulse(start_us + 40 * SECOND_US + number * STEP_US, f"m{number}").write(spool)
        with schema.open_snapshot(store) as connection:
            found = reader.read_window(connection, STREAM, start_us)
            incidents = history_queries.query_open_incidents(connection)
        summaries = [one.notification.summary for one in incidents if one.notification.rule == "loss"]
        told = found and (found.status, [node.overdue for node in found.nodes]), summaries
        if told == ((Status.OPEN, expected), told[1]) and any("overdue: 3 of 10" in text for text in summaries):
            return
    raise AssertionError(told)


def test_a_loss_is_told_while_its_minute_lasts(tmp_path: Path) -> None:
    """Three messages of ten are overdue at a node seconds after its deadline; alert and report name it, and them."""
    with running(tmp_path, deadline="2s") as (_, stderr):
        await_line(stderr, "hopwatch: watching")
        config, spool = tmp_path / "hopwatch.toml", tmp_path / "spool"
        store = dialect.create_engine(load(config, flags={}, environ={}).store.url)
        start_us = (int(time.time()) // 60 - 9) * WINDOW_US
        for node, count in zip(NODES, (10, 10, 7, 7), strict=True):
            fields = {"stream": STREAM, "window_start_ms": start_us // 1_000, "epoch_us": start_us - 1}
            fields |= {"sent_at_us": start_us + 3 * SECOND_US, "complete_through_us": start_us + 3 * SECOND_US}
            folder = spool / f"{STREAM}.{node}.probe-of-{node}.{start_us - 1}"
            told = observation_batch(range(count), node, **fields)
            write_segment(folder / "0.seg", told, arrival_us=start_us + 3 * SECOND_US)
            fields |= {"sent_at_us": start_us + 40 * SECOND_US, "complete_through_us": start_us + 40 * SECOND_US}
            alive = make_batch(BatchKind.HEARTBEAT, node, seq=1, **fields)
            write_segment(folder / "1.seg", alive, arrival_us=start_us + 40 * SECOND_US)
        await_overdue(store, spool, start_us, [0, 0, 3, 0])
        answer = io.StringIO()
        with redirect_stdout(answer):
            assert main(["report", "--json", "--config", str(config)]) == 0
        windows = json.loads(answer.getvalue())["streams"][0]["windows"]
        named = {node["node"]: node["overdue_ids"] for window in windows for node in window["nodes"] if node["overdue"]}
        assert named == {NODES[2]: [f"{number:032x}" for number in (7, 8, 9)]}
