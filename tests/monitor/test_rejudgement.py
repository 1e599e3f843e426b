"""Tests of judging a span again: what is gone, what a stream holds, what came late, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Engine, update

from hopwatch.monitor.errors import StoreError, TransportError
from hopwatch.monitor.rejudgement import Rejudged, Span
from hopwatch.monitor.results import Status, Verdict, WindowResult
from hopwatch.monitor.store import dialect, fencing, reader, schema, tables, writer
from hopwatch.probes.contract.batch import Batch, BatchKind, Drop
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.conclusions import dump_tables
from tests.support.micro_batches import run_once, run_span
from tests.support.spool import START_US, STREAM_CONFIGS, at_us, make_batch, observation_batch, window_ms, write_segment

SPAN: Final = Span(START_US, START_US + WINDOW_US)
BYE_US: Final = at_us(2_000)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """Return the engine of an empty store."""
    made = dialect.create_engine(f"sqlite:///{tmp_path}/store.db")
    schema.prepare_store(made)
    return made


def segment(folder: Path, name: str, *records: Batch, arrival_us: int = at_us(70)) -> Path:
    """Write the segment of an instance in a folder that says nothing of it."""
    return write_segment(folder / name / "0000000000.seg", *records, arrival_us=arrival_us)


def bye(node: str = "a", seq: int = 1, **fields: Any) -> Batch:  # noqa: ANN401 - as a Batch has them
    """Return the last batch of an instance that has told everything."""
    return make_batch(BatchKind.BYE, node, seq=seq, complete_through_us=BYE_US, sent_at_us=BYE_US, **fields)


def window(engine: Engine, start_us: int = START_US) -> WindowResult:
    """Return a window as the store has it."""
    with engine.begin() as connection:
        found = reader.read_window(connection, "orders", start_us)
    assert found is not None
    return found


def test_what_has_come_since_is_a_revision_beside_the_old_one(engine: Engine, tmp_path: Path) -> None:
    """The old figures stay readable, ids that turned up are counted, and a second time says nothing new."""
    before = [
        segment(tmp_path, "a", observation_batch(range(10)), bye()),
        segment(tmp_path, "b", observation_batch(range(8), "b")),
    ]
    run_once(engine, STREAM_CONFIGS, before)
    late = segment(tmp_path, "b2", observation_batch([8], "b", seq=1), bye("b", 2), arrival_us=at_us(2_000))
    assert run_span(engine, STREAM_CONFIGS, [*before, late], SPAN) == Rejudged(judged=1, revised=1, left=0)
    now = window(engine)
    assert (now.status, now.revision, now.verdict, now.lost, now.recovered) == (Status.AMENDED, 1, Verdict.LOSSY, 1, 1)
    with engine.begin() as connection:
        (revision,) = reader.read_revisions(connection, "orders", None, None)
    assert (revision.revision, revision.watermark_us) == (1, at_us(2_000))
    assert (revision.changed["lost"], revision.changed["verdict"]) == ((2, 1), ("UNKNOWN", "LOSSY"))
    assert run_span(engine, STREAM_CONFIGS, [*before, late], SPAN) == Rejudged(judged=1, revised=0, left=0)
    assert window(engine) == now


def test_an_instance_that_is_gone_whole_makes_no_loss(engine: Engine, tmp_path: Path) -> None:
    """Of two replicas one is deleted with its folder: its messages are missing, and nothing says that they are lost."""
    kept = [
        segment(tmp_path, "a", observation_batch(range(10)), bye()),
        segment(tmp_path, "b", observation_batch(range(5), "b"), bye("b")),
    ]
    gone = segment(tmp_path, "c", observation_batch(range(5, 10), "b", probe="other"), bye("b", probe="other"))
    run_once(engine, STREAM_CONFIGS, [*kept, gone])
    assert window(engine).verdict is Verdict.CLEAN
    run_span(engine, STREAM_CONFIGS, kept, SPAN)
    now = window(engine)
    assert (now.verdict, now.lost, now.lost_lower, now.recovered) == (Verdict.UNKNOWN, 5, 0, 0)


@pytest.mark.timeout(60)
def test_a_span_costs_what_is_in_it(engine: Engine, tmp_path: Path) -> None:
    """Of a hundred thousand years one minute has records: the others cost nothing, however much is gone."""
    kept = [
        segment(tmp_path, "a", observation_batch(range(10)), bye()),
        segment(tmp_path, "b", observation_batch(range(5), "b"), bye("b")),
    ]
    gone = segment(tmp_path, "c", observation_batch(range(5, 10), "b", probe="other"), bye("b", probe="other"))
    run_once(engine, STREAM_CONFIGS, [*kept, gone])
    years = Span(START_US - 100_000 * 365 * 1_440 * WINDOW_US, START_US + WINDOW_US)
    assert run_span(engine, STREAM_CONFIGS, kept, years).judged == 1
    assert (window(engine).verdict, window(engine).lost_lower) == (Verdict.UNKNOWN, 0)


def test_a_late_batch_that_is_gone_makes_no_loss(engine: Engine, tmp_path: Path) -> None:
    """Though it was sent long after the horizon of its window, where a batch that never came would touch nothing."""
    told = {"complete_through_us": at_us(900), "sent_at_us": at_us(900)}
    a = segment(tmp_path, "a", observation_batch(range(10)), bye())
    early = segment(
        tmp_path,
        "b",
        observation_batch(range(9), "b"),
        make_batch(BatchKind.HEARTBEAT, "b", seq=1, **told),
        arrival_us=at_us(900),
    )
    late = segment(
        tmp_path,
        "c",
        observation_batch([9], "b", seq=2, sent_at_us=at_us(1_000), complete_through_us=at_us(1_000)),
        arrival_us=at_us(1_000),
    )
    end = segment(tmp_path, "d", bye("b", 3), arrival_us=BYE_US)
    run_once(engine, STREAM_CONFIGS, [a, early, late, end])
    assert window(engine).verdict is Verdict.CLEAN
    run_span(engine, STREAM_CONFIGS, [a, early, end], SPAN)
    now = window(engine)
    assert (now.verdict, now.lost, now.lost_lower) == (Verdict.UNKNOWN, 1, 0)
    # As a batch that nobody ever had would be judged.
    run_once(engine, STREAM_CONFIGS, [a, early, end])
    assert window(engine).verdict is Verdict.LOSSY


def test_drops_that_were_told_are_known_still(engine: Engine, tmp_path: Path) -> None:
    """The record that told of them is gone, and the store knows what it said."""
    kept = segment(tmp_path, "a", observation_batch(range(10)))
    gone = segment(tmp_path, "b", bye(drops=[Drop(window_ms(0), 3, "queue_full")]), arrival_us=BYE_US)
    run_once(engine, STREAM_CONFIGS, [kept, gone])
    run_span(engine, STREAM_CONFIGS, [kept], SPAN)
    assert [node.dropped for node in window(engine).nodes] == [3, 0]


def test_what_is_gone_stays_known_when_more_has_come(engine: Engine, tmp_path: Path) -> None:
    """A store that a span has filled remembers all batches that were ever read, those of the span included."""
    a, b = segment(tmp_path, "a", observation_batch(range(4))), segment(tmp_path, "b", bye(), arrival_us=BYE_US)
    run_span(engine, STREAM_CONFIGS, [a], SPAN)
    run_span(engine, STREAM_CONFIGS, [b], Span(START_US, START_US + 2 * WINDOW_US))
    with engine.begin() as connection:
        (book,) = reader.read_books(connection)
    assert [run[:2] for run in book.runs] == [(0, 1)]
    assert (book.said_bye, book.tallies.observations) == (True, 4)


def test_windows_without_a_record_stay_as_they_are(engine: Engine, tmp_path: Path) -> None:
    """Nothing can be said anew of windows before the first record that is left."""
    old = segment(tmp_path, "a", observation_batch(range(4)))
    new = segment(
        tmp_path,
        "b",
        observation_batch(range(4, 6), window_start_ms=window_ms(1), seq=1),
        bye(seq=2, window_start_ms=window_ms(1)),
        arrival_us=at_us(130),
    )
    run_once(engine, STREAM_CONFIGS, [old, new])
    before = window(engine)
    assert run_span(engine, STREAM_CONFIGS, [new], Span(START_US, START_US + 2 * WINDOW_US)).left == 1
    assert window(engine) == before


def as_stream(engine: Engine, *, live: bool) -> None:
    """Let the store be a stream's, whose windows can change, or cannot."""
    with engine.execution_options(writes=True).begin() as connection:
        writer.set_values(connection, {"query_id": "a-query", "batch_id": "7", "run": "a-run"})
        connection.execute(update(tables.windows).values(is_live=live))


