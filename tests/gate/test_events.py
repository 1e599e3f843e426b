"""Tests of the entrance: accepted and refused events, answers and stamps."""

from __future__ import annotations

import gzip
from typing import Any, Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate import ids
from hopwatch.gate.records import RejectedRecord
from hopwatch.gate.rules import Action, EventRule, FieldPath, Freshness, NumberRange, Required, Uniqueness
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.http.problems import Fault
from tests.support.gate_client import CHEAP, EVENTS, GOOD, HOUR_US, KNOWN, POSITIVE, AtEntrance, post, put
from tests.support.schemas import record
from tests.support.tap_client import told


def test_an_event_enters_with_its_own_id_and_time(gate: AtEntrance) -> None:
    """Written as Avro in its envelope, stamped in and out, and answered with when it came."""
    event_id = gate.new_id()
    made_us = gate.clock.us
    gate.clock.advance(1.5)
    answer = put(gate, event_id)
    assert (answer.status_code, answer.json()) == (
        201,
        {"id": event_id, "status": 201, "arrived": "2023-11-14T22:14:03.500000Z"},
    )
    (left,) = gate.outlet.left
    assert (ids.format_uuid(left.event_id), left.event_us, left.arrived_us) == (
        event_id,
        made_us // 1_000 * 1_000,
        gate.clock.us,
    )
    assert gate.values() == [GOOD]
    (said,) = gate.stamped()
    assert (said.message_id, said.event_us, said.in_us, said.out_us) == (
        left.event_id,
        left.event_us,
        left.arrived_us,
        gate.clock.us,
    )
    assert said.outcome == Outcome.PASSED


@pytest.mark.parametrize(
    "time", ["2023-11-14T22:13:59.123456Z", "2023-11-14T23:13:59.123456+01:00", 1_700_000_039_123_456]
)
def test_a_time_that_is_said_counts(gate: AtEntrance, time: str | int) -> None:
    """Before that of the id, to the microsecond; in a header for one, beside the data in a batch."""
    assert put(gate, gate.new_id(), hopwatch_time=str(time)).status_code == 201
    assert post(gate, [gate.event(time=time)]).status_code == 201
    assert [one.event_us for one in gate.outlet.left] == [1_700_000_039_123_456] * 2


def test_a_batch_enters_as_one(gate: AtEntrance) -> None:
    """With one answer for all, each event once."""
    events = [gate.event({"price": number, "item": "x"}) for number in range(40)]
    answer = post(gate, events)
    assert (answer.status_code, answer.json()) == (201, {"entered": 40, "held": 0, "events": []})
    assert [one["price"] for one in gate.values()] == list(range(40))
    assert {said.in_us for said in gate.stamped()} == {gate.clock.us}


BAD: Final[list[tuple[str, Any, str, str]]] = [
    ("type", {"data": {"price": "1", "item": "x"}}, "/1/data/price", "Input should be a valid number"),
    ("missing", {"data": {"price": 1}}, "/1/data/item", "Field required"),
    ("unknown", {"data": GOOD | {"a/b": 1}}, "/1/data/a~1b", "Extra inputs are not permitted"),
    ("id", {"id": "7"}, "/1/id", "an id is a UUID such as 0192d5a0-0000-7000-8000-000000000001, got '7'"),
    ("id type", {"id": 7}, "/1/id", "an id is a UUID in a text, got int"),
    (
        "no time", {"id": "f81d4fae-7dec-41d0-a765-00a0c91e6bf6"}, "/1/time",
        "it is required: an id of version 4 has no time, those of 1, 6 and 7 do",
    ),
    ("time type", {"time": 1.5}, "/1/time", "a time is RFC 3339 text with a zone or whole µs since 1970, got float"),
    ("no zone", {"time": "2023-11-14T22:14:00"}, "/1/time", "an event time has a zone"),
    ("1969", {"time": -1}, "/1/time", "an event time lies between 1970 and 2255"),
    ("ahead", {"time": 1_700_000_402_000_001}, "/1/time", "the event time is 360 s ahead of now, 300 s are allowed"),
    ("old", {"time": 1_699_900_000_000_000}, "/1/time", "the event time is 100042 s old, 86400 s are allowed"),
    ("large", {"data": {"price": 1, "item": "x" * 300_000}}, "/1/data", "an event has at most 262,144 bytes, got 300,"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "place", "detail"), [one[1:] for one in BAD], ids=[one[0] for one in BAD])
