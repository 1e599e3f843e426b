"""Tests of a path that is edited again and again under load: each minute is judged whole, by the version of it."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from servers.kafka import Kafka
from tests.real.monitor_process import Monitor, minute_of, windows_of
from tests.real.program_folder import Workplace
from tests.real.traffic import STREAMS, Traffic

EDITS: Final = (20, 200)
"""How often the file is edited, as a rule and with --soak."""
PATHS: Final = {"a -> b -> c": "[]", "a -> c": '["b"]', "a -> b": '["c"]'}
"""Paths, each with the nodes that are ignored by it; all three send all the time."""


def write_stream(dice: random.Random) -> str:
    """Return the table of the stream with some path, terms and number of shards."""
    path, ignored = dice.choice(list(PATHS.items()))
    return (
        f'[streams.orders]\npath = "{path}"\nignore_nodes = {ignored}\nshards = {dice.randint(1, 3)}\n'
        f'transit = "{dice.randint(8, 15)}s"\nsettle = "{dice.randint(3, 6)}s"'
    )


def lose(traffic: Traffic, nodes: tuple[str, ...], minute: str) -> dict[str, int]:
    """Return what each node of a path lost in a minute: where b is ignored, c misses what b lost, too."""
    lost = {node: traffic.lost_at[node, minute] for node in "bc"}
    if nodes == ("a", "c"):
        return {"a": 0, "c": lost["b"] + lost["c"]}
    return {node: lost.get(node, 0) for node in nodes}


@pytest.mark.soak  # test_reload.py edits a running monitor's path by default
def test_a_path_that_is_edited_under_load_loses_no_window(
    kafka: Kafka, tmp_path: Path, times: Callable[[int, int], int]
) -> None:
    """Every message is known, and each loss is named where the version of its minute has it; no window is missing."""
    kafka.create_topic("edited", 4)
    dice = random.Random(7)
    work = Workplace(tmp_path / "edited", kafka.url("edited"), streams=STREAMS, monitor='trigger = "1s"\npulse = "3s"')
    file = work.folder / "hopwatch.toml"
    text = file.read_text()
    monitor = Monitor(work).start()
    traffic = Traffic(kafka.url("edited")).start()
    monitor.until(lambda: "hopwatch: watching" in work.words(), "the start")
    for edit in range(times(*EDITS)):
        file.write_text(text.replace(STREAMS, write_stream(dice)) if edit % 10 else "streams = 3\n")
        time.sleep(dice.uniform(0.5, 6))
        monitor.until(lambda: True, "the monitor that runs")
    file.write_text(text)
    traffic.end()
    last = minute_of(time.time())
    report = monitor.until_judged(last)
    history = json.loads(work.call("pathway", "history", "--json").stdout)["streams"][0]["versions"]
    monitor.stop()
    print(f"{work.words().count('is in force, streams')} versions taken up, {len(history)} of them for a minute")  # noqa: T201 - for docs/RELIABILITY.md
    windows = windows_of(report)
    assert sum(window["known"] for window in windows) == traffic.sent
    starts = [window["window_start"] for window in windows]
    assert starts == sorted(starts)
    for window in windows:
        version = find_version(history, window["window_start"])
        nodes = tuple(node["node"] for node in window["nodes"])
        assert nodes == tuple(version["pathway"][0])
        wanted = lose(traffic, nodes, window["window_start"])
        assert {node["node"]: (node["loss"], node["loss_lower"]) for node in window["nodes"]} == {
            node: (lost, lost) for node, lost in wanted.items()
        }


def find_version(history: list[dict[str, Any]], minute: str) -> dict[str, Any]:
    """Return the version that is valid in a minute, of a history with the oldest first."""
    return [version for version in history if (version["valid_from"] or "") <= minute][-1]
