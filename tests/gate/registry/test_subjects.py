"""Tests of the registry over a schema store: registration, look-up and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count

import pytest

from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.compatibility import CompatibilityLevel, Conflict, SchemaVersion, find_conflicts
from hopwatch.gate.registry.schema_store import SchemaStoreError
from hopwatch.gate.registry.subjects import (
    ALL_SUBJECTS,
    IncompatibleError,
    MeaningError,
    Registry,
    RegistryError,
    UnknownError,
)
from tests.support.schema_store import MemoryShelf
from tests.support.schema_versions import BROKEN, FIRST, SECOND
from tests.support.schemas import record, schema


@pytest.fixture
def shelf() -> MemoryShelf:
    """Return an empty shelf."""
    return MemoryShelf()


@pytest.fixture
def registry(shelf: MemoryShelf) -> Registry:
    """Return a registry over it."""
    return Registry(shelf)


def test_versions_are_numbered_from_one(registry: Registry) -> None:
    """Versions count from one; the latest one is found again, and nothing is written."""
    made = [registry.register("orders", one) for one in (FIRST, SECOND, SECOND)]
    assert [(one.entry.version, one.is_new) for one in made] == [(1, True), (2, True), (2, False)]
    assert [entry.version for entry in registry.entries("orders")] == [1, 2]
    assert registry.entry("orders").version == 2
    assert registry.entry("orders", 1).schema.text == FIRST.text


def test_an_older_text_that_is_registered_again_is_the_newest(registry: Registry) -> None:
    """As a version of its own with the same schema, once; who only wants to find it does."""
    for one in (FIRST, SECOND):
        registry.register("orders", one)
    found = registry.register("orders", FIRST, renews=False)
    assert (found.entry.version, found.is_new, registry.entry("orders").version) == (1, False, 2)
    made = [registry.register("orders", FIRST) for _ in range(2)]
    assert [(one.entry.version, one.is_new) for one in made] == [(3, True), (3, False)]
    assert registry.entry("orders").schema == registry.entry("orders", 1).schema
    assert registry.register("orders", SECOND, renews=False).entry.version == 2
    assert registry.places(1) == [("orders", 1), ("orders", 3)]


def test_an_older_text_that_would_break_readers_is_refused_too(registry: Registry) -> None:
    """Unless it is restored, which asks nobody."""
    registry.register("orders", FIRST)
    registry.set_level(CompatibilityLevel.NONE, "orders")
    registry.register("orders", BROKEN)
    registry.set_level(CompatibilityLevel.FORWARD, "orders")
    with pytest.raises(IncompatibleError, match="the schema does not fit version 2 of 'orders', which is forward"):
        registry.register("orders", FIRST)
    made = [registry.restore("orders", version) for version in (1, 1, 3, 2)]
    assert [(one.entry.version, one.is_new) for one in made] == [(3, True), (3, False), (3, False), (4, True)]
    for subject, version, told in (("orders", 7, "version 7 of orders"), ("nobody", 1, "subject nobody")):
        with pytest.raises(UnknownError, match=f"there is no {told}"):
            registry.restore(subject, version)


class Watched(MemoryShelf):
    """Knows whether somebody writes; ``before_writing`` is called each time before somebody may."""

    is_written = False
    before_writing: Callable[[], object] = staticmethod(lambda: None)

    @contextmanager
    def writing(self) -> Iterator[MemoryShelf]:
        """Open it for one who writes."""
        self.before_writing()
        self.is_written = True
        yield self
        self.is_written = False


def test_nobody_who_writes_waits_for_a_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions are compared outside the transaction that writes, however many and large they are."""
    shelf, compared = Watched(), []
    compare = find_conflicts

    def watched(new: Schema, versions: Sequence[SchemaVersion], level: CompatibilityLevel) -> tuple[Conflict, ...]:
        compared.append(shelf.is_written)
        return compare(new, versions, level)

    monkeypatch.setattr("hopwatch.gate.registry.subjects.find_conflicts", watched)
    for one in (FIRST, SECOND):
        Registry(shelf).register("orders", one)
    assert compared == [False, False]


