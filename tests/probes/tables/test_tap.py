"""Tests of the tap of a table: what it tells of snapshots, of bad rows, and of what it cannot know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hopwatch.monitor.kernel.books import Accounts, BatchFact, Book, DropFact, absorb, judge_book
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.probes.tables.message_rows import RowMapping
from hopwatch.probes.tables.snapshots import SnapshotPlace
from hopwatch.probes.tables.state import TableState
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError
from hopwatch.probes.testing import batch_observations
from hopwatch.testing import EPOCH_US
from tests.probes.tables.kept_table import COMMITTED_US, KeptTable, Killed, TappedTable, at

TRANSIT_US = 150_000_000


def judge(tapped: TappedTable, minutes: list[int]) -> dict[str, Accounts]:
    """Return the accounts of the instances of snapshots for some minutes, as a monitor judges them."""
    starts = np.array([EPOCH_US + minute * WINDOW_US for minute in minutes])
    by_instance: dict[str, list[Batch]] = {}
    for batch in tapped.batches():
        by_instance.setdefault(batch.probe, []).append(batch)
    found = {}
    for probe, batches in by_instance.items():
        facts = []
        drops = []
        for row, batch in enumerate(batches):
            facts.append(BatchFact(
                batch.seq, tapped.place.clock.us, batch.complete_through_us, batch.sent_at_us, batch.window_start_ms,
                0, batch.count, batch.kind, 0,
            ))  # fmt: skip
            drops += [DropFact(row, drop.window_start_ms, drop.count, drop.cause) for drop in batch.drops]
        book, _ = absorb(Book("orders", "router", probe, batches[0].epoch_us), facts, drops)
        found[probe] = judge_book(book, starts, starts + WINDOW_US, starts + WINDOW_US + TRANSIT_US)
    return found


def test_a_message_arrives_when_its_snapshot_is_committed() -> None:
    """Its stamp is the commit, so that its lag is the time until it could be read in the table."""
    table = KeptTable()
    table.commit([(1, at(0)), (2, at(70))])
    table.commit([(3, at(1))])
    tapped = TappedTable(table)
    tapped.tap.step()
    seen = [one for batch in tapped.batches() for one in batch_observations(batch)]
    assert [(one.message_id, one.event_us, one.in_us, one.out_us) for one in seen] == [
        (id_bytes(1), at(0), COMMITTED_US, None),
        (id_bytes(2), at(70), COMMITTED_US, None),
        (id_bytes(3), at(1), COMMITTED_US + 1_000_000, None),
    ]
    assert tapped.tap.tally.summary(0) == {"stamped": 3, "bad": {}, "dropped": 0}


def test_rows_that_are_written_anew_are_no_messages() -> None:
    """Of an overwrite the ids that were not in the files before it have arrived; of a compaction none has."""
    table = KeptTable()
    first = table.commit([(1, at(0)), (2, at(1))])
    second = table.commit([(1, at(0)), (2, at(1)), (3, at(2))], removed=first.added)
    table.commit([(1, at(0))], removed=second.added)
    table.commit()
    tapped = TappedTable(table)
    tapped.tap.step()
    assert tapped.ids() == [1, 2, 3]
    assert tapped.tap.tally.stamped == 3


def test_a_tap_says_up_to_when_it_has_read() -> None:
    """Its own probe completes the moment of each look, also where nothing arrives; not one at which it failed."""
    tapped = TappedTable(KeptTable())
    sender = tapped.place.probe._sender
    assert sender is not None
    tapped.tap.step()
    looked_us = tapped.place.clock.us
    assert sender._caught_up_us == looked_us
    tapped.place.clock.advance(60)
    tapped.table.error = OSError("no route to the store")
    for _ in range(2):
        tapped.tap.step()
    assert sender._caught_up_us == looked_us
    tapped.table.error = None
    tapped.tap.step()
    assert sender._caught_up_us == tapped.place.clock.us
    assert tapped.place.heard == [
        "kept:orders cannot be read: no route to the store: trying on", "kept:orders can be read again",
    ]  # fmt: skip


def test_snapshots_that_were_expired_are_a_gap(tmp_path: Path) -> None:
    """One line says so; minutes that may have messages in them are not told, later ones are."""
    table = KeptTable()
    table.commit([(1, at(0))])
    tapped = TappedTable(table, tmp_path)
    tapped.tap.step()
    for second in range(3):
        table.commit([(10 + second, at(480 + 60 * second))])
    table.expired |= {"1", "2"}
    tapped.start()
    tapped.tap.step()
    assert tapped.ids() == [1, 12]
    assert tapped.place.heard == [
        "snapshots of kept:orders between 0 and 3 are kept no more: what they brought is unknown"
    ]
    accounts = judge(tapped, [6, 8, 10, 11])
    gap = next(one for probe, one in accounts.items() if "before-3" in probe)
    # Committed at minute 10; a minute whose horizon is before that cannot have anything in the gap.
    assert gap.has_a_say.tolist() == [False, True, True, False]
    assert gap.told.tolist() == [True, False, False, True]
    assert all(one.told.all() for probe, one in accounts.items() if "before" not in probe)


def test_all_snapshots_may_be_expired(tmp_path: Path) -> None:
    """Then all up to now is unknown, and the tap goes on behind it."""
    table = KeptTable()
    table.commit([(1, at(0))])
    tapped = TappedTable(table, tmp_path)
    tapped.tap.step()
    table.commit([(2, at(1))])
    table.expired.add("1")
    for _ in range(2):
        tapped.tap.step()
    assert tapped.place.heard == [
        "snapshots of kept:orders between 0 and now are kept no more: what they brought is unknown"
    ]
    assert not tapped.open_instances()
    table.commit([(3, at(2))])
    tapped.tap.step()
    assert tapped.ids() == [1, 3]


def test_what_came_before_the_first_look_is_unknown() -> None:
    """A tap that begins behind the present snapshot says so for a day, which is all that a monitor would take."""
    table = KeptTable()
    table.commit([(1, at(0))])
    tapped = TappedTable(table, from_start=False)
    tapped.tap.step()
    assert tapped.ids() == []
    (gap,) = judge(tapped, [0, 60, 1_000_000]).values()
    assert gap.told.tolist() == [False, False, True]
    table.commit([(2, at(1))])
    tapped.tap.step()
    assert tapped.ids() == [2]


def test_a_file_that_is_gone_makes_its_snapshot_unknown() -> None:
    """Its messages are not called lost: the instance has no end, and minutes up to its commit are not told."""
    table = KeptTable()
    table.commit([(1, at(0))], [(2, at(1))])
    table.commit([(3, at(540))])
    del table.files["0-1"]
    tapped = TappedTable(table)
    tapped.tap.step()
    assert tapped.place.heard == ["snapshot 0 of kept:orders: its file 0-1 is gone: what it held is unknown"]
    assert tapped.ids() == [3]
    accounts = judge(tapped, [0, 9, 60])
    gap = next(one for probe, one in accounts.items() if "before-0-unread" in probe)
    assert gap.told.tolist() == [False, False, True]


def test_rows_without_an_id_or_a_time_are_drops() -> None:
    """Drops are told with the snapshot's end, of their window, or of all that they may be of; and are counted once."""
    table = KeptTable()
    first = table.commit([(None, at(0)), (-1, at(0)), (1, at(0)), (2, None), (None, None), (3, -5)])
    table.commit([(None, at(0)), (1, at(0)), (2, None), (3, at(61))], removed=first.added)
    tapped = TappedTable(table)
    tapped.tap.step()
    assert tapped.tap.tally.bad == {"no_id": 2, "bad_id": 1, "no_time": 1, "bad_time": 1}
    drops = [
        ((drop.window_start_ms * 1_000 - EPOCH_US) // WINDOW_US, drop.count, drop.cause)
        for batch in tapped.batches()
        for drop in batch.drops
    ]
    near = range(-3, 4)
    unknown = [(minute, 1, cause) for minute in near for cause in ("bad_time", "no_id", "no_time")]
    expected = [(minute, 2 if (minute, cause) == (0, "no_id") else count, cause) for minute, count, cause in unknown]
    assert sorted(drops) == sorted([*expected, (0, 1, "bad_id")])
    assert tapped.ids() == [1, 3]
    ignoring = TappedTable(table)
    ignoring.start(are_bad_messages=False).step()
    assert not any(batch.drops for batch in ignoring.batches())


def test_a_snapshot_of_bad_rows_alone_counts_near_its_commit() -> None:
    """Nothing else says when their messages were."""
    table = KeptTable()
    table.commit([(1, None)])
    tapped = TappedTable(table)
    tapped.tap.step()
    (drops,) = (batch.drops for batch in tapped.batches() if batch.drops)
    commit_minute = COMMITTED_US // WINDOW_US
    assert [drop.window_start_ms // 60_000 - commit_minute for drop in drops] == [-3, -2, -1, 0]


def test_texts_of_ids_go_along_unless_they_are_secret() -> None:
    """With ``--no-id-text`` the hashes alone are sent."""
    table = KeptTable(pa.string())
    table.commit([("order-1", at(0)), ("0190e5a3-1c00-7000-8000-00000000000a", at(0)), ("order-2", at(0))])
    tapped = TappedTable(table)
    tapped.tap.step()
    assert b"".join(batch.id_texts for batch in tapped.batches()) == b"order-1order-2"
    tapped.sink.records.clear()
    tapped.start(id_text=False).step()
    assert {batch.id_texts for batch in tapped.batches()} == {b""}
    assert sum(batch.count for batch in tapped.batches()) == 3


def test_what_is_read_otherwise_has_numbers_of_its_own() -> None:
    """Of equal numbers a monitor counts the first alone: after a wrong flag the right one would say nothing."""
    table = KeptTable()
    table.commit([(1, at(0)), (2, at(70))])
    tapped = TappedTable(table)
    tapped.tap.step()
    tapped.start().step()
    assert len({batch.probe for batch in tapped.batches()}) == 1
    tapped.start(id_text=False).step()
    tapped.start(are_bad_messages=False).step()
    assert len({batch.probe for batch in tapped.batches()}) == 3
    names = {RowMapping("id", "at").text, RowMapping("id", "created").text, RowMapping("id", "at", zone="UTC").text}
    assert len(names) == 3


def test_a_tap_that_is_stopped_sends_the_snapshot_again(tmp_path: Path) -> None:
    """While its sink takes nothing, it waits; stopped meanwhile it keeps the place before."""
    table = KeptTable()
    table.commit([(1, at(0))])
    tapped = TappedTable(table, tmp_path)
    tapped.sink.settle = lambda patience_s: patience_s < 0  # type: ignore[method-assign]
    tapped.place.stop.most_waits = 3
    for _ in range(2):
        tapped.tap.step()
    assert len(tapped.open_instances()) == 1
    del tapped.sink.settle
    tapped.start().step()
    assert not tapped.open_instances()
    assert tapped.ids() == [1]


def test_records_that_a_sink_has_lost_end_the_tap() -> None:
    """A restart sends them again."""
    table = KeptTable()
    table.commit([(1, at(0))])
    tapped = TappedTable(table)
    tapped.sink.settle = lambda patience_s: patience_s < 0  # type: ignore[method-assign]
    tapped.sink.loses_unsettled = True  # type: ignore[attr-defined]
    with pytest.raises(TapSourceError, match="the sink could not keep what was stamped last: see to it and start agai"):
        tapped.tap.step()


def test_a_state_is_of_one_table(tmp_path: Path) -> None:
    """Another table's, and what is no state, is refused with what to do; what is owed comes back as it was."""
    table = KeptTable()
    table.commit([(1, None)])
    tapped = TappedTable(table, tmp_path)
    tapped.sink.left = 2
    with pytest.raises(Killed):
        tapped.tap.step()
    state = TableState(tmp_path / "state", table.identity, "kept:orders")
    kept = state.load()
    assert kept is not None
    assert kept.through == SnapshotPlace("0", COMMITTED_US)
    (end,) = kept.owed
    assert end.instance.seq == 1
    assert [drop.cause for drop in end.drops] == ["no_time"] * 4
    with pytest.raises(TapUsageError, match=r"is not the state of a tap of kept:other .version 1 of 'kept:1'."):
        TableState(tmp_path / "state", "kept:2", "kept:other").load()
    for text in ("[]", '{"version": 1, "table": "kept:1", "through": [0], "planned": null, "owed": []}',
                 '{"version": 1, "table": "kept:1", "through": null, "planned": null, "owed": {}}'):  # fmt: skip
        (tmp_path / "state").write_text(text)
        with pytest.raises(TapUsageError, match="name another file with --state, or delete it to begin anew"):
            state.load()


def test_a_run_looks_until_it_is_stopped() -> None:
    """At the interval that is asked for."""
    table = KeptTable()
    table.commit([(1, at(0))])
    tapped = TappedTable(table)
    tapped.place.stop.most_waits = 3
    before_us = tapped.place.clock.us
    tapped.tap.run(5.0)
    assert tapped.place.clock.us == before_us + 15_000_000
    assert [batch.kind for batch in tapped.batches()] == [
        BatchKind.HEARTBEAT, BatchKind.OBSERVATIONS, BatchKind.BYE,
    ]  # fmt: skip


def test_what_was_read_before_an_error_or_for_a_second_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tap that is killed later, or tries on, sends none of it again; what it read in the last second it does."""
    table = KeptTable()
    for number in range(6):
        table.commit([(number, at(number))])
    tapped = TappedTable(table, tmp_path)
    read_rows, opened = table.read_rows, list[str]()
    troubles: dict[str, list[BaseException]] = {"2-0": [OSError("no route")], "5-0": [Killed()]}

    def read(file: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        opened.append(file)
        tapped.place.clock.advance(0.6)
        for error in troubles.pop(file, ()):
            raise error
        return read_rows(file, columns)

    monkeypatch.setattr(table, "read_rows", read)
    tapped.tap.step()
    with pytest.raises(Killed):
        tapped.tap.step()
    tapped.start().step()
    assert [file[0] for file in opened] == [*"012", *"2345", *"45"]
    assert tapped.ids() == [0, 1, 2, 3, 4, 5]
    assert not tapped.open_instances()
