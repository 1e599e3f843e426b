"""Tests of the client of a registry: what it fetches, and how it tells what is unknown from what is out of order."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hopwatch.probes import schema_registry
from hopwatch.probes.schema_registry import (
    MAX_REFERENCES,
    ForeignSchemaError,
    RegistryAccess,
    RegistryDownError,
    SchemaRegistry,
    UnknownSchemaError,
    read_registry_access,
)
from tests.gate.app_client import Asked
from tests.support.fake_registry import UNKNOWN, FakeRegistry, GateRegistry
from tests.support.http_receiver import answers, certificate, closes, floods, hangs, receiving, server_tls, trickles
from tests.support.schemas import ORDER, schema

TEXT = json.dumps(ORDER)


def test_a_schema_of_ours_is_found_by_fingerprint_and_number() -> None:
    """The same; what is not registered is unknown by either, and so is a number that cannot be."""
    asked = Asked()
    registry = GateRegistry(asked)
    fingerprint = schema(ORDER).fingerprint
    for unknown in (fingerprint, 1, 0, 2**31, 2**32 - 1):
        with pytest.raises(UnknownSchemaError, match=r"has no schema|from 1 to 2147483647, got"):
            registry.find_schema(unknown)
    asked.ask("PUT", "/subjects/orders/schemas", ORDER)
    assert registry.find_schema(fingerprint) == registry.find_schema(1) == ORDER
    asked.ask("PUT", "/subjects/names/schemas", "string")
    assert registry.find_schema(schema("string").fingerprint) == registry.find_schema(2) == "string"
    assert registry.find_name(fingerprint) == registry.find_name(1) == "orders/1"
    assert registry.find_name(schema("string").fingerprint) == registry.find_name(2) == "names/1"
    assert registry.find_name(99) == registry.find_name(bytes(32)) == ""


def test_what_a_schema_refers_to_is_fetched_and_written_out() -> None:
    """Through others, each once; names are quoted in the URL."""
    line = {"type": "record", "name": "shop.Line", "fields": [{"name": "mark", "type": "Mark"}]}
    mark = {"type": "fixed", "name": "shop.Mark", "size": 2}
    registry = FakeRegistry(
        {
            "/schemas/ids/7": {
                "schema": json.dumps({"type": "array", "items": ["shop.Line", "shop.Mark"]}), "schemaType": "AVRO",
                "references": [
                    {"name": "shop.Line", "subject": "a/line", "version": 3},
                    {"name": "shop.Mark", "subject": "mark", "version": 1},
                ],
            },
            "/subjects/a%2Fline/versions/3": {
                "schema": json.dumps(line), "id": 5,
                "references": [{"name": "shop.Mark", "subject": "mark", "version": 1}],
            },
            "/subjects/mark/versions/1": {"schema": json.dumps(mark), "id": 4},
        }
    )  # fmt: skip
    whole = {**line, "name": "Line", "namespace": "shop", "fields": [
        {"name": "mark", "type": {**mark, "name": "Mark", "namespace": "shop"}}]}  # fmt: skip
    assert registry.find_schema(7) == {"type": "array", "items": [whole, "shop.Mark"]}
    assert registry.asked == ["/schemas/ids/7", "/subjects/a%2Fline/versions/3", "/subjects/mark/versions/1"]


def deep() -> Any:  # noqa: ANN401 - JSON
    """Return a schema that is nested past all sense."""
    found: Any = "int"
    for _ in range(100):
        found = {"type": "array", "items": found}
    return found


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"schema": "x", "schemaType": "PROTOBUF"}, "it is of the kind PROTOBUF, and not AVRO"),
        ({"schema": "{"}, "it is no JSON: "),
        ({"schema": TEXT, "references": 3}, "its references are no list"),
        ({"schema": TEXT, "references": ["x"]}, "a reference has subject and version, got 'x'"),
        ({"schema": json.dumps(deep())}, "it is nested deeper than 64"),
    ],
)
def test_a_schema_that_cannot_be_used_is_told(answer: object, told: str) -> None:
    """Nobody waits for it: a registered schema stays as it is."""
    with pytest.raises(ForeignSchemaError, match=told):
        FakeRegistry({"/schemas/ids/7": answer}).find_schema(7)


def test_references_have_an_end() -> None:
    """A registry that goes on naming others is left."""
    chain = {
        f"/subjects/s/versions/{at}": {"schema": '"int"', "references": [{"subject": "s", "version": at + 1}]}
        for at in range(MAX_REFERENCES + 2)
    }
    first = {"schema": '"int"', "references": [{"subject": "s", "version": 0}]}
    registry = FakeRegistry({**chain, "/schemas/ids/7": first})
    with pytest.raises(ForeignSchemaError, match=f"it refers to more than {MAX_REFERENCES} schemas"):
        registry.find_schema(7)
    assert len(registry.asked) == MAX_REFERENCES + 1


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((404, b"<html>"), "the registry http://registry:8081 answers 404 to the schema 7, and no registry"),
        ((404, {"error_code": 404, "message": "HTTP 404 Not\nFound"}), "answers 404 to the schema 7: HTTP 404 Not F"),
        ((404, {"type": "urn:hopwatch:problem:unknown-stream", "detail": "no"}), "answers 404 to the schema 7: no"),
        ((200, b"hello"), "answers 200 to the schema 7, and no registry does: check the URL"),
        ((200, {"error_code": 4, "message": 3}), "answers 200 to the schema 7, and no registry does"),
        ((401, UNKNOWN), "answers 401 to the schema 7: check HOPWATCH_REGISTRY_USERNAME, HOPWATCH_"),
        ((503, {"type": "x", "detail": "the store is down"}), "answers 503 to the schema 7: the store is down"),
        ({"schema": TEXT, "references": [{"subject": "a", "version": 1}]}, "answers 404 to version 1 of a, which"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_not_taken_for_an_unknown_schema(answer: object, told: str) -> None:
    """A wrong URL, a password, a store that is down: messages must wait for it, and not count as bad."""
    with pytest.raises(RegistryDownError, match=re.escape(told)):
        FakeRegistry({"/schemas/ids/7": answer}).find_schema(7)


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        (hangs, "did not answer within 0.3 s"), (trickles, "did not answer within 0.3 s"),
        (closes, "does not answer: "), (floods, "answers with more than 65,536 bytes"),
    ],
)  # fmt: skip
def test_a_request_ends_in_time_whatever_is_behind_the_url(
    behaviour: Any,  # noqa: ANN401 - a behaviour of a receiver
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With little memory, and words for it."""
    monkeypatch.setattr(schema_registry, "MAX_ANSWER_BYTES", 65_536)
    with receiving(behaviour) as receiver, pytest.raises(RegistryDownError, match=told):
        SchemaRegistry(receiver.url(), RegistryAccess(), 0.3).find_schema(7)


