"""Tests of the registry's schemas in the store: they are what a shelf in memory would hold."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine

from hopwatch.gate.registry.compatibility import CompatibilityLevel
from hopwatch.gate.registry.schema_store import SchemaStoreError, StoredSchema, SubjectVersion
from hopwatch.gate.registry.subjects import ALL_SUBJECTS, IncompatibleError, Registry
from hopwatch.gate.registry.transfer import ImportCounts, export_registry, import_registry
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.store.subjects import SubjectStore
from tests.support.schema_store import MemoryShelf
from tests.support.schema_versions import BROKEN, FIRST, SECOND
from tests.support.schemas import record, schema


@pytest.fixture
def registry(engine: Engine) -> Registry:
    """Return a registry over the store."""
    return Registry(SubjectStore(engine, SystemClock()))


def test_it_holds_what_a_shelf_in_memory_holds(registry: Registry) -> None:
    """The shelf of the store gives the same answers as the shelf in memory."""
    told = []
    for one in (registry, Registry(MemoryShelf())):
        said: list[object] = []
        for subject, new in (("b", FIRST), ("a", SECOND), ("b", SECOND), ("b", FIRST), ("b", BROKEN)):
            try:
                said.append(one.register(subject, new))
            except IncompatibleError as error:
                said.append(str(error))
        one.set_level(CompatibilityLevel.FULL, "b")
        one.set_level(CompatibilityLevel.NONE, ALL_SUBJECTS)
        one.set_level(CompatibilityLevel.FORWARD, "b")
        said += [one.subjects(), one.entries("b"), one.level("a"), one.level("b"), one.own_level("a"), one.places(2)]
        said += [one.by_number(1), one.by_fingerprint(SECOND.fingerprint), one.find("a", SECOND), one.find("a", FIRST)]
        told.append(said)
    assert told[0] == told[1]


def test_a_file_of_a_registry_comes_into_the_store(engine: Engine) -> None:
    """With its numbers and levels, as into a shelf in memory; what is registered afterwards has the next number."""
    shelf = MemoryShelf()
    Registry(shelf).register("a", FIRST)
    Registry(shelf).set_level(CompatibilityLevel.FULL)
    shelf.schemas = {FIRST.fingerprint: StoredSchema(70, FIRST.text)}
    shelf.versions = {"a": [SubjectVersion(1, StoredSchema(70, FIRST.text))]}
    store = SubjectStore(engine, SystemClock())
    text = export_registry(shelf)
    assert [import_registry(store, text) for _ in range(2)] == [ImportCounts(1, 1, 1), ImportCounts(0, 0, 0)]
    assert export_registry(store) == text
    assert Registry(store).register("b", SECOND).entry.schema.number == 71


def test_many_may_register_at_once(registry: Registry) -> None:
    """Each version has one number, each schema one, and nobody meets half of another's work."""
    fields = [{"name": f"f{at}", "type": "int", "default": 0} for at in range(12)]
    wanted = [schema(record(one)) for one in fields]
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda one: registry.register("orders", one, renews=False), [*wanted, *wanted]))
    assert sorted(one.entry.version for one in made if one.is_new) == list(range(1, 13))
    assert [entry.version for entry in registry.entries("orders")] == list(range(1, 13))
    assert len({one.entry.schema.number for one in made}) == 12


def test_a_store_that_is_not_there_is_told(url: str) -> None:
    """In the shelf's own words, with what to do."""
    from hopwatch.monitor.store import dialect  # noqa: PLC0415 - a store that nobody has made

    registry = Registry(SubjectStore(dialect.create_engine(url), SystemClock()))
    for act in (registry.subjects, lambda: registry.register("orders", FIRST)):
        with pytest.raises(SchemaStoreError, match=r"there is no store at .* yet: start the monitor with hopwatch run"):
            act()
