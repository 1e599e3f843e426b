"""What it takes to hold the monitor against the slow reference model: one configuration, comparable reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

import monitor.settings
from monitor import rules
from monitor.store import dialect, schema

Json = dict[str, Any]


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def rules_of(folder: Path, streams: Json, **settings: object) -> dict[str, rules.StreamRules]:
    """Return the rules of the streams as a configuration file gives them, the settings added to each."""
    config = folder / "hopwatch.toml"
    config.write_text(f"streams = {_toml({name: stream | settings for name, stream in streams.items()})}\n")
    return rules.of(monitor.settings.load(config, flags={}, environ={}))


def prepared_store(folder: Path, name: str) -> Engine:
    """Return an empty store in a folder."""
    engine = dialect.engine(f"sqlite:///{folder / name}")
    schema.prepare(engine)
    return engine


def comparable(report: Json) -> Json:
    """Put streams in one order, count quarantined records whatever the reason is called, and leave out the texts."""
    told = json.loads(json.dumps(report))
    told["streams"].sort(key=lambda stream: stream["stream"])
    told["accounts"]["quarantined"] = sum(told["accounts"]["quarantined"].values())
    for stream in told["streams"]:
        for window in stream["windows"]:
            window["reasons"] = []
    return dict(told)
