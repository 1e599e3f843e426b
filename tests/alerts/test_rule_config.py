"""Tests of the rules of a configuration: good ones without any, and what each key makes of them."""

from __future__ import annotations

from typing import Final

import pytest

from hopwatch.alerts.decision.rules import AlertRule, BurnSpans, Objective
from hopwatch.alerts.events import AlertKind, Severity
from hopwatch.monitor.settings.alerting import KINDS
from tests.support.alert_scenario import build_rules

MINUTE_US: Final = 60_000_000


def parse_rule(text: str, name: str, severity: str | None = None) -> AlertRule:
    """Return one rule of a configuration."""
    found = [rule for rule in build_rules(text).rules if rule.name == name and severity in (None, rule.severity)]
    (rule,) = found
    return rule


def test_without_a_configuration_there_is_a_rule_of_every_kind() -> None:
    """Loss, budgets that burn fast and a self-test that fails page; all else is for the morning. Forecasts are off."""
    rules = build_rules().rules
    assert {rule.kind for rule in rules} == {*AlertKind} - {AlertKind.FORECAST}
    assert [(rule.name, rule.severity) for rule in build_rules().by_priority if rule.severity is Severity.PAGE] == [
        ("loss", Severity.PAGE),
        ("burn_rate", Severity.PAGE),
        ("selftest", Severity.PAGE),
    ]


@pytest.mark.parametrize(
    ("name", "threshold", "for_windows", "keep_windows"),
    [
        ("loss", 0.01, 1, 5),
        ("lag", 0.0, 5, 5),
        ("end_to_end_lag", 0.0, 5, 5),
        ("unknown", 0.0, 15, 5),
        ("silent", 0.0, 10, 5),
        ("outlier", 0.0, 1, 5),
        ("probe_drops", 0.01, 5, 5),
        ("clock_skew", 0.01, 5, 5),
        ("rejected", 0.05, 5, 5),
        ("deferred", 0.05, 5, 5),
        ("deferred_age", 1_800_000_000.0, 1, 5),
    ],
)
def test_defaults(name: str, threshold: float, for_windows: int, keep_windows: int) -> None:
    """The threshold of loss is the stream's loss_alarm, those of lag its transit, which is 0 in these tests."""
    rule = parse_rule("", name)
    assert (rule.thresholds, rule.for_windows, rule.keep_windows) == ({"orders": threshold}, for_windows, keep_windows)
    assert rule.runbook == f"docs/runbooks/{rule.kind}.md"


def test_the_monitor_s_own_rules_are_of_no_stream() -> None:
    """The rule on records set aside looks back ten minutes, and the heartbeat has no period."""
    assert (parse_rule("", "set_aside").thresholds, parse_rule("", "set_aside").over_us) == ({"": 0.0}, 10 * MINUTE_US)
    assert parse_rule("", "heartbeat").thresholds == {"": 0.0}


def test_a_budget_has_a_rule_for_each_severity() -> None:
    """The usual pairs: two that page, one for a ticket; the objective is what may be bad."""
    page, ticket = (parse_rule("", "burn_rate", severity) for severity in ("page", "ticket"))
    assert page.pairs == (
        BurnSpans(14.4, 60 * MINUTE_US, 5 * MINUTE_US),
        BurnSpans(6.0, 360 * MINUTE_US, 30 * MINUTE_US),
    )
    assert ticket.pairs == (BurnSpans(1.0, 4_320 * MINUTE_US, 360 * MINUTE_US),)
    assert page.objective == ticket.objective == Objective(1 - 0.999)
    assert (page.memory_us, ticket.memory_us, parse_rule("", "loss").memory_us) == tuple(
        m * MINUTE_US for m in (30, 360, 5)
    )


def test_a_rule_of_the_same_name_stands_instead_of_the_default() -> None:
    """Its keys are those of its table, and no others; one that is not enabled is none."""
    text = '[[alerts.rules]]\nkind = "loss"\nthreshold = 0.5\nfor = "90s"\nnodes = ["b"]\nrunbook = "https://w/loss"'
    rule = parse_rule(text, "loss")
    assert (rule.thresholds, rule.for_windows, rule.nodes, rule.runbook) == (
        {"orders": 0.5},
        2,
        frozenset({"b"}),
        "https://w/loss",
    )
    assert AlertKind.LOSS not in {
        one.kind for one in build_rules('[[alerts.rules]]\nkind = "loss"\nenabled = false').rules
    }


def test_rules_of_other_names_stand_beside_the_defaults() -> None:
    """Each with its own streams and labels."""
    text = '[[alerts.rules]]\nname = "lag-of-refunds"\nkind = "lag"\nthreshold = "2s"\nstamp = "in"\n'
    text += 'streams = ["refunds"]\nlabels = { team = "payments" }'
    rules = build_rules(text, ("orders", "refunds")).rules
    rule = next(rule for rule in rules if rule.name == "lag-of-refunds")
    assert (rule.thresholds, rule.sides, rule.labels) == ({"refunds": 2e6}, ("in",), {"team": "payments"})
    assert {one.name for one in rules} == {*KINDS, "lag-of-refunds"} - {"forecast"}


def test_labels_of_streams_are_those_of_their_tables() -> None:
    """Each stream has its own; one without any has none."""
    rules = build_rules('[streams.a]\npath = "a"\n[streams.b]\npath = "b"\nlabels = { team = "payments" }')
    assert rules.stream_labels == {"a": {}, "b": {"team": "payments"}}


def test_defaults_and_alerts_can_be_switched_off() -> None:
    """Then there are the rules that are configured, or none at all."""
    only = '[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "loss"\n'
    assert [rule.name for rule in build_rules(only).rules] == ["loss"]
    assert build_rules("[alerts]\nenabled = false").rules == ()


def test_objectives_that_count_the_same_share_their_counts() -> None:
    """Two budgets of loss are one objective; each target of lag is one of its own."""
    text = ""
    for name, more in (
        ("strict", "objective = 0.9999"),
        ("quick", 'of = "lag"\ntarget = "500ms"'),
        ("slow", 'of = "lag"\ntarget = "5s"'),
    ):
        text += f'[[alerts.rules]]\nname = "{name}"\nkind = "burn_rate"\n{more}\n'
    rules = build_rules(text)
    names = [objective.name for objective in rules.objectives["orders"]]
    assert names == ["loss", "lag over 500000 us", "lag over 5000000 us"]
    assert [rule.subject for rule in rules.rules if rule.name in {"strict", "quick"}] == ["loss"] * 2 + ["lag"] * 2
