"""Comparison of the monitor with the slow reference model: one configuration, comparable reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from hopwatch.monitor import stream_config
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.settings import load
from hopwatch.monitor.store import dialect, rollups, schema
from tests.model import hours

Json = dict[str, Any]


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def rules_of(folder: Path, streams: Json, **settings: object) -> dict[str, stream_config.StreamConfig]:
    """Return the rules of the streams as a configuration file gives them, the settings added to each."""
    config = folder / "hopwatch.toml"
    config.write_text(f"streams = {_toml({name: stream | settings for name, stream in streams.items()})}\n")
    return load(config, flags={}, environ={}).stream_configs()


def prepared_store(folder: Path, name: str) -> Engine:
    """Return an empty store in a folder."""
    engine = dialect.create_engine(f"sqlite:///{folder / name}")
    schema.prepare_store(engine)
    return engine


def comparable(report: Json, *, is_sharded: bool = False) -> Json:
    """Put streams in one order, count records set aside whatever the reason is called, and leave out texts and names.

    Of lags of which there are more than a merged digest holds exactly, the count and the bounds are left:
    tests/laws/test_tdigest_laws.py has how far off in rank the others may be. What is slow by label goes by the p95 of
    each shard, and is left out where there are several.
    """
    told = json.loads(json.dumps(report))
    told["streams"].sort(key=lambda stream: stream["stream"])
    told["accounts"]["set_aside"] = sum(told["accounts"]["set_aside"].values())
    told["accounts"].pop("undeclared", None)
    for stream in told["streams"]:
        for window in stream["windows"]:
            window["reasons"] = []
            _leave_out_inexact(window)
            for node in window["nodes"]:
                lags = node.get("lag_out_us")
                if is_sharded or (lags and lags["count"] > tdigest.EXACT_UP_TO):
                    _leave_out_slow(node)
                _leave_out_inexact(node)
    return dict(told)


def assert_spans_are_sums(engine: Engine, expected: Json) -> None:
    """Check that what nodes counted in hours and days is what the model makes of its windows."""
    for by in (rollups.HOUR, rollups.DAY):
        streams = rollups.read_report(engine, by)["streams"]
        told = {one["stream"]: [hours.without_percentiles(span["counts"]) for span in one[f"{by}s"]] for one in streams}
        assert told == hours.counts_by_stream(expected, by)


def _leave_out_slow(node: Json) -> None:
    node["lag_causes"] = []
    for row in node["labels"]:
        row |= {"departures": None, "slow": None, "slow_dispersion": None}


def _leave_out_inexact(figures: Json) -> None:
    for name in ("lag_us", "lag_in_us", "lag_out_us", "inside_us", "displacement"):
        lags = figures.get(name)
        if lags and lags["count"] > tdigest.EXACT_UP_TO:
            figures[name] = {kept: lags[kept] for kept in ("count", "min", "max")}
