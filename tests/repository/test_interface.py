"""Tests of the page on what people and programs touch: it names all of it, as it is."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from monitor.kernel.books import Tallies
from monitor.results import NodeResult, NodeRollUp, Quantiles, RollUp, Verdict, WindowResult
from monitor.settings import DEFAULTS, MonitorSettings, StoreSettings, StreamSettings, TransportSettings
from monitor.settings.alerting import AlertsSettings
from monitor.settings.durations import duration_us
from monitor.settings.kafka import KafkaSettings
from probes import Probe

PAGE = (Path(__file__).parents[2] / "docs" / "INTERFACE.md").read_text("utf-8")
LISTED = dict(re.findall(r"^\| `(\[[^`]+)` \| `?([^`|]*?)`? \|", PAGE, re.MULTILINE))


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
    )
    for table, model in tables:
        for name, field in model.model_fields.items():
            if name == "kafka":
                continue
            default = ", ".join(field.default) or "[]" if isinstance(field.default, tuple) else str(field.default)
            value = "required" if field.is_required() else default
            expected.setdefault(f"[{table}] {field.alias or name}", value)
    # Durations are kept in µs.
    spans = {key: told for key, told in LISTED.items() if told and told[0].isdigit() and told[-1] in "smh"}
    assert LISTED | {key: str(duration_us(told)) for key, told in spans.items()} == expected


@pytest.mark.parametrize("record", [WindowResult, NodeResult, Quantiles, Tallies, RollUp, NodeRollUp])
def test_every_field_of_the_report_is_listed(record: type) -> None:
    """Under the names that programs read."""
    hidden = {"stream", "window_start_us", "start_us", "duplicate_observations", *(one.lower() for one in Verdict)}
    names = [field.name for field in fields(record) if field.name not in hidden]
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_every_call_of_a_probe_is_listed() -> None:
    """All that is public."""
    public = [name for name in vars(Probe) if not name.startswith("_") and name != "start_anew"]
    assert [name for name in public if f"`{name}" not in PAGE] == []
