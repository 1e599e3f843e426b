"""Tests of the names that no configuration declares, in either database."""

from __future__ import annotations

from sqlalchemy import Engine

from hopwatch.monitor.accounting.undeclared_names import MAX_PROBE_CHARS, UndeclaredName
from hopwatch.monitor.payloads import SendingInstance, SetAside
from hopwatch.monitor.store import retention, schema, undeclared_names
from tests.monitor.undeclared_records import DECLARED, aside
from tests.support.clock import ManualClock
from tests.support.spool import at_us


def keep(engine: Engine, *records: SetAside) -> tuple[UndeclaredName, ...]:
    """Take records in, and return what the store then has."""
    with engine.execution_options(writes=True).begin() as connection:
        undeclared_names.count_undeclared(connection, records, DECLARED)
    with schema.open_snapshot(engine) as connection:
        return undeclared_names.read_undeclared(connection)


def test_records_of_a_name_are_counted_from_batch_to_batch(engine: Engine) -> None:
    """By reason, stream and node, with the newest probe, its start and both ends of the arrivals."""
    early = SendingInstance("orders", "routr", "h-1", at_us(0))
    late = SendingInstance("orders", "routr", "h-0", at_us(60))
    keep(engine, aside(early, arrival_us=at_us(70)), aside(early, arrival_us=at_us(50)))
    assert keep(
        engine, aside(late, arrival_us=at_us(90)), aside(SendingInstance("ordres", "a", "p", 5), "unknown_stream")
    ) == (
        UndeclaredName("unknown_node", "orders", "routr", "h-0", at_us(60), "router", 3, at_us(50), at_us(90)),
        UndeclaredName("unknown_stream", "ordres", "a", "p", 5, "orders", 1, at_us(70), at_us(70)),
    )


def test_what_was_set_aside_for_another_reason_has_no_name(engine: Engine) -> None:
    """Nor what is ignored on purpose."""
    assert (
        keep(
            engine,
            SetAside("s.seg", 6, 10, at_us(0), "bad_crc", "why"),
            aside(SendingInstance("orders", "x", "p", 0), "ignored_node"),
        )
        == ()
    )


def test_a_long_name_of_a_probe_is_cut_and_counted_as_one(engine: Engine) -> None:
    """A probe may be called anything."""
    (found,) = keep(engine, *(aside(SendingInstance("orders", "x", "p" * 1_000 + end, 0)) for end in "ab"))
    assert (len(found.probe), found.records) == (MAX_PROBE_CHARS, 2)


def test_names_that_came_long_ago_are_pruned(engine: Engine) -> None:
    """Their place is free for others; what came later stays, and the accounts go on counting."""
    old, new = (
        aside(SendingInstance("orders", "x", "p", 0), arrival_us=at_us(-90_000)),
        aside(SendingInstance("orders", "y", "p", 0)),
    )
    keep(engine, old, new)
    list(retention.prune(engine, at_us(-3_600), ManualClock()))
    with schema.open_snapshot(engine) as connection:
        assert [one.node for one in undeclared_names.read_undeclared(connection)] == ["y"]
        assert undeclared_names.read_undeclared(connection, since_us=at_us(71)) == ()
