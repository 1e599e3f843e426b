"""Soak test: whether a monitor that runs for long grows in memory, file descriptors, rows or disk.

The demo runs, monitor and all. Every few seconds each kind of its processes is sampled, and so are the folders and the
store; a straight line through the samples behind the warm-up, by least squares, gives the growth an hour.
"""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from bench.contestant import ContestantError
from bench.footprint import family, folder_bytes, sizes_of
from bench.speed import Progress

RATE_PER_S: Final = 500
EVERY_S: Final = 10.0
WARM_UP_RATIO: Final = 0.3
"""So much of the run is left out: caches fill, windows come up to their number, Java settles."""
FLAGS: Final = ("--drop", "router=0.01", "--no-dashboard", "--rate", str(RATE_PER_S))

_PROC: Final = Path("/proc")
_KINDS: Final = (
    ("hopwatch.demo.nodes", "nodes and their probes"),
    ("org.apache.spark.deploy.SparkSubmit", "JVM"),
    ("hopwatch.monitor.spark.daemon", "Python workers"),
    ("hopwatch run", "monitor"),
)
"""What stands in a command line, and the kind of process that has it; the first that fits."""


class SoakSample(NamedTuple):
    """Amounts at a moment, by name: a kind of process or a folder, and the quantity."""

    at_s: float
    amounts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Trend:
    """Trend of one amount after the warm-up: the first and last sample, and the slope per hour."""

    what: str
    unit: str
    first: float
    last: float
    slope_per_h: float
    samples: int


def measure(scratch: Path, tell: Progress, minutes: float) -> list[Trend]:
    """Return the trends of a demo that runs for so long, which has to end with "injected = measured".

    Raises:
        ContestantError: the demo failed, or measured something else than what it did.
    """
    folder = scratch / f"soak-{time.time_ns()}"
    log = scratch / f"{folder.name}.log"
    command = (sys.executable, "-m", "hopwatch", "demo", *FLAGS, "--minutes", f"{minutes:g}")
    with log.open("wb") as out:
        process = subprocess.Popen([*command, "--workdir", str(folder)], stdout=out, stderr=out)  # noqa: S603
        samples: list[SoakSample] = []
        began_s = time.monotonic()
        try:
            while (at_s := time.monotonic() - began_s) < minutes * 60 and process.poll() is None:
                tell(f"soak: {at_s / 60:.0f} of {minutes:g} min")
                samples.append(SoakSample(at_s, {**_of_processes(process.pid), **_of_files(folder)}))
                time.sleep(EVERY_S)
            code = process.wait()
        finally:
            process.kill()
    if code:
        raise ContestantError(f"the demo ended with exit code {code}: {log.read_text(errors='replace')[-2_000:]}")
    return trends(samples)


def trends(samples: Sequence[SoakSample]) -> list[Trend]:
    """Return the trend of each amount that every sample behind the warm-up has."""
    warm = [one for one in samples if one.at_s >= samples[-1].at_s * WARM_UP_RATIO]
    shared = set.intersection(*(set(one.amounts) for one in warm))
    at_h = np.array([one.at_s for one in warm]) / 3_600
    found = []
    for name in sorted(shared):
        amounts = np.array([one.amounts[name] for one in warm])
        what, _, unit = name.rpartition(", ")
        slope = float(np.polyfit(at_h, amounts, 1)[0]) if len(warm) > 1 else 0.0
        found.append(Trend(what, unit, float(amounts[0]), float(amounts[-1]), slope, len(warm)))
    return found


def kind_of(command: str) -> str | None:
    """Return the kind of the process with a command line; ``None`` for what is not looked at."""
    return next((kind for words, kind in _KINDS if words in command), None)


def _of_processes(root: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for number in family(root):
        with contextlib.suppress(OSError):
            command = (_PROC / str(number) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            descriptors = sum(1 for _ in (_PROC / str(number) / "fd").iterdir())
            if (kind := kind_of(command)) is not None:
                memory_bytes, _ = sizes_of(number)
                _add(found, {f"{kind}: memory, MB": memory_bytes / 1e6, f"{kind}: file descriptors, ": descriptors})
    return found


def _of_files(folder: Path) -> dict[str, float]:
    found = {f"{name}: disk, MB": folder_bytes(folder / name) / 1e6 for name in ("spool", "monitor")}
    store = folder / "hopwatch.db"
    found["store: disk, MB"] = sum(one.stat().st_size for one in folder.glob("hopwatch.db*")) / 1e6
    if store.exists():
        found |= _rows(store)
    return found


def _rows(store: Path) -> dict[str, float]:
    """Return the number of rows of all tables together; nothing before there are tables."""
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        counts = (connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables)  # noqa: S608
        return {"store: rows, ": float(sum(counts))}


def _add(found: dict[str, float], more: Mapping[str, float]) -> None:
    for name, amount in more.items():
        found[name] = found.get(name, 0.0) + amount
