"""What a page of metrics says, looked up by name and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hopwatch.monitor.clock import Clock
from hopwatch.monitor.kernel.window import Terms
from hopwatch.monitor.metrics.exposition import registry
from hopwatch.monitor.metrics.folding import plan
from hopwatch.monitor.metrics.known import AlertFigures, Beginning, Figures, Known, StoreFigures
from hopwatch.monitor.metrics.measured import Measured
from hopwatch.monitor.metrics.samples import samples
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.rules import StreamRules
from tests.alerts.windows import at
from tests.monitor.manual_clock import ManualClock

FIGURES: Final = Figures(
    at(9),
    StoreFigures(7, 90, 1, 2, 3, 4, {"torn": 5}, {"OPEN": 1, "PROVISIONAL": 3}, {"alive": 2, "silent": 1}, 6),
    AlertFigures({("loss", "page"): 1}, {("pager", "waiting"): 2}, at(3)),
)
"""Of every figure another one."""
TERMS: Final = Terms(150_000_000, 30_000_000, 3_600_000_000, 86_400_000_000)
"""Those of a stream that says nothing else."""


def rules_of(*streams: str, path: str = "a -> b") -> dict[str, StreamRules]:
    """Return the rules of streams that share a path, all else by default."""
    return {stream: StreamRules(Pathway.parse(path), TERMS) for stream in streams}


def measured(
    *streams: str,
    path: str = "a -> b",
    most_series: int = 10_000,
    clock: Clock | None = None,
    beginning: Beginning | None = None,
) -> Measured:
    """Return what is measured of streams that share a path, at the beginning."""
    rules = rules_of(*(streams or ("orders",)), path=path)
    planned = plan({stream: of.pathway.nodes for stream, of in rules.items()}, most_series)
    return Measured(rules, planned, clock or ManualClock(at(10)), beginning or Beginning())


def shown(known: Known, name: str) -> dict[Sequence[str], float]:
    """Return what a metric shows, by its labels in their order."""
    return {sample.labels: sample.value for sample in samples(known) if sample.metric.name == name}


def value(of: Measured, name: str, **labels: str) -> float | None:
    """Return one value as a scraper sees it; none where there is no such sample."""
    found = registry(of.known).get_sample_value(name, labels)
    return None if found is None else float(found)
