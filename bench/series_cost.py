"""Cost of following the series of a pipeline: the next window, an amended one, and the memory of an hour.

Streams are chains of nodes with six series each, a day old; the store is SQLite in a file, each span a transaction of
its own. As many windows stand behind the kept memory as there are before an hour of it is kept: the most that an
amended window lets enter again. The peers look at the next window alone: neither can take a value back.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench import outliers
from bench.contestant import run
from bench.series_contestants import OURS, PANDAS
from bench.speed import Progress
from bench.windows import Fleet
from hopwatch.monitor.outliers.window_values import TRACKED_QUANTITIES

FLEETS: Final = (Fleet(1, 10), Fleet(1, 100), Fleet(4, 250), Fleet(20, 250))
"""10, 100, 1,000 and 5,000 nodes; a stream has 255 at most."""
RIVER: Final = "river HalfSpaceTrees"


@dataclass(frozen=True, slots=True)
class SeriesCost:
    """Cost of one window of all streams, in ms, and memory of all series, in bytes.

    ``all_ms`` and ``node_ms``: a window amended in all series of all streams, and at one node of one stream.
    ``hour_ms``: to keep the memory of an hour, of all streams, one micro-batch each. ``over_ours``: the next window
    over that of Hopwatch.
    """

    who: str
    streams: int
    nodes: int
    next_ms: float
    memory_bytes: float
    over_ours: float = 1.0
    all_ms: float | None = None
    node_ms: float | None = None
    hour_ms: float | None = None


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Time of the first value in a process, in s: with the detector compiled anew, and read from the cache."""

    compiled_s: float
    kept_s: float


def measure(scratch: Path, tell: Progress) -> list[SeriesCost | WarmUp]:
    """Return what was measured; each has to find the one node that is far from what it was.

    Raises:
        ContestantError: one failed, or found nothing.
    """
    tell("watch: the detector is compiled")
    with TemporaryDirectory(dir=scratch) as cache:
        compiled_s, kept_s = (
            run("bench.warm_up:run_first_value", scratch, cache=cache).result["first_s"] for _ in range(2)
        )
    tell(f"watch: {RIVER}")
    trees = run("bench.outliers:half_space_trees", scratch).result
    measured: list[SeriesCost | WarmUp] = [WarmUp(compiled_s, kept_s)]
    for fleet in FLEETS:
        count = fleet.streams * fleet.nodes * len(TRACKED_QUANTITIES)
        size = {"streams": fleet.streams, "nodes": fleet.nodes}
        tell(f"watch: {fleet.streams} streams of {fleet.nodes} nodes")
        ours = SeriesCost(OURS, **size, **run("bench.series_contestants:ours", scratch, **size).result)
        theirs = run("bench.series_contestants:rolling", scratch, series=count).result
        grown_ms = trees["minute_s"] / outliers.SERIES * count * 1e3
        measured += [
            ours,
            SeriesCost(PANDAS, **size, **theirs, over_ours=theirs["next_ms"] / ours.next_ms),
            SeriesCost(RIVER, **size, next_ms=grown_ms, memory_bytes=trees["state_bytes"] * count,
                     over_ours=grown_ms / ours.next_ms),
        ]  # fmt: skip
    return measured
