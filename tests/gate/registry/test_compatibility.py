"""Tests of compatibility: the verdicts are those of Apache Avro's checker of Java, and what is read, is read whole."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hopwatch.gate.registry.compatibility import (
    CompatibilityLevel,
    Direction,
    SchemaVersion,
    find_conflicts,
    is_readable,
)
from tests.gate.registry.avro_java import Checker, checker
from tests.support.examples import examples
from tests.support.schemas import ORDER, SCHEMAS, TYPES, Json, changed, record, schema

PAIRS = 600


@pytest.fixture(scope="module")
def java() -> Iterator[Checker]:
    """Yield Avro's checker of Java."""
    with checker() as found:
        yield found


def test_the_verdicts_are_those_of_avro(java: Checker) -> None:
    """Of pairs as teams write them, one a small change away from the other, and of pairs of any types."""
    seen = {True: 0, False: 0}

    @settings(max_examples=PAIRS, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.one_of(SCHEMAS.flatmap(lambda one: st.tuples(st.just(one), changed(one))), st.tuples(TYPES, TYPES)))
    def agree(pair: tuple[Json, Json]) -> None:
        texts = [orjson.dumps(one).decode() for one in pair]
        verdict = is_readable(schema(pair[0]), schema(pair[1]))
        assert verdict == java.reads(*texts)
        seen[verdict] += 1

    agree()
    assert sum(seen.values()) >= 500
    assert min(seen.values()) > 100


@settings(max_examples=examples(200))
@given(SCHEMAS | TYPES)
def test_fingerprints_are_those_of_avro(java: Checker, said: Json) -> None:
    """So that any other program finds a schema by the one that it computes."""
    one = schema(said)
    assert one.fingerprint == java.fingerprint(one.text)


@settings(max_examples=examples(300))
@given(TYPES, TYPES)
def test_what_does_not_fit_is_explained(reader: Json, writer: Json) -> None:
    """There is a break whenever the library says that one does not read the other, and none when it does."""
    new, old = schema(reader), schema(writer)
    found = find_conflicts(new, [SchemaVersion(1, old)], CompatibilityLevel.BACKWARD)
    assert bool(found) != is_readable(new, old)
    assert all(one.breaks for one in found)


WIDER = record({"name": "a", "type": "long"})
PLAIN = record({"name": "a", "type": "int"})
OTHER = record({"name": "a", "type": "int"}, {"name": "b", "type": "int"})


@pytest.mark.parametrize(
    ("level", "told"),
    [
        (CompatibilityLevel.NONE, []),
        (CompatibilityLevel.BACKWARD, []),
        (CompatibilityLevel.BACKWARD_TRANSITIVE, []),
        (CompatibilityLevel.FORWARD, []),
        (CompatibilityLevel.FORWARD_TRANSITIVE, [(1, Direction.FORWARD)]),
        (CompatibilityLevel.FULL, []),
        (CompatibilityLevel.FULL_TRANSITIVE, [(1, Direction.FORWARD)]),
    ],
)
def test_a_level_says_who_owes_whom(level: CompatibilityLevel, told: list[tuple[int, Direction]]) -> None:
    """Version 1 has an int and version 2 a long, as the new one has: only who looks beyond the latest sees a break."""
    versions = [SchemaVersion(1, schema(PLAIN)), SchemaVersion(2, schema(WIDER))]
    found = find_conflicts(schema(record({"name": "a", "type": "long"}, name="Order", doc="new")), versions, level)
    assert [(one.version, one.direction) for one in found] == told


def test_both_directions_are_told_of_each_version() -> None:
    """In the order of the versions, the new schema as a reader first."""
    versions = [SchemaVersion(1, schema(PLAIN)), SchemaVersion(2, schema(OTHER))]
    found = find_conflicts(
        schema(record({"name": "a", "type": "string"})), versions, CompatibilityLevel.FULL_TRANSITIVE
    )
    assert [(one.version, one.direction) for one in found] == [
        (1, Direction.BACKWARD), (1, Direction.FORWARD), (2, Direction.BACKWARD), (2, Direction.FORWARD),
    ]  # fmt: skip
    assert find_conflicts(schema(ORDER), [], CompatibilityLevel.FULL_TRANSITIVE) == ()
