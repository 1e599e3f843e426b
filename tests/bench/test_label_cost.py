"""Tests of the cost of labels: works in turn, and ratios pair by pair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import label_cost
from bench.contestant import ContestantRun
from bench.footprint import Footprint
from bench.generate import generate_work
from bench.label_cost import LabelCost
from bench.work import LABELS, Work
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.envelope import read_record
from hopwatch.probes.contract.segment import read_frames
from tests.bench.table_cells import cells


def test_works_are_measured_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what the machine does meanwhile hits both; a ratio is that of a pair."""
    measured: list[int] = []

    def run(function: str, scratch: Path, *, work: dict[str, Any], made: str) -> ContestantRun:
        assert (function, scratch, Path(made).parent) == ("bench.ours:both", tmp_path, tmp_path)
        measured.append(work["labels"])
        span_s = float(len(measured))
        return ContestantRun({"once_s": span_s, "backlog_s": 10.0 * span_s}, span_s, Footprint())

    monkeypatch.setattr(label_cost, "run", run)
    found = label_cost.measure(4_000, tmp_path, lambda _: None, 2)
    assert measured == [0, len(LABELS)] * 2
    assert found == [
        LabelCost("--once, warm", 2.0, 3.0, (2.0, 4 / 3)),
        LabelCost("stream", 20.0, 30.0, (2.0, 4 / 3)),
    ]
    assert cells(label_cost.build_table(found))["stream"] == ["20.00", "30.00", "1.667", "1.333", "2.000"]


def test_each_batch_has_the_labels_that_were_asked_for(tmp_path: Path) -> None:
    """Their values change from batch to batch; a work without labels is another one, and has none."""
    for labels in (0, len(LABELS)):
        made = generate_work(Work(4_000, batch=64, labels=labels), tmp_path)
        data = next(made.spool.rglob("*.seg")).read_bytes()
        records = [read_record(data, frame.start, frame.end) for frame in read_frames(data)]
        said = [one.labels for one in records if one.kind == BatchKind.OBSERVATIONS]
        assert {tuple(sorted(one)) for one in said} == {tuple(name for name, _ in LABELS[:labels])}
        assert not labels or [one["host"] for one in said[:14]] == [
            str(number % 12) for number in range(len(said[:14]))
        ]
