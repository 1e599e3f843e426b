"""Tests of one micro-batch into ledger and store, and of taking up where a process was stopped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Connection, Engine

from hopwatch.monitor import micro_batch
from hopwatch.monitor.accounting.ledger import Ledger
from hopwatch.monitor.kernel.deferrals import Waits
from hopwatch.monitor.kernel.tally import NEVER_US
from hopwatch.monitor.kernel.window import STRAGGLING_US
from hopwatch.monitor.payloads import Claims, pack_tally, split_payloads
from hopwatch.monitor.results import RecentEdge, RecentFigures, RecentLag, RecentNode, Status
from hopwatch.monitor.row_kinds import CLAIMS_ROW, TALLY_ROW
from hopwatch.monitor.spark import claim_reader
from hopwatch.monitor.spark.decoder import decode_segments
from hopwatch.monitor.spark.rows import join_rows
from hopwatch.monitor.store import dialect, reader, recent_figures, rollups, schema, writer
from hopwatch.monitor.store.rollups import HOUR_US
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.batch_traffic import traffic
from tests.support.conclusions import dump_tables
from tests.support.micro_batches import MicroBatches
from tests.support.spool import (
    START_US,
    STREAM_CONFIGS,
    WINDOW_POLICY,
    at_us,
    make_batch,
    observation_batch,
    pack_lags,
    window_ms,
    write_segment,
)

OVER_US = WINDOW_POLICY.amendable_until_us(START_US) + STRAGGLING_US


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """Return the engine of an empty store."""
    return store(tmp_path / "store.db")


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    """Yield a transaction that writes."""
    with engine.execution_options(writes=True).begin() as connection:
        yield connection


def store(file: Path) -> Engine:
    """Return the engine of an empty store in a file."""
    engine = dialect.create_engine(f"sqlite:///{file}")
    schema.prepare_store(engine)
    return engine


def rows_of(path: Path) -> list[Any]:
    """Return what leaves the job when it has read a segment: tallies, facts, records set aside."""
    rows: list[Any] = []
    claims: defaultdict[tuple[str, int], list[Claims]] = defaultdict(list)
    for row in join_rows(decode_segments([str(path)], STREAM_CONFIGS)):
        if row.kind == CLAIMS_ROW:
            claims[row.stream, row.window_start_ms] += map(Claims.unpack, split_payloads(row.payload))
        else:
            rows.append(SimpleNamespace(**row._asdict()))
    return rows + [_tallied(*window, of_window) for window, of_window in claims.items()]


def _tallied(stream: str, window_start_ms: int, claims: list[Claims]) -> SimpleNamespace:
    rules = STREAM_CONFIGS[stream]
    end_us = window_start_ms * 1_000 + WINDOW_US
    tally = claim_reader.tally_claims(rules, claims, end_us)
    return SimpleNamespace(
        kind=TALLY_ROW,
        stream=stream,
        window_start_ms=window_start_ms,
        shard=0,
        last_first_sighting_us=tally.last_first_sighting_us,
        payload=pack_tally(tally),
    )


# One micro-batch


def test_what_came_in_is_written_and_the_tallied_windows_are_told(connection: Connection, tmp_path: Path) -> None:
    """Tallies, books, records set aside, the range of windows, the watermark."""
    path = write_segment(
        tmp_path / "s.seg",
        observation_batch([1]),
        observation_batch([2], seq=1, window_start_ms=window_ms(1)),
        b"broken",
    )
    tallied = micro_batch.absorb_rows(connection, Ledger(STREAM_CONFIGS), rows_of(path), at_us(70), batch_id=4)
    assert {key: list(shards) for key, shards in tallied.items()} == {
        ("orders", START_US): [0],
        ("orders", window_ms(1) * 1_000): [0],
    }
    assert [tally.observations for tally in reader.read_tallies(connection, "orders", START_US)] == [1]
    assert [book.tallies.batches for book in reader.read_books(connection)] == [2]
    assert reader.read_accounts(connection)["set_aside"] == {"bad_marker": 1}
    assert reader.read_stream_ranges(connection) == {"orders": (START_US, window_ms(1) * 1_000)}
    assert writer.read_value(connection, "watermark_us") == str(at_us(70))


KEPT: dict[str, tuple[list[Batch | bytes], list[int]]] = {
    "observations": ([observation_batch([1])], [OVER_US]),
    "heartbeats": ([make_batch(BatchKind.HEARTBEAT)], [0]),
    "both": (
        [
            observation_batch([1], "b"),
            observation_batch([1], window_start_ms=window_ms(-2)),
            make_batch(BatchKind.BYE, seq=1),
        ],
        [OVER_US],
    ),
    "a broken record": ([observation_batch([1]), b"broken"], []),
    "nothing else": ([b"broken"], []),
}


@pytest.mark.parametrize(("records", "until_us"), KEPT.values(), ids=KEPT)
def test_a_segment_is_kept_as_long_as_it_is_needed(
    records: list[Batch | bytes], until_us: list[int], engine: Engine, tmp_path: Path
) -> None:
    """For ever if something in it was set aside: whoever looks into that needs the bytes."""
    path = write_segment(tmp_path / "s.seg", *records)
    with engine.execution_options(writes=True).begin() as connection:
        micro_batch.absorb_rows(connection, Ledger(STREAM_CONFIGS), rows_of(path), at_us(70), batch_id=4)
    assert dump_tables(engine)["segments"] == [(str(path), each_us, 4) for each_us in until_us]


def test_the_newest_tally_of_a_shard_stands(connection: Connection, tmp_path: Path) -> None:
    """A window that grows is tallied anew as a whole; its horizon follows."""
    ledger = Ledger(STREAM_CONFIGS)
    for numbers, seconds in (([1], 70), ([1, 2, 3], 80)):
        path = write_segment(tmp_path / f"{seconds}.seg", observation_batch(numbers), arrival_us=at_us(seconds))
        micro_batch.absorb_rows(connection, ledger, rows_of(path), at_us(seconds))
    assert [tally.observations for tally in reader.read_tallies(connection, "orders", START_US)] == [3]
    assert ledger.live["orders"][START_US].last_first_sighting_us == at_us(80)


def test_windows_are_concluded_piece_by_piece(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each piece is in the store when it is yielded, so that a day of windows never stands in memory at once."""
    monkeypatch.setattr(micro_batch, "CONCLUSIONS_PER_WRITE", 2)
    ledger = Ledger(STREAM_CONFIGS)
    path = write_segment(
        tmp_path / "s.seg", observation_batch([1]), observation_batch([2], seq=1, window_start_ms=window_ms(4))
    )
    tallied = micro_batch.absorb_rows(connection, ledger, rows_of(path), NEVER_US)
    sizes = []
    for piece in micro_batch.conclude_windows(connection, ledger, tallied, NEVER_US):
        sizes.append(len(piece))
        for conclusion in piece:
            result = conclusion.result
            assert reader.read_window(connection, result.stream, result.window_start_us) == result
    assert sizes == [2, 2, 1]


