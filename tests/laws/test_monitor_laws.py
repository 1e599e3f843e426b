"""The monitor's laws, on random pipelines in which anything may go wrong: stream, batch and the slow model agree."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from hopwatch.monitor import outlier_detection
from hopwatch.monitor.kernel.window import AHEAD_US
from hopwatch.monitor.store import outliers, reader
from hopwatch.monitor.stream_config import StreamConfig
from tests.model import model, scenario
from tests.support.examples import examples
from tests.support.micro_batches import MicroBatches, run_once
from tests.support.model_comparison import assert_spans_are_sums, comparable, prepared_store, rules_of
from tests.support.spool_traffic import pulse

Json = dict[str, Any]

LIFE: Final = ("status", "revision", "recovered")
MINUTE_US: Final = 60_000_000

seeds, shards = st.integers(0, 2**31), st.integers(1, 4)


def _without_life(report: Json) -> Json:
    told = comparable(report)
    for stream in told["streams"]:
        stream["windows"] = [{k: v for k, v in window.items() if k not in LIFE} for window in stream["windows"]]
    return told


def _by_arrival(spool: Path) -> list[Path]:
    return sorted(spool.rglob("*.seg"), key=lambda path: (path.stat().st_mtime_ns, str(path)))


@settings(max_examples=examples(60, every_run=7))
@example(seed=20, shards=1, order=False)  # an implausible packet without messages
@given(seed=seeds, shards=shards, order=st.booleans())
def test_once_says_what_the_model_says(seed: int, shards: int, order: bool) -> None:  # noqa: FBT001 - drawn
    """``--once`` equals the slow reference model, field by field, quantiles included while windows are small.

    However many shards a window has, and whether order is counted or not; so do the counts of hours and days.
    """
    with TemporaryDirectory() as name:
        folder, spool = Path(name), Path(name) / "spool"
        spool.mkdir()
        made = scenario.generate(seed, spool)
        store = prepared_store(folder, "once.db")
        run_once(store, rules_of(folder, made.streams, shards=shards, order=order), _by_arrival(spool), spool)
        streams = {name: stream | {"order": order} for name, stream in made.streams.items()}
        expected = model.report(streams, spool)
        told, is_sharded = reader.read_report(store), shards > 1
        assert comparable(told, is_sharded=is_sharded) == comparable(expected, is_sharded=is_sharded)
        assert_spans_are_sums(store, expected)


@settings(max_examples=examples(40, every_run=5))
@given(seed=seeds, shards=shards)
def test_a_stream_with_crashes_says_what_once_says(seed: int, shards: int) -> None:
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
        known = rules_of(folder, made.streams, shards=shards, amend_for="3650d", order=chance.random() < 0.5)
        patience_us = AHEAD_US + 2 * MINUTE_US + max(of.terms.transit_us + of.terms.settle_us for of in known.values())
        last_us = paths[-1].stat().st_mtime_ns // 1_000
        # As in life the pulse goes on: one beat moves the watermark past the last window, the next one tells of it.
        paths.append(pulse(last_us + patience_us, "first").write(spool))
        last_beat = pulse(last_us + patience_us + MINUTE_US, "second").write(spool)
        once, stream = prepared_store(folder, "once.db"), prepared_store(folder, "stream.db")
        run_once(once, known, [*paths, last_beat], spool)
        batches = MicroBatches(known, stream, spool_dir=spool)
        rest = paths
        while rest:
            size = chance.randint(1, len(rest))
            batches.run(rest[:size], crash_after_store=chance.random() < 0.2)
            rest = rest[size:]
            if chance.random() < 0.3:
                batches.restart()
        batches.run([last_beat])
        assert _without_life(reader.read_report(stream)) == _without_life(reader.read_report(once))
        assert _memory(stream, known) == _memory(once, known)
        assert outliers.query_findings(stream) == outliers.query_findings(once)


def _memory(store: Engine, rules: Mapping[str, StreamConfig]) -> dict[str, bytes]:
    """Return what the series of each stream are remembered by, as a process that is started now takes them up."""
    with store.begin() as connection:
        return {
            stream: outlier_detection.resume_series(connection, stream, of_stream.pathway.nodes).states.tobytes()
            for stream, of_stream in rules.items()
        }
