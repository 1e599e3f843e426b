"""Tests of events in Avro at the entrance: each by the schema that wrote it, and as good as the same event in JSON."""

from __future__ import annotations

from typing import Any

import httpx
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.gate import ids
from hopwatch.gate.avro_events import AvroEvents, EventPaths
from hopwatch.gate.codec import Codec
from hopwatch.gate.registry.subjects import Registry
from hopwatch.gate.replay import replay_events
from hopwatch.gate.request_bodies import MAX_EVENT_BYTES
from hopwatch.gate.rules import FieldPath
from hopwatch.probes.avro_reader import PREFIX_BYTES
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.http.problems import Fault
from tests.gate.container_bytes import by_hand, container, deflated
from tests.gate.events import with_event
from tests.support.examples import examples
from tests.support.gate_client import EVENTS, GOOD, ORDER, POSITIVE, AtEntrance, post, put
from tests.support.schema_store import MemoryShelf
from tests.support.schemas import SCHEMAS, Json, changed, record, schema
from tests.support.tap_client import told

AVRO = {"content-type": "application/avro"}
OLD: Any = record({"name": "price", "type": "int"}, {"name": "item", "type": "string"}, {"name": "gone", "type": "int"})
"""An earlier version: its price is a whole number, and it has a field more."""
FILED: Any = record(
    {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    *ORDER["fields"],
)
AT_US = 1_700_000_039_123_000


def encode(said: Json, value: Any) -> bytes:  # noqa: ANN401 - JSON
    """Return an event in the envelope."""
    return Codec(schema(said)).encode(orjson.dumps(value))


def in_registry(gate: AtEntrance, said: Json, subject: str = "others") -> int:
    """Register a schema of any subject, and return its number."""
    gate.ask("PUT", f"/subjects/{subject}/schemas", said)
    return int(gate.ask("GET", f"/subjects/{subject}/versions/latest").json()["id"])


def put_avro(gate: AtEntrance, event_id: str, body: bytes, **query: str) -> httpx.Response:
    """Send one event in Avro."""
    return gate.ask("PUT", f"{EVENTS}/{event_id}", content=body, headers=AVRO, params=query)


def post_file(gate: AtEntrance, body: bytes, **query: str) -> httpx.Response:
    """Send a container file."""
    return gate.ask("POST", EVENTS, content=body, headers=AVRO, params=query)


def test_an_event_in_avro_is_the_event_that_it_is_in_json(gate: AtEntrance) -> None:
    """In the envelope and in Confluent's framing, by an older schema of another subject; a repeat in JSON is one."""
    number = in_registry(gate, OLD)
    body = encode(OLD, {"price": 3, "item": "x", "gone": 1})
    first, second = gate.new_id(), gate.new_id()
    for event_id, framed in ((first, body), (second, b"\0" + number.to_bytes(4) + body[PREFIX_BYTES:])):
        assert put_avro(gate, event_id, framed).status_code == 201
        assert put_avro(gate, event_id, framed).status_code == 201
        assert put(gate, event_id, {"price": 3, "item": "x"}).status_code == 201
    assert gate.values() == [{"price": 3.0, "item": "x"}] * 2
    assert [one.outcome for one in gate.stamped()] == [Outcome.PASSED] * 2
    assert told(put(gate, first, GOOD))[:2] == (409, "id-taken")


def test_rules_look_into_avro() -> None:
    """And an event of a version that the query names is read as that version."""
    gate = AtEntrance(POSITIVE)
    in_registry(gate, OLD)
    answer = put_avro(gate, gate.new_id(), encode(OLD, {"price": -3, "item": "x", "gone": 1}))
    assert told(answer)[0] == 422
    assert [one.reasons[0].place for one in gate.refused()] == ["/price"]
    fingerprint = schema(ORDER).fingerprint.hex()
    gate.register(record(*ORDER["fields"], {"name": "more", "type": "int", "default": 7}))
    good = encode(ORDER, GOOD)
    assert put_avro(gate, gate.new_id(), good, schema=fingerprint).status_code == 201
    assert gate.values() == [GOOD]


def test_avro_that_cannot_be_read_is_refused_and_kept() -> None:
    """With its reason, and the bytes as they came; the sender learns the place."""
    enum = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
    gate = AtEntrance(schema=record({"name": "k", "type": {**enum, "symbols": ["A"]}}))
    number = in_registry(gate, record({"name": "k", "type": enum}))
    written = encode(record({"name": "k", "type": enum}), {"k": "B"})
    bodies = {
        b"": "an event in Avro begins with 81 or 00 and what names its schema, got nothing",
        b"{}": "an event in Avro begins with 81 or 00 and what names its schema, got 7b7d",
        b"\x81x": "a value begins with 81 and a fingerprint, got 8178",
        b"\x81" + bytes(32): f"unknown_schema: there is no schema {bytes(32).hex()}: register the writer's schema",
        b"\0\0\0\0\x99x": "unknown_schema: there is no schema 153: register the writer's schema",
        written: "the reader's enum has no B and no default",
        written + b"x": "the reader's enum has no B and no default",
        written[:-1]: "it ends within a value",
        b"\0" + number.to_bytes(4) + b"\0x": "1 bytes follow the event",
    }  # fmt: skip
    for body, detail in bodies.items():
        answer = put_avro(gate, gate.new_id(), body)
        assert (answer.status_code, answer.json()["errors"][0]["detail"]) == (422, detail)
    assert [one.data for one in gate.refused()] == list(bodies)
    assert gate.values() == []
    assert {one.outcome for one in gate.stamped()} == {Outcome.REJECTED}
    assert told(put_avro(gate, gate.new_id(), bytes(MAX_EVENT_BYTES + 1)))[0] == 413
    gate.shelf.down = "the store is down"
    assert told(put_avro(gate, gate.new_id(), b"\0\0\0\0\x98x"))[:2] == (503, "store-down")


def test_what_was_rejected_for_its_schema_enters_once_that_is_registered(gate: AtEntrance) -> None:
    """By a replay, with its id and its time."""
    event_id, body = gate.new_id(), encode(OLD, {"price": 3, "item": "x", "gone": 1})
    assert put_avro(gate, event_id, body).status_code == 422
    (rejected,) = gate.refused()
    in_registry(gate, OLD)
    (replayed,) = replay_events(gate.gate, Registry(gate.shelf), "orders", [rejected])
    assert (replayed.event_id, replayed.status) == (event_id, 201)
    assert gate.values() == [{"price": 3.0, "item": "x"}]


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_a_container_file_is_a_batch(codec: str) -> None:
    """Of a schema that nobody registered; the query names the fields of id and time, and the stream's schema counts."""
    gate = AtEntrance(schema=FILED)
    event_ids = [gate.new_id() for _ in range(40)]
    values = [{"id": one, "at": AT_US // 1_000, "price": at, "item": "x"} for at, one in enumerate(event_ids)]
    writer = {**FILED, "fields": [{"name": "more", "type": "int", "default": 0}, *FILED["fields"]]}
    file = container(values, writer, codec=codec, sync_interval=100)
    answer = post_file(gate, file, id="id", time="at")
    assert (answer.status_code, answer.json()) == (201, {"entered": 40, "held": 0, "events": []})
    assert [ids.format_uuid(one.event_id) for one in gate.outlet.left] == event_ids
    assert {one.event_us for one in gate.outlet.left} == {AT_US}
    assert [one["price"] for one in gate.values(FILED)] == list(range(40))


def test_events_of_a_file_are_judged_each() -> None:
    """One that the stream's schema cannot represent, has no id or no time spoils no other; it is kept by itself."""
    kinds = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
    fields = [{"name": "id", "type": ["null", "string"]}, {"name": "at", "type": ["null", "long"]}]
    writer = record(*fields, {"name": "kind", "type": kinds})
    gate = AtEntrance(schema=record(*fields, {"name": "kind", "type": {**kinds, "symbols": ["A"]}}))
    good, other = gate.new_id(), gate.new_id()
    odd = [(good, AT_US, "A"), (gate.new_id(), AT_US, "B"), (None, AT_US, "A"), (gate.new_id(), None, "A"),
           ("7", AT_US, "A"), (other, AT_US, "A")]  # fmt: skip
    file = container([dict(zip(("id", "at", "kind"), one, strict=True)) for one in odd], writer)
    answer = post_file(gate, file, id="id", time="at", each="true")
    told_of = [(one["status"], *(fault["place"] for fault in one.get("errors", ()))) for one in answer.json()["events"]]
    assert told_of == [(201,), (422, "/1/kind"), (422, "/2/id"), (422, "/3/at"), (422, "/4/id"), (201,)]
    assert [ids.format_uuid(one.event_id) for one in gate.outlet.left] == [good, other]
    assert len(gate.refused()) == 4
    registry = Registry(gate.shelf)
    events = AvroEvents(registry)
    assert "unknown_schema: " in events.decode(gate.refused()[0].data, Codec(schema(writer))).faults[0].detail
    assert told(post_file(gate, file, id="id"))[:2] == (422, "bad-events")


def test_ids_of_a_file_may_be_bytes() -> None:
    """16 of them, as a fixed or bytes; of times without a type the unit is a microsecond."""
    key = record({"name": "id", "type": {"type": "fixed", "name": "Id", "size": 16}}, name="Key")
    said = record({"name": "key", "type": key}, {"name": "at", "type": "long"})
    gate = AtEntrance(schema=said)
    event_id = bytes.fromhex(gate.new_id().replace("-", ""))
    file = container([{"key": {"id": event_id}, "at": AT_US}], said)
    assert post_file(gate, file, id="key.id", time="at").status_code == 201
    assert [(one.event_id, one.event_us) for one in gate.outlet.left] == [(event_id, AT_US)]


@pytest.mark.parametrize(
    ("body", "status", "kind", "detail"),
    [
        (b"[]", 400, "not-avro", "it begins with 4f626a01, got 5b5d"),
        (by_hand((1, b"\x02"), schema=b"{"), 400, "not-avro", "a schema is JSON"),
        (by_hand((1, b"\x02"), schema=b'{"type": "array", "items": "null"}'), 400, "not-avro", "would have no bytes"),
        (by_hand((1, b"\x02"), schema=b'{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]}]}'),
         400, "not-avro", "the type 'R' is part of itself"),
        (by_hand((1, b"\x02\x02")), 400, "not-avro", "1 bytes follow the values of a block"),
        (by_hand((2, b"\x02")), 400, "not-avro", "it ends within a value"),
        (by_hand((2**40, b"")), 422, "bad-events", "a request has 1 to 1,000 events, got 1,099,511,627,776"),
        (by_hand((999, b""), (2, b""), schema=b'"null"'), 422, "bad-events", "1 to 1,000 events, got 1,001"),
        (by_hand(), 422, "bad-events", "a request has 1 to 1,000 events, got 0"),
        (by_hand((1, deflated(bytes(2**24))), codec=b"deflate"), 413, "too-large", "unpack to at most 1,048,576 bytes"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused_whole(
    gate: AtEntrance, body: bytes, status: int, kind: str, detail: str
) -> None:
    """Before anything of it enters or is kept."""
    answer = post_file(gate, body, id="id")
    assert told(answer)[:2] == (status, kind)
    assert detail in answer.json()["detail"]
    assert gate.outlet.left == gate.rejected.left == []


def test_a_file_says_where_its_ids_are(gate: AtEntrance) -> None:
    """By the query; a name that is no field's is refused."""
    assert "name it, such as ?id=order.id" in post_file(gate, by_hand((1, b"\x02"))).json()["detail"]
    for bad in ("", "a..b", "a[]", "a b"):
        assert post_file(gate, by_hand((1, b"\x02")), id=bad).status_code == 422
    assert post(gate, [gate.event()], id="ignored.in.json").status_code == 201


PATHS = EventPaths(FieldPath.parse("a"))


@settings(max_examples=examples(100))
@given(SCHEMAS.flatmap(lambda said: st.tuples(with_event(said), changed(said))), st.booleans())
def test_an_event_is_the_same_framed_and_in_a_file(drawn: Json, is_packed: bool) -> None:  # noqa: FBT001 - drawn
    """The same value, or the same fault, whatever schemas wrote it and are to read it."""
    (said, (written, _)), reader = drawn
    registry = Registry(MemoryShelf())
    registry.register("s", schema(said))
    events, codec = AvroEvents(registry), Codec(schema(reader))
    framed = encode(said, written)
    body = framed[PREFIX_BYTES:]
    block = (1, deflated(body)) if is_packed else (1, body)
    file = by_hand(block, codec=b"deflate" if is_packed else b"null", schema=schema(said).text.encode())
    (sent,) = events.parse_container(file, codec, PATHS, 2**20)
    alone = events.decode(framed, codec)
    faults = tuple(Fault(f"/0{one.place}", one.detail) for one in alone.faults)
    assert (sent.decoded or alone, sent.faults, sent.data) == (alone, faults, framed)
