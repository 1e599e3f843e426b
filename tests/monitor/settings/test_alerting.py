"""Tests of what a person reads when a rule of an alert is wrong: line, key, what was got, and a suggestion."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopwatch.monitor.errors import SettingsError
from hopwatch.monitor.settings import load
from hopwatch.monitor.settings.alerting import KINDS

STREAM = '[streams.s]\npath = "a -> b"\n'
RULE = STREAM + "[[alerts.rules]]\n"
ALL_KINDS = ", ".join(KINDS)
LABELS = 'Known here: team, service, owner, environment, tier; [alerts] labels = ["…"] lists those that there are'
COMMON = "kind, name, enabled, labels, runbook"
WINDOW = 'a window has all four of these: { rate = 14.4, long = "1h", short = "5m", severity = "page" }'
BURN = RULE + 'kind = "burn_rate"\n'
SPANS = '{ rate = 1, long = "1h", short = "5m", severity = "page" }'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[alerts]\ndefalts = false",
            (
                "2: alerts.defalts: there is no such key; did you mean 'defaults'? "
                "Known here: enabled, defaults, labels, dashboard, runbooks, installation, rules, channels"
            ),
        ),
        (
            '[alerts]\ndashboard = "localhost"',
            '2: alerts.dashboard: this is a URL such as "http://127.0.0.1:8501/", or "" for none; got \'localhost\'',
        ),
        (
            '[alerts]\ndashboard = "http://"',
            '2: alerts.dashboard: this is a URL such as "http://127.0.0.1:8501/", or "" for none; got \'http://\'',
        ),
        (RULE + 'name = "x"', f"3: alerts.rules: a rule has a kind, one of {ALL_KINDS}"),
        (
            RULE + 'kind = "los"',
            f"3: alerts.rules: there is no such kind of rule as 'los'; did you mean 'loss'? Known here: {ALL_KINDS}",
        ),
        (
            RULE + 'kind = "heartbeat"\nfro = "1m"',
            f"5: fro: there is no such key; did you mean 'runbook'? Known here: {COMMON}, severity",
        ),
        (
            RULE + 'kind = "loss"\nthreshold = 1.5',
            "5: threshold: a ratio is a number from 0 to 1, got 1.5",
        ),
        (
            RULE + 'kind = "outlier"\nthreshold = -1',
            "5: threshold: a score is a number from 0 to 1000, got -1",
        ),
        (
            RULE + 'kind = "set_aside"\nthreshold = 0.5',
            "5: threshold: this is a whole number from 0, got 0.5",
        ),
        (
            RULE + 'kind = "lag"\nthreshold = "0s"',
            "5: threshold: this duration is longer than zero, got '0s'",
        ),
        (RULE + 'kind = "lag"\nstamp = "on"', "5: stamp: this is one of 'both', 'in' or 'out', got 'on'"),
        (
            RULE + 'kind = "loss"\nseverity = "wake"',
            "5: severity: this is one of 'page' or 'ticket', got 'wake'",
        ),
        (
            RULE + 'kind = "loss"\nname = "A b"',
            "5: name: a rule's name is 1 to 64 of the characters a-z0-9_-, got 'A b'",
        ),
        (
            RULE + 'kind = "loss"\nstreams = ["t"]',
            "5: streams: there is no stream 't'; did you mean 's'? Known here: s",
        ),
        (
            RULE + 'kind = "loss"\nstreams = "s"',
            "5: streams: this is a list of names, such as [\"orders\"]; got 's'",
        ),
        (
            RULE + 'kind = "loss"\nnodes = [\n  "a",\n  "c",\n]',
            "7: nodes: there is no node 'c'; did you mean 'b'? Known here: a, b",
        ),
        (
            '[[alerts.rules]]\nkind = "loss"\nnodes = ["c"]',
            "3: nodes: there is no node 'c': Known here: none",
        ),
        (
            RULE + 'kind = "loss"\nlabels = { tem = "x" }',
            f"5: labels.tem: there is no label 'tem'; did you mean 'team'? {LABELS}",
        ),
        (
            '[alerts]\nlabels = ["stream"]',
            (
                "2: alerts.labels: a label is 1 to 64 of the characters a-z0-9_ and none of alertname, edge, event, "
                "installation, key, kind, node, rule, severity, stream, word; got 'stream'"
            ),
        ),
        (
            '[alerts]\ninstallation = "eu:1"',
            (
                "2: alerts.installation: an installation is 1 to 64 of the characters a-z0-9_-, "
                "or \"\" for the only one, got 'eu:1'"
            ),
        ),
        (
            RULE + 'kind = "loss"\n\n[[alerts.rules]]\nkind = "lag"\nname = "loss"',
            "8: name: another rule is called 'loss' already: give this one a name of its own",
        ),
        (
            BURN + "objective = 1.0",
            "5: objective: an objective is a ratio between 0 and 1, such as 0.999, got 1.0",
        ),
        (
            BURN + 'of = "lag"',
            '3: alerts.rules: an objective of lag has a target, such as target = "500ms"; one of loss has none',
        ),
        (
            BURN + "windows = [{ rate = 0 }]",
            "5: windows.rate: a burn rate is a number over 0 and up to 1,000,000, got 0",
        ),
        (
            BURN + f"windows = [{SPANS.replace('5m', '2h')}]",
            "5: windows: short is at most as long as long, and long at most 30d",
        ),
        (
            BURN + f"windows = [{SPANS.replace('5m', '90s')}]",
            '5: windows: long and short are whole minutes, such as "1h" and "5m"',
        ),
        (
            BURN + f"windows = [{SPANS.replace('rate', 'rat')}]",
            "5: windows.rat: there is no such key; did you mean 'rate'? Known here: rate, long, short, severity",
        ),
        (BURN + f"windows = [{SPANS.replace('rate = 1, ', '')}]", f"5: windows.rate: {WINDOW}"),
    ],
)
def test_what_is_wrong_is_told(text: str, told: str, tmp_path: Path) -> None:
    """In one line each, the most helpful first."""
    file = tmp_path / "h.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        load(file, flags={}, environ={})
    said = str(refused.value).replace(f"{file}:", "").replace("alerts.rules.", "")
    assert told in said.split("\n")


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    """With the line of each."""
    file = tmp_path / "h.toml"
    file.write_text(RULE + 'kind = "loss"\nstreams = ["x"]\n[[alerts.rules]]\nkind = "lag"\nnodes = ["y"]\n')
    with pytest.raises(SettingsError) as refused:
        load(file, flags={}, environ={})
    assert [problem.line for problem in refused.value.problems] == [5, 8]


def test_a_variable_can_say_all_rules_at_once(tmp_path: Path) -> None:
    """As TOML: rules have no names that a variable could spell."""
    file = tmp_path / "h.toml"
    file.write_text(STREAM)
    environ = {"HOPWATCH_ALERTS__RULES": '[{ kind = "loss", threshold = 0.5 }]', "HOPWATCH_ALERTS__DEFAULTS": "false"}
    (rule,) = load(file, flags={}, environ=environ).alerts.active_rules
    assert (rule.kind, getattr(rule, "threshold", None)) == ("loss", 0.5)


def test_the_longest_span_is_that_of_the_budgets(tmp_path: Path) -> None:
    """Three days by default; without budgets there is none."""
    file = tmp_path / "h.toml"
    file.write_text(STREAM)
    assert load(file, flags={}, environ={}).alerts.longest_budget_us == 3 * 86_400_000_000
    assert load(file, flags={}, environ={"HOPWATCH_ALERTS__ENABLED": "false"}).alerts.longest_budget_us == 0
