"""Results of a contestant in the form of the check: read from our store, or from a peer's columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine

from bench.truth import LAGS, QUANTILES, ExpectedResults, Found, Key, WrongResultError, print_of
from bench.work import FIRST_START_MS, NODES, Work, stream_name
from hopwatch.monitor.kernel.sets import classify
from hopwatch.monitor.kernel.tally import NEVER_US, NodeLags, Tally
from hopwatch.monitor.kernel.tdigest import quantiles
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.store import reader
from hopwatch.probes.contract.limits import ID_BYTES, WINDOW_US

_PERCENTILES: Final = ("p50", "p95", "p99")
_NONE: Final = np.empty((0, 2), np.uint64)


def check_store(engine: Engine, work: Work, truth: ExpectedResults, moved_ms: int = 0) -> None:
    """Hold a store against the truth: besides every node-window, that all is final and that no account has a hole.

    The work's minutes may have been moved.

    Raises:
        WrongResultError: something differs.
    """
    report = reader.read_report(engine)
    accounts = report["accounts"]
    told = accounts["observations"], accounts["duplicate_batches"], accounts["too_late"], accounts["set_aside"]
    if told != (truth.observations, 0, 0, {}):
        raise WrongResultError(f"hopwatch read {truth.observations:,} observations, none twice or late, got {accounts}")
    first_us = (FIRST_START_MS + moved_ms) * 1_000
    found = (_of_stream(engine, report, name, first_us) for name in range(work.streams))
    truth.check("hopwatch", dict(chain.from_iterable(found)))


def from_columns(
    seen: Mapping[Key, int], lags: Mapping[Key, tuple[tuple[float, ...], ...]], lost: Mapping[Key, NDArray[Any]]
) -> dict[Key, Found]:
    """Return what a peer found: distinct messages, percentiles in the order of LAGS, lost ids of shape (n, 2)."""
    found = {}
    for key, count in seen.items():
        ids = lost.get(key, _NONE)
        found[key] = Found(count, len(ids), print_of(ids), lags[key])
    return found


def list_findings(pathway: Pathway, tally: Tally) -> list[Found]:
    """Return what a tally says of each node, all that is missing counted as lost."""
    sets = classify(pathway, tally.masks)
    seen, lost = tally.counts @ sets.seen, tally.counts @ sets.loss
    named = [tally.lost(node, NEVER_US).message_ids for node in range(len(pathway.nodes))]
    return [
        Found(int(seen[node]), int(lost[node]), print_of(named[node]), _percentiles(lags))
        for node, lags in enumerate(tally.lags)
    ]


def _percentiles(lags: NodeLags) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(quantiles(getattr(lags, lag), QUANTILES).tolist()) for lag in LAGS)


def by_key(keys: Sequence[NDArray[Any]], ids: NDArray[Any]) -> dict[Key, NDArray[Any]]:
    """Return ids by node-window; ``keys`` are columns of stream, window and node, ids of shape (n, 2)."""
    order = np.lexsort(keys)
    columns = np.stack([column[order] for column in keys]).astype(np.int64)
    starts = np.flatnonzero(np.any(columns[:, 1:] != columns[:, :-1], axis=0)) + 1
    parts = zip(np.split(columns, starts, axis=1), np.split(ids[order], starts), strict=True)
    return {(int(key[0, 0]), int(key[1, 0]), int(key[2, 0])): part for key, part in parts if len(part)}


def _of_stream(engine: Engine, report: Mapping[str, Any], number: int, first_us: int) -> Iterable[tuple[Key, Found]]:
    name = stream_name(number)
    # The bye falls in a minute in which nothing was observed.
    windows = [
        told for stream in report["streams"] if stream["stream"] == name for told in stream["windows"] if told["known"]
    ]
    with engine.connect() as connection:
        for told in windows:
            start_us = round(datetime.fromisoformat(told["window_start"]).timestamp()) * 1_000_000
            lost = reader.read_window_lost_ids(connection, name, start_us)
            _check_window(name, told)
            for place, node in enumerate(told["nodes"]):
                ids = np.frombuffer(b"".join(lost.get(NODES[place], ())), np.uint64).reshape(-1, ID_BYTES // 8)
                lags = tuple(tuple(node[lag][name] for name in _PERCENTILES) for lag in LAGS)
                key = number, (start_us - first_us) // WINDOW_US, place
                yield key, Found(node["seen"], node["loss"], print_of(ids), lags)


def _check_window(stream: str, told: Mapping[str, Any]) -> None:
    where = f"hopwatch, {stream} at {told['window_start']}"
    sure = [(node["loss_lower"], node["loss"], node["loss_upper"]) for node in told["nodes"]]
    if told["status"] != "FINAL" or told["in_flight"] or any(len(set(bounds)) > 1 for bounds in sure):
        said = f"{told['status']}, {told['in_flight']:,} in flight, lower bound, loss and upper bound {sure}"
        raise WrongResultError(f"{where}: final with complete books is expected, got {said}")