def test_the_past_of_a_judgement_is_what_the_store_holds(connection: Connection, tmp_path: Path) -> None:
    """A ledger that was restored amends what another one has judged."""
    first = write_segment(tmp_path / "1.seg", observation_batch([1, 2]), observation_batch([1], "b"))
    judge(connection, Ledger(STREAM_CONFIGS), first, WINDOW_POLICY.final_at_us(START_US) + 100_000_000)
    late_us = WINDOW_POLICY.final_at_us(START_US) + 200_000_000
    both = write_segment(
        tmp_path / "2.seg",
        observation_batch([1, 2]),
        observation_batch([1], "b"),
        observation_batch([2], "b", seq=1),
        arrival_us=late_us,
    )
    judge(connection, micro_batch.restore_ledger(connection, STREAM_CONFIGS), both, late_us + 180_000_000)
    result = reader.read_window(connection, "orders", START_US)
    assert result is not None
    assert (result.status, result.revision, result.recovered) == (Status.AMENDED, 1, 1)


def judge(connection: Connection, ledger: Ledger, path: Path, watermark_us: int) -> None:
    """Take in a segment and judge what is due."""
    tallied = micro_batch.absorb_rows(connection, ledger, rows_of(path), watermark_us)
    for _ in micro_batch.conclude_windows(connection, ledger, tallied, watermark_us):
        pass


