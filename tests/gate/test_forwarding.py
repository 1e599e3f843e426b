"""Tests of records that nothing can be made of: each goes to the rejected topic, as the client gives it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate.event_checks import EventPolicy
from hopwatch.gate.fields import RecordFields
from hopwatch.gate.record_checks import RecordChecker
from hopwatch.gate.records import RejectedRecord, decode_rejected
from hopwatch.gate.registry.subjects import Registry
from hopwatch.gate.resolution_cache import ResolutionCache
from hopwatch.gate.stamper import GateStamper
from hopwatch.gate.transactions import OutputRecord, OutputTopics
from hopwatch.gate.validator import Validator
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.taps.context import RunContext
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink
from tests.support.raw_producer import raw_cluster
from tests.support.schema_store import MemoryShelf
from tests.support.schemas import FIRST, schema

AGE_US = 3_600_000_000
MARKS = [("hopwatch-id", b"7"), ("hopwatch-time", b"%d" % EPOCH_US)]
RECORD = cast("Any", Message)
"""Its stub knows of no arguments."""


class Place:
    """A validator whose outputs are looked at, with stamps in memory."""

    def __init__(self, *, is_record_time: bool = False) -> None:
        """Put the parts together."""
        registry, clock, self.sink = Registry(MemoryShelf()), ManualClock(), MemorySink()
        registry.register("orders", schema(FIRST))
        versions = ResolutionCache(registry, "orders", clock)
        fields = RecordFields(is_record_time=is_record_time)
        self.checker = RecordChecker("orders", versions, EventPolicy(AGE_US), fields)
        writer = cast("Any", SimpleNamespace(outputs=OutputTopics("good", "bad")))
        self.stamping = GateStamper("orders", "gate", self.sink, clock)
        source = cast("Any", None)
        self.validator = Validator(source, self.checker, writer, stamping=self.stamping, around=RunContext(print))

    def validate(self, message: Message) -> OutputRecord:
        """Check a message and stamp it; return what is written."""
        checked = self.validator._check_message(message, EPOCH_US)
        self.validator._stamp([checked], EPOCH_US)
        return checked.output


def read_rejected(out: OutputRecord) -> RejectedRecord:
    """Return what was rejected."""
    assert out.topic == "bad"
    found = decode_rejected(out.value)
    assert isinstance(found, RejectedRecord)
    return found


def test_a_record_with_a_header_whose_name_is_no_utf_8_is_rejected() -> None:
    """With this reason alone, under the id of its place and without its headers; however often it comes."""
    names = [(b"hopwatch-id", b"7"), (b"hopwatch-time", b"%d" % EPOCH_US), (b"\xff", b"v")]
    place = Place()
    with raw_cluster() as cluster:
        for turn in range(3):
            out = place.validate(cluster.read_back(b'{"a":1}', names, f"raw{turn}"))
            rejected = read_rejected(out)
            where = rejected.producer
            assert where.startswith(f"raw{turn}/")
            assert rejected.event_id == id_bytes(where)
            assert [one.detail for one in rejected.reasons] == [
                "the name of a header is no UTF-8: the headers are left out"
            ]
            assert rejected.data == b'{"a":1}'
            assert [name for name, _ in out.headers] == ["hopwatch-id", "hopwatch-time", "hopwatch-arrived"]


@pytest.mark.parametrize("at_ms", [2**62, -(2**62), 2**53 // 1_000 + 1, -5])
def test_a_record_whose_own_time_no_window_holds_is_rejected(at_ms: int) -> None:
    """The format of rejected events has no room for it: one such record ended the validator, with --time-record."""
    message = RECORD(topic="t", partition=0, offset=0, value=b'{"a":1}', headers=[], timestamp=(1, at_ms))
    told = read_rejected(Place(is_record_time=True).validate(message)).reasons[0].detail
    assert told.startswith("the record's own time: an event time lies between 1970 and 2255, got ")


@given(
    at_ms=st.integers(-(2**63), 2**63 - 1),
    value=st.none() | st.binary(max_size=20) | st.just(b'{"a":1}'),
    key=st.none() | st.binary(max_size=20),
    headers=st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=3) | st.just(MARKS),
    is_record_time=st.booleans(),
)
def test_whatever_a_record_holds_it_is_written_once_and_stamped(
    at_ms: int, value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes]], *, is_record_time: bool
) -> None:
    """Nothing raises: one record would end the validator at every start."""
    place = Place(is_record_time=is_record_time)
    message = RECORD(topic="t", partition=0, offset=9, key=key, value=value, headers=headers, timestamp=(1, at_ms))
    out = place.validate(message)
    assert out.topic in {"good", "bad"}
    assert -(2**63) <= out.recorded_ms < 2**63
    assert out.key == key
    place.stamping.start()
    place.stamping.close()
    assert place.sink.records
