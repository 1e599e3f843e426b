"""Laws of ``run --once --from --to``: it changes nothing outside of the span, and says within what a whole run says."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from hopwatch.monitor.errors import TransportError
from hopwatch.monitor.rejudgement import Span
from hopwatch.monitor.results import Verdict, WindowResult
from hopwatch.monitor.store import reader, tables
from hopwatch.probes.contract.limits import WINDOW_US
from tests.model import scenario
from tests.support.examples import examples
from tests.support.micro_batches import run_once, run_span
from tests.support.model_comparison import prepared_store, rules_of

LIFE: Final = ("status", "revision", "recovered")
OF_WINDOWS: Final = (tables.windows, tables.node_windows, tables.lost_ids, tables.revisions, tables.outliers)

Rows = dict[str, list[dict[str, Any]]]
seeds, shards = st.integers(0, 2**31), st.integers(1, 3)


def _rows(store: Engine, span: Span, *, inside: bool) -> Rows:
    """Return all rows of windows, those of the span or those of all others, table by table.

    The number of the write is left out: a window that is judged again is written again, whatever it says.
    """
    with store.begin() as connection:
        return {
            table.name: [
                {name: value for name, value in row.items() if name != "sequence"}
                for row in connection.execute(select(table).order_by(*table.primary_key)).mappings()
                if (row["window_start_us"] in range(*span)) == inside
            ]
            for table in OF_WINDOWS
        }


def _judgements(rows: Rows) -> Rows:
    """Return windows, nodes and lost ids without where they stand in their life."""
    told = {name: rows[name] for name in ("windows", "node_windows", "lost_ids")}
    return {
        name: [{k: v for k, v in row.items() if k not in LIFE} for row in of_table] for name, of_table in told.items()
    }


def _windows(store: Engine) -> dict[tuple[str, int], WindowResult]:
    with store.begin() as connection:
        ranges = reader.read_stream_ranges(connection)
        listed = [one for stream in ranges for one in reader.read_windows(connection, stream, 0, 2**62)]
    return {(one.stream, one.window_start_us): one for one in listed}


def _segments(spool: Path) -> list[Path]:
    return sorted(spool.rglob("*.seg"), key=lambda path: (path.stat().st_mtime_ns, str(path)))


def _span_of(chance: random.Random, starts_us: Iterable[int]) -> Span:
    first_us, last_us = min(starts_us), max(starts_us)
    minutes = (last_us - first_us) // WINDOW_US + 1
    begin, end = sorted(chance.sample(range(-1, minutes + 2), 2))
    return Span(first_us + begin * WINDOW_US, first_us + end * WINDOW_US)


@settings(max_examples=examples(60, every_run=6))
@given(seed=seeds, shards=shards)
def test_a_span_says_what_a_whole_run_says_and_leaves_all_other_windows(seed: int, shards: int) -> None:
    """A span that is judged again over all records says within what ``--once`` over them says; all else is as it was.

    The store was filled from some of the records before, or from none; a second time changes no row at all.
    """
    with TemporaryDirectory() as name:
        folder, spool, chance = Path(name), Path(name) / "spool", random.Random(seed)
        spool.mkdir()
        rules = rules_of(folder, scenario.generate(seed, spool).streams, shards=shards)
        paths = _segments(spool)
        whole, store = prepared_store(folder, "whole.db"), prepared_store(folder, "store.db")
        run_once(whole, rules, paths, spool)
        if chance.random() < 0.9:
            early = [path for path in paths if chance.random() < chance.choice((0.6, 1))]
            run_once(store, rules, early, spool)
        if not (windows := _windows(whole)):
            return
        span = _span_of(chance, [start_us for _, start_us in windows])
        others = _rows(store, span, inside=False)
        if not any(start_us in range(*span) for _, start_us in windows):
            return
        told = run_span(store, rules, paths, span, spool)
        assert told.judged == sum(start_us in range(*span) for _, start_us in windows)
        assert _rows(store, span, inside=False) == others
        once, again = _judgements(_rows(whole, span, inside=True)), _judgements(_rows(store, span, inside=True))
        assert again == once
        before = _rows(store, span, inside=True)
        assert run_span(store, rules, paths, span, spool).revised == 0
        assert _rows(store, span, inside=True) == before


@settings(max_examples=examples(60, every_run=6))
@given(seed=seeds)
def test_records_that_are_gone_are_no_losses(seed: int) -> None:
    """Nothing is surely lost for want of records that are gone: it was missing, or passed unseen, before, too."""
    with TemporaryDirectory() as name:
        folder, spool, chance = Path(name), Path(name) / "spool", random.Random(seed)
        spool.mkdir()
        rules = rules_of(folder, scenario.generate(seed, spool).streams)
        paths = _segments(spool)
        store = prepared_store(folder, "store.db")
        run_once(store, rules, paths, spool)
        before = _windows(store)
        for instance in sorted({path.parent for path in paths}):
            _lose_records(chance, instance)
        if not before:
            return
        span = _span_of(chance, [start_us for _, start_us in before])
        try:
            run_span(store, rules, _segments(spool), span, spool)
        except TransportError:
            assert _windows(store) == before
            return
        for key, now in _windows(store).items():
            _check_no_false_loss(before, key, now)


def _lose_records(chance: random.Random, instance: Path) -> None:
    """Delete some of an instance's segments: its first, its last, any, or all with their folder."""
    paths = _segments(instance)
    cut, which = chance.randint(0, len(paths)), chance.randrange(5)
    gone = [paths[:cut], paths[cut:], [path for path in paths if chance.random() < 0.4], paths, []][which]
    for path in gone:
        path.unlink()
    if not any(instance.iterdir()):
        instance.rmdir()


def _check_no_false_loss(
    before: Mapping[tuple[str, int], WindowResult], key: tuple[str, int], now: WindowResult
) -> None:
    then = before[key]
    unseen = sum(node.unobserved for node in then.nodes)
    assert now.lost_lower <= then.lost + unseen, (key, now, then)
    for was, node in zip(then.nodes, now.nodes, strict=True):
        assert node.loss_lower <= was.loss + was.unobserved, (key, node, was)
    if now.verdict is Verdict.LOSSY:
        assert then.lost + unseen + sum(node.loss for node in then.nodes) > 0