def test_what_may_not_enter_keeps_the_others_out(gate: AtEntrance, more: Any, place: str, detail: str) -> None:  # noqa: ANN401 - JSON
    """The answer says which, where and why; nothing is written, and the bad one is stamped as rejected and kept."""
    good, bad = gate.event(), gate.event() | more
    answer = post(gate, [good, bad])
    assert told(answer) == (422, "bad-events", [place])
    assert answer.json()["errors"][0]["detail"].startswith(detail)
    assert answer.json()["detail"] == "1 of 2 events may not enter, and so none of them did: see errors"
    assert gate.outlet.left == []
    (kept,) = gate.refused()
    assert kept.data == orjson.dumps(bad["data"])[: 256 * 1024]
    own_place = place.removeprefix("/1").removeprefix("/data")
    assert (kept.stream, kept.is_held, kept.reasons[0].place) == ("orders", False, own_place)
    (said,) = gate.stamped()
    assert (said.message_id, said.outcome, said.in_us, said.out_us) == (
        kept.event_id,
        Outcome.REJECTED,
        gate.clock.us,
        None,
    )
    assert said.reason == f"{own_place or '/'} {kept.reasons[0].detail}"[:64]
    assert post(gate, [good]).status_code == 201


@pytest.mark.parametrize("more", [{"id": 7}, {"time": 0}])
def test_what_has_no_id_or_time_is_rejected_in_the_minute_of_its_arrival(
    gate: AtEntrance, more: dict[str, Any]
) -> None:
    """Under the BLAKE2b of its bytes, so that it counts once however often it is sent."""
    for _ in range(2):
        post(gate, [gate.event() | more])
    assert {said.event_us for said in gate.stamped()} == {gate.clock.us}
    if "id" in more:
        assert len({kept.event_id for kept in gate.refused()}) == 1


def test_when_asked_each_event_has_a_fate_of_its_own() -> None:
    """207: what may enter does, what may not is told, what is held is held."""
    gate = AtEntrance(CHEAP, KNOWN, POSITIVE)
    prices = [
        {"price": 1, "item": "x"},
        {"price": 11, "item": "x"},
        {"price": -1, "item": "x"},
        {"price": 2, "item": "z"},
        5,
    ]
    answer = post(gate, [gate.event(data) for data in prices], each="true")
    assert answer.status_code == 207
    assert {name: answer.json()[name] for name in ("entered", "held")} == {"entered": 2, "held": 1}
    assert [(one["status"], one.get("errors", [])) for one in answer.json()["events"]] == [
        (201, []),
        (202, [{"place": "/1/data/price", "detail": "cheap: it is at most 10"}]),
        (422, [{"place": "/2/data/price", "detail": "positive: it is at least 0"}]),
        (201, [{"place": "/3/data/item", "detail": "known: it is one of x, y"}]),
        (422, [{"place": "/4/data", "detail": "Input should be an object"}]),
    ]
    assert [one["price"] for one in gate.values()] == [1, 2]
    outcomes = [(said.outcome, said.reason) for said in sorted(gate.stamped(), key=lambda said: said.outcome)]
    assert sorted(outcomes, key=str) == sorted([
        (Outcome.PASSED, None), (Outcome.PASSED, None),
        (Outcome.REJECTED, "/price cheap: it is at most 10"), (Outcome.REJECTED, "/price positive: it is at least 0"),
        (Outcome.REJECTED, "/ Input should be an object"),
    ], key=str)  # fmt: skip


def test_what_is_held_is_kept_before_it_is_answered() -> None:
    """202 once it stands among the rejected; where that fails it is 503, and asked again it is held."""
    gate = AtEntrance(CHEAP)
    event_id = gate.new_id()
    gate.rejected.fails.add(ids.parse_uuid(event_id))
    assert told(put(gate, event_id, {"price": 11, "item": "x"}))[:2] == (503, "not-written")
    assert (gate.refused(), gate.stamped()) == ([], [])
    gate.rejected.fails.clear()
    for _ in range(2):
        answer = put(gate, event_id, {"price": 11, "item": "x"})
        assert (answer.status_code, answer.json()["errors"]) == (
            202,
            [{"place": "/price", "detail": "cheap: it is at most 10"}],
        )
    (kept,) = gate.refused()
    assert kept == RejectedRecord(
        "orders", ids.parse_uuid(event_id), kept.event_us, gate.clock.us, "", b'{"price":11,"item":"x"}',
        (Fault("/price", "cheap: it is at most 10"),), is_held=True,
    )  # fmt: skip
    assert gate.outlet.left == []


