"""Tests of the registry by HTTP: our own routes, and those that clients of Confluent's know."""

from __future__ import annotations

import orjson
import pytest

from tests.gate.app_client import Asked
from tests.support.schemas import BROKEN, CONFLICT, FIRST, SECOND, Json, record, schema

PATH = "/subjects/orders/schemas"
FINGERPRINT = schema(FIRST).fingerprint.hex()


def confluent(said: Json, **more: Json) -> dict[str, Json]:
    """Return a schema as Confluent's API is told one."""
    return {"schema": orjson.dumps(said).decode(), **more}


@pytest.fixture
def gate() -> Asked:
    """Return a gate in which one schema is registered."""
    gate = Asked()
    assert gate.ask("PUT", PATH, FIRST).status_code == 201
    return gate


def test_a_schema_is_registered_once(gate: Asked) -> None:
    """201 the first time and 200 from then on, with its number, version and fingerprint."""
    again = gate.ask("PUT", PATH, FIRST)
    told = {"id": 1, "fingerprint": FINGERPRINT, "schema": FIRST, "subject": "orders", "version": 1}
    assert (again.status_code, again.json()) == (200, told)
    assert gate.ask("PUT", PATH, SECOND).status_code == 201
    assert gate.ask("GET", "/subjects").json() == ["orders"]
    listed = gate.ask("GET", PATH).json()
    assert (listed["subject"], listed["compatibility"]) == ("orders", "backward_transitive")
    assert [one["version"] for one in listed["schemas"]] == [1, 2]
    assert listed["schemas"][0] == told
    assert gate.ask("GET", f"{PATH}/latest").json()["version"] == 2
    assert gate.ask("GET", f"{PATH}/1").json() == told
    assert gate.ask("GET", f"/schemas/{FINGERPRINT}").json() == {
        "id": 1, "fingerprint": FINGERPRINT, "schema": FIRST,
    }  # fmt: skip


def test_what_would_break_readers_is_a_conflict(gate: Asked) -> None:
    """With each field, and the next major version; asking first says the same and registers nothing."""
    refused = gate.ask("PUT", PATH, BROKEN)
    body = refused.json()
    assert (refused.status_code, refused.headers["content-type"]) == (409, "application/problem+json")
    assert body["type"] == "urn:hopwatch:problem:incompatible"
    assert body["conflicts"] == [CONFLICT]
    assert body["detail"].endswith(
        "or make it a new major version: the namespace com.example.orders.v2, and a subject of its own"
    )
    asked = gate.ask("GET", "/subjects/orders/compatibility", params={"schema": orjson.dumps(BROKEN).decode()})
    assert asked.json() == {"compatible": False, "compatibility": "backward_transitive", "conflicts": [CONFLICT]}
    fits = gate.ask("GET", "/subjects/orders/compatibility", params={"schema": orjson.dumps(SECOND).decode()})
    assert fits.json() == {"compatible": True, "compatibility": "backward_transitive", "conflicts": []}
    assert len(gate.ask("GET", PATH).json()["schemas"]) == 1


def test_another_meaning_of_a_fingerprint_is_a_conflict(gate: Asked) -> None:
    """The answer names the text that is kept."""
    other = record({"name": "a", "type": "int", "default": 3}, namespace="com.example.orders.v1")
    refused = gate.ask("PUT", "/subjects/sales/schemas", other)
    assert refused.status_code == 409
    assert refused.json()["type"] == "urn:hopwatch:problem:other-meaning"
    assert orjson.dumps(FIRST).decode() in refused.json()["detail"]
    assert gate.ask("POST", "/subjects/sales/versions", confluent(other)).json()["error_code"] == 409


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("GET", "/subjects/nobody/schemas", None, 404, "unknown-subject"),
        ("GET", f"{PATH}/7", None, 404, "unknown-version"),
        ("GET", f"/schemas/{'0' * 64}", None, 404, "unknown-schema"),
        ("GET", "/schemas/zz", None, 422, "bad-request"),
        ("GET", f"{PATH}/newest", None, 422, "bad-request"),
        ("PUT", "/subjects/a%20b/schemas", FIRST, 422, "bad-request"),
        ("PUT", PATH, {"type": "array", "items": "null"}, 422, "bad-schema"),
        ("GET", "/nowhere", None, 404, "not-found"),
        ("DELETE", PATH, None, 405, "method-not-allowed"),
    ],
)
def test_what_cannot_be_is_told(gate: Asked, method: str, path: str, body: Json, status: int, kind: str) -> None:
    """As a problem of RFC 9457."""
    answer = gate.ask(method, path, body)
    assert (answer.status_code, answer.json()["type"]) == (status, f"urn:hopwatch:problem:{kind}")
    assert answer.json()["detail"]


def test_a_method_that_is_not_there_is_told_with_those_that_are(gate: Asked) -> None:
    """Of all routes of the path."""
    assert gate.ask("DELETE", PATH).headers["allow"] == "GET, PUT"
    assert gate.ask("DELETE", "/healthz").headers["allow"] == "GET"


