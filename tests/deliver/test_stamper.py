"""Tests of the stamps of a delivery."""

from __future__ import annotations

import numpy as np
import pytest

from hopwatch import Probe
from hopwatch.deliver.assignment import AssignedPartition, SettledRecord
from hopwatch.deliver.kafka_records import HeldRecord
from hopwatch.deliver.message import DeliveryMessage, SourcePosition
from hopwatch.deliver.offset_tracker import PartitionOffsets
from hopwatch.deliver.settlement import Ending, Settlement
from hopwatch.deliver.stamper import IN_HAND, RETRIER_DELAY_S, DeliveryStamper
from hopwatch.probes.contract.batch import Batch, Outcome
from hopwatch.probes.contract.envelope import decode
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, Observation, id_bytes, observations

MESSAGE = DeliveryMessage(SourcePosition("orders", 0, 7), "order-7", EPOCH_US, None, b"{}")
UNTIL_US = EPOCH_US + 30_000_000


def stamped(ending: Ending, *, is_polled: bool = True) -> tuple[list[Observation], list[Batch]]:
    """Return the observations and batches of a message that was polled, and ended so a second later."""
    sink, clock = MemorySink(), ManualClock()
    stamper = DeliveryStamper(Probe("orders", "deliver", sink, clock=clock, strict=True), 20.0)
    held = HeldRecord(MESSAGE, id_bytes("order-7"), [])
    if is_polled:
        stamper.stamp_polled([held])
    clock.advance(1.0)
    settlement = Settlement(MESSAGE, ending, clock.us, reason="HTTP 404", until_us=UNTIL_US)
    settled = SettledRecord(settlement, held, AssignedPartition(PartitionOffsets(7, ""), 8))
    if ending is Ending.DELIVERED:
        stamper.stamp_delivered([settled])
    else:
        stamper.stamp_kept(settled)
    stamper.close(bye=True)
    return observations(sink), [decode(record) for record in sink.records]


def test_a_delivered_message_arrives_and_departs() -> None:
    """A delivered message has one observation with both stamps."""
    (found,), _ = stamped(Ending.DELIVERED)
    assert (found.outcome, found.in_us is None, found.out_us is None) == (Outcome.PASSED, False, False)


def test_a_rejected_message_arrives_once() -> None:
    """A rejection behind an arrival carries its reason, and no second arrival that would count as a duplicate."""
    found, _ = stamped(Ending.REJECTED)
    assert sorted((one.outcome, one.in_us is None, one.reason) for one in found) == [
        (Outcome.PASSED, False, None),
        (Outcome.REJECTED, True, "HTTP 404"),
    ]


def test_a_message_that_waits_in_hand_is_deferred_until_then() -> None:
    """And until that try has ended."""
    sink, clock = MemorySink(), ManualClock()
    stamper = DeliveryStamper(Probe("orders", "deliver", sink, clock=clock, strict=True), 20.0)
    stamper.stamp_waiting([HeldRecord(MESSAGE, id_bytes("order-7"), [])], UNTIL_US)
    stamper.close(bye=True)
    (found,) = observations(sink)
    assert (found.outcome, found.reason) == (Outcome.DEFERRED, IN_HAND)
    batches = [decode(record) for record in sink.records]
    untils = [int(one) for batch in batches for one in np.frombuffer(batch.until_us, "<i8") if one > 0]
    assert untils == [UNTIL_US + round((20.0 + RETRIER_DELAY_S) * 1e6)]


@pytest.mark.parametrize("is_polled", [True, False])
def test_a_deferred_message_waits_until_its_next_try_has_ended(*, is_polled: bool) -> None:
    """A deferral tells the earliest next try, the longest time in hand and the delay of a retrier, added."""
    found, batches = stamped(Ending.DEFERRED, is_polled=is_polled)
    assert [one.outcome for one in found if one.outcome] == [Outcome.DEFERRED]
    untils = [int(one) for batch in batches for one in np.frombuffer(batch.until_us, "<i8") if one > 0]
    assert untils == [UNTIL_US + round((20.0 + RETRIER_DELAY_S) * 1e6)]


def test_messages_have_the_partition_that_they_were_polled_from() -> None:
    """As a label of both stamps, which are one observation; what comes back from a retry topic arrived elsewhere."""
    sink, clock = MemorySink(), ManualClock()
    stamper = DeliveryStamper(Probe("orders", "deliver", sink, clock=clock, strict=True))
    records = [
        HeldRecord(MESSAGE._replace(position=SourcePosition("orders", place, 7), tries=tries), id_bytes(name), [])
        for name, place, tries in (("first", 0, 0), ("second", 3, 0), ("again", 3, 1))
    ]
    stamper.stamp_polled(records[:2])
    for held in records[1:]:
        settlement = Settlement(held.message, Ending.DELIVERED, clock.us, reason="", until_us=0)
        stamper.stamp_delivered([SettledRecord(settlement, held, AssignedPartition(PartitionOffsets(7, ""), 8))])
    stamper.close(bye=True)
    batches = [batch for batch in map(decode, sink.records) if batch.count]
    told = [(batch.labels.get("partition"), batch.count, len(batch.lag_out_us) > 0) for batch in batches]
    assert sorted(told, key=str) == [("0", 1, False), ("3", 1, True), (None, 1, True)]
