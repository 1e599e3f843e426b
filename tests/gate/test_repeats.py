"""Tests of the entrance: events that come again, and writes that fail, are slow, or are given up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hopwatch.gate import ids, intake
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.metrics.account import EventOutcome, RefusalReason
from tests.support.gate_client import CHEAP, EVENTS, GOOD, KNOWN, AtEntrance, post, put
from tests.support.schemas import record
from tests.support.tap_client import told


def test_a_repeat_is_answered_as_the_first_was(gate: AtEntrance) -> None:
    """And written once, alone or in a batch, also with other spaces, in another order, twice in one batch."""
    event_id = gate.new_id()
    first = put(gate, event_id)
    gate.clock.advance(30)
    again = {"item": "x", "price": 1.50}
    assert put(gate, event_id, again).json() == first.json()
    answer = post(gate, [{"id": event_id, "data": again}] * 2, each="true")
    assert answer.json()["events"] == [first.json()] * 2
    assert len(gate.outlet.left) == len(gate.stamped()) == 1


def test_an_id_is_one_event_s_own(gate: AtEntrance) -> None:
    """Another event under it is 409, whether it comes later or beside it; of one that was refused the id is free."""
    event_id = gate.new_id()
    assert put(gate, event_id, {"price": "x"}).status_code == 422
    assert put(gate, event_id).status_code == 201
    assert told(put(gate, event_id, {"price": 2, "item": "x"})) == (409, "id-taken", ["/id"])
    assert told(put(gate, event_id, hopwatch_time=str(gate.clock.us - 7))) == (409, "id-taken", ["/id"])
    twins = [gate.event(), gate.event({"price": 3, "item": "x"})]
    twins[1]["id"] = twins[0]["id"]
    assert told(post(gate, twins)) == (409, "id-taken", ["/1/id"])
    assert len(gate.outlet.left) == 1
    assert post(gate, [twins[1]]).status_code == 201


@pytest.mark.parametrize("other", [{"price": "x"}, {"price": 2, "item": "x"}])
def test_of_two_events_under_one_id_the_first_is_the_one(gate: AtEntrance, other: Any) -> None:  # noqa: ANN401 - JSON
    """The first event is acknowledged and written, whatever the second one is."""
    first = gate.event()
    answer = post(gate, [first, {"id": first["id"], "data": other}], each="true")
    assert [one["status"] for one in answer.json()["events"]] in ([201, 422], [201, 409])
    assert gate.values() == [GOOD]
    assert [said.outcome for said in gate.stamped()].count(Outcome.PASSED) == 1


def test_what_was_written_is_not_missed_for_the_sake_of_another() -> None:
    """Of a batch with a noted and a held event, part of which failed, the retry is answered 201."""
    gate = AtEntrance(CHEAP, KNOWN)
    noted, held, plain = (gate.event(data) for data in ({"price": 1, "item": "z"}, {"price": 11, "item": "x"}, GOOD))
    gate.outlet.fails = {ids.parse_uuid(plain["id"])}
    assert post(gate, [noted, held, plain]).status_code == 503
    gate.outlet.fails = set()
    answer = post(gate, [noted, held, plain], each="true")
    assert [one["status"] for one in answer.json()["events"]] == [201, 202, 201]
    assert post(gate, [noted, held, plain]).status_code == 201
    assert (len(gate.outlet.left), len(gate.refused())) == (2, 1)


def test_a_transport_that_breaks_is_told_and_nobody_waits_for_ever(gate: AtEntrance) -> None:
    """A fault of our own is 500; the same event is taken when the transport works again."""
    event_id, write = gate.new_id(), gate.outlet.write

    def broken(*_: object) -> None:
        raise RuntimeError("a fault")

    gate.outlet.write = broken  # type: ignore[method-assign,assignment]
    assert put(gate, event_id).status_code == 500
    gate.outlet.write = write  # type: ignore[method-assign]
    assert put(gate, event_id).status_code == 201


def test_a_quarantine_that_breaks_leaves_no_event_in_flight(gate: AtEntrance) -> None:
    """A fault of our own in the quarantine is 500, and the account counts the event as not written."""

    def broken(*_: object) -> None:
        raise RuntimeError("a fault")

    gate.rejected.write = broken  # type: ignore[method-assign,assignment]
    assert put(gate, gate.new_id(), {}).status_code == 500
    account = gate.intake.account.snapshot()
    assert (account.received, account.in_flight) == (1, 0)
    assert account.total(EventOutcome.REFUSED, RefusalReason.NOT_WRITTEN) == 1


def test_a_repeat_is_known_before_its_time_and_its_schema_are_looked_at(gate: AtEntrance) -> None:
    """An event that has grown too old, or whose field has gone, was taken, and is not rejected now."""
    event = gate.event(GOOD | {"item": "z"})
    first = post(gate, [event], each="true").json()
    gate.clock.advance(25 * 3_600)
    assert post(gate, [event], each="true").json() == first
    gate.ask("PUT", "/config/orders", {"compatibility": "NONE"})
    gate.register(record({"name": "price", "type": "double"}))
    assert post(gate, [event], each="true").json() == first
    assert [said.outcome for said in gate.stamped()] == [Outcome.PASSED]


def test_another_event_is_another_also_under_another_version(gate: AtEntrance) -> None:
    """An event of a known id is another event under any other version of the schema."""
    event_id = gate.new_id()
    version = gate.ask("GET", "/subjects/orders/schemas/latest").json()["fingerprint"]
    assert put(gate, event_id).status_code == 201
    gate.register(
        record(
            {"name": "price", "type": "double"},
            {"name": "item", "type": "string"},
            {"name": "n", "type": "int", "default": 7},
        )
    )
    answer = gate.ask("PUT", f"{EVENTS}/{event_id}", {"price": 777, "item": "x"}, params={"schema": version})
    assert answer.status_code == 409
    assert put(gate, event_id, {"price": 777, "item": "x"}).status_code == 409


def test_a_stream_whose_transport_is_slow_keeps_to_its_own_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """One request more is sent away at once, and so is nobody of another stream."""
    monkeypatch.setattr(intake, "MAX_WAITING", 1)
    gate = AtEntrance()
    gate.outlet.waiting = []

    async def two() -> tuple[int, int]:
        first = asyncio.create_task(gate.answer("PUT", f"{EVENTS}/{gate.new_id()}", json=GOOD))
        await gate.outlet.is_asked.wait()
        second = await gate.answer("PUT", f"{EVENTS}/{gate.new_id()}", json=GOOD)
        assert told(second)[:2] == (503, "busy")
        for done in gate.outlet.waiting or ():
            done(frozenset())
        return (await first).status_code, second.status_code

    assert asyncio.run(two()) == (201, 503)


def test_what_was_not_written_is_not_acknowledged(gate: AtEntrance) -> None:
    """503 for all, and the retry writes what is missing alone; with each, each is told."""
    events = [gate.event() for _ in range(4)]
    bad = {ids.parse_uuid(one["id"]) for one in events[1:3]}
    gate.outlet.fails = set(bad)
    answer = post(gate, events)
    assert told(answer)[:2] == (503, "not-written")
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["detail"] == "2 of 4 events were written: send all of them again, with the same ids"
    statuses = [one["status"] for one in post(gate, events, each="true").json()["events"]]
    assert statuses == [201, 503, 503, 201]
    gate.outlet.fails.clear()
    assert post(gate, events).status_code == 201
    assert sorted(one.event_id for one in gate.outlet.left) == sorted(ids.parse_uuid(one["id"]) for one in events)
    assert len(gate.stamped()) == 4


def test_a_transport_that_takes_nothing_is_told(gate: AtEntrance) -> None:
    """Nothing waits for it in memory; when it takes again, all is as if nothing had been."""
    event_id = gate.new_id()
    gate.outlet.is_full = True
    assert told(put(gate, event_id))[:2] == (503, "not-written")
    gate.outlet.is_full = False
    assert put(gate, event_id).status_code == 201
    assert len(gate.outlet.left) == 1


def test_rejected_events_that_cannot_be_kept_stay_with_their_senders(gate: AtEntrance) -> None:
    """503, and not stamped; sent again when there is room they are refused, kept and stamped, each once."""
    event_id, bad = gate.new_id(), [gate.event({}), gate.event()]
    gate.rejected.is_full = True
    for answer in (put(gate, event_id, {}), post(gate, bad)):
        assert told(answer)[:2] == (503, "not-kept")
        assert answer.headers["retry-after"] == "1"
        assert answer.json()["detail"] == (
            "1 events may not enter, and cannot be kept now: send all of them again, with the same ids"
        )
    gate.rejected.is_full = False
    gate.rejected.fails.add(ids.parse_uuid(event_id))
    assert put(gate, event_id, {}).status_code == 503
    assert (gate.refused(), gate.stamped(), gate.outlet.left) == ([], [], [])
    gate.rejected.fails.clear()
    assert [put(gate, event_id, {}).status_code, post(gate, bad).status_code] == [422, 422]
    assert len(gate.refused()) == len(gate.stamped()) == 2


def test_with_each_what_cannot_be_kept_is_told_alone(gate: AtEntrance) -> None:
    """The others enter, or are refused and kept; another event's id is no less its own."""
    good, bad, worse = gate.event(), gate.event({}), gate.event({})
    taken = good | {"data": {"price": 2, "item": "y"}}
    gate.rejected.fails = {ids.parse_uuid(bad["id"]), ids.parse_uuid(good["id"])}
    events = [good, bad, worse, taken]
    answer = post(gate, events, each="true")
    assert [one["status"] for one in answer.json()["events"]] == [201, 503, 422, 503]
    assert [kept.event_id for kept in gate.refused()] == [ids.parse_uuid(worse["id"])]
    gate.rejected.fails.clear()
    again = [one["status"] for one in post(gate, events, each="true").json()["events"]]
    assert again == [201, 422, 422, 409]


