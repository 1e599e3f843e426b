"""Tests with a real Prometheus: it scrapes a real page, and all that is shipped for it answers."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.metrics.exposition import build_registry
from hopwatch.monitor.metrics.recorder import MetricsRecorder
from hopwatch.monitor.results import CommittedBatch, Quantiles, Verdict, WindowResult
from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.probes.metrics.server import MetricsServer
from servers.process import until
from servers.prometheus import Prometheus, promtool
from tests.support import shipped_files
from tests.support.metrics_page import STORE_SNAPSHOT, make_recorder
from tests.support.recent import recent_figures
from tests.support.windows import window

LAG: Final = Quantiles(100, 1, 500_000, 1_500_000, 2_500_000, 9_000_000)
CLOCK: Final = SystemClock()
NODES: Final = ("ingest", "router")
PATIENCE_S: Final = 240
Alert = tuple[str, str | None, str | None, str]
AWAITED: Final[set[Alert]] = {
    ("HopwatchLoss", "orders", "router", "firing"),
    ("HopwatchLoss", "orders", None, "firing"),
    ("HopwatchHeartbeat", None, None, "firing"),
    ("HopwatchUnknown", "blind", None, "pending"),
}


def now_window(**what: Any) -> WindowResult:  # noqa: ANN401 - the fields of a window
    """Return a window that was judged just now, with every lag."""
    lags = dict.fromkeys(("lag_in_us", "lag_out_us", "inside_us"), LAG)
    start_us = CLOCK.now_us() // WINDOW_US * WINDOW_US - 4 * WINDOW_US
    made = window(0, names=NODES, lag_us=LAG, nodes=dict.fromkeys(NODES, lags), **what)
    return replace(made, window_start_us=start_us)


def commit(of: MetricsRecorder, *results: WindowResult) -> None:
    """Let a micro-batch be written now."""
    now_us = CLOCK.now_us()
    of.committed(CommittedBatch(results, now_us, 0.5, recent=(recent_figures("orders", NODES, now_us),)))


@contextmanager
def served(of: MetricsRecorder) -> Iterator[MetricsServer]:
    """Yield a server of what is measured."""
    server = MetricsServer("127.0.0.1", 0, build_registry(of.known), print)
    server.start()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def of() -> MetricsRecorder:
    """Return what is measured of a stream that loses 2 %, of one that nobody knows of, and of others, partly folded."""
    made = make_recorder(
        "orders", "blind", *(f"s{n:02}" for n in range(60)), path=" -> ".join(NODES), most_series=2_255, clock=CLOCK
    )
    made.read(replace(STORE_SNAPSHOT, read_at_us=CLOCK.now_us()))
    # A stream without a deadline has no sample of what is overdue.
    orders = replace(made.rules["orders"], deadlines=(("router", 1_000_000),))
    made.change_rules({**made.rules, "orders": orders}, made.plan)
    commit(made, now_window(lost={"router": 20}), now_window(stream="blind", verdict=Verdict.UNKNOWN))
    return made


def test_promtool_finds_nothing_to_say_about_the_page(of: MetricsRecorder) -> None:
    """Of names, units, types and help; with every metric on it, folded ones too."""
    with served(of) as server, urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=20) as answer:
        page = answer.read().decode()
    assert promtool("check", "metrics", told=page) == (0, "")


def test_a_prometheus_scrapes_the_page_and_all_that_is_shipped_answers(of: MetricsRecorder, tmp_path: Path) -> None:
    """Rules are well, a loss and the heartbeat fire and ignorance is pending, every panel has something to show."""
    with served(of) as server:
        prometheus = Prometheus(tmp_path, [f"127.0.0.1:{server.port}"], [shipped_files.RULES])
        prometheus.start()
        try:
            until(lambda: prometheus.ask("up") != {}, "the first scrape", PATIENCE_S)
            commit(of, now_window(lost={"router": 20}))
            until(lambda: all_answer(prometheus) and read_alerts(prometheus) >= AWAITED, "all answers", PATIENCE_S)
            check(prometheus)
        finally:
            prometheus.stop()


def read_alerts(prometheus: Prometheus) -> set[Alert]:
    """Return the alerts that are pending or fire: name, stream, node and state."""
    found = [(alert["labels"], alert["state"]) for alert in prometheus.api("alerts")["alerts"]]
    return {(labels["alertname"], labels.get("stream"), labels.get("node"), state) for labels, state in found}


def all_answer(prometheus: Prometheus) -> bool:
    """Return whether every query of dashboard and autoscalers finds something, and every rule was evaluated."""
    queries = [*shipped_files.dashboard_queries(), *shipped_files.autoscaling_queries()]
    rules = [rule for group in prometheus.api("rules")["groups"] for rule in group["rules"]]
    is_evaluated = all(rule["health"] == "ok" for rule in rules)
    return is_evaluated and len(rules) > 20 and not [query for query in queries if not prometheus.ask(query)]


def check(prometheus: Prometheus) -> None:
    """Check what it has by then."""
    (target,) = prometheus.api("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    metadata = prometheus.api("metadata")
    assert metadata["hopwatch_node_lag_seconds"][0]["type"] == "summary"
    assert metadata["hopwatch_batch_duration_seconds"][0]["type"] == "histogram"
    # It was scraped as OpenMetrics, which names a counter without its ending.
    assert metadata["hopwatch_lost_messages"][0]["type"] == "counter"
    alerts = read_alerts(prometheus)
    assert alerts >= AWAITED
    assert not {alert for alert in alerts if alert[0] in {"HopwatchAbsent", "HopwatchStalled", "HopwatchSilent"}}
    assert prometheus.ask('hopwatch_stream_loss_ratio{stream="blind"}') == {}
    (lag,) = prometheus.ask(next(iter(shipped_files.autoscaling_queries()))).values()
    assert lag == 1.5


def test_a_prometheus_takes_a_page_as_large_as_it_may_be(tmp_path: Path) -> None:
    """Ten thousand series within its usual patience; and no more of them, however many nodes there are."""
    names = tuple(f"n{number:03}" for number in range(100))
    streams = [f"s{number:03}" for number in range(20)]
    large = make_recorder(*streams, path=" -> ".join(names), clock=CLOCK)
    lags = dict.fromkeys(("lag_in_us", "lag_out_us", "inside_us"), LAG)
    commit(large, *(window(0, stream=stream, names=names, nodes=dict.fromkeys(names, lags)) for stream in streams))
    with served(large) as server:
        prometheus = Prometheus(tmp_path, [f"127.0.0.1:{server.port}"])
        prometheus.start()
        try:
            until(lambda: prometheus.ask("up == 1") != {}, "the first scrape", PATIENCE_S)
            (scraped,) = prometheus.ask("scrape_samples_scraped").values()
            (took_s,) = prometheus.ask("scrape_duration_seconds").values()
        finally:
            prometheus.stop()
    assert scraped <= 10_000
    assert took_s < 10
