"""Tests of the rows of the loss table, which the terminal and the pages lay out."""

from __future__ import annotations

from dataclasses import asdict, replace

from hopwatch.display.loss_table import LossCell, build_loss_rows
from hopwatch.monitor.results import Quantiles, node_from_json
from tests.support.windows import window

PARTS = ("p50", "max")


def test_rows_have_the_percentiles_that_are_asked_for() -> None:
    """A page shows one percentile of a lag, the terminal several."""
    (node, *_) = window(0).nodes
    slow = replace(node, lag_in_us=Quantiles(count=9, min=1, p50=2, p95=1_500, p99=2_500, max=3_000_000))
    rows = {row.name: row.cells for row in build_loss_rows([slow], PARTS)}
    assert (rows["lag in p50"], rows["lag in max"]) == ((LossCell("2 µs"),), (LossCell("3.0 s"),))
    assert "lag in p95" not in rows
    assert [row.name for row in build_loss_rows([slow]) if row.name.startswith("lag in")] == ["lag in p95"]


def test_a_part_of_a_loss_has_its_bounds() -> None:
    """Of 5 missing messages 2 are surely lost: of the 4 in transit at least 1 is."""
    (node, *_) = window(0).nodes
    bad = replace(node, loss=5, loss_lower=2, loss_upper=5, lost_in_transit=4, lost_inside=1)
    rows = {row.name: row.cells for row in build_loss_rows([bad])}
    assert rows["lost in transit"] == (LossCell("1 to 4", is_bad=True),)
    assert rows["lost inside"] == (LossCell("0 to 1"),)


def test_rows_of_a_node_are_those_of_its_json() -> None:
    """A node read from ``report --json`` equals the node of the store."""
    for node in window(0, lost={"b": 3}).nodes:
        timed = replace(node, inside_us=Quantiles(count=1, min=1, p50=1, p95=1, p99=1, max=1))
        assert node_from_json(asdict(timed) | {"lost_ids": [], "slowest": None}) == timed
