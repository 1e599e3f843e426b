"""Tests of the versions of a stream in the store: when a new one becomes valid, and what a text on disk says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine

from hopwatch.monitor.kernel.books import Book
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.store import pathway_versions, writer
from hopwatch.monitor.store.writer import Changes
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import WINDOW_US
from tests.laws.strategies import DrawnPathway, pathways
from tests.support.spool import START_US, STREAM_CONFIGS, WINDOW_POLICY

ORDERS = STREAM_CONFIGS["orders"]
OTHERS = {
    "another path": replace(ORDERS, pathway=Pathway.parse("a -> b -> c")),
    "the other way": replace(ORDERS, pathway=Pathway.parse("b -> a")),
    "other stamps": replace(ORDERS, pathway=Pathway.parse("a -> b", {"a": "out"})),
    "a node that counts": replace(ORDERS, pathway=Pathway.parse("a -> n -> b", {"n": "count"})),
    "other shards": replace(ORDERS, shards=2),
    "another transit": replace(ORDERS, terms=replace(WINDOW_POLICY, transit_us=1)),
    "another settle": replace(ORDERS, terms=replace(WINDOW_POLICY, settle_us=1)),
    "another amend_for": replace(ORDERS, terms=replace(WINDOW_POLICY, amend_for_us=1)),
    "another max_age": replace(ORDERS, terms=replace(WINDOW_POLICY, max_age_us=1)),
    "ignored nodes": replace(ORDERS, ignore_nodes=("audit",)),
    "order": replace(ORDERS, order=True),
    "other ids": replace(ORDERS, max_lost_ids=7),
}


@contextmanager
def change(engine: Engine) -> Iterator[Connection]:
    """Open a transaction that writes."""
    with engine.execution_options(writes=True).begin() as connection:
        yield connection


def register(engine: Engine, config: StreamConfig, now_us: int, stream: str = "orders") -> StreamConfig:
    """Register what is configured of a stream, as a run does that claims the store; return its versions."""
    with change(engine) as connection:
        others = {name: of for name, of in pathway_versions.read_versions(connection).items() if not of.is_removed}
        planned = pathway_versions.plan_versions(connection, others | {stream: config}, now_us)
        pathway_versions.save_versions(connection, planned, now_us)
        assert pathway_versions.read_stream(connection, stream) == planned[stream]
        return planned[stream]


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_change_is_a_version_from_the_next_whole_minute_on(other: StreamConfig, engine: Engine) -> None:
    """Of any kind; windows before that minute keep the version that they had."""
    assert register(engine, ORDERS, START_US - 1) == ORDERS
    found = register(engine, other, START_US + 1)
    assert not found.differs_from(other)
    assert found.valid_from_us == START_US + WINDOW_US
    assert found.earlier == (ORDERS,)
    assert [found.at(START_US + minutes * WINDOW_US).valid_from_us for minutes in (-9, 0, 1, 9)] == [
        *(0, 0),
        *(found.valid_from_us,) * 2,
    ]


def test_a_start_without_a_change_makes_no_version(engine: Engine) -> None:
    """A monitor may be started as often as one likes, at any time."""
    first = register(engine, ORDERS, START_US)
    second = register(engine, OTHERS["another path"], START_US)
    for now_us in (START_US, START_US + 7 * WINDOW_US, START_US + 7 * WINDOW_US):
        assert register(engine, OTHERS["another path"], now_us) == second
    assert second.earlier == (first,)


def test_a_version_is_valid_behind_all_that_has_come(engine: Engine) -> None:
    """A clock that is ahead, or behind, and messages ahead of time: no window is of two versions."""
    register(engine, ORDERS, START_US)
    with change(engine) as connection:
        writer.write_changes(connection, Changes(0, streams={"orders": (START_US, START_US + 4 * WINDOW_US)}))
    assert register(engine, OTHERS["another path"], START_US - WINDOW_US).valid_from_us == START_US + 5 * WINDOW_US


def test_what_came_of_an_undeclared_node_counts_as_come(engine: Engine) -> None:
    """Its observations are in no window, and would be missing in one of a version that declares it."""
    register(engine, ORDERS, START_US)
    unplaced = {(START_US + minutes * WINDOW_US) // 1_000: 5 for minutes in (2, 3)}
    book = Book("orders", "c", "p", START_US, START_US, START_US, unplaced=unplaced)
    with change(engine) as connection:
        writer.write_changes(connection, Changes(0, books=[book, replace(book, stream="others", unplaced={})]))
    assert register(engine, OTHERS["another path"], START_US).valid_from_us == START_US + 4 * WINDOW_US
    assert register(engine, ORDERS, START_US, "others") == ORDERS
    assert register(engine, OTHERS["another path"], START_US, "others").valid_from_us == START_US + WINDOW_US


def test_a_version_that_is_not_valid_yet_is_replaced_or_taken_back(engine: Engine) -> None:
    """Nothing was judged by it."""
    first = register(engine, ORDERS, START_US)
    assert register(engine, OTHERS["another path"], START_US).earlier == (first,)
    again = register(engine, OTHERS["other shards"], START_US + 1)
    assert again.valid_from_us == START_US + WINDOW_US
    assert again.earlier == (first,)
    assert register(engine, ORDERS, START_US + 2) == first
    later = register(engine, OTHERS["other shards"], START_US + WINDOW_US)
    assert [one.valid_from_us for one in later.versions] == [START_US + 2 * WINDOW_US, 0]


def test_a_version_may_wait_for_a_minute_of_its_own(engine: Engine) -> None:
    """A later one than the first that is free; one that has passed already is as good as none."""
    register(engine, ORDERS, START_US)
    later = replace(OTHERS["another path"], valid_from_us=START_US + 9 * WINDOW_US)
    for minutes in range(9):
        found = register(engine, later, START_US + minutes * WINDOW_US)
        assert [one.valid_from_us for one in found.versions] == [START_US + 9 * WINDOW_US, 0]
    sooner = replace(later, valid_from_us=START_US)
    assert register(engine, sooner, START_US + WINDOW_US).valid_from_us == START_US + 2 * WINDOW_US
    assert register(engine, sooner, START_US + 20 * WINDOW_US).valid_from_us == START_US + 2 * WINDOW_US
    assert register(engine, later, START_US, "new") == replace(later, valid_from_us=0)


def test_a_first_version_of_which_nothing_came_is_replaced(engine: Engine) -> None:
    """A store without a window, at the beginning of time, has nothing that another version could be of."""
    register(engine, ORDERS, 0)
    with change(engine) as connection:
        writer.write_changes(connection, Changes(0, streams={"orders": (-2 * WINDOW_US, -2 * WINDOW_US)}))
        planned = pathway_versions.plan_versions(connection, {"orders": OTHERS["order"]}, -2 * WINDOW_US)
    assert planned == {"orders": OTHERS["order"]}


def test_a_stream_that_is_not_configured_any_more_is_removed_by_a_version(engine: Engine) -> None:
    """One that comes back has one more, also with the path that it had; between the two it is not declared."""
    register(engine, ORDERS, START_US)
    with change(engine) as connection:
        planned = pathway_versions.plan_versions(connection, {"refunds": OTHERS["order"]}, START_US)
        pathway_versions.save_versions(connection, planned, START_US)
    assert planned["refunds"] == OTHERS["order"]
    assert planned["orders"].is_removed
    assert planned["orders"].valid_from_us == START_US + WINDOW_US
    with change(engine) as connection:
        assert pathway_versions.plan_versions(connection, {}, START_US + WINDOW_US)["orders"] == planned["orders"]
    again = register(engine, ORDERS, START_US + 5 * WINDOW_US)
    assert [(one.valid_from_us - START_US, one.is_removed) for one in again.versions[:2]] == [
        (6 * WINDOW_US, False),
        (WINDOW_US, True),
    ]
    minutes = [START_US + minute * WINDOW_US for minute in (0, 1, 5, 6)]
    assert again.find_declared("a", minutes) == [True, False, False, True]


def test_a_stream_that_is_taken_out_and_put_back_within_its_minute_has_one_version(engine: Engine) -> None:
    """Nothing has come that would have been set aside."""
    register(engine, ORDERS, START_US)
    with change(engine) as connection:
        pathway_versions.save_versions(connection, pathway_versions.plan_versions(connection, {}, START_US), START_US)
    assert register(engine, ORDERS, START_US + 1) == ORDERS


def test_a_history_says_when_each_version_was_registered(engine: Engine) -> None:
    """Oldest first, and each without those before it."""
    register(engine, ORDERS, START_US)
    register(engine, OTHERS["order"], START_US + WINDOW_US)
    with change(engine) as connection:
        found = pathway_versions.read_history(connection)["orders"]
        assert pathway_versions.read_stream(connection, "unknown") is None
    assert [one.registered_us for one in found] == [START_US, START_US + WINDOW_US]
    assert [one.config.earlier for one in found] == [(), ()]
    assert [one.config.valid_from_us for one in found] == [0, START_US + 2 * WINDOW_US]


@given(pathways(), st.integers(1, 64), st.booleans(), st.lists(st.text(max_size=3), max_size=2))
def test_what_is_read_is_what_was_written(drawn: DrawnPathway, shards: int, order: bool, ignored: list[str]) -> None:  # noqa: FBT001 - drawn
    """A stored version is read as it was written, through the text that is kept of it."""
    config = StreamConfig(drawn.product, WindowPolicy(1, 2, 3, 4), shards, tuple(ignored), order, 5)
    text = json.dumps(pathway_versions.encode_config(config))
    assert pathway_versions.decode_config(json.loads(text)) == config


def test_the_text_of_a_path_is_that_of_every_store_so_far() -> None:
    """Nodes, arrows by places with their source first, stamped sides; behind that the nodes that only count."""
    text = '[["a", "b", "c", "d"], [[0, 1, 2], [1, 3]], ["both", "in", "both", "both"]]'
    pathway = Pathway.parse(["a -> b | c", "b -> d"], {"b": "in"})
    assert json.dumps(pathway_versions.encode_pathway(pathway)) == text
    assert pathway_versions.decode_pathway(json.loads(text)) == pathway
    counting = Pathway.parse("a -> n -> b", {"n": "count"})
    assert pathway_versions.encode_pathway(counting)[3] == [["n", 0, 1, True]]
