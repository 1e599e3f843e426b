"""Tests of schemas of writers in a registry of others: what the validator sees of it."""

from __future__ import annotations

import json

import pytest

from hopwatch.gate import remote_writers
from hopwatch.gate.registry.schema_store import SchemaStoreError
from hopwatch.gate.registry.subjects import Registry, UnknownError
from hopwatch.gate.remote_writers import ASK_AGAIN_NS, RemoteWriters
from hopwatch.gate.resolution_cache import ResolutionCache
from hopwatch.probes.schema_registry import ForeignSchemaError
from hopwatch.testing import ManualClock
from tests.support.fake_registry import FakeRegistry
from tests.support.schema_store import MemoryShelf
from tests.support.schemas import FIRST, SECOND, schema

ANSWER = {"schema": json.dumps(FIRST)}


def test_a_writer_is_read_by_the_registry_of_others_as_our_latest_version() -> None:
    """Its number there says nothing of ours; it is fetched once, and so is the name that it has there."""
    places = [{"subject": "theirs", "version": 3}]
    theirs = FakeRegistry({"/schemas/ids/70": ANSWER, "/schemas/ids/70/versions": places})
    ours, clock = Registry(MemoryShelf()), ManualClock()
    ours.register("orders", schema(SECOND))
    versions = ResolutionCache(ours, "orders", clock, RemoteWriters(theirs, clock))
    for _ in range(2):
        resolution, codec = versions.get_resolution(70)
        assert resolution.read(b"\x06", 0) == {"a": 3, "b": 7}
        assert codec.schema == schema(SECOND)
    assert theirs.asked == ["/schemas/ids/70", "/schemas/ids/70/versions"]
    assert (versions.get_name(70), versions.get_name(1), versions.get_name(b"\xab" * 32)) == (
        "theirs/3", "id 1", "ab" * 6,
    )  # fmt: skip
    theirs.answers["/schemas/ids/70/versions"] = OSError("away")
    with pytest.raises(SchemaStoreError, match="does not answer: away"):
        RemoteWriters(theirs, clock).find_name(70)
    with pytest.raises(UnknownError, match="there is no schema 1"):
        versions.get_resolution(1)


def test_what_is_unknown_or_unusable_is_asked_for_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a topic full of it does not become a request a record; what is remembered has a bound."""
    monkeypatch.setattr(remote_writers, "MAX_REFUSED", 2)
    registry, clock = FakeRegistry({"/schemas/ids/8": {"schema": "{}", "schemaType": "JSON"}}), ManualClock()
    harmful = FakeRegistry({"/schemas/ids/8": {"schema": '{"type": "array", "items": "null"}'}})
    refusing = RemoteWriters(harmful, clock)
    for _ in range(3):
        with pytest.raises(ForeignSchemaError, match="the schema 8 cannot be used: an item of an array would have no"):
            refusing.find_text(8)
    assert harmful.asked == ["/schemas/ids/8"]
    writers = RemoteWriters(registry, clock)
    for _ in range(3):
        with pytest.raises(UnknownError, match="there is no schema 7"):
            writers.find_text(7)
        with pytest.raises(ForeignSchemaError, match="the schema 8 cannot be used: it is of the kind JSON"):
            writers.find_text(8)
    assert registry.asked == ["/schemas/ids/7", "/schemas/ids/8"]
    registry.answers["/schemas/ids/7"] = ANSWER
    clock.advance(ASK_AGAIN_NS / 1e9)
    assert json.loads(writers.find_text(7)) == FIRST
    with pytest.raises(UnknownError):
        writers.find_text(9)
    assert len(writers._refused) == 1


def test_a_registry_that_is_away_is_a_store_that_is_away() -> None:
    """For which the validator waits."""
    registry = FakeRegistry({"/schemas/ids/7": OSError("no route")})
    with pytest.raises(SchemaStoreError, match="the registry http://registry:8081 does not answer: no route"):
        RemoteWriters(registry, ManualClock()).find_text(7)
