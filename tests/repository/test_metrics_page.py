"""Tests of the page on metrics: every metric is there, as it is declared, and what is said of their number is so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import pytest

from hopwatch.alerts.events import AlertKind
from hopwatch.monitor.metrics import catalog
from hopwatch.monitor.metrics.folding import MONITOR_SERIES, SERIES_PER_EDGE, SERIES_PER_NODE, SERIES_PER_STREAM
from hopwatch.monitor.metrics.samples import RECENT_US
from hopwatch.monitor.metrics.store_poller import POLL_EVERY_S
from hopwatch.monitor.results import OTHER
from hopwatch.probes.metrics.catalog import COMPONENT_METRICS
from hopwatch.probes.metrics.metric import Metric
from hopwatch.probes.metrics.server import CUT_AFTER_S, MAX_CONNECTIONS, MAX_PER_ADDRESS
from hopwatch.scale.metrics import SCALING_METRICS
from tests.repository import ROOT
from tests.support.shipped_files import ALERTS

PAGE: Final = (ROOT / "docs" / "METRICS.md").read_text("utf-8")
AUTOSCALING: Final = (ROOT / "docs" / "AUTOSCALING.md").read_text("utf-8")
RUNBOOKS: Final = ROOT / "docs" / "runbooks"
OF_THE_MONITOR: Final = {name for rule in ALERTS.values() for name in [rule["annotations"]["runbook_url"]]} - {
    f"docs/runbooks/{kind}.md" for kind in AlertKind
}


def row(metric: Metric) -> str:
    """Return the row of a metric, as the page has it."""
    labels = [f"`{one.name}`" + (f" ({', '.join(one.values)})" if one.values else "") for one in metric.labels]
    return f"| `{metric.name}` | {metric.type} | {', '.join(labels)} | {metric.help} |"


def table(metrics: Iterable[Metric]) -> list[str]:
    """Return the table of metrics, as the page has it."""
    return ["| metric | type | labels | meaning |", "|---|---|---|---|", *map(row, metrics)]


@pytest.mark.parametrize(
    ("title", "metrics"),
    [
        ("All metrics of the monitor", catalog.ALL_METRICS),
        ("All metrics of the entrances", COMPONENT_METRICS),
        ("All metrics of the scaler", SCALING_METRICS),
    ],
)
def test_the_table_is_that_of_the_declarations(title: str, metrics: tuple[Metric, ...]) -> None:
    """Row for row; where it is not, this prints the one to put there."""
    told = PAGE.partition(f"\n## {title}\n\n")[2].partition("\n\n")[0].splitlines()
    assert told == table(metrics), "\n".join(table(metrics))


def test_numbers_on_the_page_are_those_of_the_program() -> None:
    """Of series, seconds and clients."""
    text = " ".join(PAGE.split())
    assert (
        f"A stream takes {SERIES_PER_STREAM}, a node {SERIES_PER_NODE}, an edge {SERIES_PER_EDGE}, the monitor itself "
        f"up to {MONITOR_SERIES}." in text
    )
    assert f"No stream may be called `{OTHER}`." in text
    assert f"**The store is read every {POLL_EVERY_S:.0f} s**" in text
    assert (MAX_CONNECTIONS, MAX_PER_ADDRESS, CUT_AFTER_S, RECENT_US) == (8, 4, 10, 600_000_000)
    assert "At most eight clients are served at once, four of one address, each for ten seconds." in text
    assert "Ten minutes after the next one was due" in text
    folded = " ".join((RUNBOOKS / "metrics_folded.md").read_text("utf-8").split())
    assert f"node takes {SERIES_PER_NODE} series, an edge {SERIES_PER_EDGE}, a stream {SERIES_PER_STREAM}" in folded


@pytest.mark.parametrize("page", [PAGE, AUTOSCALING], ids=["METRICS", "AUTOSCALING"])
def test_metrics_and_files_that_are_named_are_there(page: str) -> None:
    """By their whole names."""
    known = {metric.name for metric in (*catalog.ALL_METRICS, *COMPONENT_METRICS, *SCALING_METRICS)} | {
        "hopwatch_node_recent_lag_in_p95_seconds"
    }
    assert set(re.findall(r"\bhopwatch_[a-z0-9_]+\b", page)) <= known
    for path in re.findall(r"\]\(([^)#:]+)\)", page):
        assert (ROOT / "docs" / path).exists(), path


@pytest.mark.parametrize("path", sorted(OF_THE_MONITOR))
def test_every_runbook_of_the_monitor_s_own_health_is_one(path: str) -> None:
    """A runbook has a meaning, a command to look with, and an action, and fits on a screen."""
    text = (ROOT / path).read_text("utf-8")
    assert text.startswith(f"# {(ROOT / path).stem}\n")
    assert text.index("**What it means.**") < text.index("**Look.**") < text.index("**Do.**")
    assert "    hopwatch " in text
    assert text.count("\n") <= 30
