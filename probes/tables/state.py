"""State of a tap of a table: the snapshot that it has come to, and the instances that are owed their end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from hopwatch.probes.contract.batch import Drop
from hopwatch.probes.tables.snapshot_batches import SnapshotInstance
from hopwatch.probes.tables.snapshots import SnapshotPlace
from hopwatch.probes.taps.state import LockedState


@dataclass(frozen=True, slots=True)
class OwedEnd:
    """Instance whose observations are durable, and whose drops and bye wait until the tap has caught up."""

    instance: SnapshotInstance
    drops: tuple[Drop, ...] = ()


@dataclass(frozen=True, slots=True)
class TableProgress:
    """Place that a tap has come to, None before the first snapshot; and one that is being sent, if it was planned."""

    through: SnapshotPlace | None = None
    owed: tuple[OwedEnd, ...] = ()
    planned: SnapshotPlace | None = None


class TableState(LockedState):
    """Saved progress of a tap in one table."""

    def __init__(self, path: Path, table: str, name: str) -> None:
        """Set the state file, and the table that it is of; no file is touched yet."""
        super().__init__(path, name)
        self._table = table

    def load(self) -> TableProgress | None:
        """Return the saved progress, or None if there is none yet.

        Raises:
            TapUsageError: the file is no state of this table.
            TapSourceError: it cannot be read.
        """
        return self._read(self._parse)

    def save(self, progress: TableProgress) -> None:
        """Replace the saved progress.

        Raises:
            TapSourceError: the file cannot be written.
        """
        owed = [
            {"instance": astuple(end.instance), "drops": [astuple(drop) for drop in end.drops]} for end in progress.owed
        ]
        places = {"through": progress.through, "planned": progress.planned}
        self._write({"table": self._table, "owed": owed, **places})

    def _parse(self, kept: dict[str, object]) -> TableProgress:
        self._check(kept, "table", self._table)
        owed = kept["owed"]
        if not isinstance(owed, list):
            raise TypeError(f"owed is {owed!r:.60}")
        ends = (OwedEnd(_parse_instance(end["instance"]), tuple(map(_parse_drop, end["drops"]))) for end in owed)
        return TableProgress(_parse_place(kept["through"]), tuple(ends), _parse_place(kept["planned"]))


def _parse_place(kept: object) -> SnapshotPlace | None:
    if kept is None:
        return None
    number, committed_us = _check_items(kept, (str, int))
    return SnapshotPlace(str(number), _as_int(committed_us))


def _parse_instance(kept: object) -> SnapshotInstance:
    stream, node, probe, epoch_us, seq = _check_items(kept, (str, str, str, int, int))
    return SnapshotInstance(str(stream), str(node), str(probe), _as_int(epoch_us), _as_int(seq))


def _parse_drop(kept: object) -> Drop:
    window_ms, count, cause = _check_items(kept, (int, int, str))
    return Drop(_as_int(window_ms), _as_int(count), str(cause))


def _as_int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _check_items(kept: object, kinds: Sequence[type]) -> list[object]:
    if not isinstance(kept, list) or [type(item) for item in kept] != list(kinds):
        raise ValueError(f"{kept!r:.80}")
    return kept
