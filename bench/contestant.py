"""Every contestant runs in a process of its own, on two cores, one after the other, and its footprint is looked at."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.footprint import Footprint
from hopwatch.monitor.spark import simd

CORES: Final = 2
LOOK_S: Final = 0.5
WAIT_PER_LOOK: Final = 30
"""Wait between two looks, as a multiple of what a look takes: a folder may have 100,000 files."""

Json = dict[str, Any]


class ContestantError(RuntimeError):
    """A contestant's process failed; the message ends with what it said last."""


@dataclass(frozen=True, slots=True)
class ContestantRun:
    """Result of a contestant's function, the duration of its process, and its footprint."""

    result: Json
    process_s: float
    peak: Footprint


def run(function: str, folder: Path, **arguments: object) -> ContestantRun:
    """Call ``module:function`` with a fresh folder and the arguments, in a process of its own.

    The function takes ``folder`` and what is given, all of it fit for JSON, and returns a dict fit for JSON. Spent
    folders go when it has ended; the memory of the process and the disk of its folder are looked at meanwhile.

    Raises:
        ContestantError: the process failed.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix="run-", ignore_cleanup_errors=True) as own:
        answer, said = Path(own) / "answer.json", Path(own) / "said.txt"
        command = [sys.executable, "-m", "bench.contestant", function, str(answer), own, json.dumps(arguments)]
        peak, began_s = Footprint(), time.perf_counter()
        with said.open("wb") as file:
            # A contestant says nothing of use on its standard streams; what it dies of is told in the error.
            process = subprocess.Popen(command, stdout=file, stderr=file, env=_environment())  # noqa: S603
            try:
                wait_s = LOOK_S
                while not _has_ended(process, wait_s):
                    looked_s = time.perf_counter()
                    peak.record_peak(process.pid, Path(own))
                    wait_s = max(LOOK_S, WAIT_PER_LOOK * (time.perf_counter() - looked_s))
            finally:
                process.kill()
                code = process.wait()
        process_s = time.perf_counter() - began_s
        if code or not answer.exists():
            words = said.read_text("utf-8", errors="replace").strip()[-2_000:]
            raise ContestantError(f"{function} ended with exit code {code}: {words}")
        return ContestantRun(json.loads(answer.read_text("utf-8")), process_s, peak)


def _has_ended(process: subprocess.Popen[bytes], wait_s: float) -> bool:
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _environment() -> dict[str, str]:
    """Return the environment with numpy's vector code chosen as the monitor chooses it, read when numpy is imported."""
    return {simd.VARIABLE: simd.detect_disabled_features()} | os.environ


def keep_to_cores() -> None:
    """Let this process have the cores of a contestant, and whatever it starts from now on."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


@contextmanager
def keep_to_cores_for_children() -> Iterator[None]:
    """Let what is started meanwhile have the cores of a contestant."""
    before = os.sched_getaffinity(0)
    keep_to_cores()
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def main(function: str, answer: str, folder: str, arguments: str) -> None:
    """Call the function in this process, which keeps to two cores, and write what it returns."""
    keep_to_cores()
    module, name = function.split(":")
    told = getattr(importlib.import_module(module), name)(folder=Path(folder), **json.loads(arguments))
    Path(answer).write_text(json.dumps(told), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
