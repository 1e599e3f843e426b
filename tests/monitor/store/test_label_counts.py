"""Tests of counts by label in the store: hostile values, the first window of each, and what becomes of old ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import Engine

from hopwatch.monitor.results import LabelCounts, LabelValueKind
from hopwatch.monitor.store import label_counts, schema
from hopwatch.monitor.store.markers import query_markers
from hopwatch.monitor.texts.escaping import escape_line
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.conclusions import build_conclusion, dump_tables, write_conclusions
from tests.support.spool import START_US

HOSTILE = "\0\u2400<script>\u202e\U0001f4a3'; --"


def row(
    value: str, said_at: str = "a", label: str = "schema", kind: LabelValueKind = LabelValueKind.VALUE
) -> LabelCounts:
    """Return the row of a value."""
    return LabelCounts(label, said_at, kind, value, 10, 1, 2, 3, 4, 2, None)


def write(engine: Engine, minute: int, at_a: Sequence[LabelCounts] = (), at_b: Sequence[LabelCounts] = ()) -> None:
    """Write a window with counts by label."""
    base = build_conclusion()
    result = replace(base.result, window_start_us=START_US + minute * WINDOW_US)
    write_conclusions(engine, base._replace(result=result, labels=(tuple(at_a), tuple(at_b))))


def read(engine: Engine) -> dict[tuple[int, str], tuple[LabelCounts, ...]]:
    """Return the rows by minute and node."""
    with schema.open_snapshot(engine) as connection:
        found = label_counts.read_label_counts(connection, "orders", None, None)
    return {((start_us - START_US) // WINDOW_US, node): rows for (_, start_us, node), rows in found.items()}


def new_values(engine: Engine) -> list[tuple[int, str, str]]:
    """Return minute, node and value of what is new."""
    return [(*key, one.value) for key, rows in sorted(read(engine).items()) for one in rows if one.is_new]


def test_rows_come_back_as_they_were_written(engine: Engine) -> None:
    """Values and labels may hold anything, in either database; a node without rows has none."""
    rows = (row(HOSTILE, label=HOSTILE), row("", kind=LabelValueKind.NONE), row("", kind=LabelValueKind.OTHER))
    write(engine, 0, rows)
    assert read(engine) == {(0, "a"): rows}
    write(engine, 0, rows[1:])
    assert read(engine) == {(0, "a"): rows[1:]}


def test_a_value_is_new_in_the_first_window_that_says_it(engine: Engine) -> None:
    """At the node and at those behind it; the first values of all are not new, nor is one of another node."""
    write(engine, 1, [row("orders/1")], [row("orders/1"), row(HOSTILE, "b")])
    write(engine, 2, [row("orders/2"), row("orders/1")], [row("orders/2")])
    write(engine, 3, [row("orders/2")], [row(HOSTILE, "b")])
    assert new_values(engine) == [(2, "a", "orders/2"), (2, "b", "orders/2")]


def test_a_window_that_comes_late_takes_the_mark(engine: Engine) -> None:
    """The earliest window that says a value is its first, in whatever order they are judged."""
    write(engine, 5, [row("orders/2")])
    write(engine, 3, [row("orders/2"), row("orders/1")])
    assert new_values(engine) == []
    write(engine, 1, [row("orders/1")])
    assert new_values(engine) == [(3, "a", "orders/2")]


def test_a_new_version_is_marked(engine: Engine) -> None:
    """Once, in the minute that says it first, after another one; other labels, old windows and floods are not."""
    write(engine, 5, [row("1.0", label="version"), row("a", label="host")])
    write(engine, 6, [row("1.1", label="version"), row("b", label="host")], [row("1.1", label="version")])
    write(engine, 7, [row("1.1", label="version"), row("1.0", label="version")])
    write(engine, 3, [row("0.9", label="version")])
    write(engine, 8, [row(HOSTILE, label="version"), row(" ", label="version")])
    write(engine, 9, [row(f"{number}", label="version") for number in range(label_counts.MAX_NEW_VERSIONS + 1)])
    with schema.open_snapshot(engine) as connection:
        found = query_markers(connection, "orders", 0, 2**62)
    assert [((one.at_us - START_US) // WINDOW_US, one.text, one.by) for one in found] == [
        (6, "version 1.1 first seen at a", "hopwatch"),
        (8, f"version {escape_line(HOSTILE)} first seen at a", "hopwatch"),
        (8, "version (empty) first seen at a", "hopwatch"),
    ]
    assert found[0].labels == {"version": "1.1"}


def test_a_version_that_is_not_remembered_is_not_marked(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its windows would mark it again."""
    monkeypatch.setattr(label_counts, "MAX_KNOWN_VALUES", 2)
    for minute, version in enumerate(("1.0", "1.1", "1.2", "1.2")):
        write(engine, minute, [row(version, label="version")])
    with schema.open_snapshot(engine) as connection:
        found = query_markers(connection, "orders", 0, 2**62)
    assert [one.text for one in found] == ["version 1.1 first seen at a"]


