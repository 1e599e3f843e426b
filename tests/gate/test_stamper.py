"""Tests of the gate's own stamps."""

from __future__ import annotations

import pytest

from hopwatch.gate import ids, stamper
from hopwatch.gate.event_checks import CheckedEvent
from hopwatch.gate.fields import RecordFields
from hopwatch.gate.request_bodies import SentEvent
from hopwatch.gate.rules import Action
from hopwatch.gate.stamper import MIN_ARRAY_EVENTS, GateStamper
from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.http.problems import Fault
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, Observation, observations
from tests.support.drops import drops


@pytest.fixture
def sink() -> MemorySink:
    """Return where stamps go."""
    return MemorySink()


@pytest.mark.parametrize("count", [0, 1, MIN_ARRAY_EVENTS - 1, MIN_ARRAY_EVENTS, 100])
def test_what_entered_carries_both_stamps(sink: MemorySink, count: int) -> None:
    """Few or many: one observation each, with the moments that are given and not those of now."""
    clock = ManualClock()
    one = GateStamper("orders", "gate", sink, clock)
    clock.advance(9)
    ids = [number.to_bytes(16, "big") for number in range(count)]
    one.stamp_entered(ids, [EPOCH_US] * count, EPOCH_US + 5, EPOCH_US + 7)
    one.sender.flush()
    assert sorted(observations(sink)) == [
        Observation(event_id, EPOCH_US, EPOCH_US + 5, EPOCH_US + 7) for event_id in ids
    ]


@pytest.mark.parametrize("count", [1, 100])
def test_texts_of_ids_that_are_secret_stay_at_the_gate(sink: MemorySink, count: int) -> None:
    """Few or many: what leaves is their hashes, and that they are hashes of texts."""
    one = GateStamper("orders", "gate", sink, ManualClock(), id_text=False)
    secrets = [RecordFields().read_event_id(None, {}, f"secret-{number}") for number in range(count)]
    one.stamp_entered(secrets, [EPOCH_US] * count, EPOCH_US, EPOCH_US)
    one.sender.flush()
    (batch,) = (batch for batch in map(decode, sink.records) if batch.count)
    assert (batch.id_kind, batch.id_texts) == (WireIdKind.TEXT, b"")
    assert not any(b"secret" in record for record in sink.records)


@pytest.mark.parametrize("count", [1, 100])
def test_the_ids_of_events_are_uuids_and_places_are_texts(sink: MemorySink, count: int) -> None:
    """Few or many, the batch says so."""
    one = GateStamper("orders", "gate", sink, ManualClock())
    uuids = [ids.parse_uuid(f"0192d5a0-0000-7000-8000-{number:012d}") for number in range(count)]
    places = [RecordFields().read_event_id(None, {}, f"orders/0/{number}") for number in range(count)]
    for found in (uuids, places):
        one.stamp_entered(found, [EPOCH_US] * count, EPOCH_US, EPOCH_US)
    one.sender.flush()
    batches = {batch.id_kind: batch for batch in map(decode, sink.records) if batch.count}
    assert sorted(batches) == [WireIdKind.UUID, WireIdKind.TEXT]
    assert batches[WireIdKind.TEXT].id_texts.decode() == "".join(f"orders/0/{number}" for number in range(count))


def rejected(reason: str) -> CheckedEvent:
    """Return an event that is rejected for a reason."""
    sent = SentEvent(None, None, b"{}")
    return CheckedEvent(sent, bytes(16), EPOCH_US, b"", Action.REJECT, (Fault("/a", reason),))


def test_a_reason_is_cut_to_what_the_wire_takes(sink: MemorySink) -> None:
    """Half a surrogate pair too."""
    one = GateStamper("orders", "gate", sink, ManualClock())
    one.stamp_rejected(rejected("\ud800" + "x" * 90), EPOCH_US + 5)
    one.sender.flush()
    assert observations(sink) == [Observation(bytes(16), EPOCH_US, EPOCH_US + 5, None, 2, "/a ?" + "x" * 60)]


@pytest.mark.parametrize("count", [1, 100])
def test_each_stamp_says_by_which_schema_its_record_was_written(sink: MemorySink, count: int) -> None:
    """Events that entered, wait, were let go and were rejected all do."""
    one, told = GateStamper("orders", "gate", sink, ManualClock()), rejected("odd")._replace(schema="orders/9")
    own = [number.to_bytes(16, "big") for number in range(count)]
    one.stamp_entered(own, [EPOCH_US] * count, EPOCH_US + 5, EPOCH_US + 7, "orders/1")
    gone = [number.to_bytes(16, "big") for number in range(count, 2 * count)]
    one.stamp_released(gone, [EPOCH_US] * count, EPOCH_US + 7, "orders/2")
    one.stamp_deferred(told, EPOCH_US, EPOCH_US + 9, "waits")
    one.stamp_rejected(told, EPOCH_US + 5)
    one.stamp_rejected_inside(told, EPOCH_US + 6)
    one.sender.flush()
    sent: dict[str, int] = {}
    for batch in map(decode, sink.records):
        if batch.count:
            sent[batch.labels["schema"]] = sent.get(batch.labels["schema"], 0) + batch.count
    assert set(sent) == {"orders/1", "orders/2", "orders/9"}
    assert (sent["orders/1"], sent["orders/2"]) == (count, count)


def test_an_event_that_is_too_old_counts_in_the_window_of_its_arrival(sink: MemorySink) -> None:
    """Its own window is closed."""
    one = GateStamper("orders", "gate", sink, ManualClock())
    one.stamp_rejected(rejected("old")._replace(is_stale=True), EPOCH_US + 5)
    one.sender.flush()
    assert observations(sink) == [Observation(bytes(16), EPOCH_US + 5, EPOCH_US + 5, None, 2, "/a old")]


@pytest.mark.parametrize("count", [1, 100])
def test_what_finds_no_room_is_counted(sink: MemorySink, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Under its minute, so that the monitor says unknown and not lost."""
    monkeypatch.setattr(stamper, "MAX_STAMPS", 2)
    one = GateStamper("orders", "gate", sink, ManualClock())
    for _ in range(2):
        one.stamp_entered(
            [number.to_bytes(16, "big") for number in range(count)], [EPOCH_US] * count, EPOCH_US, EPOCH_US
        )
    one.stamp_rejected(rejected("x"), EPOCH_US)
    one.sender.flush()
    stamps = sum((said.in_us is not None) + (said.out_us is not None) for said in observations(sink))
    assert stamps + sum(drop.count for drop in drops(sink.records)) == 4 * count + 1
    assert {drop.window_start_ms for drop in drops(sink.records)} == {EPOCH_US // 1_000}