def test_a_request_says_who_asks(tmp_path: Path) -> None:
    """By name and password, or by token, over TLS with an authority of one's own; a path of the URL is kept."""
    good = answers(200, json.dumps({"schema": TEXT}).encode())
    file = certificate(tmp_path)
    with receiving(good, context=server_tls(file)) as receiver:
        for access in (RegistryAccess("ann", "pw", ca_file=str(file)), RegistryAccess(token="tk", ca_file=str(file))):  # noqa: S106 - of a test
            assert SchemaRegistry(receiver.url("/api/"), access).find_schema(7) == ORDER
        with pytest.raises(RegistryDownError, match=r"does not answer: .*certificate"):
            SchemaRegistry(receiver.url(), RegistryAccess()).find_schema(7)
    assert [one.headers["authorization"] for one in receiver.requests] == ["Basic YW5uOnB3", "Bearer tk"]
    assert {one.path for one in receiver.requests} == {"/api/schemas/ids/7"}
    with pytest.raises(RegistryDownError, match="does not answer: Connection refused"):
        SchemaRegistry("http://127.0.0.1:1", RegistryAccess()).find_schema(7)
    with pytest.raises(ValueError, match="HOPWATCH_REGISTRY_CA_FILE /none cannot be used: "):
        SchemaRegistry("https://registry", RegistryAccess(ca_file="/none"))


@pytest.mark.parametrize(
    "url", ["registry:8081", "ftp://registry", "http://", "http://a/?b", "http://ann:secret@registry", "http://a/ b"]
)
def test_a_url_is_one(url: str) -> None:
    """And holds no password, which every user of the machine could read; it is not shown."""
    with pytest.raises(ValueError, match="a registry is http://HOST:PORT or https://HOST:PORT, and its password") as at:
        SchemaRegistry(url, RegistryAccess())
    assert "secret" not in str(at.value)


def test_access_comes_from_the_environment(tmp_path: Path) -> None:
    """Each secret by itself or by a file; what contradicts itself is refused, and nothing of it is shown."""
    (tmp_path / "pw").write_text("secret\n")
    said = {"HOPWATCH_REGISTRY_USERNAME": "ann", "HOPWATCH_REGISTRY_PASSWORD_FILE": str(tmp_path / "pw"), "PATH": "x"}
    access = read_registry_access(said)
    assert access == RegistryAccess("ann", "secret")
    assert "secret" not in repr(access)
    assert read_registry_access({}).authorization == ""
    for more, told in (
        ({"TOKEN": "t"}, "HOPWATCH_REGISTRY_TOKEN and HOPWATCH_REGISTRY_USERNAME both say who asks: keep one"),
        ({"PASSWORD": "p"}, "password and password_file both say the secret: keep one of them"),
        ({"PASSWORD_FILE": "/none"}, "the file /none cannot be read: No such file or directory"),
        ({"PASSWORD": "a\nb", "PASSWORD_FILE": ""}, "HOPWATCH_REGISTRY_PASSWORD is one line of text"),
    ):
        with pytest.raises(ValueError, match=told):
            read_registry_access(said | {f"HOPWATCH_REGISTRY_{name}": value for name, value in more.items()})
    (tmp_path / "pw").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="cannot be read: its text is UTF-8"):
        read_registry_access(said)