def test_the_store_of_a_stream_stays_its_own(engine: Engine, tmp_path: Path) -> None:
    """Windows that the stream has judged are judged again; its books, its range and its watermark are as they were."""
    a = segment(tmp_path, "a", observation_batch(range(10)), bye())
    run_once(engine, STREAM_CONFIGS, [a])
    as_stream(engine, live=False)
    before = dump_tables(engine)
    more = [
        segment(tmp_path, "b", observation_batch(range(10), "b"), bye("b")),
        segment(
            tmp_path,
            "c",
            observation_batch([1], window_start_ms=window_ms(60), probe="new", epoch_us=at_us(3_590)),
            arrival_us=at_us(3_601),
        ),
    ]
    assert run_span(engine, STREAM_CONFIGS, [a, *more], Span(START_US, START_US + 90 * WINDOW_US)) == Rejudged(1, 1, 0)
    after = dump_tables(engine)
    assert window(engine).verdict is Verdict.CLEAN
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"meta", "windows", "node_windows", "lost_ids", "path_times", "revisions"}
    was, now = {("run", "a-run"), ("sequence", "1")}, {("run", "once"), ("sequence", "2")}
    assert {tuple(row) for row in after["meta"]} == {tuple(row) for row in before["meta"]} - was | now


def test_a_window_that_a_stream_can_change_is_refused(engine: Engine, tmp_path: Path) -> None:
    """A window is written by the stream or by the span, never by both."""
    a = segment(tmp_path, "a", observation_batch(range(10)), bye())
    run_once(engine, STREAM_CONFIGS, [a])
    as_stream(engine, live=True)
    with pytest.raises(StoreError) as caught:
        run_span(engine, STREAM_CONFIGS, [a], SPAN)
    assert str(caught.value) == (
        "the store's own stream can still change the window 2026-01-01T00:00:00Z of 'orders': "
        "let --to be no later, or let hopwatch run judge it"
    )