FIELD = schema(record({"name": "a", "type": "int"}, {"name": "d", "type": "int", "default": 0}))
TEXT = schema(record({"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": ""}))
MEANT = schema(record({"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 5}))


@pytest.mark.parametrize(
    ("meanwhile", "told"),
    [
        (lambda registry: registry.register("orders", TEXT), "does not fit version 2 of 'orders', which is backward"),
        (lambda registry: registry.set_level(CompatibilityLevel.FULL, "orders"), ""),
        (lambda registry: registry.register("sales", MEANT), "stands already for a schema that differs"),
        (lambda registry: registry.register("sales", SECOND), ""),
    ],
    ids=["version", "level", "meaning", "schema"],
)
def test_what_came_meanwhile_counts(meanwhile: Callable[[Registry], object], told: str) -> None:
    """A version, a level or a schema that somebody else wrote between comparison and entry: it is compared anew."""
    shelf, wishes = Watched(), [meanwhile]
    registry = Registry(shelf)
    registry.register("orders", FIRST)
    shelf.before_writing = lambda: wishes.pop()(registry) if wishes else None
    with nullcontext() if not told else pytest.raises(RegistryError, match=told):
        assert registry.register("orders", SECOND).entry.version == 2
    assert not wishes


def test_a_version_is_compared_with_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each version is compared once; a retry compares only those that came since."""
    shelf, compared = Watched(), []
    registry, wishes = Registry(shelf), [SECOND]
    registry.register("orders", FIRST)
    shelf.before_writing = lambda: registry.register("orders", wishes.pop()) if wishes else None
    compare = find_conflicts

    def watched(new: Schema, versions: Sequence[SchemaVersion], level: CompatibilityLevel) -> tuple[Conflict, ...]:
        compared.append((new is FIELD, [one.number for one in versions]))
        return compare(new, versions, level)

    monkeypatch.setattr("hopwatch.gate.registry.subjects.find_conflicts", watched)
    assert registry.register("orders", FIELD).entry.version == 3
    assert [numbers for is_own, numbers in compared if is_own] == [[1], [2]]


def test_a_version_that_came_meanwhile_by_another_hand_is_found() -> None:
    """A version that another writer registered meanwhile is found, and written once."""
    shelf = Watched()
    registry = Registry(shelf)
    wishes = [lambda: registry.register("orders", FIRST)]
    shelf.before_writing = lambda: wishes.pop()() if wishes else None
    assert registry.register("orders", FIRST).is_new is False
    assert len(registry.entries("orders")) == 1


def test_who_comes_too_late_all_the_time_is_told() -> None:
    """Registration fails after a bounded number of tries, each of which met a new version."""
    shelf = Watched()
    registry, numbers = Registry(shelf), count()
    others = (schema(record({"name": f"f{number}", "type": "int", "default": 0})) for number in numbers)

    def before() -> None:
        shelf.before_writing = lambda: None
        registry.register("orders", next(others))
        shelf.before_writing = before

    shelf.before_writing = before
    with pytest.raises(
        SchemaStoreError, match="others registered versions of 'orders' 100 times meanwhile: retry later"
    ):
        registry.register("orders", schema(record({"name": "z", "type": "int", "default": 0})))


def test_the_first_text_of_a_meaning_stays(registry: Registry) -> None:
    """Another one that says the same is the same version, under any subject."""
    registry.register("orders", FIRST)
    noted = schema(record({"name": "a", "type": "int", "doc": "how many"}))
    again, elsewhere = registry.register("orders", noted), registry.register("sales", noted)
    assert (again.is_new, again.entry.schema.text) == (False, FIRST.text)
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
    assert registry.conflicts("orders", BROKEN) == (CompatibilityLevel.BACKWARD_TRANSITIVE, caught.value.conflicts)
    assert registry.conflicts("orders", BROKEN, 1)[1] == caught.value.conflicts
    registry.set_level(CompatibilityLevel.NONE, "orders")
    assert registry.register("orders", BROKEN).entry.version == 2
    assert registry.conflicts("nobody", BROKEN) == (CompatibilityLevel.BACKWARD_TRANSITIVE, ())


def test_levels_are_of_a_subject_or_of_all(registry: Registry) -> None:
    """A subject's own one goes before."""
    assert registry.level() is CompatibilityLevel.BACKWARD_TRANSITIVE
    assert registry.own_level("orders") is None
    registry.set_level(CompatibilityLevel.FULL, ALL_SUBJECTS)
    assert [registry.level(), registry.level("orders")] == [CompatibilityLevel.FULL, CompatibilityLevel.FULL]
    registry.set_level(CompatibilityLevel.FORWARD, "orders")
    assert [registry.level(), registry.level("orders"), registry.own_level("orders")] == [
        CompatibilityLevel.FULL, CompatibilityLevel.FORWARD, CompatibilityLevel.FORWARD,
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
