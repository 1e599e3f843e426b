"""Encoding of lost messages in the store: packed ids with their names and stamps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, and_, func, select

from hopwatch.monitor.kernel import masks, naming
from hopwatch.monitor.kernel.journeys import MAX_STAMPS, Journeys
from hopwatch.monitor.kernel.masks import Ids
from hopwatch.monitor.kernel.naming import MAX_TEXT_BYTES, Names
from hopwatch.monitor.store import tables
from hopwatch.probes.contract.limits import ID_BYTES

_ENDS_BYTES: Final = 4
_ROWS_PER_FETCH: Final = 100


def split_ids(packed: bytes) -> list[bytes]:
    """Split packed ids."""
    return [bytes(packed[at : at + ID_BYTES]) for at in range(0, len(packed), ID_BYTES)]


def first_id_columns(most: int) -> list[ColumnElement[Any]]:
    """Return columns that are cut to the first ids and their names; they keep the names of the full columns."""
    column = tables.lost_ids.c
    sizes = (
        (column.message_ids, ID_BYTES),
        (column.id_kinds, 1),
        (column.id_text_ends, _ENDS_BYTES),
        (column.id_texts, MAX_TEXT_BYTES),
    )
    return [func.substr(part, 1, most * size).label(part.name) for part, size in sizes]


def read_named_ids(row: Any) -> Iterator[tuple[bytes, str]]:  # noqa: ANN401 - a row with the columns of lost ids
    """Yield each id of a row with its text for people."""
    ids = split_ids(row.message_ids)
    names = _unpack_names(row, len(ids))
    for message_id, kind, text in zip(ids, names.kinds.tolist(), names.texts.tolist(), strict=True):
        yield message_id, naming.format_id(message_id, kind, text)


class LostMessage(NamedTuple):
    """Name of a lost message, the number of its stamps, and the first of them as fields by name.

    The number is unknown for rows that were written before stamps were stored.
    """

    kind: int
    text: bytes | None
    stamp_count: int | None
    stamps: tuple[dict[str, Any], ...]


def find_message(row: Any, message_id: bytes) -> LostMessage | None:  # noqa: ANN401 - a row with the columns of lost ids
    """Return the stored message of an id; None if the row does not have the id."""
    ids = split_ids(row.message_ids)
    if message_id not in ids:
        return None
    place = ids.index(message_id)
    names = _unpack_names(row, len(ids))
    count, stamps = Journeys(bytes(row.journeys or b"")).read_stamps(place)
    return LostMessage(int(names.kinds[place]), names.texts[place], count or None, tuple(stamps))


def read_messages(row: Any) -> Iterator[tuple[bytes, LostMessage]]:  # noqa: ANN401 - a row with the columns of lost ids
    """Yield each id of a row with its stored message."""
    ids = split_ids(row.message_ids)
    names = _unpack_names(row, len(ids))
    journeys = Journeys(bytes(row.journeys or b""))
    table = journeys.table() if journeys.packed else None
    counts = table.counts.tolist() if table else [0] * len(ids)
    stamps = table.iterate_stamps() if table else iter(())
    for message_id, kind, text, count in zip(ids, names.kinds.tolist(), names.texts.tolist(), counts, strict=True):
        yield message_id, LostMessage(kind, text, count or None, tuple(islice(stamps, min(count, MAX_STAMPS))))


def read_node_losses(
    connection: Connection, stream: str, node: str, from_us: int | None, to_us: int | None
) -> Iterator[Any]:
    """Yield what is missing at a node in windows that start in ``[from_us, to_us)``, window by window.

    A row has ``window_start_us``, ``loss``, ``loss_lower``, and the columns of lost ids, null where none are listed.
    """
    of, ids = tables.node_windows.c, tables.lost_ids.c
    listed = (ids.message_ids, ids.id_kinds, ids.id_text_ends, ids.id_texts, ids.journeys)
    wanted = _select_losses(stream, node, of.loss_lower, *listed).where(of.loss > 0)
    if from_us is not None:
        wanted = wanted.where(of.window_start_us >= from_us)
    if to_us is not None:
        wanted = wanted.where(of.window_start_us < to_us)
    yield from connection.execute(wanted.execution_options(yield_per=_ROWS_PER_FETCH))


def read_listed_ids(
    connection: Connection, stream: str, node: str, starts_us: Sequence[int]
) -> Iterator[tuple[int, int, list[bytes]]]:
    """Yield (start, how many messages are missing at a node, ids of them that are listed) of windows that are kept."""
    wanted = _select_losses(stream, node, tables.lost_ids.c.message_ids)
    wanted = wanted.where(tables.node_windows.c.window_start_us.in_(starts_us))
    for row in connection.execute(wanted.execution_options(yield_per=_ROWS_PER_FETCH)):
        yield row.window_start_us, row.loss, [] if row.message_ids is None else split_ids(row.message_ids)


def _select_losses(stream: str, node: str, *more: ColumnElement[Any]) -> Select[Any]:
    """Select the windows of a node with what is missing in each, and more columns of them or of their lost ids."""
    of, ids = tables.node_windows.c, tables.lost_ids.c
    is_same = and_(of.stream == ids.stream, of.window_start_us == ids.window_start_us, of.node == ids.node)
    return (
        select(of.window_start_us, of.loss, *more)
        .select_from(tables.node_windows.outerjoin(tables.lost_ids, is_same))
        .where(of.stream == stream, of.node == node)
        .order_by(of.window_start_us)
    )


def _unpack_names(row: Any, count: int) -> Names:  # noqa: ANN401 - a row
    if row.id_kinds is None:
        # It was written before ids had kinds.
        return naming.unknown_names(count)
    # A part of nothing is null to SQLite.
    return naming.unpack_names(bytes(row.id_kinds), bytes(row.id_text_ends or b""), bytes(row.id_texts or b""))


def read_packed_ids(connection: Connection, stream: str | None = None) -> Iterator[tuple[str, int, str, Ids]]:
    """Yield (stream, start of the window in µs, node, ids) of all lost messages, with few rows in memory at once."""
    column = tables.lost_ids.c
    wanted = select(column.stream, column.window_start_us, column.node, column.message_ids)
    if stream is not None:
        wanted = wanted.where(column.stream == stream)
    for row in connection.execute(wanted.execution_options(yield_per=_ROWS_PER_FETCH)):
        yield row.stream, row.window_start_us, row.node, masks.ids_from_bytes(bytes(row.message_ids))
