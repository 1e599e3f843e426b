"""Cost of labels: the same work without labels and with some on each batch, in turn; every result is checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.table import Table

from bench.contestant import run
from bench.generate import GeneratedWork, bytes_needed, generate_work, require_disk
from bench.speed import Progress
from bench.table_style import format_number, new_table
from bench.work import LABELS, Work


@dataclass(frozen=True, slots=True)
class LabelCost:
    """Spans of one way over the same work, s: medians without labels and with them.

    ``ratios`` are with labels to without, pair by pair.
    """

    way: str
    plain_s: float
    labelled_s: float
    ratios: tuple[float, ...]


def measure(observations: int, scratch: Path, tell: Progress, repeats: int) -> list[LabelCost]:
    """Return the cost for ``--once``, warm, and for the stream, each measured so many times in turn.

    Raises:
        WorkError: so many observations cannot be measured.
        DiskError: the scratch folder's disk is too small.
        ContestantError: the monitor failed, or found what is not there.
    """
    works = [Work(observations, labels=labels) for labels in (0, len(LABELS))]
    require_disk(scratch, sum(bytes_needed(work, with_parquet=False) for work in works))
    made = []
    for work in works:
        tell(f"making {observations:,} observations with {work.labels} labels")
        made.append(generate_work(work, scratch))
    pairs = [tuple(_measure(one, scratch, tell, number) for one in made) for number in range(repeats)]
    return [_compare(way, [(plain[way], labelled[way]) for plain, labelled in pairs]) for way in pairs[0][0]]


def _measure(made: GeneratedWork, scratch: Path, tell: Progress, number: int) -> dict[str, float]:
    tell(f"run {number + 1}, {made.work.labels} labels")
    result = run("bench.ours:both", scratch, work=made.work.as_json(), made=str(made.folder)).result
    return {"--once, warm": result["once_s"], "stream": result["backlog_s"]}


def _compare(way: str, pairs: list[tuple[float, float]]) -> LabelCost:
    plain, labelled = zip(*pairs, strict=True)
    return LabelCost(way, median(plain), median(labelled), tuple(with_s / without_s for without_s, with_s in pairs))


def build_table(lines: list[LabelCost]) -> Table:
    """Return what each way took, and the median, the least and the greatest ratio of the pairs."""
    columns = ("without s", f"{len(LABELS)} labels s", "ratio", "least", "greatest")
    table = new_table("Labels: the same work without and with them, in turn; medians", ("way",), columns)
    for line in lines:
        spans = (format_number(line.plain_s, 2), format_number(line.labelled_s, 2))
        ratios = (median(line.ratios), min(line.ratios), max(line.ratios))
        table.add_row(line.way, *spans, *(format_number(one, 3) for one in ratios))
    return table
