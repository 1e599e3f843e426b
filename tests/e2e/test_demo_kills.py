"""A node of the demo is killed, from its very beginning on: what is called surely lost was lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from hopwatch.demo.comparison_line import ComparisonLine
from hopwatch.demo.stream import NODES
from servers.kafka import Kafka
from tests.e2e.kills import killed

AT_ONCE: Final = 4
"""So many pipelines at once."""
MOMENTS_S: Final = (0.3, 1.0, 2.0)
"""As a rule every second node is killed at one of them on a spool, the others over Kafka."""
ALL_MOMENTS_S: Final = [tenths / 10 for tenths in range(2, 51, 2)]
"""With --soak every node is killed at all of these, on both."""
PATIENCE_S: Final = 600
DEMO: Final = (sys.executable, "-m", "hopwatch", "demo", "--minutes", "0.1", "--rate", "500", "--no-dashboard")


@pytest.fixture
def kills(times: Callable[[int, int], int], request: pytest.FixtureRequest) -> list[tuple[str, float]]:
    """Return which nodes are killed when."""
    if times(0, 1):
        return list(product(NODES, ALL_MOMENTS_S))
    nodes = NODES["kafka" in request.fixturenames :: 2]
    return [(node, MOMENTS_S[place % len(MOMENTS_S)]) for place, node in enumerate(nodes)]


def runs(folder: Path, kills: list[tuple[str, float]], brokers: str = "") -> Mapping[str, list[ComparisonLine]]:
    """Return, of each kill, the lines in which what was measured is not what was done."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        all_lines = pool.map(lambda kill: killed(folder / f"{kill[0]}@{kill[1]:g}", kill[0], kill[1], brokers), kills)
        found = {
            f"{node}@{at_s:g}": [line for line in lines if not line.holds]
            for (node, at_s), lines in zip(kills, all_lines, strict=True)
        }
    print(f"{len(found)} kills, {sum(map(bool, found.values()))} of them with false lines")  # noqa: T201 - with -s
    return {kill: lines for kill, lines in found.items() if lines}


@pytest.mark.timeout(7_200)
def test_on_a_spool_a_kill_makes_no_loss_up(tmp_path: Path, kills: list[tuple[str, float]]) -> None:
    """No kill of any node, at any moment since its first message, causes a false loss."""
    assert runs(tmp_path, kills) == {}


@pytest.mark.timeout(7_200)
def test_over_kafka_a_kill_makes_no_loss_up(tmp_path: Path, kills: list[tuple[str, float]], kafka: Kafka) -> None:
    """As on a spool; and nothing at all is lost by it."""
    assert runs(tmp_path, kills, kafka.bootstrap) == {}


@pytest.mark.soak  # the two below kill nodes by default
def test_the_demo_itself_says_so(tmp_path: Path, times: Callable[[int, int], int]) -> None:
    """With its own monitor: a kill before anything was sent, and later ones."""
    moments = ("0.3", "2", "1")[: times(2, 3)]
    flags = [("--workdir", str(tmp_path / at_s), "--kill", f"connector@{at_s}") for at_s in moments]
    running = [
        subprocess.Popen([*DEMO, *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for more in flags
    ]
    said = [process.communicate(timeout=PATIENCE_S)[0] for process in running]
    assert [process.returncode for process in running] == [0] * len(moments), "\n".join(said)
