"""Tests of markers in the store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.markers import MAX_CHARS, MAX_LABELS, Marker
from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.store.markers import MAX_MARKERS, add_marker, prune_markers, query_markers, remove_marker
from tests.support.windows import at

TEXTS = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=20)
MARKERS = st.builds(
    Marker,
    at_us=st.integers(0, 1 << 62),
    text=TEXTS,
    by=TEXTS,
    stream=st.sampled_from(["", "orders", "refunds"]),
    labels=st.dictionaries(TEXTS, TEXTS, max_size=3),
)


def found(engine: Engine, stream: str | None, from_us: int = 0, to_us: int = 1 << 62) -> list[Marker]:
    """Return the markers of a range."""
    with schema.open_snapshot(engine) as connection:
        return query_markers(connection, stream, from_us, to_us)


@given(st.lists(MARKERS, max_size=8), st.integers(0, 1 << 62), st.integers(0, 1 << 62))
def test_a_range_has_its_markers_by_time(markers: list[Marker], from_us: int, to_us: int) -> None:
    """Those of its stream and those of all streams, from its beginning on and before its end; a repeated one once."""
    engine = dialect.create_engine("sqlite://")
    schema.prepare_store(engine)
    numbers = [add_marker(engine, one) for one in markers]
    distinct = [one for place, one in enumerate(markers) if one not in markers[:place]]
    assert numbers == [1 + distinct.index(one) for one in markers]
    shown = found(engine, "orders", from_us, to_us)
    wanted = [
        (one.at_us, number, one.text, dict(one.labels))
        for number, one in enumerate(distinct, 1)
        if from_us <= one.at_us < to_us and one.stream in {"", "orders"}
    ]
    assert [(one.at_us, one.number, one.text, dict(one.labels)) for one in shown] == sorted(wanted)
    engine.dispose()


def test_a_repeated_marker_is_stored_once(engine: Engine) -> None:
    """In any order of its labels; with another moment, text, stream, user or label it is another one."""
    first = Marker(at(1), "deploy", "ada", "orders", {"version": "2", "team": "a"})
    again = replace(first, labels={"team": "a", "version": "2"})
    assert add_marker(engine, first) == add_marker(engine, again) == 1
    others: tuple[dict[str, Any], ...] = (
        {"at_us": at(2)},
        {"text": "undo"},
        {"stream": ""},
        {"by": "bob"},
        {"labels": {"version": "3"}},
    )
    assert [add_marker(engine, replace(first, **other)) for other in others] == [2, 3, 4, 5, 6]
    assert len(found(engine, None)) == 6


def test_a_marker_is_removed_once(engine: Engine) -> None:
    """The number of a marker that is not there removes none."""
    number = add_marker(engine, Marker(at(1), "deploy", "ada"))
    assert remove_marker(engine, number)
    assert not remove_marker(engine, number)
    assert found(engine, None) == []


def test_old_markers_are_pruned(engine: Engine) -> None:
    """Those from before a moment."""
    for minute in (1, 2, 3):
        add_marker(engine, Marker(at(minute), "deploy", "ada"))
    with engine.execution_options(writes=True).begin() as connection:
        assert prune_markers(connection, at(3)) == 2
    assert [one.at_us for one in found(engine, None)] == [at(3)]


def test_of_many_markers_the_latest_are_shown(engine: Engine) -> None:
    """So that a program that marks every request does not fill the charts."""
    for number in range(MAX_MARKERS + 5):
        add_marker(engine, Marker(number, "deploy", "ada"))
    assert [one.at_us for one in found(engine, "orders")] == list(range(5, MAX_MARKERS + 5))


@pytest.mark.parametrize("text", ["", "  ", "a\nb", "\x1b[31m", "x" * (MAX_CHARS + 1)])
@pytest.mark.parametrize("where", ["text", "by", "name", "value"])
def test_what_cannot_be_shown_is_refused(text: str, where: str) -> None:
    """Texts, names and labels are one line of printable text of a bounded length."""
    words = {"text": "deploy", "by": "ada"} | {where: text}
    labels = {"name": {text: "1"}, "value": {"version": text}}.get(where, {})
    with pytest.raises(ConfigurationError, match="of a marker are one line of printable text, of at most 200"):
        Marker(0, words["text"], words["by"], labels=labels)


def test_too_many_labels_are_refused() -> None:
    """The error says how many there may be."""
    labels = {f"l{number}": "1" for number in range(MAX_LABELS + 1)}
    with pytest.raises(ConfigurationError, match="a marker has at most 8 labels, got 9"):
        Marker(0, "deploy", "ada", labels=labels)
