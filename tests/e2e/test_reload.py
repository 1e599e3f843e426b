"""A configuration that is edited while the monitor runs: versions of paths, broken files, and SIGHUP."""

from __future__ import annotations

import re
import signal
import time
from datetime import datetime
from pathlib import Path
from typing import IO, Final

from sqlalchemy import Engine

from hopwatch.alerts.storage.objectives import read_objectives
from hopwatch.monitor.settings import load
from hopwatch.monitor.store import dialect, fencing, pathway_versions, reader, schema
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.running_monitor import running
from tests.support.spool import make_batch, observation_batch, write_segment
from tests.support.spool_traffic import pulse, rest

STREAM: Final = "s0"
PATIENCE_S: Final = 60
OLD, NEW = "norm -> connector", "norm -> connector -> sink"
NODES: Final = ("ingest", "router", "norm", "connector", "sink")


def send(spool: Path, start_us: int, nodes: dict[str, int]) -> None:
    """Write what a probe at each node tells of a window: the first so many of ten messages; then the time moves on."""
    for node, count in nodes.items():
        fields = {"stream": STREAM, "window_start_ms": start_us // 1_000, "epoch_us": start_us - 1}
        fields |= {"sent_at_us": start_us + 10**8, "complete_through_us": start_us + 10**8}
        told = observation_batch(range(count), node, **fields), make_batch(BatchKind.BYE, node, seq=1, **fields)
        folder = spool / f"{STREAM}.{node}.probe-of-{node}.{start_us - 1}"
        write_segment(folder / "0.seg", *told, arrival_us=start_us + 10**8)
    for seconds in (400, 460):
        pulse(start_us + seconds * 10**6, f"m{start_us + seconds}").write(spool)


def await_window(store: Engine, start_us: int, lost: dict[str, int]) -> None:
    """Wait until a window is final, and has lost so many for sure at each node, in this order."""
    told: object = None
    why: tuple[str, ...] = ()
    for _ in rest(PATIENCE_S):
        with schema.open_snapshot(store) as connection:
            found = reader.read_window(connection, STREAM, start_us)
        if found is not None and found.status.is_final:
            told, why = [(node.node, node.loss_lower) for node in found.nodes], found.reasons
            if told == list(lost.items()) and found.lost_upper is not None:
                return
    raise AssertionError(told, why)


def await_words(stderr: IO[str], words: str) -> str:
    """Read up to the line that has these words, and return it."""
    for line in iter(stderr.readline, ""):
        if words in line:
            return line
    raise AssertionError(words)


def test_a_path_that_is_edited_while_it_runs_is_valid_from_its_minute_on(tmp_path: Path) -> None:
    """Windows on both sides of the seam are there, each with the nodes of its minute; a broken file changes nothing."""
    without_loss = dict.fromkeys(NODES[:4], 0)
    with running(tmp_path) as (job, stderr):
        await_words(stderr, "hopwatch: watching")
        config, spool = tmp_path / "hopwatch.toml", tmp_path / "spool"
        store = dialect.create_engine(load(config, flags={}, environ={}).store.url)
        text = config.read_text()
        before_us = (int(time.time()) // 60 - 9) * WINDOW_US
        send(spool, before_us, {"ingest": 10, "router": 10, "norm": 9, "connector": 9})
        await_window(store, before_us, without_loss | {"norm": 1})

        config.write_text(text.replace(f'{OLD}"', f'{NEW}"', 1))
        told = await_words(stderr, "its new version is valid")
        assert told.startswith(f"hopwatch: the configuration of '{STREAM}' has changed")
        (moment,) = re.findall(r"from (\S+Z) on", told)
        seam_us = int(datetime.fromisoformat(moment).timestamp()) * 1_000_000
        assert "is in force, streams: 2" in await_words(stderr, "is in force")
        send(spool, seam_us - WINDOW_US, {"ingest": 10, "router": 10, "norm": 10, "connector": 10, "sink": 10})
        send(spool, seam_us, {"ingest": 10, "router": 10, "norm": 10, "connector": 10, "sink": 7})
        await_window(store, seam_us, without_loss | {"sink": 3})
        await_window(store, seam_us - WINDOW_US, without_loss)
        await_window(store, before_us, without_loss | {"norm": 1})

        config.write_text("streams = 3\n")
        assert "is not in force, what was before goes on" in await_words(stderr, "is not in force")
        with schema.open_snapshot(store) as connection:
            assert fencing.read_notes(connection).config_problem.startswith(f"{config}:1: ")
            assert {one.stream for one in read_objectives(connection)} == {"s0", "s1"}
        config.write_text(text.replace(f'{OLD}"', f'{NEW}"', 1).replace('trigger = "1s"', 'trigger = "2s"'))
        assert "changes of [monitor] take a restart" in await_words(stderr, "is not in force")
        config.write_text(text.replace(f'{OLD}"', f'{NEW}"', 1))
        await_words(stderr, "is in force, and says of streams what it said before")
        with schema.open_snapshot(store) as connection:
            assert fencing.read_notes(connection).config_problem == ""
            known = pathway_versions.read_versions(connection)[STREAM]
        assert [version.valid_from_us for version in known.versions] == [seam_us, 0]
        job.send_signal(signal.SIGHUP)
        await_words(stderr, "is in force, and says of streams what it said before")
        send(spool, seam_us + 5 * WINDOW_US, {"ingest": 10, "router": 10, "norm": 10, "connector": 10, "sink": 10})
        await_window(store, seam_us + 5 * WINDOW_US, without_loss | {"sink": 0})
        job.terminate()
        assert job.wait() == 0