def test_the_newest_values_of_a_range_are_found(engine: Engine) -> None:
    """Of one label, the newest first, no more than are asked for."""
    write(engine, 0, [row("orders/1"), row("v1", label="version")])
    for minute in (2, 4, 6):
        write(engine, minute, [row(f"orders/{minute}"), row(f"v{minute}", label="version")])

    def found(first: int, last: int, most: int = 9) -> list[tuple[str, int]]:
        span = START_US + first * WINDOW_US, START_US + last * WINDOW_US
        with schema.open_snapshot(engine) as connection:
            new = label_counts.read_new_values(connection, "orders", "schema", span, most)
        return [(one.value, (one.window_start_us - START_US) // WINDOW_US) for one in new]

    assert found(0, 9) == [("orders/6", 6), ("orders/4", 4), ("orders/2", 2)]
    assert found(2, 6) == [("orders/4", 4), ("orders/2", 2)]
    assert found(0, 9, 1) == [("orders/6", 6)]


def test_of_very_many_values_the_first_ones_are_remembered(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a label without end none beyond the bound is new, and other labels are not touched by that."""
    monkeypatch.setattr(label_counts, "MAX_KNOWN_VALUES", 2)
    write(engine, 0, [row("x0"), row("v1", label="version")])
    write(engine, 1, [row(f"x{number}") for number in range(5)] + [row("v2", label="version")])
    assert new_values(engine) == [(1, "a", "x1"), (1, "a", "v2")]
    assert len(dump_tables(engine)["label_values"]) == 4


def test_labels_without_end_fill_no_store(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a node the values of the first labels are remembered, each of them still, and those of no more."""
    monkeypatch.setattr(label_counts, "MAX_KNOWN_LABELS", 2)
    for minute in range(4):
        write(engine, minute, [row(f"v{minute}", label=name) for name in ("version", f"x{minute}", f"y{minute}")])
    assert {one[2] for one in dump_tables(engine)["label_values"]} == {"version", "x0"}
    assert new_values(engine) == [(minute, "a", f"v{minute}") for minute in (1, 2, 3)]


def test_an_amended_window_may_lose_its_labels(engine: Engine) -> None:
    """Judged again without them, it has none."""
    write(engine, 0, [row("orders/1")])
    write_conclusions(engine, build_conclusion(changed={"lost": [1, 0]}))
    assert read(engine) == {}


def test_values_that_no_window_has_are_forgotten(engine: Engine) -> None:
    """Values that come again are new, as far as windows are kept."""
    write(engine, 0, [row("orders/1")])
    write(engine, 9, [row("orders/2")])
    with engine.execution_options(writes=True).begin() as connection:
        label_counts.delete_values(connection, "orders", START_US + 9 * WINDOW_US)
    write(engine, 10, [row("orders/1")])
    assert new_values(engine) == [(10, "a", "orders/1")]


def test_nodes_with_several_values_are_named_with_the_newest(engine: Engine) -> None:
    """As far as a range has windows of two; of values that came at once the last by name."""
    write(engine, 0, [row("v1")], [row("v1", "b"), row("v2", "b")])
    write(engine, 3, [row("v1"), row("v2"), row(HOSTILE, label="host")], [row("v2", "b")])

    def ask(first: int, last: int, most: int = 5) -> list[tuple[str, str, int]]:
        with schema.open_snapshot(engine) as connection:
            span_us = START_US + first * WINDOW_US, START_US + last * WINDOW_US
            found = label_counts.read_side_by_side(connection, "orders", "schema", span_us, most)
        return [(one.node, one.value, (one.window_start_us - START_US) // WINDOW_US) for one in found]

    assert ask(0, 9) == [("a", "v2", 3), ("b", "v2", 0)]
    assert ask(0, 9, 1) == [("a", "v2", 3)]
    assert ask(0, 3) == [("b", "v2", 0)]
    assert ask(3, 9) == [("a", "v2", 3)]
    assert ask(4, 9) == []
