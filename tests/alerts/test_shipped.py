"""Tests of what is shipped for Prometheus, Grafana and autoscalers: promtool takes it, and all it asks for is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from hopwatch.monitor.metrics import catalog
from servers.prometheus import promtool
from tests.alerts import promql
from tests.repository import ROOT
from tests.support import shipped_files
from tests.support.shipped_files import ALERTS, DASHBOARD, PROMETHEUS, RECORDED

TESTS: Final = yaml.safe_load((PROMETHEUS / "hopwatch.tests.yml").read_text("utf-8"))["tests"]

# Rules


def test_promtool_takes_rules_and_configuration() -> None:
    """As Prometheus would."""
    code, told = promtool("check", "config", str(PROMETHEUS / "prometheus.yml"))
    assert (code, "SUCCESS" in told) == (0, True), told
    assert "1 rule files found" in told


def test_every_rule_does_what_its_tests_say() -> None:
    """By promtool."""
    code, told = promtool("test", "rules", str(PROMETHEUS / "hopwatch.tests.yml"))
    assert code == 0, told


@pytest.mark.parametrize("alert", ALERTS)
def test_every_rule_is_seen_to_fire_and_not_to_fire(alert: str) -> None:
    """Somewhere in those tests."""
    cases = [one for test in TESTS for one in test["alert_rule_test"] if one["alertname"] == alert]
    assert {bool(one["exp_alerts"]) for one in cases} == {True, False}


@pytest.mark.parametrize("alert", ALERTS)
def test_every_rule_says_what_it_is_and_what_to_do(alert: str) -> None:
    """In severity, summary, description and a runbook that is there."""
    rule = ALERTS[alert]
    assert re.fullmatch(r"Hopwatch[A-Z][A-Za-z]+", alert)
    assert rule["labels"]["severity"] in {"page", "ticket", "none"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert (ROOT / rule["annotations"]["runbook_url"]).is_file()


@pytest.mark.parametrize("query", [*(rule["expr"] for rule in ALERTS.values()), *RECORDED.values()])
def test_every_rule_asks_for_what_is_exported(query: str) -> None:
    """Or for what another rule records, all of which is asked for."""
    assert list(promql.faults(query)) == []
    assert set(re.findall(r"hopwatch:[a-z0-9_:]+", query)) <= set(RECORDED)


def test_every_recorded_rule_is_used() -> None:
    """Every recording rule is used by an alerting rule."""
    asked = " ".join(rule["expr"] for rule in ALERTS.values())
    assert [name for name in RECORDED if name not in asked] == []


def test_no_rule_makes_percentiles_of_percentiles() -> None:
    """Lags are compared one by one: an average, a sum or a largest of quantiles says nothing."""
    queries = [*(rule["expr"] for rule in ALERTS.values()), *RECORDED.values(), *shipped_files.dashboard_queries()]
    asked = [query for query in queries if "lag_seconds" in query]
    assert asked
    assert [query for query in asked if re.search(r"\b(avg|sum|max|min|rate|increase|stddev)\b", query)] == []


# The dashboard


def test_promtool_takes_every_query_of_the_dashboard_and_of_the_autoscalers(tmp_path: Path) -> None:
    """Each as the expression of a rule."""
    queries = [*shipped_files.dashboard_queries(), *shipped_files.autoscaling_queries()]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
    path = tmp_path / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    code, told = promtool("check", "rules", str(path))
    assert code == 0, told
    assert f"{len(queries)} rules found" in told


@pytest.mark.parametrize("panel", shipped_files.panels(), ids=lambda panel: panel["title"])
def test_every_panel_asks_for_what_is_exported(panel: dict[str, Any]) -> None:
    """And names its lines by labels that they have."""
    for target in panel["targets"]:
        assert list(promql.faults(target["expr"])) == []
        labels = {label.name for name in promql.metrics(target["expr"]) for label in promql.EXPORTED[name].labels}
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels


def test_every_metric_is_on_the_dashboard() -> None:
    """The dashboard shows every exported metric."""
    shown = {name for query in shipped_files.dashboard_queries() for name in promql.metrics(query)}
    assert {promql.EXPORTED[name] for name in shown} == set(catalog.ALL_METRICS)


def test_variables_of_the_dashboard_ask_for_what_is_exported() -> None:
    """Streams and nodes come from counters, which are there from the beginning."""
    queries = {one["name"]: one["definition"] for one in DASHBOARD["templating"]["list"] if one["type"] == "query"}
    assert set(queries) == {"stream", "node"}
    for name, query in queries.items():
        assert list(promql.faults(query)) == []
        (asked,) = promql.metrics(query)
        assert re.search(rf", {name}\)$", query)
        assert name in {label.name for label in promql.EXPORTED[asked].labels}


def test_unknown_is_a_state_of_its_own() -> None:
    """With a colour that is neither that of good nor that of loss; every verdict has one."""
    (timeline,) = [panel for panel in shipped_files.panels() if panel["type"] == "state-timeline"]
    states, nothing = timeline["fieldConfig"]["defaults"]["mappings"]
    colours = {one["text"]: one["color"] for one in states["options"].values()}
    assert set(colours) == set(catalog.VERDICT.values)
    assert len(set(colours.values())) == len(colours)
    assert nothing["options"]["match"] == "null"
    (query,) = [target["expr"] for target in timeline["targets"]]
    numbered = dict(re.findall(r'verdict="(\w+)"[^}]*\} \* (\d)', query))
    assert {number: verdict for verdict, number in numbered.items()} == {
        number: one["text"] for number, one in states["options"].items()
    }


def test_panels_do_not_lie_on_each_other() -> None:
    """Each place of the grid has one."""
    places = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(places) == len(set(places))
    assert max(x for x, _ in places) < 24
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


# Autoscaling


def test_autoscalers_ask_for_what_is_exported() -> None:
    """Queries of autoscalers name exported metrics, of one node or of a stream's ends."""
    for query in shipped_files.autoscaling_queries():
        assert list(promql.faults(query)) == []


