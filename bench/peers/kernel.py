"""The bare kernel on arrays in memory, on two cores: what is left of the work without Spark, store, wire and disk."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import numpy as np

from bench.contestant import CORES, Json
from bench.generate import GeneratedWork
from bench.result_check import list_findings
from bench.truth import Found, Key
from bench.work import TERMS, Block, Work, blocks, pathway, start_ms
from hopwatch.monitor.kernel import tally
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.tally import Tally
from hopwatch.probes.contract.limits import WINDOW_US

_PASSED: Final = np.empty(0, np.uint8)
_windows: list[list[Block]] = []
"""The observations of each window of each stream; the two processes share them with the one that made them."""


def run(folder: Path, work: Json, made: str) -> Json:
    """Tally all windows, from arrays of a batch each; return ``query_s``. The result is checked."""
    del folder
    of_kind = GeneratedWork(Work(**work), Path(made))
    _windows[:] = by_window(blocks(of_kind.work))
    with get_context("fork").Pool(CORES) as pool:
        pool.starmap(_tally, [(0, of_kind.work.batch)])
        began_s = time.perf_counter()
        tallies = pool.starmap(_tally, ((place, of_kind.work.batch) for place in range(len(_windows))), chunksize=1)
        query_s = time.perf_counter() - began_s
    of_kind.truth().check("the kernel", collect_findings(_windows, tallies))
    return {"query_s": query_s}


def by_window(observed: Iterable[Block]) -> list[list[Block]]:
    """Return the blocks of each window of each stream."""
    return [list(of_one) for _, of_one in groupby(observed, lambda block: (block.window, block.stream))]


def build_tally(of_window: list[Block], batch: int) -> Tally:
    """Tally the observations of one window, in batches as they are on the wire."""
    return tally.build_tally(pathway(), _batches(of_window, batch), start_ms(of_window[0].window) * 1_000 + WINDOW_US)


def collect_findings(windows: list[list[Block]], tallies: list[Tally]) -> dict[Key, Found]:
    """Return what the tallies say of each node."""
    return {
        (block.stream, block.window, block.node): one
        for of_window, of_one in zip(windows, tallies, strict=True)
        for block, one in zip(of_window, list_findings(pathway(), of_one), strict=True)
    }


def _tally(place: int, batch: int) -> Tally:
    return build_tally(_windows[place], batch)


def _batches(of_window: list[Block], batch: int) -> Iterator[ObservedBatch]:
    for block in of_window:
        arrival_us = start_ms(block.window) * 1_000 + TERMS.settle_us
        for first in range(0, len(block.message_ids), batch):
            part = slice(first, first + batch)
            yield ObservedBatch(
                block.node,
                "",
                arrival_us,
                block.message_ids[part],
                block.lag_in_us[part],
                block.lag_out_us[part],
                _PASSED,
            )
