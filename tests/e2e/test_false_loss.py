"""The promise, by real processes: whatever ends, silences, damages or confuses a replica, no loss is made up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.monitor.store import reader
from tests.e2e.ending.cases import DAMAGED, NODES, STREAM, TOLD, Case, End, cases, usual
from tests.e2e.ending.damage import damage
from tests.e2e.ending.truth import Truth, read
from tests.support.micro_batches import run_once
from tests.support.model_comparison import prepared_store, rules_of
from tests.support.probe_host import ROOT

PATIENCE_S: Final = 600
CASES: Final = cases()
USUAL: Final = len(usual())
"""So many of them come first; --soak has all."""
STREAMS: Final[dict[str, Any]] = {STREAM: {"path": " -> ".join(NODES)}}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, times: Callable[[int, int], int]) -> Path:
    """Return a folder in which the pipelines of all cases have run, each in a folder of its own."""
    folder = tmp_path_factory.mktemp("fleet")
    wanted = json.dumps([(case.end, case.node, case.moment_s) for case in CASES[: times(USUAL, len(CASES))]])
    command = [sys.executable, "-m", "tests.e2e.ending.fleet", str(folder), wanted]
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    with (folder / "said").open("wb") as said:
        subprocess.run(command, cwd=ROOT, env=alone, stdout=said, stderr=said, timeout=PATIENCE_S, check=True)
    return folder


class Told:
    """Report of the monitor on a case, beside the truth."""

    def __init__(self, folder: Path, case: Case) -> None:
        """Run the monitor over all that is there."""
        if case.end in DAMAGED:
            damage(folder / "spool", case)
        self.truth: Truth = read(folder / "truth")
        store, segments = prepared_store(folder, "hopwatch.db"), sorted((folder / "spool").rglob("*.seg"))
        run_once(store, rules_of(folder, STREAMS), segments, folder / "spool")
        (stream,) = json.loads(json.dumps(reader.read_report(store)))["streams"]
        self.windows: list[dict[str, Any]] = stream["windows"]
        store.dispose()

    def surely(self) -> Iterator[tuple[str, int, int]]:
        """Yield, of each node and of the whole, how many are called surely lost in a window, and how many were."""
        for window in self.windows:
            start_us = round(datetime.fromisoformat(window["window_start"]).timestamp() * 1e6)
            yield "end to end", window["lost_lower"], self.truth.lost[start_us]
            for node in window["nodes"]:
                yield node["node"], node["loss_lower"], self.truth.nodes[node["node"]][start_us]


@pytest.mark.parametrize(
    "case",
    [*CASES[:USUAL], *(pytest.param(case, marks=pytest.mark.soak) for case in CASES[USUAL:])],
    ids=lambda case: case.name,
)
def test_surely_lost_is_never_more_than_lost(fleet: Path, case: Case) -> None:
    """At no node, and not on the whole, whatever one of two replicas comes to, and when."""
    told = Told(fleet / case.name, case)
    assert told.truth.created > 0
    too_many = {where: sure - lost for where, sure, lost in told.surely() if sure > lost}
    assert too_many == {}, f"{TOLD[case.end]}, at {case.node}, after {case.moment_s} s"
    if case.end is End.NONE:
        # So that all of this can fail: where nothing happens, all that is lost is known.
        assert [sure for _, sure, _ in told.surely()] == [lost for *_, lost in told.surely()]
        assert sum(told.truth.lost.values()) > 0
