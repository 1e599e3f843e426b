"""Samples of a page of metrics, looked up by name and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hopwatch.monitor.clock import Clock
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.metrics.exposition import build_registry
from hopwatch.monitor.metrics.folding import count_edges, plan_folding
from hopwatch.monitor.metrics.recorder import MetricsRecorder
from hopwatch.monitor.metrics.samples import build_samples
from hopwatch.monitor.metrics.snapshot import AlertFigures, InitialState, MetricsSnapshot, StoreFigures, StoreSnapshot
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.selftest.summary import SelftestSummary
from hopwatch.monitor.stream_config import StreamConfig
from tests.support.clock import ManualClock
from tests.support.windows import at

STORE_SNAPSHOT: Final = StoreSnapshot(
    at(9),
    StoreFigures(7, 90, 1, 2, 3, 4, {"torn": 5}, {"OPEN": 1, "PROVISIONAL": 3}, {"alive": 2, "silent": 1}, 6),
    AlertFigures({("loss", "page"): 1}, {("pager", "waiting"): 2}, at(3)),
    11,
    SelftestSummary(60, 2, 700, 690, 1, at(4), at(1), ()),
)
"""Of every figure another one."""
WINDOW_POLICY: Final = WindowPolicy(150_000_000, 30_000_000, 3_600_000_000, 86_400_000_000)
"""Those of a stream that says nothing else."""


def stream_configs(*streams: str, path: str = "a -> b") -> dict[str, StreamConfig]:
    """Return the rules of streams that share a path, all else by default."""
    return {stream: StreamConfig(Pathway.parse(path), WINDOW_POLICY) for stream in streams}


def make_recorder(
    *streams: str,
    path: str = "a -> b",
    most_series: int = 16_000,
    clock: Clock | None = None,
    beginning: InitialState | None = None,
) -> MetricsRecorder:
    """Return what is measured of streams that share a path, at the beginning."""
    rules = stream_configs(*(streams or ("orders",)), path=path)
    planned = plan_folding({stream: count_edges(of) for stream, of in rules.items()}, most_series)
    return MetricsRecorder(rules, planned, clock or ManualClock(at(10)), beginning or InitialState())


def samples_of(known: MetricsSnapshot, name: str) -> dict[Sequence[str], float]:
    """Return what a metric shows, by its labels in their order."""
    return {sample.labels: sample.value for sample in build_samples(known) if sample.metric.name == name}


def sample_value(of: MetricsRecorder, name: str, **labels: str) -> float | None:
    """Return one value as a scraper sees it; none where there is no such sample."""
    found = build_registry(of.known).get_sample_value(name, labels)
    return None if found is None else float(found)
