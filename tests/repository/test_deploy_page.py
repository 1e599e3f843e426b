"""Tests of docs/DEPLOY.md: its commands are taken, its settings are valid, its numbers are those of the program."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Final

import pytest

from hopwatch.monitor import settings, topics
from hopwatch.monitor.settings import StoreSettings
from hopwatch.monitor.settings.durations import parse_duration_us
from hopwatch.monitor.spark import cluster
from hopwatch.probes.contract.kafka import KafkaPlace
from tests.repository import ROOT
from tests.repository.deployment import commands
from tests.repository.deployment.deployment import Deployment
from tests.repository.deployment.variables import advertised
from tests.support import page_blocks

PAGE: Final = (ROOT / "docs" / "DEPLOY.md").read_text("utf-8")
LINES: Final = re.findall(r"^\$ (.+)$", PAGE, re.MULTILINE)
TABLES: Final = "\n".join(re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
SECRETS: Final = "/run/secrets"
COMPOSE: Final = ("docker", "compose")
_OF_COMPOSE: Final = {"up", "exec", "logs", "restart", "down"}


@pytest.mark.parametrize("line", [line for line in LINES if commands.PROGRAM in shlex.split(line)])
def test_every_command_line_is_taken(line: str) -> None:
    """By the program itself, alone or in a container."""
    words = shlex.split(line)
    assert commands.refusal(*words[words.index(commands.PROGRAM) + 1 :]) == ""


def test_what_is_asked_of_compose_names_services() -> None:
    """In lines of their own, and in the text."""
    told = [*LINES, *re.findall(r"`(docker compose [^`]+)`", PAGE)]
    asked = [shlex.split(line)[2:] for line in told if line.startswith(" ".join(COMPOSE))]
    assert {words[0] for words in asked} == _OF_COMPOSE
    named = [
        next(word for word in words[1:] if not word.startswith("-"))
        for words in asked
        if words[0] in {"exec", "logs", "restart"}
    ]
    assert set(named) == {"monitor", "alertmanager"} <= set(Deployment().services)


def test_every_service_is_in_the_table() -> None:
    """With when it is healthy and what it keeps; a volume by its name."""
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", PAGE, re.MULTILINE))
    deployment = Deployment()
    assert set(rows) == set(deployment.services)
    assert {name for name, kept in rows.items() if f"volume `{name}`" in kept} == set(deployment.raw["volumes"])


def test_the_settings_are_valid(tmp_path: Path) -> None:
    """All tables of the page together make a configuration, once its secrets are there."""
    for name in ("kafka_password", "kafka_ca.pem"):
        (tmp_path / name).write_text("x")
    # [monitor] and its tables stand in a block of their own.
    (tmp_path / "hopwatch.toml").write_text(TABLES.replace(SECRETS, str(tmp_path)))
    chosen = settings.load(tmp_path / "hopwatch.toml", flags={}, environ={})
    assert chosen.transport.access.sasl_password == "x"  # noqa: S105 - what stands in the file
    assert chosen.monitor.spark == tomllib.loads(TABLES)["monitor"]["spark"]
    assert cluster.is_local(chosen.monitor.master) is False


def test_every_variable_is_a_setting(tmp_path: Path) -> None:
    """Each that the page names, given a value."""
    (tmp_path / "file").write_text("x")
    named = set(re.findall(r"HOPWATCH_\w+__\w+", PAGE))
    assert named
    environ = dict.fromkeys(named, str(tmp_path / "file"))
    access = {"SECURITY_PROTOCOL": "SASL_SSL", "SASL_MECHANISM": "PLAIN", "SASL_USERNAME": "hopwatch"}
    environ |= {f"HOPWATCH_TRANSPORT__KAFKA__{name}": value for name, value in access.items()}
    assert settings.load(None, flags={}, environ=environ).transport.access.is_sasl


def test_the_numbers_are_the_program_s() -> None:
    """Of the topic that is made without flags, and of the patience with a store."""
    assert f"a topic has {topics.REPLICATION} copies, of" in PAGE
    told = f"which {topics.MIN_INSYNC} acknowledge each record, {topics.PARTITIONS} partitions, and keeps records for"
    assert f"{told} {topics.RETENTION_HOURS} hours" in " ".join(PAGE.split())
    assert StoreSettings.model_fields["retry_for_us"].default == parse_duration_us("10m")
    assert "10 minutes by default" in " ".join(page_blocks.page("docs/OPERATE.md").split())


def test_the_probe_sends_where_the_broker_is_published() -> None:
    """To the machine's own port, as a node of a stream that is watched."""
    stream, node, sink = re.findall(r'Probe\(stream="(\w+)", node="(\w+)", sink="([^"]+)"\)', PAGE)[0]
    deployment = Deployment()
    place, read = KafkaPlace.parse(sink), deployment.environment("monitor")["HOPWATCH_TRANSPORT__URL"]
    assert place.brokers in advertised(deployment, "kafka")
    assert place.topic == KafkaPlace.parse(read).topic
    watched = settings.load(ROOT / "docker" / "hopwatch.toml", flags={}, environ={}).streams
    assert node in watched[stream].pathway.nodes


def test_other_pages_lead_here() -> None:
    """README does, and what the Compose file says of itself."""
    for name in ("README.md", "docker-compose.yml"):
        assert "docs/DEPLOY.md" in (ROOT / name).read_text("utf-8")
