"""Tests of the registry over a shelf: what is registered, found and refused."""

from __future__ import annotations

import pytest

from probes.registry.compatibility import Level
from probes.registry.subjects import ALL, IncompatibleError, MeaningError, Registry, UnknownError
from tests.probes.registry.schemas import record, schema
from tests.probes.registry.shelves import MemoryShelf

FIRST = schema(record({"name": "a", "type": "int"}))
SECOND = schema(record({"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 0}))
BROKEN = schema(record({"name": "a", "type": "int"}, {"name": "c", "type": "int"}))


@pytest.fixture
def shelf() -> MemoryShelf:
    """Return an empty shelf."""
    return MemoryShelf()


@pytest.fixture
def registry(shelf: MemoryShelf) -> Registry:
    """Return a registry over it."""
    return Registry(shelf)


def test_versions_are_numbered_from_one(registry: Registry) -> None:
    """What is there already is found, and nothing is written."""
    made = [registry.register("orders", one) for one in (FIRST, SECOND, FIRST)]
    assert [(one.entry.version, one.is_new) for one in made] == [(1, True), (2, True), (1, False)]
    assert [entry.version for entry in registry.entries("orders")] == [1, 2]
    assert registry.entry("orders").version == 2
    assert registry.entry("orders", 1).kept.text == FIRST.text


def test_the_first_text_of_a_meaning_stays(registry: Registry) -> None:
    """Another one that says the same is the same version, under any subject."""
    registry.register("orders", FIRST)
    noted = schema(record({"name": "a", "type": "int", "doc": "how many"}))
    again, elsewhere = registry.register("orders", noted), registry.register("sales", noted)
    assert (again.is_new, again.entry.kept.text) == (False, FIRST.text)
    assert elsewhere.entry == again.entry
    assert registry.places(1) == [("orders", 1), ("sales", 1)]
    assert registry.find("sales", noted) == elsewhere.entry
    assert registry.find("sales", SECOND) is None


def test_what_would_break_readers_is_refused(registry: Registry) -> None:
    """Unless the subject owes them nothing; asking beforehand says the same and registers nothing."""
    registry.register("orders", FIRST)
    told = r"the schema does not fit version 1 of 'orders', which is backward_transitive"
    with pytest.raises(IncompatibleError, match=told) as caught:
        registry.register("orders", BROKEN)
    assert registry.conflicts("orders", BROKEN) == (Level.BACKWARD_TRANSITIVE, caught.value.conflicts)
    assert registry.conflicts("orders", BROKEN, 1)[1] == caught.value.conflicts
    registry.set_level(Level.NONE, "orders")
    assert registry.register("orders", BROKEN).entry.version == 2
    assert registry.conflicts("nobody", BROKEN) == (Level.BACKWARD_TRANSITIVE, ())


def test_levels_are_of_a_subject_or_of_all(registry: Registry) -> None:
    """A subject's own one goes before."""
    assert registry.level() is Level.BACKWARD_TRANSITIVE
    assert registry.own_level("orders") is None
    registry.set_level(Level.FULL, ALL)
    assert [registry.level(), registry.level("orders")] == [Level.FULL, Level.FULL]
    registry.set_level(Level.FORWARD, "orders")
    assert [registry.level(), registry.level("orders"), registry.own_level("orders")] == [
        Level.FULL, Level.FORWARD, Level.FORWARD,
    ]  # fmt: skip


def test_a_second_meaning_of_a_fingerprint_is_refused(registry: Registry) -> None:
    """Under any subject; the sentence says what is kept and what to do."""
    registry.register("orders", FIRST)
    other = schema(record({"name": "a", "type": "int", "default": 3}))
    assert other.fingerprint == FIRST.fingerprint
    told = rf"{FIRST.fingerprint.hex()} stands already .* Kept is .*Register that text, or change a name"
    for act in (registry.register, registry.conflicts):
        with pytest.raises(MeaningError, match=told):
            act("sales", other)
    assert registry.subjects() == ["orders"]


def test_what_is_not_there_is_named(registry: Registry) -> None:
    """Subject, version and schema."""
    registry.register("orders", FIRST)
    assert registry.by_fingerprint(FIRST.fingerprint) == registry.by_number(1)
    for act, what, told in (
        (lambda: registry.entries("nobody"), "subject", "there is no subject nobody"),
        (lambda: registry.find("nobody", FIRST), "subject", "there is no subject nobody"),
        (lambda: registry.entry("orders", 7), "version", "there is no version 7 of orders"),
        (lambda: registry.conflicts("orders", FIRST, 7), "version", "there is no version 7 of orders"),
        (lambda: registry.by_number(7), "schema", "there is no schema 7"),
        (lambda: registry.places(7), "schema", "there is no schema 7"),
        (lambda: registry.by_fingerprint(bytes(32)), "schema", f"there is no schema {bytes(32).hex()}"),
    ):
        with pytest.raises(UnknownError, match=told) as caught:
            act()
        assert caught.value.what == what
