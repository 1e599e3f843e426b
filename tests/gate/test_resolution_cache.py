"""Tests of the cache of writer schemas: by fingerprint and number, read as the latest, also while the store is down."""

from __future__ import annotations

import pytest

from hopwatch.gate.avro_body import ResolutionError
from hopwatch.gate.codec_cache import FRESH_NS
from hopwatch.gate.registry.compatibility import CompatibilityLevel
from hopwatch.gate.registry.schema_store import SchemaStoreError
from hopwatch.gate.registry.subjects import Registry, UnknownError
from hopwatch.gate.resolution_cache import MAX_WRITERS, ResolutionCache
from hopwatch.testing import ManualClock
from tests.support.schema_store import MemoryShelf
from tests.support.schemas import FIRST, SECOND, record, schema


class Kept:
    """A registry with a subject, and what reads it."""

    def __init__(self) -> None:
        """Register the first version."""
        self.shelf, self.clock = MemoryShelf(), ManualClock()
        self.registry = Registry(self.shelf)
        self.registry.register("orders", schema(FIRST))
        self.versions = ResolutionCache(self.registry, "orders", self.clock)


def test_a_writer_is_known_by_fingerprint_and_by_number() -> None:
    """And by no other."""
    kept = Kept()
    for writer in (schema(FIRST).fingerprint, 1):
        resolution, codec = kept.versions.get_resolution(writer)
        assert resolution.read(b"\x06", 0) == {"a": 3}
        assert codec is kept.versions.get_codec()
    for unknown in (schema(SECOND).fingerprint, 2, 0):
        with pytest.raises(UnknownError, match="there is no schema"):
            kept.versions.get_resolution(unknown)


def test_a_new_version_is_read_as_soon_as_somebody_writes_it() -> None:
    """Else what is new in it would be left out for a moment; and after a second in any case."""
    kept = Kept()
    assert kept.versions.get_codec().schema == schema(FIRST)
    kept.registry.register("orders", schema(SECOND))
    assert kept.versions.get_codec().schema == schema(FIRST)
    resolution, codec = kept.versions.get_resolution(2)
    assert resolution.read(b"\x06\x08", 0) == {"a": 3, "b": 4}
    assert codec.schema == schema(SECOND)
    kept.registry.set_level(CompatibilityLevel.NONE, "orders")
    kept.registry.register("orders", schema(FIRST | {"name": "Other"}))
    kept.clock.advance(FRESH_NS / 1e9)
    assert kept.versions.get_codec().schema.name.endswith("Other")


def test_a_writer_that_does_not_fit_is_told_each_time() -> None:
    """As one schema of the registry may be of a subject that has nothing to do with this one."""
    kept = Kept()
    kept.registry.register("others", schema(record("int", name="Other")))
    for _ in range(2):
        with pytest.raises(ResolutionError, match=r"the record is named com\.example\.orders\.v1\.Order, not Other"):
            kept.versions.get_resolution(2)


def test_what_was_found_serves_on_while_the_registry_is_down() -> None:
    """A cached resolution serves while the registry is down; one that is not cached raises an error."""
    kept = Kept()
    kept.versions.get_resolution(1)
    kept.shelf.down = "the store is locked"
    kept.clock.advance(10)
    assert kept.versions.get_resolution(1)[0].read(b"\x06", 0) == {"a": 3}
    with pytest.raises(SchemaStoreError, match="locked"):
        kept.versions.get_resolution(2)
    with pytest.raises(SchemaStoreError, match="locked"):
        ResolutionCache(kept.registry, "orders", kept.clock).get_codec()


def test_writers_have_a_bound() -> None:
    """Those that are let go of are found again."""
    kept = Kept()
    for number in range(MAX_WRITERS + 1):
        kept.registry.register(f"s{number}", schema(record({"name": "a", "type": "int"}, namespace=f"n{number}")))
        kept.versions.get_resolution(number + 2)
        assert len(kept.versions._writers) <= MAX_WRITERS
    assert kept.versions.get_resolution(1)[0].read(b"\x06", 0) == {"a": 3}


def test_a_subject_without_a_schema_is_told() -> None:
    """A subject without a schema raises an UnknownError."""
    with pytest.raises(UnknownError, match="there is no subject nobody"):
        ResolutionCache(Kept().registry, "nobody", ManualClock()).get_codec()
