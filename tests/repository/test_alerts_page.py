"""Tests of the page on alerts and of the runbooks: every kind, key and default is there, and as it is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.alerts.channels import webhook
from hopwatch.alerts.channels.http_responses import RETRYABLE
from hopwatch.alerts.decision.incidents import STORM_STREAMS
from hopwatch.alerts.events import AlertKind, Word
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.settings import channels, load, templates
from hopwatch.monitor.settings.alerting import KINDS, BurnWindow
from tests.repository import ROOT
from tests.support.alert_scenario import build_rules
from tests.support.shipped_files import ALERTS

PAGE: Final = (ROOT / "docs" / "ALERTS.md").read_text("utf-8")
RUNBOOKS: Final = ROOT / "docs" / "runbooks"
DEFAULTS: Final = re.findall(r"^\| `(\w+)` \| (page|ticket) \| .* \| ([^|]+) \| [^|]+ \|$", PAGE, re.MULTILINE)
CHANNELS: Final = PAGE[PAGE.index("## Channels\n") : PAGE.index("## Thresholds from data")]
KEYS: Final = PAGE[PAGE.index("| key | of |") : PAGE.index("## When an alert fires")]


@pytest.mark.parametrize("kind", AlertKind)
def test_every_kind_has_its_runbook(kind: AlertKind) -> None:
    """A runbook has a meaning, a command to look with, and an action, and fits on a screen."""
    text = (RUNBOOKS / f"{kind}.md").read_text("utf-8")
    assert text.startswith(f"# {kind}\n")
    assert text.index("**What it means.**") < text.index("**Look.**") < text.index("**Do.**")
    assert "    hopwatch " in text
    assert text.count("\n") <= 30


def test_every_runbook_is_of_a_kind_or_rule_and_leads_to_others_that_are_there() -> None:
    """Or of a rule for Prometheus; none is left behind when one goes."""
    rules = {rule["annotations"]["runbook_url"].rpartition("/")[2].removesuffix(".md") for rule in ALERTS.values()}
    assert {file.stem for file in RUNBOOKS.iterdir()} == set(AlertKind) | rules
    for file in RUNBOOKS.iterdir():
        for name in re.findall(r"\]\((\w+)\.md\)", file.read_text("utf-8")):
            assert (RUNBOOKS / f"{name}.md").is_file(), (file.name, name)


def test_settings_and_rules_know_the_same_kinds() -> None:
    """A table for each, and what to make of it."""
    assert set(KINDS) == set(AlertKind)


def test_the_default_rules_are_listed_as_they_are() -> None:
    """With their severities, and how many windows they wait for."""
    expected = {(rule.name, str(rule.severity), rule.for_windows) for rule in build_rules().rules}
    found = {(name, severity, int(re.sub(r"\D", "", waits) or 1)) for name, severity, waits in DEFAULTS}
    assert found == expected


def test_every_key_of_a_rule_is_listed() -> None:
    """Those of a pair of spans too."""
    tables = [*KINDS.values(), BurnWindow]
    keys = {field.alias or name for table in tables for name, field in table.model_fields.items()}
    assert [key for key in sorted(keys) if not re.search(rf"[`{{ ]{key}[`, ]", KEYS)] == []


def test_what_an_alert_may_say_is_listed() -> None:
    """Every word, and the bound on what is told one by one."""
    told = PAGE[PAGE.index("## What an alert says") :]
    assert [word for word in Word if word != "alive" and not re.search(rf"[(, ]{word}[,)]", told)] == []
    assert STORM_STREAMS == 5
    assert "more than five streams of a rule" in PAGE


def test_every_key_of_a_channel_is_listed() -> None:
    """With each kind that has it, and all of its filters; files are told of once."""
    rows = re.findall(r"^\| (`[^|]+`)? \| ([^|]+) \|", CHANNELS, re.MULTILINE)
    listed = {key for keys, _ in rows for key in re.findall(r"`(\w+)`", keys)}
    keys = {field.alias or name for table in channels.KINDS.values() for name, field in table.model_fields.items()}
    assert listed == {key for key in keys if not key.endswith("_file") or key == "ca_file"}
    assert [kind for kind in channels.KINDS if f"`{kind}`" not in CHANNELS] == []
    assert [name for name in templates.FILTERS if f"`{name}`" not in CHANNELS] == []
    assert {
        key for table in channels.KINDS.values() for key in table.SECRET_CHECKS if f"`{key}`" not in CHANNELS
    } == set()
    assert [status for status in RETRYABLE if str(status) not in CHANNELS] == []


def test_the_example_of_channels_is_read(tmp_path: Path) -> None:
    """With what it says comes from elsewhere."""
    text, actions = re.findall(r"```toml\n(.*?)```", CHANNELS, re.DOTALL)
    key = tmp_path / "pagerduty"
    key.write_text("k")
    file = tmp_path / "hopwatch.toml"
    file.write_text(text.replace("/run/secrets/pagerduty", str(key)))
    environ = {"HOPWATCH_ALERTS__CHANNELS__TEAM__URL": "https://slack.example/x"}
    assert list(load(file, flags={}, environ=environ).alerts.channels) == ["am", "on-call", "team"]
    kinds = {channel["kind"] for channel in tomllib.loads(actions)["alerts"]["channels"].values()}
    assert kinds == {"command", "pause"}


def test_what_the_page_says_of_signatures_is_so() -> None:
    """Its code knows what we signed, today, by the secret, as it was."""
    (code,) = re.findall(r"```python\n(.*?)```", CHANNELS, re.DOTALL)
    page: dict[str, Any] = {}
    exec(code, page)  # noqa: S102 - the page's own code is what is tested
    is_ours, now_s = page["is_ours"], SystemClock().now_us() // 1_000_000
    signed, old = (webhook.sign_body("a-secret", b"{}", at_s) for at_s in (now_s, now_s - 400))
    assert is_ours("a-secret", signed, b"{}")
    assert not is_ours("another", signed, b"{}")
    assert not is_ours("a-secret", signed, b"{ }")
    assert not is_ours("a-secret", old, b"{}")