def test_what_is_forgotten_is_forgotten_in_ledger_and_store(connection: Connection, tmp_path: Path) -> None:
    """A forgotten window leaves ledger and live tables, and its results stay."""
    ledger = Ledger(STREAM_CONFIGS)
    judge(connection, ledger, write_segment(tmp_path / "s.seg", observation_batch([1])), OVER_US + 1)
    micro_batch.forget_windows(connection, ledger, OVER_US + 1)
    assert ledger.live == {"orders": {}}
    assert list(reader.read_live_windows(connection)) == []
    assert reader.read_tallies(connection, "orders", START_US) == []
    assert reader.read_window(connection, "orders", START_US) is not None


# Taking up where a process was stopped


def test_a_restored_ledger_is_the_ledger_that_was(engine: Engine, tmp_path: Path) -> None:
    """After every micro-batch: books, ranges, and all that is remembered of the windows that can still change."""
    stream = MicroBatches(STREAM_CONFIGS, engine)
    for paths in traffic(tmp_path / "spool"):
        stream.run(paths)
        with engine.begin() as connection:
            assert micro_batch.restore_ledger(connection, STREAM_CONFIGS) == stream.ledger


def test_what_waits_is_remembered(connection: Connection, tmp_path: Path) -> None:
    """Until when a message is deferred stands in its record; the ledger has it again, and judges in its time."""
    waits = {"outcome": b"\0\3", "until_us": pack_lags(0, at_us(1_000)), "lag_out_us": b""}
    waiting = observation_batch([1, 2], "b", **waits)
    path = write_segment(tmp_path / "s.seg", observation_batch([1, 2]), waiting, arrival_us=at_us(65))
    ledger = Ledger(STREAM_CONFIGS)
    judge(connection, ledger, path, at_us(400))
    restored = micro_batch.restore_ledger(connection, STREAM_CONFIGS)
    assert restored.live == ledger.live
    assert restored.live["orders"][START_US].waits == Waits(0, at_us(1_000) - 150_000_000)
    assert list(micro_batch.conclude_windows(connection, restored, {}, at_us(1_030) - 1)) == []
    ((then,),) = micro_batch.conclude_windows(connection, restored, {}, at_us(1_030))
    assert (then.result.in_flight, then.result.lost, then.result.deferred) == (0, 2, 1)
    again = micro_batch.restore_ledger(connection, STREAM_CONFIGS)
    assert again.live["orders"][START_US].waits == Waits(at_us(850), NEVER_US)


