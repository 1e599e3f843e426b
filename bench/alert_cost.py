"""Cost of evaluating alerts in a micro-batch, beside the cost of writing its windows.

The rules are those that are there without any configuration, the store is SQLite in a file. The streams have three
days of minutes behind them, as long as a default budget looks back. A micro-batch brings the next window of every
stream; windows, decision and commit are one transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.contestant import run
from bench.speed import Progress
from bench.windows import Fleet

FLEETS: Final = (Fleet(1, 4), Fleet(100, 4), Fleet(1_000, 4), Fleet(20, 250))
"""1, 100 and 1,000 streams of four nodes, and 5,000 nodes."""
HISTORY: Final = 3 * 1_440
MONTH: Final = 30 * 1_440
SPANS: Final = (("1 h", 60), ("3 d", HISTORY), ("30 d", MONTH))
SUMMED_STREAMS: Final = 10


@dataclass(frozen=True, slots=True)
class AlertCost:
    """A micro-batch with a window of each stream: ms for the windows themselves, for the decision, for the commit.

    ``pages`` are those told since the streams were well.
    """

    streams: int
    nodes: int
    what: str
    write_ms: float
    follow_ms: float
    commit_ms: float
    pages: int


@dataclass(frozen=True, slots=True)
class BudgetCost:
    """Time to sum the windows of one stream over a span, in ms, and the rows of the store."""

    span: str
    rows: int
    rows_in_store: int
    sum_ms: float


def measure(scratch: Path, tell: Progress) -> list[AlertCost | BudgetCost]:
    """Return what was measured; whatever breaks has to be one page.

    Raises:
        ContestantError: it was none, or several.
    """
    measured: list[AlertCost | BudgetCost] = []
    for fleet in FLEETS:
        size = {"streams": fleet.streams, "nodes": fleet.nodes}
        tell(f"alerts: {fleet.streams} streams of {fleet.nodes} nodes")
        told = run("bench.micro_batches:decide", scratch, **size, history=HISTORY).result
        measured += [AlertCost(**size, what=what, **spans) for what, spans in told.items()]
    tell(f"alerts: sums over {MONTH:,} minutes of {SUMMED_STREAMS} streams")
    spans = dict(SPANS)
    told = run("bench.micro_batches:sums", scratch, streams=SUMMED_STREAMS, history=MONTH, spans=spans).result
    in_store = SUMMED_STREAMS * MONTH
    return measured + [BudgetCost(span, spans[span], in_store, sum_ms) for span, sum_ms in told.items()]
