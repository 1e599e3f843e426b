"""Tests of the packages as the image has them: Spark does without what docker/pruned.txt names."""

from __future__ import annotations

import os
import platform
import shutil
import sysconfig
from pathlib import Path

import pytest

from docker import pruning
from servers.kafka import LOG_APPEND, Kafka
from tests.real.monitor_process import Monitor, lost_at
from tests.real.program_folder import ROOT, Workplace
from tests.real.traffic import STREAMS, Traffic
from tests.support.report import known_in


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of programs that find a pruned copy of the packages before those that are installed."""
    installed, copy = Path(sysconfig.get_path("purelib")), tmp_path_factory.mktemp("pruned")
    for name in sorted({pattern.partition("/")[0] for pattern in pruning.patterns()} - {"**"}):
        for folder in (installed / name, installed / f"{name}.libs"):
            if folder.is_dir():
                shutil.copytree(folder, copy / folder.name, copy_function=_link)
    pruning.remove_listed(copy)
    pruning.trim_jars(copy, platform.machine())
    return {"PYTHONPATH": f"{copy}:{ROOT}"}


@pytest.mark.soak  # tests/repository/test_pruning.py says what is left by default
def test_a_spool_and_a_topic_are_judged_by_what_the_image_has(
    kafka: Kafka, pruned: dict[str, str], tmp_path: Path
) -> None:
    """The topic, which Kafka compresses anew, as a stream, the spool at once: all is known, and each loss by its id."""
    kafka.create_topic("pruned", 2, {**LOG_APPEND, "compression.type": "snappy"})
    spool = tmp_path / "spool"
    spool.mkdir()
    flows = [Traffic(place).start() for place in (kafka.url("pruned"), f"spool:{spool}")]
    monitor = Monitor(Workplace(tmp_path / "topic", kafka.url("pruned"), streams=STREAMS, environ=pruned)).start()
    monitor.until(lambda: known_in(monitor.work.store_url) > 0, "the first of the topic")
    for flow in flows:
        flow.end()
    once = Workplace(tmp_path / "once", f"spool:{spool}", streams=STREAMS, environ=pruned)
    done = once.run("run", "--once")
    assert done.returncode == 0, done.stderr
    monitor.until(lambda: known_in(monitor.work.store_url) == flows[0].sent, "the end of the topic")
    monitor.stop()
    assert known_in(once.store_url) == flows[1].sent
    for node in ("b", "c"):
        assert lost_at(once.reported(), node) <= flows[1].lost[node]


def _link(source: str, target: str) -> None:
    """Make a second name of a file: what is written anew when it is pruned is written beside it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