@pytest.mark.parametrize("crash_after_store", [False, True])
def test_restarts_change_nothing(crash_after_store: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a case
    """A process that is stopped after every micro-batch, before or after Spark has noted it, writes the same store."""
    batches = traffic(tmp_path / "spool")
    undisturbed, disturbed = (MicroBatches(STREAM_CONFIGS, store(tmp_path / f"{n}.db")) for n in range(2))
    for paths in batches:
        undisturbed.run(paths)
        disturbed.run(paths, crash_after_store=crash_after_store)
        disturbed.restart()
    assert dump_tables(disturbed.engine) == dump_tables(undisturbed.engine)
    assert {row[2] for row in dump_tables(disturbed.engine)["windows"]} == {"FINAL", "AMENDED"}


def test_shards_change_no_result(tmp_path: Path) -> None:
    """Windows split over three keys are those of one, but for the digests' inner centroids."""
    batches = traffic(tmp_path / "spool")
    reports = []
    for shards in (1, 3):
        stream = MicroBatches(
            {"orders": replace(STREAM_CONFIGS["orders"], shards=shards)}, store(tmp_path / f"{shards}.db")
        )
        for paths in batches:
            stream.run(paths)
        reports.append(reader.read_report(stream.engine))
    assert reports[0] == reports[1]


def test_windows_of_a_stream_that_is_configured_no_more_are_left_alone(engine: Engine, tmp_path: Path) -> None:
    """Windows of a stream without configuration stay in the store, and are not in the ledger."""
    with engine.execution_options(writes=True).begin() as connection:
        judge(connection, Ledger(STREAM_CONFIGS), write_segment(tmp_path / "s.seg", observation_batch([1])), at_us(70))
        ledger = micro_batch.restore_ledger(connection, {})
        assert (ledger.live, ledger.ranges) == ({}, {})
        before = reader.read_window(connection, "orders", START_US)
        assert list(micro_batch.conclude_windows(connection, ledger, {}, NEVER_US)) == []
        micro_batch.forget_windows(connection, ledger, NEVER_US)
        assert reader.read_window(connection, "orders", START_US) == before


# Recent figures


def test_each_micro_batch_renews_recent_figures(engine: Engine, tmp_path: Path) -> None:
    """By what it read, and with what is in flight; of the store the same as the observer is told."""
    stream = MicroBatches(STREAM_CONFIGS, engine)
    first = write_segment(tmp_path / "1.seg", observation_batch(range(10)), arrival_us=at_us(20))
    stream.run([first, write_segment(tmp_path / "2.seg", observation_batch(range(4), "b"), arrival_us=at_us(21))])
    stream.run([write_segment(tmp_path / "3.seg", make_batch(BatchKind.HEARTBEAT), arrival_us=at_us(23))])
    with engine.connect() as connection:
        found = recent_figures.read_recent(connection, "orders")
        assert recent_figures.read_recent(connection, "nix") is None
    lags = RecentLag(1_000, 1_000, 1_000), RecentLag(2_000, 2_000, 2_000)
    nodes = RecentNode("a", 10, 10, 0, *lags, 0), RecentNode("b", 4, 4, 0, *lags, 6)
    edge = RecentEdge("a", "b", 4, RecentLag(-1_000, -1_000, -1_000))
    assert found == RecentFigures("orders", at_us(22), nodes, (edge,))


def test_the_backlog_outlasts_a_restart(engine: Engine, tmp_path: Path) -> None:
    """The store knows what is in flight; stamps of before are in no figures any more."""
    stream = MicroBatches(STREAM_CONFIGS, engine)
    stream.run([write_segment(tmp_path / "1.seg", observation_batch(range(10)), arrival_us=at_us(20))])
    stream.restart()
    stream.run([write_segment(tmp_path / "2.seg", make_batch(BatchKind.HEARTBEAT, seq=1), arrival_us=at_us(22))])
    with engine.connect() as connection:
        found = recent_figures.read_recent(connection, "orders")
    assert found is not None
    assert [(node.arrived, node.backlog) for node in found.nodes] == [(0, 0), (0, 10)]


def test_a_lost_message_leaves_the_backlog_when_its_window_is_final(engine: Engine, tmp_path: Path) -> None:
    """Then it is a loss, and nothing that is still to be done."""
    stream, final_s, backlogs = MicroBatches(STREAM_CONFIGS, engine), 60 + 150 + 30, []
    stream.run([write_segment(tmp_path / "1.seg", observation_batch(range(3)), arrival_us=at_us(20))])
    for number, second in enumerate((200, final_s + 1, final_s + 2)):
        beat = make_batch(BatchKind.HEARTBEAT, seq=number + 1)
        stream.run([write_segment(tmp_path / f"{second}.seg", beat, arrival_us=at_us(second))])
        with engine.connect() as connection:
            found = recent_figures.read_recent(connection, "orders")
        assert found is not None
        backlogs.append(found.nodes[1].backlog)
    assert backlogs == [3, 3, 0]


@pytest.mark.parametrize(
    ("waiting", "is_quiet", "expected"),
    [
        (0, True, 0),
        (5, True, 1),
        (59, True, 1),
        (60, True, 2),
        (5, False, 0),
        (59, False, 0),
        (60, False, 1),
        (900, False, 8),
    ],
)
def test_the_more_hours_wait_the_more_are_rolled_up(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, waiting: int, *, is_quiet: bool, expected: int
) -> None:
    """The oldest first; a micro-batch that judges something takes some, too, or with many streams none would be."""
    rolled: list[tuple[str, int]] = []
    monkeypatch.setattr(rollups, "roll_up_hour", lambda _, *hour: rolled.append(hour))
    hours = [("orders", START_US - (1 + number) * HOUR_US) for number in range(waiting)]
    rollups.mark_stale(connection, hours)
    ledger = Ledger(STREAM_CONFIGS)
    ledger.live["orders"] = {}
    micro_batch.roll_up_hours(connection, ledger, is_quiet=is_quiet)
    assert rolled == sorted(hours, key=lambda hour: hour[1])[:expected]
