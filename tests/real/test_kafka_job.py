"""Tests of the job on a real topic: what is lost is named, poison and holes are told, and crashes change nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from servers.kafka import Kafka
from tests.real.monitor_process import DYING, Monitor, differences, lost_at, minute_of, windows_of
from tests.real.program_folder import Workplace
from tests.real.traffic import STREAMS, Traffic
from tests.support.report import known_in

KILLS: Final = (2, 20)
"""How often the job is killed, as a rule and with --soak, each a start of Spark."""


@pytest.mark.soak  # test_killed.py kills a job, and test_checkpoint.py replays a batch of Kafka, by default
def test_a_driver_that_is_killed_reports_what_an_undisturbed_one_does(
    kafka: Kafka, tmp_path: Path, times: Callable[[int, int], int]
) -> None:
    """Under load, every second time between the store's commit and Spark's: 0 cells of the report differ."""
    kafka.create_topic("killed", 4)
    chance = random.Random(11)
    killed = Monitor(Workplace(tmp_path / "killed", kafka.url("killed"), streams=STREAMS))
    traffic = Traffic(kafka.url("killed")).start()
    for kill in range(times(*KILLS)):
        if kill % 2:
            killed.start(program=DYING)
            assert killed.process is not None
            killed.process.wait(120)
        else:
            killed.start()
            time.sleep(chance.uniform(3, 8))
            killed.kill()
    traffic.end()
    last = minute_of(time.time())
    began_s = time.monotonic()
    killed.start()
    killed.until(lambda: known_in(killed.work.store_url) == traffic.sent, "the end")
    print(f"caught up {time.monotonic() - began_s:.0f} s after the last start")  # noqa: T201 - for docs/RELIABILITY.md
    got = killed.until_judged(last)
    killed.stop()
    undisturbed = Monitor(Workplace(tmp_path / "undisturbed", kafka.url("killed"), streams=STREAMS)).start()
    expected = undisturbed.until_judged(last)
    undisturbed.stop()
    assert differences(windows_of(got), windows_of(expected)) == []
    assert sum(window["known"] for window in windows_of(got)) == traffic.sent
    for node in ("b", "c"):
        lost = sum(one["loss"] for window in windows_of(got) for one in window["nodes"] if one["node"] == node)
        assert lost == len(traffic.lost[node])
        assert lost_at(got, node) <= traffic.lost[node]
