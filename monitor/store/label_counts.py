"""Counts by label in the store, and the windows in which values of labels were said first and last."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, delete, exists, func, select

from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.markers import MAX_CHARS, Marker
from hopwatch.monitor.results import LabelCounts, LabelValueKind, NewValue, label_counts_from_json, label_counts_to_json
from hopwatch.monitor.store import dialect, tables
from hopwatch.monitor.store.markers import insert_marker
from hopwatch.monitor.texts.escaping import escape_line

MAX_KNOWN_VALUES: Final = 1_000
"""Values of a label at a node whose first window is remembered; that of any more is not, and none of them is new."""

MAX_KNOWN_LABELS: Final = 64
"""Labels of a node of which values are remembered: whoever names labels without end fills no store."""

VERSION_LABEL: Final = "version"
"""Label whose new values are marked in charts: a deploy that nobody has marked."""
MAX_NEW_VERSIONS: Final = 5
"""New versions at a node in one batch of windows that are marked; more of them are no deploys."""
MARKED_BY: Final = "hopwatch"

Json = dict[str, Any]


class _SaidLabel(NamedTuple):
    """A label that a node of a stream says."""

    stream: str
    node: str
    label: str


_Span = tuple[int, int]
"""The first and the last window in which a value was said, µs."""


def save_label_counts(connection: Connection, conclusions: Sequence[Conclusion]) -> None:
    """Write the counts by label of judged windows, and when their values were said."""
    stored, counts = tables.label_counts, list[Json]()
    for one in conclusions:
        key = {"stream": one.result.stream, "window_start_us": one.result.window_start_us}
        nodes = zip(one.result.nodes, one.labels, strict=False)
        # ASCII: a value may hold any character, such as one that no database stores.
        counts += [
            key | {"node": node.node, "counts": json.dumps(label_counts_to_json(rows))} for node, rows in nodes if rows
        ]
    # What is said of an amended window may have lost its labels.
    amended = [one.result for one in conclusions if one.changed is not None]
    if amended:
        chosen = (stored.c.stream == bindparam("of_stream")) & (stored.c.window_start_us == bindparam("of_start_us"))
        keys = [{"of_stream": one.stream, "of_start_us": one.window_start_us} for one in amended]
        connection.execute(delete(stored).where(chosen), keys)
    if counts:
        connection.execute(dialect.upsert(connection, stored), counts)
        _save_values(connection, conclusions)


def _save_values(connection: Connection, conclusions: Iterable[Conclusion]) -> None:
    """Widen the spans in which values were said; new ones are taken up while there is room."""
    said: dict[_SaidLabel, dict[str, _Span]] = defaultdict(dict)
    for one in conclusions:
        start_us = one.result.window_start_us
        for node, rows in zip(one.result.nodes, one.labels, strict=False):
            for row in rows:
                if row.said_at == node.node and row.kind is LabelValueKind.VALUE:
                    spans = said[_SaidLabel(one.result.stream, row.said_at, row.label)]
                    spans[row.value] = _join_spans((start_us, start_us), spans.get(row.value))
    changed: list[Json] = []
    for label, spans in _choose_labels(connection, said):
        known = _read_spans(connection, label, spans)
        count = _count_values(connection, label) if len(known) < len(spans) else 0
        # Only what is remembered is new: anything else would be marked again by every window.
        new = sorted(spans.keys() - known.keys())[: max(0, MAX_KNOWN_VALUES - count)]
        if label.label == VERSION_LABEL and count:
            _mark_versions(connection, label, {value: spans[value][0] for value in new})
        for value in sorted({*known, *new}):
            joined = _join_spans(spans[value], known.get(value))
            if joined != known.get(value):
                changed.append(
                    label._asdict() | {"value": value, "first_start_us": joined[0], "last_start_us": joined[1]}
                )
    if changed:
        connection.execute(dialect.upsert(connection, tables.label_values), changed)


def _mark_versions(connection: Connection, label: _SaidLabel, first_us: Mapping[str, int]) -> None:
    """Mark versions that a node says for the first time, having said another one before, at the first minute of each.

    ``first_us`` has the start of that minute by version, µs.
    """
    if len(first_us) > MAX_NEW_VERSIONS:
        return
    oldest = select(func.min(tables.label_values.c.first_start_us)).where(_is_of_label(label))
    oldest_us = connection.execute(oldest).scalar_one()
    for value, at_us in sorted(first_us.items()):
        version = escape_line(value).strip()[:MAX_CHARS] or "(empty)"
        text = f"version {version} first seen at {label.node}"[:MAX_CHARS]
        if at_us > oldest_us:
            insert_marker(connection, Marker(at_us, text, MARKED_BY, label.stream, {VERSION_LABEL: version}))


def _join_spans(one: _Span, other: _Span | None) -> _Span:
    return one if other is None else (min(one[0], other[0]), max(one[1], other[1]))


def _read_spans(connection: Connection, label: _SaidLabel, values: Iterable[str]) -> dict[str, _Span]:
    column = tables.label_values.c
    wanted = select(column.value, column.first_start_us, column.last_start_us)
    found = connection.execute(wanted.where(_is_of_label(label), column.value.in_(sorted(values))))
    return {row.value: (row.first_start_us, row.last_start_us) for row in found}


def _choose_labels(
    connection: Connection, said: Mapping[_SaidLabel, dict[str, _Span]]
) -> Iterator[tuple[_SaidLabel, dict[str, _Span]]]:
    """Yield the labels of which values are remembered: those that are known, and more while there is room."""
    column = tables.label_values.c
    for (stream, node), labels in groupby(sorted(said), key=itemgetter(0, 1)):
        wanted = select(column.label).where(column.stream == stream, column.node == node).distinct()
        known = set(connection.execute(wanted).scalars())
        for label in labels:
            if label.label in known or len(known) < MAX_KNOWN_LABELS:
                known.add(label.label)
                yield label, said[label]


def _count_values(connection: Connection, label: _SaidLabel) -> int:
    return int(connection.execute(select(func.count()).where(_is_of_label(label))).scalar_one())


def _is_of_label(label: _SaidLabel) -> ColumnElement[bool]:
    """Return the condition that a value is one of a label."""
    column = tables.label_values.c
    return (column.stream == label.stream) & (column.node == label.node) & (column.label == label.label)


def delete_values(connection: Connection, stream: str, before_us: int) -> None:
    """Delete the values of a stream that no window from a time on has: they are new when they come again."""
    column = tables.label_values.c
    connection.execute(delete(tables.label_values).where(column.stream == stream, column.last_start_us < before_us))


def read_label_counts(
    connection: Connection, stream: str | None, from_us: int | None, to_us: int | None
) -> dict[tuple[str, int, str], tuple[LabelCounts, ...]]:
    """Query the counts by label of windows that start in ``[from_us, to_us)``, by stream, start in µs, and node.

    Which values are new goes by all windows that the store knows now.
    """
    column = tables.label_counts.c
    wanted = select(column.stream, column.window_start_us, column.node, column.counts)
    wanted = wanted if stream is None else wanted.where(column.stream == stream)
    wanted = wanted if from_us is None else wanted.where(column.window_start_us >= from_us)
    wanted = wanted if to_us is None else wanted.where(column.window_start_us < to_us)
    rows = connection.execute(wanted).all()
    if not rows:
        return {}
    first = _read_first_windows(connection, stream)
    found: dict[tuple[str, int, str], tuple[LabelCounts, ...]] = {}
    for row in rows:
        told = label_counts_from_json(json.loads(row.counts))
        is_new = (_is_new(row.stream, row.window_start_us, one, first) for one in told)
        marked = tuple(replace(one, is_new=new) for one, new in zip(told, is_new, strict=True))
        found[row.stream, row.window_start_us, row.node] = marked
    return found


def _read_first_windows(connection: Connection, stream: str | None) -> dict[_SaidLabel, dict[str, int]]:
    """Query the first window of each value, µs."""
    column = tables.label_values.c
    wanted = select(column.stream, column.node, column.label, column.value, column.first_start_us)
    found: dict[_SaidLabel, dict[str, int]] = defaultdict(dict)
    for row in connection.execute(wanted if stream is None else wanted.where(column.stream == stream)):
        found[_SaidLabel(row.stream, row.node, row.label)][row.value] = row.first_start_us
    return found


def read_values(connection: Connection, stream: str, node: str, label: str) -> dict[str, int]:
    """Query the values of a label that a node says, each with the start of the first window that has it, µs."""
    column = tables.label_values.c
    wanted = select(column.value, column.first_start_us).where(_is_of_label(_SaidLabel(stream, node, label)))
    return {row.value: row.first_start_us for row in connection.execute(wanted.order_by(column.value))}


def read_side_by_side(
    connection: Connection, stream: str, label: str, span_us: tuple[int, int], most: int
) -> list[NewValue]:
    """Query the nodes of a stream that say several values of a label in windows that start in ``[from_us, to_us)``.

    Each is given with the value that came last, of several that came at once the last by name; so many nodes at most,
    those with the newest value first.
    """
    from_us, to_us = span_us
    column = tables.label_values.c
    wanted = select(column.node, column.value, column.first_start_us).where(
        column.stream == stream, column.label == label, column.last_start_us >= from_us, column.first_start_us < to_us
    )
    newest = wanted.order_by(column.first_start_us.desc(), column.node, column.value.desc()).limit(MAX_KNOWN_VALUES)
    by_node: dict[str, list[NewValue]] = defaultdict(list)
    for row in connection.execute(newest):
        by_node[row.node].append(NewValue(*row))
    return [values[0] for values in by_node.values() if len(values) > 1][:most]


def read_own_counts(
    connection: Connection, stream: str, node: str, label: str, span_us: tuple[int | None, int | None]
) -> Iterator[tuple[int, tuple[LabelCounts, ...]]]:
    """Yield the start in µs of each final window that starts in ``[from_us, to_us)``, and its rows of a label.

    They are those that the node says itself; a window without any is left out.
    """
    from_us, to_us = span_us
    column, window = tables.label_counts.c, tables.windows.c
    of_window = (window.stream == column.stream) & (window.window_start_us == column.window_start_us)
    wanted = (
        select(column.window_start_us, column.counts)
        .join(tables.windows, of_window)
        .where(column.stream == stream, column.node == node)
        .where(window.status.in_(tables.FINAL_STATUSES))
        .order_by(column.window_start_us)
    )
    wanted = wanted if from_us is None else wanted.where(column.window_start_us >= from_us)
    wanted = wanted if to_us is None else wanted.where(column.window_start_us < to_us)
    for start_us, counts in connection.execute(wanted):
        own = [row for row in json.loads(counts) if (row["label"], row["said_at"]) == (label, node)]
        if own:
            yield start_us, label_counts_from_json(own)


def read_new_values(
    connection: Connection, stream: str, label: str, span_us: tuple[int, int], most: int
) -> list[NewValue]:
    """Query the newest values of a label that are new in windows which start in a span ``[from_us, to_us)``."""
    from_us, to_us = span_us
    column, other = tables.label_values.c, tables.label_values.alias("other").c
    of_node = (other.stream == column.stream) & (other.node == column.node) & (other.label == column.label)
    is_later = exists().where(of_node, other.first_start_us < column.first_start_us)
    wanted = select(column.node, column.value, column.first_start_us).where(
        column.stream == stream, column.label == label, is_later,
        column.first_start_us >= from_us, column.first_start_us < to_us,
    )  # fmt: skip
    newest = wanted.order_by(column.first_start_us.desc(), column.node, column.value).limit(most)
    return [NewValue(*row) for row in connection.execute(newest)]


def _is_new(stream: str, start_us: int, row: LabelCounts, first: dict[_SaidLabel, dict[str, int]]) -> bool:
    values = first.get(_SaidLabel(stream, row.said_at, row.label), {})
    is_first = row.kind is LabelValueKind.VALUE and values.get(row.value) == start_us
    return is_first and min(values.values()) < start_us
