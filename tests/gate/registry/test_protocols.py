"""Tests of protocols, references and standard types: what is taken is a schema that stands by itself."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import orjson
import pytest

from hopwatch.gate.codec import Codec
from hopwatch.gate.registry.avro_schema import MAX_SCHEMA_BYTES, Schema, SchemaError, parse_with_references
from hopwatch.gate.registry.protocols import ProtocolError, is_protocol, select_type
from hopwatch.gate.registry.standard_types import MONEY
from tests.gate.app_client import Asked
from tests.support.schemas import record, schema

SHOP: dict[str, Any] = {
    "protocol": "Shop",
    "namespace": "com.shop.v1",
    "types": [
        {"type": "enum", "name": "Kind", "symbols": ["A", "B"]},
        record({"name": "kind", "type": "Kind"}, name="Line"),
        record({"name": "lines", "type": {"type": "array", "items": "Line"}}, name="Order"),
        {"type": "error", "name": "com.other.Fault", "fields": [{"name": "why", "type": "string"}]},
    ],
    "messages": {"send": {"request": [{"name": "order", "type": "Order"}], "response": "null"}},
}
ORDER: Any = record(
    {
        "name": "lines",
        "type": {"type": "array", "items": record({"name": "kind", "type": SHOP["types"][0]}, name="Line")},
    },
    name="Order", namespace="com.shop.v1",
)  # fmt: skip


def test_a_type_of_a_protocol_stands_by_itself() -> None:
    """By its name, in full or short, or as the one that no other uses; it is what it would be in a file of its own."""
    assert is_protocol(SHOP)
    assert not is_protocol(ORDER)
    alone = {**SHOP, "types": SHOP["types"][:3]}
    for said, name in ((SHOP, "Order"), (SHOP, "com.shop.v1.Order"), (alone, None)):
        assert schema(select_type(said, name)).meaning == schema(ORDER).meaning
    assert schema(select_type(SHOP, "Kind")).name == "com.shop.v1.Kind"
    money = record({"name": "m", "type": "com.x.Money"}, name="Paid")
    whole = select_type({"protocol": "P", "types": [money]}, None, [{**MONEY, "namespace": "com.x"}])
    assert schema(whole).name == "Paid"


@pytest.mark.parametrize(
    ("said", "name", "told"),
    [
        (SHOP, None, "the protocol has several types that none other uses: com.shop.v1.Order, com.other.Fault: "),
        (SHOP, "Price", "the protocol has no type Price, it has com.shop.v1.Kind, com.shop.v1.Line, com.shop.v1.Order"),
        ({"protocol": "P", "types": []}, None, "it has no type"),
        ({"protocol": "P"}, None, "the types of a protocol are a list of named types"),
        ({"protocol": "P", "types": ["int"]}, "x", "the types of a protocol are a list of named types"),
    ],
)
def test_what_a_protocol_does_not_have_is_told(said: dict[str, Any], name: str | None, told: str) -> None:
    """With what it has, and the flag."""
    with pytest.raises(ProtocolError, match=told):
        select_type(said, name)


def test_money_is_a_type_that_every_schema_may_name() -> None:
    """Written out, so that a reader needs nothing of ours; it is exact, in JSON and in Avro."""
    said = record(
        {"name": "price", "type": "hopwatch.types.v1.Money"}, {"name": "fee", "type": "hopwatch.types.v1.Money"}
    )
    whole = schema(said)
    assert orjson.loads(whole.text)["fields"][0]["type"]["fields"] == MONEY["fields"]
    assert whole == schema({**said, "fields": [{"name": "price", "type": MONEY}, said["fields"][1]]})
    assert whole == Schema.parse(whole.text)
    codec = Codec(whole)
    price = {"amount": "12345678901234567.123456789", "currency": "EUR"}
    value = codec.parse_json(json.dumps({"price": price, "fee": {"amount": "-0.50", "currency": "JPY"}}).encode())
    assert value["price"]["amount"] == Decimal("12345678901234567.123456789")
    assert codec.decode(codec.encode_value(value))["fee"]["currency"] == "JPY"
    assert "namespace" not in orjson.loads(schema(record("int")).text)


def test_a_schema_with_references_is_kept_whole() -> None:
    """By Confluent's API; found again by the same request, and what is not there or no schema is told by its codes."""
    gate = Asked()
    line = record({"name": "kind", "type": SHOP["types"][0]}, name="Line", namespace="com.shop.v1")
    assert gate.ask("POST", "/subjects/line/versions", {"schema": json.dumps(line)}).json() == {"id": 1}
    order = {**ORDER, "fields": [{"name": "lines", "type": {"type": "array", "items": "Line"}}]}
    body = {"schema": json.dumps(order), "references": [{"name": "com.shop.v1.Line", "subject": "line", "version": 1}]}
    assert gate.ask("POST", "/subjects/order/versions", body).json() == {"id": 2}
    assert gate.ask("POST", "/subjects/order/versions", body).json() == {"id": 2}
    assert gate.ask("POST", "/subjects/order", body).json()["version"] == 1
    kept = gate.ask("GET", "/schemas/ids/2").json()
    assert schema(json.loads(kept["schema"])).meaning == schema(ORDER).meaning
    assert "references" not in kept
    for references, code in (
        ([{"subject": "line", "version": 2}], 40402), ([{"subject": "nix", "version": 1}], 40401), (["x"], 42201),
        ([{"subject": "line", "version": 1}] * 65, 42201), ([{"subject": "line", "version": True}], 42201),
    ):  # fmt: skip
        answer = gate.ask("POST", "/subjects/order/versions", {**body, "references": references})
        assert answer.json()["error_code"] == code


def test_what_is_no_schema_with_references_is_told() -> None:
    """As one without them."""
    deep = "[" * 70 + '"int"' + "]" * 70
    for text, others, told in (
        ("{", [], "a schema is JSON"), ('"int"', ["{"], "a schema is JSON"), (deep, [], "nested deeper"),
        ('["x"]', ['"int"'], "there is no type 'x'"), (" " * MAX_SCHEMA_BYTES + '"', [], "a schema is JSON"),
    ):  # fmt: skip
        with pytest.raises(SchemaError, match=told):
            parse_with_references(text, others)
    assert parse_with_references('"int"', []) == Schema.parse('"int"')
