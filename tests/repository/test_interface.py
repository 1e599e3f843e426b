"""Tests of the pages on commands, fields and keys: they name all of them, as they are."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
import typer

from hopwatch import Probe
from hopwatch.cli.commands import COMMANDS, build_application
from hopwatch.monitor.kernel.books import InstanceCounts
from hopwatch.monitor.results import NodeResult, NodeRollUp, Quantiles, RollUp, Verdict, WindowResult
from hopwatch.monitor.settings import DEFAULTS, MonitorSettings, StoreSettings, StreamSettings, TransportSettings
from hopwatch.monitor.settings.alerting import AlertsSettings
from hopwatch.monitor.settings.api import ReaderSettings
from hopwatch.monitor.settings.completeness import CompletenessSettings
from hopwatch.monitor.settings.dashboard import DashboardSettings, LoginSettings
from hopwatch.monitor.settings.deliver import DeliverySettings
from hopwatch.monitor.settings.durations import parse_duration_us
from hopwatch.monitor.settings.gate import (
    EntranceSettings,
    ProducerSettings,
    RegistrySettings,
    ThrottleSettings,
    TlsSettings,
)
from hopwatch.monitor.settings.kafka import KafkaSettings
from hopwatch.monitor.settings.metrics import MetricsSettings
from hopwatch.monitor.settings.otlp import OtlpSettings
from hopwatch.monitor.settings.results import ResultsSettings
from hopwatch.monitor.settings.selftest import SelftestSettings

PAGE = (Path(__file__).parents[2] / "docs" / "INTERFACE.md").read_text("utf-8")
FLAG = re.compile(r"--[a-z][a-z-]+")
CONFIGURE = (Path(__file__).parents[2] / "docs" / "CONFIGURE.md").read_text("utf-8")
LISTED = dict(re.findall(r"^\| `(\[[^`]+)` \| `?([^`|]*?)`? \|", CONFIGURE, re.MULTILINE))


def test_every_key_is_listed_with_its_default() -> None:
    """Of the tables whose defaults are in the model, and of those that depend on where one stands."""
    expected = {f"[{table}] {key}": value for table, keys in DEFAULTS.items() for key, value in keys.items()}
    tables = (
        ("transport", TransportSettings),
        ("transport.kafka", KafkaSettings),
        ("store", StoreSettings),
        ("monitor", MonitorSettings),
        ("streams.NAME", StreamSettings),
        ("alerts", AlertsSettings),
        ("metrics", MetricsSettings),
        ("dashboard", DashboardSettings),
        ("dashboard.login", LoginSettings),
        ("gate.streams.NAME", EntranceSettings),
        ("gate.streams.NAME.throttle", ThrottleSettings),
        ("gate.producers.NAME", ProducerSettings),
        ("gate.tls", TlsSettings),
        ("gate.registry", RegistrySettings),
        ("deliver.NAME", DeliverySettings),
        ("api.readers.NAME", ReaderSettings),
        ("api.tls", TlsSettings),
        ("completeness.NAME", CompletenessSettings),
        ("otlp", OtlpSettings),
        ("results", ResultsSettings),
        ("selftest", SelftestSettings),
    )
    for table, model in tables:
        for name, field in model.model_fields.items():
            if name in {"kafka", "login", "throttle"}:
                continue
            default = (
                ", ".join(map(str, field.default)) or "[]" if isinstance(field.default, tuple) else str(field.default)
            )
            value = "required" if field.is_required() else default
            expected.setdefault(f"[{table}] {field.alias or name}", value)
    # Durations are kept in µs.
    spans = {key: told for key, told in LISTED.items() if told and told[0].isdigit() and told[-1] in "smhd"}
    in_us = {key: ", ".join(str(parse_duration_us(span)) for span in told.split(", ")) for key, told in spans.items()}
    assert LISTED | in_us == expected


@pytest.mark.parametrize("record", [WindowResult, NodeResult, Quantiles, InstanceCounts, RollUp, NodeRollUp])
def test_every_field_of_the_report_is_listed(record: type) -> None:
    """Under the names that programs read."""
    hidden = {"stream", "window_start_us", "start_us", "duplicate_observations", *(one.lower() for one in Verdict)}
    told = getattr(record, "_fields", None) or [field.name for field in fields(record)]
    names = [name for name in told if name not in hidden]
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_every_call_of_a_probe_is_listed() -> None:
    """All that is public."""
    public = [name for name in vars(Probe) if not name.startswith("_") and name != "start_anew"]
    assert [name for name in public if f"`{name}" not in PAGE] == []


@cache
def flags_of_the_program() -> dict[str, set[str]]:
    """Return the flags of every command, those of groups by both names."""
    found = {}
    for name in COMMANDS:
        called = typer.main.get_command(build_application([name])).commands[name]  # type: ignore[attr-defined]  # a group
        below_it = getattr(called, "commands", {})
        # A group that does something by itself has flags of its own.
        itself = {} if below_it and not called.invoke_without_command else {"": called}
        for below, command in {**itself, **below_it}.items():
            found[f"{name} {below}".strip()] = {
                flag for one in command.params for flag in one.opts if flag.startswith("--")
            }
    return found


@pytest.mark.parametrize(("command", "flags"), flags_of_the_program().items())
def test_every_command_and_flag_is_listed(command: str, flags: set[str]) -> None:
    """Each in the row of its command, and no other; the demo's one a row, what all taps have in a row of its own."""
    _, _, section = PAGE.partition("\n## `hopwatch demo`\n")
    if command == "demo":
        rows = [line.split("|")[1] for line in section.partition("\n## ")[0].splitlines() if line.startswith("| `--")]
    elif command.startswith("tap "):
        rows = [line for line in PAGE.splitlines() if line.startswith((f"| `{command}", "| all |"))]
    else:
        # The last column; what is said beside it may name flags of other commands.
        rows = [line.rstrip(" |").rpartition(" | ")[2] for line in PAGE.splitlines() if starts(line, command)]
        assert len(rows) == 1
    assert set(FLAG.findall(" ".join(rows))) == flags


def starts(line: str, command: str) -> bool:
    """Return whether a line is the row of a command, and not of one below it."""
    named = [name for name in flags_of_the_program() if re.match(rf"\| `hopwatch {name}[ `]", line)]
    return max(named, key=len, default="") == command