@pytest.mark.parametrize("query", list(shipped_files.autoscaling_queries()))
def test_autoscalers_have_no_sample_where_nothing_is_known(query: str) -> None:
    """Neither from a monitor that hangs or is behind, nor of a window that is UNKNOWN or SILENT."""
    if is_recent(query):
        assert "and on (job, instance, stream) (time() - hopwatch_recent_timestamp_seconds < 60)" in query
        return
    assert "hopwatch_last_batch_timestamp_seconds < 120" in query
    assert "hopwatch_watermark_timestamp_seconds < 300" in query
    assert 'and on (job, instance, stream) (hopwatch_window_verdict{verdict!~"UNKNOWN|SILENT"} == 1)' in query


def is_recent(query: str) -> bool:
    """Return whether an autoscaler asks for what no window says."""
    return "_recent_" in query


@pytest.mark.parametrize(("age_s", "is_told"), [(59, True), (61, False)])
def test_autoscalers_are_told_nothing_of_figures_that_are_old(age_s: int, *, is_told: bool, tmp_path: Path) -> None:
    """A monitor that hangs keeps its last recent figures, and serves them until they are a minute old."""
    node = 'stream="orders", node="router"'
    values = {
        f'node_recent_lag_seconds{{{node}, stamp="in", quantile="0.95"}}': "40x60",
        f"node_backlog_messages{{{node}}}": "9000x60",
        'recent_timestamp_seconds{stream="orders"}': f"{2_400 - age_s}x60",
    }
    series = [{"series": f"hopwatch_{name}", "values": told} for name, told in values.items()]
    asked = [
        {"expr": f"count({query}) or vector(0)", "eval_time": "40m", "exp_samples": [{"value": int(is_told)}]}
        for query in filter(is_recent, shipped_files.autoscaling_queries())
    ]
    assert len(asked) == 4
    path = tmp_path / "tests.yml"
    path.write_text(yaml.safe_dump({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": asked}]}))
    code, told = promtool("test", "rules", str(path))
    assert code == 0, told


VERDICTS: Final = {"CLEAN": ["UNKNOWN", "CLEAN"], "UNKNOWN": ["CLEAN", "UNKNOWN"], "gone": []}
"""By what is known of a stream: the verdicts that have a series, the last of which holds."""


@pytest.mark.parametrize("known", VERDICTS)
def test_autoscalers_are_told_nothing_of_a_stream_that_has_gone_silent(known: str, tmp_path: Path) -> None:
    """Its counters stand, so that their rate is 0; its verdict has gone, as ten minutes after the last window."""
    lags = 'stream="orders", quantile="0.95"'
    values = {
        "last_batch_timestamp_seconds{}": "0+60x60",
        "watermark_timestamp_seconds{}": "0+60x60",
        'node_messages_total{stream="orders", node="router"}': "500x60",
        f"end_to_end_lag_seconds{{{lags}}}": "40x60",
    }
    for verdict in VERDICTS[known]:
        shows = int(verdict == VERDICTS[known][-1])
        values[f'window_verdict{{stream="orders", verdict="{verdict}"}}'] = f"{shows}x60"
    series = [{"series": f"hopwatch_{name}", "values": told} for name, told in values.items()]
    asked = [
        {"expr": f"count({query}) or vector(0)", "eval_time": "40m", "exp_samples": [{"value": int(known == "CLEAN")}]}
        for query in shipped_files.autoscaling_queries()
        if not is_recent(query)
    ]
    path = tmp_path / "tests.yml"
    path.write_text(yaml.safe_dump({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": asked}]}))
    code, told = promtool("test", "rules", str(path))
    assert code == 0, told


def test_keda_takes_no_answer_for_zero() -> None:
    """And none of its pods away for it."""
    scaled = shipped_files.autoscaling()["keda"]
    assert (scaled["apiVersion"], scaled["kind"]) == ("keda.sh/v1alpha1", "ScaledObject")
    assert scaled["spec"]["minReplicaCount"] >= 1
    assert "fallback" not in scaled["spec"]
    for trigger in scaled["spec"]["triggers"]:
        assert trigger["type"] == "prometheus"
        assert trigger["metadata"]["ignoreNullValues"] == "false"
        assert float(trigger["metadata"]["threshold"]) > 0


def test_the_autoscaler_of_kubernetes_asks_for_metrics_that_the_adapter_makes() -> None:
    """By the labels that are left of them."""
    found = shipped_files.autoscaling()
    rules = {rule["name"]["as"]: rule for rule in found["prometheus-adapter"]["rules"]["external"]}
    assert (found["hpa"]["apiVersion"], found["hpa"]["kind"]) == ("autoscaling/v2", "HorizontalPodAutoscaler")
    for metric in found["hpa"]["spec"]["metrics"]:
        asked = metric["external"]["metric"]
        (labels,) = re.findall(r"max by \(([^)]*)\)", rules[asked["name"]]["metricsQuery"])
        assert set(asked["selector"]["matchLabels"]) <= set(labels.split(", "))
