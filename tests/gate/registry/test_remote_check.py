"""Tests of compatibility by a registry of others: it decides, and what is in the way is told as ours is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hopwatch.gate.registry.compatibility import CompatibilityLevel
from hopwatch.gate.registry.explanations import explain_conflicts
from hopwatch.gate.registry.remote_check import RemoteVerdict, check_remotely
from hopwatch.probes.schema_registry import RegistryDownError
from tests.gate.app_client import Asked
from tests.support.fake_registry import FakeRegistry, GateRegistry
from tests.support.schemas import BROKEN, CONFLICT, FIRST, SECOND, record, schema

CONFIG = {"/config/orders?defaultToGlobal=true": {"compatibilityLevel": "BACKWARD"}}
ASK = "/compatibility/subjects/orders/versions?verbose=true"
LATEST = "/compatibility/subjects/orders/versions/latest?verbose=true"
NO_LEVEL = 404, {"error_code": 40408}
VERSIONS = {
    "/subjects/orders/versions": [1],
    "/subjects/orders/versions/1": {"subject": "orders", "id": 1, "version": 1, "schema": json.dumps(FIRST)},
}


def test_our_own_gate_says_what_its_store_would_say() -> None:
    """A new subject takes anything; what breaks readers is named with its remedy, a second meaning by its reason."""
    asked = Asked()
    registry = GateRegistry(asked)
    fits = RemoteVerdict(CompatibilityLevel.BACKWARD_TRANSITIVE, ())
    assert check_remotely(registry, "orders", schema(FIRST)) == fits
    asked.ask("PUT", "/subjects/orders/schemas", FIRST)
    assert check_remotely(registry, "orders", schema(SECOND)) == fits
    found = check_remotely(registry, "orders", schema(BROKEN))
    assert [one._asdict() for one in explain_conflicts(found.conflicts)] == [CONFLICT]
    other = record({"name": "a", "type": "int", "default": 3}, namespace="com.example.orders.v1")
    assert "stands already for a schema that differs" in check_remotely(registry, "orders", schema(other)).reason
    assert asked.ask("GET", "/subjects/orders/schemas").json()["schemas"][1:] == []


@pytest.mark.parametrize(
    ("answers", "level", "reason"),
    [
        ({ASK: {"is_compatible": True}}, "backward", ""),
        ({ASK: (404, {"error_code": 40401, "message": "no subject"})}, "backward", ""),
        ({ASK: (404, {"error_code": 404}), LATEST: (404, {"error_code": 40402, "message": "no"})}, "backward", ""),
        ({ASK: (405, b""), LATEST: {"is_compatible": True}}, "backward", ""),
        ({ASK: {"is_compatible": False, "messages": ["x", "y"]}}, "backward", "x; y"),
        ({ASK: {"is_compatible": False}, **VERSIONS}, "backward", "the registry http://registry:8081 says"),
        ({ASK: (422, {"error_code": 42201, "message": "bad\nschema"})}, "backward", "bad schema"),
        ({ASK: {"is_compatible": True}, **dict.fromkeys(CONFIG, NO_LEVEL)}, "backward_transitive", ""),
    ],
)  # fmt: skip
def test_the_registry_decides(answers: dict[str, Any], level: str, reason: str) -> None:
    """In whatever form it answers; where we see nothing in the way its own words are the reason."""
    broken = {"/subjects/orders/versions": [1], "/subjects/orders/versions/1": {"schema": "{", "id": 1}}
    found = check_remotely(FakeRegistry(CONFIG | broken | answers), "orders", schema(SECOND))
    assert (found.level.value, found.conflicts) == (level, ())
    assert found.reason.startswith(reason)
    assert bool(found.reason) == bool(reason)


def test_what_is_in_the_way_is_told_by_our_own_words() -> None:
    """Of the versions that its level owes something to."""
    registry = FakeRegistry(CONFIG | VERSIONS | {ASK: {"is_compatible": False, "messages": ["READER_FIELD_MISSING"]}})
    found = check_remotely(registry, "orders", schema(BROKEN))
    assert [one._asdict() for one in explain_conflicts(found.conflicts)] == [CONFLICT]
    assert found.reason == "READER_FIELD_MISSING"


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({ASK: (200, b"<html>")}, "answers 200 to whether a schema fits orders, and no registry does: check the URL"),
        ({ASK: (401, b"")}, "answers 401 to whether a schema fits orders: check HOPWATCH_REGISTRY_USERNAME, "),
        (dict.fromkeys(CONFIG, (404, b"")), "answers 404 to what the level of a subject is, and no registry does"),
        ({ASK: {"is_compatible": False}, "/subjects/orders/versions": (500, b"")}, "answers 500 to what the versions"),
        ({ASK: {"is_compatible": False}, "/subjects/orders/versions": [1], "/subjects/orders/versions/1": (500, b"")},
         "answers 500 to version 1 of a subject"),
    ],
)  # fmt: skip
def test_what_is_no_verdict_is_none(answers: dict[str, Any], told: str) -> None:
    """A pull request must not pass because a proxy answered."""
    with pytest.raises(RegistryDownError, match=told):
        check_remotely(FakeRegistry(CONFIG | answers), "orders", schema(SECOND))
