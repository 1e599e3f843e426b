"""Snapshots of a table, and the interface of a table that is read by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class SnapshotPlace(NamedTuple):
    """Place of a snapshot in the history of its table: its number, and when it was committed, µs since 1970."""

    number: str
    committed_us: int


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """Snapshot of a table: the files that it has added, and those whose rows it has taken over or left out."""

    place: SnapshotPlace
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class NewSnapshots(NamedTuple):
    """Snapshots behind a place, in order; ``is_gap`` if the table keeps some before them no more.

    With them all is read that was committed up to ``read_through_us``; None for the moment of asking. ``note`` is what
    whoever runs the tap should know, such as what it waits for. If it ``is_behind``, none is complete by itself. When
    one of them is durable, ``keep`` is called with its place.
    """

    snapshots: Sequence[TableSnapshot]
    is_gap: bool = False
    read_through_us: int | None = None
    note: str = ""
    is_behind: bool = False
    keep: Callable[[SnapshotPlace], None] = lambda _: None


class MissingFileError(Exception):
    """File of a snapshot that is gone, or is no Parquet file: its rows are unknown for good."""


class SnapshotTable(Protocol):
    """Table that is read by its snapshots; its errors are those of its library."""

    @property
    def is_planned(self) -> bool:
        """Return whether it cuts its snapshots itself, so that one has to be kept before it is sent."""

    @property
    def name(self) -> str:
        """Return the name by which it was asked for."""

    @property
    def identity(self) -> str:
        """Return a name that no other table has, whoever reads it by whatever address."""

    def find_last(self) -> SnapshotPlace | None:
        """Return the place of the present snapshot; None of a table without any."""

    def find_columns(self) -> dict[str, str]:
        """Return the names of the columns, and of each the one that it has in files."""

    def find_new(self, after: SnapshotPlace | None, planned: SnapshotPlace | None = None) -> NewSnapshots:
        """Return the snapshots behind a place, all that there are without one; of a planned table the one planned."""

    def read_rows(self, file: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of a file; one that it does not have is left out.

        Raises:
            MissingFileError: the file cannot be read for good.
        """