def test_faults_are_bounded_however_many_there_are() -> None:
    """Of rules, of arrays in one event, and of fields: what is told, kept and remembered stays small."""
    lines = record({"name": "lines", "type": {"type": "array", "items": "double"}})
    gate = AtEntrance(
        EventRule("cheap", NumberRange(FieldPath.parse("lines[]"), None, 1), Action.QUARANTINE), schema=lines
    )
    answer = post(gate, [gate.event({"lines": [9] * 30_000}), gate.event({"lines": ["x"] * 30_000})], each="true")
    held, refused = answer.json()["events"]
    assert [one["place"] for one in held["errors"]] == ["/0/data/lines/0", "/0/data/lines/1", "/0/data/lines/2"]
    assert [one["place"] for one in refused["errors"]] == ["/1/data/lines/0"]
    assert [len(kept.reasons) for kept in gate.refused()] == [1, 3]


def test_a_request_has_a_bound_of_its_own(gate: AtEntrance) -> None:
    """A megabyte, though a schema in Confluent's API may be larger."""
    for count in (6, 20):
        answer = post(gate, [gate.event({"price": 1, "item": "x" * 200_000}) for _ in range(count)])
        assert told(answer)[:2] == (413, "body-too-large")
        assert answer.json()["detail"] == "a request with events has at most 1,048,576 bytes, unpacked"


def test_json_that_is_nested_without_end_is_refused(gate: AtEntrance) -> None:
    """In the data, and as a body."""
    deep = "[" * 5_000 + "]" * 5_000
    kind = {"content-type": "application/json"}
    event = f'[{{"id": "{gate.new_id()}", "data": {deep}}}]'
    assert gate.ask("POST", EVENTS, content=event, headers=kind).status_code in {400, 422}
    assert gate.ask("POST", EVENTS, content=deep, headers=kind).status_code in {400, 422}
    assert gate.ask("PUT", f"{EVENTS}/{gate.new_id()}", content=deep, headers=kind).status_code == 422


@pytest.mark.parametrize(
    ("said", "default", "written"),
    [
        ("bytes", "ab\u00ff", b"ab\xff"),
        ({"type": "fixed", "name": "F", "size": 2}, "ab", b"ab"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u0004\u00e2", b"\x04\xe2"),
        (["bytes", "string"], "abc", b"abc"),
        (["null", "string"], None, None),
        ({"type": "array", "items": "bytes"}, ["a"], [b"a"]),
        (record({"name": "x", "type": "bytes", "default": "q"}, name="Inner"), {}, {"x": b"q"}),
    ],
)
def test_a_field_with_a_default_may_be_left_out(said: Any, default: Any, written: Any) -> None:  # noqa: ANN401 - JSON
    """A field left out is written with Avro's default, and rules see it as any other value."""
    schema = record({"name": "a", "type": said, "default": default})
    gate = AtEntrance(EventRule("there", Required(FieldPath.parse("a")), Action.NOTE), schema=schema)
    answer = post(gate, [gate.event({})], each="true").json()
    assert [one["status"] for one in answer["events"]] == [201]
    assert ("errors" in answer["events"][0]) is (written is None)
    assert gate.values(schema) == [{"a": written}]


def test_what_is_too_old_for_a_rule_is_rejected_in_the_minute_of_its_arrival() -> None:
    """An event too old for a rule counts under the minute of its arrival; other rejected events under their own."""
    gate = AtEntrance(EventRule("fresh", Freshness(HOUR_US), Action.REJECT), POSITIVE)
    old, bad = gate.event(time=gate.clock.us - 2 * HOUR_US), gate.event({"price": -1, "item": "x"})
    gate.clock.advance(60)
    answer = post(gate, [old, bad], each="true")
    assert [one["status"] for one in answer.json()["events"]] == [422, 422]
    assert {said.event_us // 1_000 for said in gate.stamped()} == {
        gate.clock.us // 1_000,
        gate.clock.us // 1_000 - 60_000,
    }
    assert [kept.event_us for kept in gate.refused() if kept.reasons[0].place == ""] == [old["time"]]


def test_notes_are_no_reasons_to_be_rejected() -> None:
    """The sender is told what keeps the event out, and nothing else."""
    gate = AtEntrance(KNOWN, POSITIVE)
    answer = put(gate, gate.new_id(), {"price": -1, "item": "z"})
    assert answer.json()["errors"] == [{"place": "/price", "detail": "positive: it is at least 0"}]


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ({"id": "0192d5a0-0000-7000-8000-000000000001"}, "it is taken from the id, as no other is given"),
        ({"time": 1_700_000_040}, "a number is µs since 1970, is this in seconds or milliseconds?"),
        ({"time": 1_600_000_040_000_000}, "86400 s are allowed"),
    ],
)
def test_where_a_time_comes_from_is_told(event: dict[str, Any], told: str) -> None:
    """If it cannot be."""
    gate = AtEntrance()
    gate.clock.advance(3 * 365 * 86_400)
    answer = post(gate, [gate.event() | event])
    assert answer.json()["errors"][0]["detail"].endswith(told)


