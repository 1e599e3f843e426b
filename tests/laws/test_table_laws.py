"""Laws of the tap of a table: whenever it is killed, and however often it is run, a snapshot is counted once."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract.batch import Batch, BatchKind
from tests.probes.tables.kept_table import KeptTable, Killed, TappedTable, at

ACTS: Final = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "overwrite", "compact", "step", "kill", "die sending", "other tap"]),
        st.integers(0, 9),
    ),
    max_size=25,
)


class WrittenTable:
    """A kept table that is written at random, what it should count, and two taps of it."""

    def __init__(self, folder: Path) -> None:
        """Start both taps, of which one is killed at times."""
        self.table = KeptTable()
        self.live: list[str] = []
        self.written = 0
        self.expected: Counter[int] = Counter()
        self.tapped = TappedTable(self.table, folder)
        self.other = TappedTable(self.table)

    def act(self, what: str, number: int) -> None:
        """Do one thing to the table or to a tap."""
        match what:
            case "append":
                rows = self.rows(number)
                self.live += self.table.commit(rows, self.rows(1)).added
                self.expected.update(range(self.written - len(rows) - 1, self.written))
            case "overwrite":
                # What is there is written anew, with some more, and some is left out.
                kept = [row for name in self.live for row in self.table.files[name]][number // 2 :]
                rows = self.rows(number)
                self.expected.update(range(self.written - len(rows), self.written))
                self.live = [*self.table.commit(kept + rows, removed=self.live).added]
            case "compact":
                self.table.commit()
            case "step":
                self.tapped.tap.step()
            case "kill":
                self.tapped.start()
            case "die sending":
                self.tapped.sink.left = number
                with suppress(Killed):
                    self.tapped.tap.step()
                self.tapped.sink.left = 10**9
                self.tapped.start()
            case "other tap":
                self.other.tap.step()

    def rows(self, count: int) -> list[tuple[object, object]]:
        """Return new rows, of several minutes."""
        self.written += count
        return [(number, at(number * 7 % 200)) for number in range(self.written - count, self.written)]


@given(ACTS)
def test_a_snapshot_is_counted_once(acts: list[tuple[str, int]]) -> None:
    """Kills and a second tap give equal records under equal numbers; no message is skipped, or counted twice."""
    with tempfile.TemporaryDirectory() as folder:
        written = WrittenTable(Path(folder))
        for act in acts:
            written.act(*act)
        written.tapped.tap.step()
        written.other.tap.step()
        taps = written.tapped, written.other
        for tapped in taps:
            assert tapped.ids() == sorted(written.expected.elements())
            assert not tapped.open_instances()
        records: dict[tuple[str, int, int], set[bytes]] = {}
        for record, batch in ((r, b) for one in taps for r, b in zip(one.sink.records, one.batches(), strict=True)):
            records.setdefault((batch.probe, batch.epoch_us, batch.seq), set()).add(record)
        assert all(len(equal) == 1 for equal in records.values())


@given(ACTS)
def test_an_account_has_no_hole_and_ends_when_the_tap_has_caught_up(acts: list[tuple[str, int]]) -> None:
    """Numbers count up from 0 to a bye, which no observation of another snapshot of that look comes behind."""
    with tempfile.TemporaryDirectory() as folder:
        written = WrittenTable(Path(folder))
        for act in (*acts, ("step", 0)):
            before = len(written.tapped.sink.records)
            written.act(*act)
            if act[0] == "step":
                kinds = [batch.kind for batch in written.tapped.batches()[before:]]
                byes = kinds.index(BatchKind.BYE) if BatchKind.BYE in kinds else len(kinds)
                assert set(kinds[byes:]) <= {BatchKind.BYE}
        by_instance: dict[str, list[Batch]] = {}
        for batch in written.tapped.first_batches():
            by_instance.setdefault(batch.probe, []).append(batch)
        for batches in by_instance.values():
            ordered = sorted(batches, key=lambda batch: batch.seq)
            assert ordered[0].seq == 0
            assert all(after.seq == before.seq + 1 for before, after in pairwise(ordered))
            assert ordered[-1].kind is BatchKind.BYE
