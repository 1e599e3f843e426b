"""Tests of what metrics there are: their names, units and labels are as Prometheus has them."""

from __future__ import annotations

import re

import pytest

from hopwatch.monitor.metrics import catalog
from hopwatch.probes.metrics.metric import MAX_OPEN_SERIES, Label, Metric, MetricType


def test_every_metric_is_in_one_list_once() -> None:
    """None is declared and forgotten."""
    made = [value for value in vars(catalog).values() if isinstance(value, Metric)]
    assert sorted(metric.name for metric in made) == sorted(metric.name for metric in catalog.ALL_METRICS)
    assert len({metric.name for metric in catalog.ALL_METRICS}) == len(catalog.ALL_METRICS)


@pytest.mark.parametrize("metric", catalog.ALL_METRICS, ids=lambda metric: metric.name)
def test_every_metric_is_named_as_it_should_be(metric: Metric) -> None:
    """By its unit last, the base one, and by _total if it only grows; with a sentence that says what it is."""
    assert re.fullmatch(r"hopwatch_[a-z]+(_[a-z]+)*", metric.name)
    assert metric.name.endswith("_total") == (metric.type is MetricType.COUNTER)
    assert not re.search(r"_(us|ms|percent|minutes)(_|$)", metric.name)
    assert metric.help.endswith(".")
    assert metric.unit in {"", "seconds", "ratio"}


def test_series_are_counted_by_their_labels() -> None:
    """Closed ones by their values, open ones by a bound, a histogram with its sum and count."""
    closed, is_open = Label("state", ("a", "b", "c")), Label("reason")
    assert Metric("m", MetricType.GAUGE, "").series == 1
    assert Metric("m", MetricType.GAUGE, "", (catalog.STREAM, catalog.NODE, closed)).series == 3
    assert Metric("m", MetricType.GAUGE, "", (is_open, Label("rule"))).series == MAX_OPEN_SERIES + 1
    assert Metric("m", MetricType.HISTOGRAM, "", (closed,)).series == 5
