"""Tests of the latest codecs: fresh for a second, served while the store is down, never older than what was known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hopwatch.gate.codec_cache import FRESH_NS, LatestCodecs
from hopwatch.gate.registry.schema_store import SchemaStoreError, SubjectVersion
from hopwatch.gate.registry.subjects import Registry, UnknownError
from hopwatch.testing import ManualClock
from tests.support.schema_store import MemoryShelf
from tests.support.schemas import FIRST, SECOND, schema

FRESH_S = FRESH_NS / 1e9


class Asked(Registry):
    """A registry that counts its questions, and may be slow to hand over an answer."""

    def __init__(self, shelf: MemoryShelf) -> None:
        """Count from 0."""
        super().__init__(shelf)
        self.asked = 0
        self.meanwhile: Callable[[], object] = int

    def entry(self, subject: str, version: int | None = None) -> SubjectVersion:
        """Answer, and let something happen before the answer arrives."""
        self.asked += 1
        found = super().entry(subject, version)
        meanwhile, self.meanwhile = self.meanwhile, int
        meanwhile()
        return found


class Interrupted(ManualClock):
    """A clock at whose next reading something else happens."""

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self.meanwhile: Callable[[], object] = int

    def monotonic_ns(self) -> int:
        """Let it happen, and return the time."""
        meanwhile, self.meanwhile = self.meanwhile, int
        meanwhile()
        return super().monotonic_ns()


class Kept:
    """A registry with a subject, and the codecs of it."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        """Register the first version."""
        self.shelf, self.clock = MemoryShelf(), clock or ManualClock()
        self.registry = Asked(self.shelf)
        self.registry.register("orders", schema(FIRST))
        self.latest = LatestCodecs(self.registry, self.clock)


def test_a_codec_is_asked_for_once_a_second_and_built_once() -> None:
    """The same version is the same codec."""
    kept = Kept()
    first = kept.latest.get("orders")
    assert (kept.latest.get("orders"), kept.registry.asked) == (first, 1)
    kept.clock.advance(FRESH_S)
    assert kept.latest.find_fresh("orders") is None
    assert (kept.latest.get("orders"), kept.registry.asked) == (first, 2)


def test_an_outage_is_asked_about_once_a_second_too() -> None:
    """In an outage a cached codec serves and the store is asked once a second; without one the error is raised."""
    kept = Kept()
    first = kept.latest.get("orders")
    kept.shelf.down = "the store is locked"
    kept.clock.advance(FRESH_S)
    asked = kept.registry.asked
    assert [kept.latest.get("orders") for _ in range(3)] == [first] * 3
    assert kept.registry.asked == asked + 1
    with pytest.raises(SchemaStoreError, match="locked"):
        LatestCodecs(kept.registry, kept.clock).get("orders")
    with pytest.raises(SchemaStoreError, match="locked"):
        kept.latest.load("orders")


def test_an_answer_that_comes_late_replaces_no_later_one() -> None:
    """As when a thread was left behind in a store that hung."""
    kept = Kept()

    def learn_of_the_second() -> None:
        kept.clock.advance(1)
        kept.registry.register("orders", schema(SECOND))
        assert kept.latest.load("orders").schema == schema(SECOND)

    kept.registry.meanwhile = learn_of_the_second
    assert kept.latest.load("orders").schema == schema(FIRST)
    assert kept.latest.get("orders").schema == schema(SECOND)


def test_a_renewal_replaces_no_codec_that_was_loaded_meanwhile() -> None:
    """A codec that another thread loads while a cached one is renewed stays."""
    clock = Interrupted()
    kept = Kept(clock)
    kept.latest.load("orders")

    def load_the_second() -> None:
        kept.registry.register("orders", schema(SECOND))
        kept.latest.load("orders")

    clock.meanwhile = load_the_second
    kept.latest.renew("orders")
    found = kept.latest.find("orders")
    assert found is not None
    assert found.schema == schema(SECOND)


def test_a_subject_without_a_schema_is_told() -> None:
    """Nothing of it is kept."""
    kept = Kept()
    with pytest.raises(UnknownError, match="there is no subject nobody"):
        kept.latest.get("nobody")
    assert kept.latest.find("nobody") is None