def test_a_bad_schema_is_told_with_its_place(gate: Asked) -> None:
    """A JSON pointer to the part."""
    answer = gate.ask("PUT", PATH, ["null", {"type": "map", "values": "Order"}])
    assert answer.json()["errors"] == [{"place": "/1/values", "detail": "there is no type 'Order'"}]
    assert gate.ask("PUT", PATH, content=b"{").json()["detail"].startswith("a schema is JSON: ")


def test_a_store_that_is_down_is_told(gate: Asked) -> None:
    """503 in either API, and with a moment to come again; the gate lives, and is not ready."""
    gate.shelf.down = "the store is down: start it"
    answer = gate.ask("GET", "/subjects")
    assert (answer.status_code, answer.json()["detail"]) == (503, "the store is down: start it")
    assert answer.headers["retry-after"] == "1"
    theirs = gate.ask("GET", "/config")
    assert (theirs.status_code, theirs.json()) == (503, {"error_code": 503, "message": "the store is down: start it"})
    assert gate.ask("GET", "/healthz").json() == {"status": "ok"}
    assert gate.ask("GET", "/readyz").status_code == 503
    gate.shelf.down = ""
    assert gate.ask("GET", "/readyz").json() == {"status": "ok"}


def test_confluents_api_says_the_same(gate: Asked) -> None:
    """One registry, two ways to speak to it."""
    assert gate.ask("POST", "/subjects/orders/versions", confluent(SECOND)).json() == {"id": 2}
    told = {"subject": "orders", "version": 2, "id": 2, "schema": schema(SECOND).text}
    assert gate.ask("POST", "/subjects/orders", confluent(SECOND)).json() == told
    assert gate.ask("GET", "/subjects/orders/versions").json() == [1, 2]
    for version in ("2", "latest"):
        assert gate.ask("GET", f"/subjects/orders/versions/{version}").json() == told
    assert gate.ask("GET", "/schemas/ids/2").json() == {"schema": schema(SECOND).text}
    assert gate.ask("GET", "/schemas/ids/2/versions").json() == [{"subject": "orders", "version": 2}]
    assert gate.ask("GET", "/schemas/types").json() == ["AVRO"]
    assert gate.ask("GET", "/mode").json() == {"mode": "READWRITE"}


def test_confluents_api_asks_about_compatibility(gate: Asked) -> None:
    """Of one version or of all, in words when asked for them; and sets what is owed."""
    path = "/compatibility/subjects/orders/versions"
    words = [": ".join(CONFLICT[name] for name in ("place", "problem", "breaks", "fix"))]  # type: ignore[misc]
    for each in (path, f"{path}/latest", f"{path}/1"):
        assert gate.ask("POST", each, confluent(SECOND)).json() == {"is_compatible": True, "messages": []}
        answer = gate.ask("POST", each, confluent(BROKEN), params={"verbose": "true"})
        assert answer.json() == {"is_compatible": False, "messages": words}
    refused = gate.ask("POST", "/subjects/orders/versions", confluent(BROKEN))
    assert (refused.status_code, refused.json()["error_code"]) == (409, 409)
    assert words[0] in refused.json()["message"]
    assert gate.ask("GET", "/config").json() == {"compatibilityLevel": "BACKWARD_TRANSITIVE"}
    assert gate.ask("PUT", "/config/orders", {"compatibility": "NONE"}).json() == {"compatibility": "NONE"}
    assert gate.ask("GET", "/config/orders").json() == {"compatibilityLevel": "NONE"}
    assert gate.ask("GET", PATH).json()["compatibility"] == "none"
    assert gate.ask("POST", "/subjects/orders/versions", confluent(BROKEN)).json() == {"id": 2}
    assert gate.ask("PUT", "/config", {"compatibility": "full"}).json() == {"compatibility": "FULL"}
    others = gate.ask("GET", "/config/others", params={"defaultToGlobal": "true"})
    assert others.json() == {"compatibilityLevel": "FULL"}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/subjects/nobody/versions", None, 404, 40401),
        ("POST", "/subjects/nobody", confluent(FIRST), 404, 40401),
        ("GET", "/subjects/orders/versions/7", None, 404, 40402),
        ("GET", "/schemas/ids/7", None, 404, 40403),
        ("POST", "/subjects/orders", confluent(SECOND), 404, 40403),
        ("GET", "/config/orders", None, 404, 40408),
        ("POST", "/subjects/orders/versions", {"schema": "{"}, 422, 42201),
        ("POST", "/subjects/orders/versions", confluent(FIRST, schemaType="JSON"), 422, 42201),
        ("POST", "/subjects/orders/versions", confluent(FIRST, references=[{"name": "x"}]), 422, 42201),
        ("PUT", "/config", {"compatibility": "SOME"}, 422, 42203),
    ],
)
def test_confluents_api_has_its_own_codes(
    gate: Asked, method: str, path: str, body: Json, status: int, code: int
) -> None:
    """Those that its clients go by."""
    answer = gate.ask(method, path, body)
    assert (answer.status_code, answer.json()["error_code"]) == (status, code)
    assert answer.json()["message"]
    assert answer.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
