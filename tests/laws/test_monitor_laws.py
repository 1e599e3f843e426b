"""The monitor's laws, on random pipelines in which anything may go wrong: stream, batch and the slow model agree."""

from __future__ import annotations

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

import monitor.settings
from monitor import rules
from monitor.kernel.window import AHEAD_US
from monitor.store import dialect, reader, writer
from tests.e2e.traffic import pulse
from tests.micro_batches import MicroBatches, run_once
from tests.model import model, scenario

Json = dict[str, Any]

QUANTILES: Final = ("p50", "p95", "p99")
LIFE: Final = ("status", "revision", "recovered")
MINUTE_US: Final = 60_000_000

seeds = st.integers(0, 2**31)


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def _rules(folder: Path, streams: Json) -> dict[str, rules.StreamRules]:
    config = folder / "hopwatch.toml"
    config.write_text(f"streams = {_toml(streams)}\n")
    return rules.of(monitor.settings.load(config, flags={}, environ={}))


def _store(folder: Path, name: str) -> Engine:
    engine = dialect.engine(f"sqlite:///{folder / name}")
    writer.prepare(engine)
    return engine


def _comparable(report: Json) -> Json:
    """Put streams in one order, count quarantined records whatever the reason is called, and leave out the texts."""
    told = json.loads(json.dumps(report))
    told["streams"].sort(key=lambda stream: stream["stream"])
    told["accounts"]["quarantined"] = sum(told["accounts"]["quarantined"].values())
    for stream in told["streams"]:
        for window in stream["windows"]:
            window["reasons"] = []
    return dict(told)


def _without_life(report: Json) -> Json:
    told = _comparable(report)
    for stream in told["streams"]:
        stream["windows"] = [{k: v for k, v in window.items() if k not in LIFE} for window in stream["windows"]]
    return told


def _by_arrival(spool: Path) -> list[Path]:
    return sorted(spool.rglob("*.seg"), key=lambda path: (path.stat().st_mtime_ns, str(path)))


@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_once_says_what_the_model_says(seed: int) -> None:
    """``--once`` equals the slow reference model, field by field, quantiles included while windows are small."""
    with TemporaryDirectory() as name:
        folder, spool = Path(name), Path(name) / "spool"
        spool.mkdir()
        made = scenario.generate(seed, spool)
        store = _store(folder, "once.db")
        run_once(store, _rules(folder, made.streams), _by_arrival(spool))
        assert _comparable(reader.report(store)) == _comparable(model.report(made.streams, spool))


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_a_stream_with_crashes_says_what_once_says(seed: int) -> None:
    """Micro-batches of any size, restarts and replays after a crash change nothing but a window's life.

    As long as windows can be amended, that is: what comes after that changes a stream's windows no more, and
    ``--once``, which judges everything at once, has no such end.
    """
    with TemporaryDirectory() as name:
        folder, spool, chance = Path(name), Path(name) / "spool", random.Random(seed)
        spool.mkdir()
        made = scenario.generate(seed, spool)
        if not (paths := _by_arrival(spool)):
            return
        known = _rules(folder, {name: stream | {"amend_for": "3650d"} for name, stream in made.streams.items()})
        patience_us = AHEAD_US + 2 * MINUTE_US + max(of.terms.transit_us + of.terms.settle_us for of in known.values())
        last_us = paths[-1].stat().st_mtime_ns // 1_000
        # As in life the pulse goes on: one beat moves the watermark past the last window, the next one tells of it.
        paths.append(pulse(last_us + patience_us, "first").write(spool))
        last_beat = pulse(last_us + patience_us + MINUTE_US, "second").write(spool)
        once, stream = _store(folder, "once.db"), _store(folder, "stream.db")
        run_once(once, known, [*paths, last_beat])
        batches = MicroBatches(known, stream)
        rest = paths
        while rest:
            size = chance.randint(1, len(rest))
            batches.run(rest[:size], crash_after_store=chance.random() < 0.2)
            rest = rest[size:]
            if chance.random() < 0.3:
                batches.restart()
        batches.run([last_beat])
        assert _without_life(reader.report(stream)) == _without_life(reader.report(once))