def test_windows_that_were_pruned_do_not_come_back(engine: Engine, tmp_path: Path) -> None:
    """Their hour is kept as it was when it had all of them."""
    a = segment(tmp_path, "a", observation_batch(range(10)), bye())
    with engine.execution_options(writes=True).begin() as connection:
        hour: dict[str, Any] = {column.name: 0 for column in tables.rollups.c if not column.nullable}
        hour |= {"stream": "orders", "span": "hour", "start_us": START_US, "is_frozen": True}
        connection.execute(tables.rollups.insert(), [hour])
    with pytest.raises(StoreError) as caught:
        run_span(engine, STREAM_CONFIGS, [a], SPAN)
    assert str(caught.value) == (
        "the hour of 'orders' from 2026-01-01T00:00:00Z on is closed: its windows or their digests are gone; "
        "choose a span behind it, or another store in [store] url"
    )


def test_another_path_is_refused_of_what_was_filled_once(engine: Engine, tmp_path: Path) -> None:
    """The other windows of the store have the old one, and nothing says from when on which is valid."""
    a = segment(tmp_path, "a", observation_batch(range(10)), bye())
    run_once(engine, STREAM_CONFIGS, [a])
    other = {"orders": replace(STREAM_CONFIGS["orders"], shards=2)}
    with pytest.raises(StoreError) as caught, engine.begin() as connection:
        fencing.read_span_rules(connection, other)
    assert str(caught.value) == (
        "the stream 'orders' had another path, stamps or shards when the store was filled: "
        "fill it anew by --once without a span, or name another store in [store] url"
    )


def test_a_span_of_a_stream_is_judged_by_the_versions_of_its_minutes(engine: Engine) -> None:
    """The store of a stream knows by which version its windows were judged: the configuration does not count."""
    with engine.execution_options(writes=True).begin() as connection:
        fencing.register_batch(connection, "q", 0, STREAM_CONFIGS)
        other = {"orders": replace(STREAM_CONFIGS["orders"], shards=2), "new": STREAM_CONFIGS["orders"]}
        assert fencing.read_span_rules(connection, other) == {**STREAM_CONFIGS, "new": STREAM_CONFIGS["orders"]}


@pytest.mark.parametrize("minutes", [-60, 60])
def test_a_span_of_which_nothing_is_there_changes_nothing(minutes: int, engine: Engine, tmp_path: Path) -> None:
    """Before the oldest record or behind the newest: one line says from when to when there are any."""
    a = segment(tmp_path, "a", observation_batch(range(10)))
    run_once(engine, STREAM_CONFIGS, [a])
    before = dump_tables(engine)
    with pytest.raises(TransportError) as caught:
        run_span(engine, STREAM_CONFIGS, [a], Span(*(end + minutes * WINDOW_US for end in SPAN)))
    assert str(caught.value).endswith(
        "can be judged again: the transport has windows from 2026-01-01T00:00:00Z to 2026-01-01T00:00:00Z"
    )
    assert dump_tables(engine) == before


def test_a_transport_without_any_record_changes_nothing(engine: Engine) -> None:
    """There is no window at all."""
    with pytest.raises(TransportError) as caught:
        run_span(engine, STREAM_CONFIGS, [], SPAN)
    assert str(caught.value) == (
        "nothing of 2026-01-01T00:00:00Z to 2026-01-01T00:01:00Z can be judged again: "
        "the transport has no window at all"
    )