def test_what_has_to_be_unique_is_free_again_if_nothing_was_written() -> None:
    """And an event that is noted for it takes it from nobody."""
    gate = AtEntrance(EventRule("once", Uniqueness(FieldPath.parse("item"), HOUR_US), Action.NOTE))
    event_id = gate.new_id()
    gate.outlet.fails = {ids.parse_uuid(event_id)}
    assert put(gate, event_id).status_code == 503
    assert "errors" not in put(gate, gate.new_id()).json()
    assert told(post(gate, [gate.event(), gate.event(5)]))[0] == 422
    assert "errors" in put(gate, gate.new_id()).json()


def test_a_value_that_has_to_be_unique_is_taken_by_what_enters() -> None:
    """Within a batch too; what was refused has taken none, and the same event may come again."""
    gate = AtEntrance(EventRule("once", Uniqueness(FieldPath.parse("item"), HOUR_US), Action.REJECT), POSITIVE)
    twins = [gate.event(), gate.event()]
    assert told(post(gate, twins)) == (422, "bad-events", ["/1/data/item"])
    assert post(gate, twins[1:]).status_code == 201
    assert post(gate, twins[1:]).status_code == 201
    assert told(post(gate, twins[:1])) == (422, "bad-events", ["/0/data/item"])


def test_the_schema_is_the_latest_or_the_one_that_is_asked_for(gate: AtEntrance) -> None:
    """A version is named by its fingerprint; without one that is known, nothing enters."""
    first = gate.ask("GET", "/subjects/orders/schemas/latest").json()["fingerprint"]
    gate.register(
        record(
            {"name": "price", "type": "double"},
            {"name": "item", "type": "string"},
            {"name": "n", "type": "int", "default": 7},
        )
    )
    new = gate.new_id()
    assert put(gate, new, GOOD | {"n": 1}).status_code == 201
    assert told(gate.ask("PUT", f"{EVENTS}/{gate.new_id()}", GOOD | {"n": 1}, params={"schema": first}))[0] == 422
    assert gate.ask("PUT", f"{EVENTS}/{gate.new_id()}", GOOD, params={"schema": first}).status_code == 201
    assert {one.record[1:33].hex() == first for one in gate.outlet.left} == {True, False}
    answer = gate.ask("PUT", f"{EVENTS}/{gate.new_id()}", GOOD, params={"schema": "00" * 32})
    assert told(answer)[:2] == (409, "no-schema")
    assert answer.json()["detail"].startswith(f"the subject 'orders' has no version with the fingerprint {'00' * 32}: ")


def test_without_a_schema_nothing_enters() -> None:
    """And the answer says how to register one; from then on events enter at once."""
    gate = AtEntrance(schema=None)
    answer = put(gate, gate.new_id())
    assert told(answer)[:2] == (409, "no-schema")
    assert (
        answer.json()["detail"] == "the subject 'orders' has no schema: register it with PUT /subjects/orders/schemas"
    )
    gate.ask(
        "PUT",
        "/subjects/orders/schemas",
        record({"name": "price", "type": "double"}, {"name": "item", "type": "string"}),
    )
    assert put(gate, gate.new_id()).status_code == 201


