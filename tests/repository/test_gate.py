"""Tests of the page on the gate: it names every rule, key, status and action, and its example is a configuration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, get_args

import pytest

from hopwatch.client import ClientPolicy
from hopwatch.client.spool import SEGMENT_BYTES
from hopwatch.gate import intake, routes
from hopwatch.gate.app import MAX_REQUESTS
from hopwatch.gate.event_checks import MAX_AHEAD_US
from hopwatch.gate.outlets import MAX_WAITING_BYTES
from hopwatch.gate.outlets.kafka import WRITE_TIMEOUT_S
from hopwatch.gate.producers import QUOTA_PERIOD_S
from hopwatch.gate.request_bodies import MAX_EVENT_BYTES, MAX_EVENTS
from hopwatch.gate.routes import MAX_BODY_BYTES
from hopwatch.monitor.settings import load
from hopwatch.monitor.settings.gate import KINDS, Action, AnyRule, RuleSettings
from hopwatch.probes.http.connections import MAX_PER_ADDRESS, UNREAD_S
from hopwatch.probes.http.granian_server import HEADERS_S, MAX_CONNECTIONS, MAX_HEALTH_CONNECTIONS
from hopwatch.probes.http.limits import Limits
from hopwatch.probes.http.problems import MAX_FAULTS
from hopwatch.probes.http.tokens import OPEN_PATHS
from tests.repository import ROOT

PAGE: Final = (ROOT / "docs" / "GATE.md").read_text("utf-8")


def test_every_status_is_told() -> None:
    """And no other."""
    assert {int(status) for status in re.findall(r"^\| (4\d\d|5\d\d) \|", PAGE, re.MULTILINE)} == set(
        routes._DESCRIPTIONS
    )


@pytest.mark.parametrize(("kind", "rule"), KINDS.items())
def test_every_rule_is_listed_with_its_keys(kind: str, rule: type[AnyRule]) -> None:
    """Those that all rules have stand above."""
    (row,) = re.findall(rf"^\| `{kind}` \| (.*?) \|", PAGE, re.MULTILINE)
    own = rule.model_fields.keys() - RuleSettings.model_fields.keys() - {"kind"}
    assert set(re.findall(r"`(\w+)`", row)) == {rule.model_fields[name].alias or name for name in own}
    assert all(f"`{name}`" in PAGE for name in RuleSettings.model_fields if name != "action")


def test_every_action_is_told() -> None:
    """One a row."""
    assert set(re.findall(r"^\| `(reject|quarantine|note)`", PAGE, re.MULTILINE)) == set(get_args(Action))


def test_the_example_is_a_configuration(tmp_path: Path) -> None:
    """As it stands."""
    (tmp_path / "hopwatch.toml").write_text("".join(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)))
    streams = load(tmp_path / "hopwatch.toml", flags={}, environ={}).gate.streams
    assert list(streams) == ["orders"]
    assert streams["orders"].throttle is not None


def test_its_numbers_are_those_of_the_program() -> None:
    """Bounds, spans and what is remembered."""
    limits = Limits()
    mib = 1024 * 1024
    for words in (
        f"1 to {MAX_EVENTS:,} of them",
        f"the last {intake.MIN_REMEMBERED:,} events",
        f"More than {MAX_AHEAD_US // 60_000_000} min ahead",
        f"more than {MAX_BODY_BYTES // mib} MiB, unpacked",
        f"the event more than {MAX_EVENT_BYTES // 1024} KiB",
        f"did not take it within {WRITE_TIMEOUT_S:g} s",
        f"on average over {QUOTA_PERIOD_S} s",
        f"{MAX_REQUESTS:,} requests at once",
        f"{intake.MAX_WAITING} of them of one stream",
        f"{MAX_CONNECTIONS:,} connections, {MAX_PER_ADDRESS:,} of them of one address",
        f"{UNREAD_S:g} s to read what was sent",
        f"without TLS, {MAX_HEALTH_CONNECTIONS} connections",
        f"Of an event at most {MAX_FAULTS} mistakes",
        f"{limits.max_held_bytes // mib} MiB of bodies",
        f"{HEADERS_S:g} s for headers, {limits.body_s:g} s for a body",
        f"{MAX_WAITING_BYTES // mib} MiB wait for a topic or a spool",
        *(f"`{path}`" for path in OPEN_PATHS),
        f"up to {ClientPolicy().backoff_max_s:g} s with full jitter",
        f"at most {ClientPolicy().retry_after_max_s / 60:g} min, and sends again",
        f"{ClientPolicy().max_waiting_bytes // mib} MiB of events",
        f"its timeout of {ClientPolicy().timeout_s:g} s",
        f"most about {SEGMENT_BYTES // mib} MiB is sent again",
    ):
        assert words in " ".join(PAGE.split()), words
