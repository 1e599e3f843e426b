"""The contestants of :mod:`bench.series_cost`: series followed through the store, and a rolling mean.

The functions are called in a process of their own, see :mod:`bench.contestant`; spans are in ms.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np
import pandas as pd
from sqlalchemy import Connection, Engine

from bench import windows
from bench.contestant import Json
from bench.truth import WrongResultError
from bench.windows import START_US, Dice, Fleet
from hopwatch.monitor import outlier_detection
from hopwatch.monitor.accounting.ledger import Conclusion, Ledger, LiveWindow
from hopwatch.monitor.kernel.tally import empty_tally
from hopwatch.monitor.outliers import state
from hopwatch.monitor.outliers.quantities import Ints
from hopwatch.monitor.outliers.series_tracker import SeriesTracker
from hopwatch.monitor.outliers.state import States
from hopwatch.monitor.results import WindowResult
from hopwatch.monitor.store import dialect, outliers, schema, tables
from hopwatch.monitor.store.rollups import HOUR_US
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import WINDOW_US

OURS: Final = "Hopwatch"
PANDAS: Final = "pandas, z-score over an hour"

PAST: Final = 1_500
"""Minutes that the series have seen before: a day and an hour."""
ROUNDS: Final = 20
AMENDED_ROUNDS: Final = 3
AGO: Final = 60
"""How many windows stand behind the one that is amended."""
ROLLING: Final = 60
FAR: Final = 3.0
"""From so many deviations on a rolling z-score calls a value odd, by custom."""


def ours(folder: Path, streams: int, nodes: int, past: int = PAST, rounds: int = ROUNDS) -> Json:
    """Let windows enter the series of all streams, through the store, as a micro-batch does."""
    fleet = Fleet(streams, nodes)
    watch = start_watch(folder, fleet, build_memory(past, np.random.default_rng(2)))
    spans_ms = [watch.time_windows(watch.next()) for _ in range(watch.most_windows)]
    watch.strike()
    memory_bytes = sum(_size(one) for one in watch.ledger.watched.values())
    start_us = watch.start_us - AGO * WINDOW_US
    lossy, well = ([watch.window(name, start_us, is_lossy=one) for name in fleet.paths] for one in (True, False))
    all_ms = [watch.time_windows(well if number % 2 else lossy) for number in range(AMENDED_ROUNDS)]
    node_ms = [watch.time_windows([_struck(lossy[0], number)]) for number in range(rounds)]
    return {
        "next_ms": median(spans_ms[-rounds:]),
        "all_ms": median(all_ms),
        "node_ms": median(node_ms),
        "hour_ms": watch.keep(),
        "memory_bytes": memory_bytes,
    }


def rolling(folder: Path, series: int, rounds: int = ROUNDS) -> Json:
    """Hold the next value of each series against mean and deviation of its last hour."""
    del folder
    dice = np.random.default_rng(1)
    frame = pd.DataFrame(dice.normal(size=(ROLLING, series)))
    spans_ms: list[float] = []
    for _ in range(rounds):
        values = dice.normal(size=series)
        values[0] = 100.0
        began_s = time.perf_counter()
        scores = ((values - frame.mean()) / frame.std()).to_numpy()
        frame = pd.concat([frame.iloc[1:], pd.DataFrame(values[None, :])], ignore_index=True)
        spans_ms.append((time.perf_counter() - began_s) * 1e3)
        if len(spans_ms) == 1 and not scores[0] > FAR:
            raise WrongResultError(f"{PANDAS} gave 100 among values around 0 {scores[0]:.4g} deviations")
    return {"next_ms": median(spans_ms), "memory_bytes": int(frame.to_numpy().nbytes)}


def build_memory(past: int, dice: Dice) -> States:
    """Return the memory of the series of one node that has been followed for so many minutes."""
    watched, kept = SeriesTracker(("n0",)), _Nothing()
    for number in range(-past, 0):
        watched.enter([windows.window("s0", ("n0",), START_US + number * WINDOW_US, dice)], kept)
    return watched.states


def start_watch(folder: Path, fleet: Fleet, memory: States) -> Watch:
    """Return the streams of a fleet and a store in which each node has the same memory."""
    engine = dialect.create_engine(f"sqlite:///{folder / 'store.db'}")
    schema.prepare_store(engine)
    watch = Watch(engine, fleet, np.random.default_rng(1))
    watch.begin(memory)
    return watch


class _Nothing:
    """What is kept of series that begin: nothing."""

    def states(self, rows: Ints) -> States:
        """Return new series."""
        return state.new_states(len(rows))


class Watch:
    """The streams of a fleet, the ledger that knows them, and the store."""

    def __init__(self, engine: Engine, fleet: Fleet, dice: Dice) -> None:
        """Take an empty store."""
        self.ledger: Final = Ledger(fleet.stream_rules())
        self.start_us = START_US
        self._engine: Final = engine
        self._paths: Final = fleet.paths
        self._dice: Final = dice

    @property
    def most_windows(self) -> int:
        """Return the number of windows behind the kept memory: those that live, and one hour."""
        terms = self._rules.terms
        return (terms.kept_until_us(0) - terms.final_at_us(0) + HOUR_US) // WINDOW_US

    def begin(self, memory: States) -> None:
        """Keep the same memory of each node, and take it up as a process does that is started."""
        packed = state.to_bytes(memory)
        with self._transaction() as connection:
            for stream, nodes in self._paths.items():
                key = {"stream": stream, "before_us": START_US}
                rows = [key | {"place": place, "states": packed} for place in range(len(nodes))]
                connection.execute(dialect.upsert(connection, tables.outlier_states), rows)
                self.ledger.watched[stream] = outlier_detection.resume_series(connection, stream, nodes)

    def next(self) -> list[WindowResult]:
        """Return the next window of each stream."""
        self.start_us += WINDOW_US
        return [self.window(stream, self.start_us) for stream in self._paths]

    def window(self, stream: str, start_us: int, *, is_lossy: bool = False) -> WindowResult:
        """Return a window of a stream."""
        return windows.window(stream, self._paths[stream], start_us, self._dice, is_lossy=is_lossy)

    def time_windows(self, results: list[WindowResult]) -> float:
        """Let windows enter, and return how long that took in ms."""
        nothing = empty_tally(self._rules.pathway)
        made = [Conclusion(one, nothing, (), is_settled=True, books=b"", changed=None) for one in results]
        return self._timed(lambda connection: outlier_detection.detect_outliers(connection, self.ledger, made))

    def strike(self) -> None:
        """Let one node be far from what it was in the next window.

        Raises:
            WrongResultError: nothing is found there.
        """
        results = self.next()
        self.time_windows([_struck(results[0], 0), *results[1:]])
        found = outliers.query_findings(self._engine, results[0].stream, self.start_us)
        if not any(finding.node == "n0" for _, finding in found):
            raise WrongResultError(f"{OURS} found nothing of a node with a tenth of its messages, late by an hour")

    def keep(self) -> float:
        """Keep the memory of an hour of each stream, and return how long that took in ms."""
        for stream in self._paths:
            self.ledger.live[stream] = {START_US + HOUR_US: LiveWindow()}
        return sum(
            self._timed(lambda connection: outlier_detection.save_series(connection, self.ledger))
            for _ in range(len(self._paths))
        )

    @property
    def _rules(self) -> StreamConfig:
        return next(iter(self.ledger.rules.values()))

    def _transaction(self) -> AbstractContextManager[Connection]:
        return self._engine.execution_options(writes=True).begin()

    def _timed(self, work: Callable[[Connection], object]) -> float:
        began_s = time.perf_counter()
        with self._transaction() as connection:
            work(connection)
        return (time.perf_counter() - began_s) * 1e3


def _struck(result: WindowResult, number: int) -> WindowResult:
    """Return a window in whose first node a tenth of the messages was seen, late by an hour; each number is another."""
    first = result.nodes[0]
    late = None if first.lag_in_us is None else replace(first.lag_in_us, p95=HOUR_US + number)
    odd = replace(first, seen=first.seen // 10 + number, lag_in_us=late, lag_out_us=late)
    return replace(result, nodes=(odd, *result.nodes[1:]))


def _size(watched: SeriesTracker) -> int:
    """Return how many bytes are remembered of the series of a stream."""
    of_windows = (dict.values(watched.values), dict.values(watched.signs))
    return watched.states.nbytes + sum(array.nbytes for arrays in of_windows for array in arrays)