def test_events_enter_while_the_store_is_down(gate: AtEntrance) -> None:
    """By the schema that was the latest; a gate that knows none yet says so."""
    fingerprint = gate.ask("GET", "/subjects/orders/schemas/latest").json()["fingerprint"]
    assert put(gate, gate.new_id()).status_code == 201
    gate.shelf.down = "the store is down"
    gate.clock.advance(60)
    assert put(gate, gate.new_id()).status_code == 201
    assert told(gate.ask("PUT", f"{EVENTS}/{gate.new_id()}", GOOD, params={"schema": fingerprint}))[:2] == (
        503,
        "store-down",
    )
    other = AtEntrance()
    other.shelf.down = "the store is down"
    assert told(put(other, other.new_id()))[:2] == (503, "store-down")


def test_a_body_may_be_packed(gate: AtEntrance) -> None:
    """By gzip; in any other way it is 415, as is any other type."""
    path = f"{EVENTS}/{gate.new_id()}"
    packed = gzip.compress(orjson.dumps(GOOD))
    kind = {"content-type": "application/json"}
    assert gate.ask("PUT", path, content=packed, headers=kind | {"content-encoding": "gzip"}).status_code == 201
    for headers in (kind | {"content-encoding": "br"}, {"content-type": "text/plain"}, {}):
        answer = gate.ask("PUT", path, content=packed, headers=headers)
        assert told(answer)[:2] == (415, "unknown-type")
    assert gate.values() == [GOOD]


def test_an_event_that_is_too_large_is_refused(gate: AtEntrance) -> None:
    """Before anything looks into it."""
    answer = put(gate, gate.new_id(), {"price": 1, "item": "x" * 262_144})
    assert told(answer)[:2] == (413, "body-too-large")
    assert answer.json()["detail"] == "an event has at most 262,144 bytes, unpacked"
    for method, path, told_bytes in (
        ("PUT", "/subjects/orders/schemas", "a schema has at most 1,048,576 bytes, unpacked"),
        ("POST", "/subjects/orders/versions", "a request with a schema has at most 2,097,152 bytes, unpacked"),
    ):
        assert gate.ask(method, path, "x" * 3_000_000).json()["detail"] == told_bytes


def test_an_entrance_that_is_not_there_is_told(gate: AtEntrance) -> None:
    """With those that are."""
    answer = gate.ask("POST", "/streams/nix/events", [])
    assert told(answer)[:2] == (404, "unknown-stream")
    assert (
        answer.json()["detail"]
        == "there is no entrance to a stream 'nix'; [gate.streams] of the configuration has: orders"
    )


def test_a_transport_that_is_down_makes_the_gate_unready(gate: AtEntrance) -> None:
    """With the reason; alive it is."""
    assert gate.ask("GET", "/readyz").status_code == 200
    gate.rejected.down = "the spool is full"
    assert gate.ask("GET", "/readyz").status_code == 200  # whoever asks within a second has the same answer
    gate.clock.advance(2)
    answer = gate.ask("GET", "/readyz")
    assert told(answer)[:2] == (503, "transport-down")
    assert answer.json()["detail"] == "the spool is full"
    assert gate.ask("GET", "/healthz").status_code == 200


@given(st.data())
def test_whatever_comes_is_entered_or_rejected_and_nothing_else(data: st.DataObject) -> None:
    """Of any batch each event is written once or refused with a reason, and stamped as what it is."""
    gate = AtEntrance()
    values = st.sampled_from([GOOD, {"price": "x"}, 7, None]) | st.dictionaries(
        st.sampled_from(["price", "item", "x"]), st.integers() | st.text()
    )
    more = st.fixed_dictionaries(
        {"data": values}, optional={"time": st.none() | st.integers(), "id": st.text() | st.none()}
    )
    events = [gate.event() | data.draw(more) for _ in range(data.draw(st.integers(1, 5)))]
    answer = post(gate, events, each="true")
    assert answer.status_code == 207
    fates = [one["status"] for one in answer.json()["events"]]
    assert len(fates) == len(events)
    assert set(fates) <= {201, 409, 422}
    assert len(gate.outlet.left) == fates.count(201) == answer.json()["entered"]
    assert len(gate.refused()) == len(fates) - fates.count(201)
    assert all(kept.reasons for kept in gate.refused())
    stamped = [said.outcome for said in gate.stamped()]
    assert stamped.count(Outcome.PASSED) == fates.count(201)
    assert stamped.count(Outcome.REJECTED) == len(fates) - fates.count(201)