def test_a_repeat_waits_for_the_first(gate: AtEntrance) -> None:
    """Neither is answered before the transport has it, and it is written once."""
    body = {"json": GOOD}
    path = f"{EVENTS}/{gate.new_id()}"
    gate.outlet.waiting = []

    async def both() -> list[int]:
        asked = [asyncio.create_task(gate.answer("PUT", path, **body)) for _ in range(2)]
        await gate.outlet.is_asked.wait()
        _, waiting = await asyncio.wait(asked, timeout=0.2)
        assert len(waiting) == 2
        for done in gate.outlet.waiting or ():
            done(frozenset())
        return [answer.status_code for answer in await asyncio.gather(*asked)]

    assert asyncio.run(both()) == [201, 201]
    assert len(gate.outlet.left) == 1


def test_a_client_that_hangs_up_takes_nothing_with_it(gate: AtEntrance) -> None:
    """Events of a client that hangs up are written, known and stamped."""
    event_id = gate.new_id()
    gate.outlet.waiting = []

    async def hang_up() -> None:
        asked = asyncio.create_task(gate.answer("PUT", f"{EVENTS}/{event_id}", json=GOOD))
        await gate.outlet.is_asked.wait()
        asked.cancel()
        await asyncio.sleep(0)
        for done in gate.outlet.waiting or ():
            done(frozenset())
        await asyncio.sleep(0)

    asyncio.run(hang_up())
    gate.outlet.waiting = None
    assert put(gate, event_id).status_code == 201
    assert len(gate.outlet.left) == len(gate.stamped()) == 1


def test_a_repeat_across_versions_is_a_repeat(gate: AtEntrance) -> None:
    """A schema that came between makes other bytes of the same event."""
    event_id = gate.new_id()
    first = put(gate, event_id)
    gate.register(
        record(
            {"name": "price", "type": "double"},
            {"name": "item", "type": "string"},
            {"name": "n", "type": "int", "default": 7},
        )
    )
    assert put(gate, event_id).json() == first.json()


def test_memory_of_ids_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that came long ago is forgotten; then its repeat is written again, which the monitor counts."""
    monkeypatch.setattr(intake, "MIN_REMEMBERED", 2)
    small = AtEntrance()
    first = small.new_id()
    for event_id in (first, *(small.new_id() for _ in range(4)), first):
        assert put(small, event_id).status_code == 201
    assert len(small.outlet.left) == 6
