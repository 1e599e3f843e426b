"""Tests of calls with objects of a host's own kind, which raise or lie: they cost themselves, and nothing else."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from hopwatch.probes import Probe, recorder
from hopwatch.probes.contract.batch import BatchKind, Drop
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.recorder import Stamp, StampArrays, StampKind
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, observations
from tests.support.drops import drops
from tests.support.sender_bench import Bench

MINUTE_MS = EPOCH_US // 1_000


class BadText(str):
    """A text that cannot be encoded."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        """Raise."""
        raise RuntimeError("no text")


class BadUuid(uuid.UUID):
    """A UUID that has no bytes."""

    @property
    def bytes(self) -> bytes:
        """Raise."""
        raise RuntimeError("no bytes")


class LongUuid(uuid.UUID):
    """A UUID that has too many bytes."""

    @property
    def bytes(self) -> bytes:
        """Return 17 of them."""
        return b"x" * 17


class LyingBytes(bytes):
    """Bytes that say that they are 16."""

    def __len__(self) -> int:
        """Lie."""
        return 16


class BadNumber(int):
    """A number that cannot be compared."""

    def __le__(self, _: object) -> bool:
        """Raise."""
        raise RuntimeError("no comparison")

    __lt__ = __gt__ = __ge__ = __le__


class LyingNumber(int):
    """A number that says that it lies between any two others."""

    def __le__(self, _: object) -> bool:
        """Lie."""
        return True

    __lt__ = __gt__ = __ge__ = __le__


class BadTime(datetime):
    """A moment that cannot be counted from another."""

    def __sub__(self, _: Any) -> Any:  # noqa: ANN401 - as datetime has it
        """Raise."""
        raise RuntimeError("no difference")


class WordyTime(datetime):
    """A moment whose distance to others is a word."""

    def __sub__(self, _: Any) -> Any:  # noqa: ANN401 - as datetime has it
        """Return what is no timedelta."""
        return "long"


def broken_uuid() -> uuid.UUID:
    """Return a UUID that somebody has taken apart."""
    broken = uuid.UUID(int=1)
    object.__setattr__(broken, "int", "x")
    return broken


ODD_IDS = [BadText("x"), BadUuid(int=1), LongUuid(int=1), LyingBytes(b"short"), broken_uuid()]
ODD_TIMES = [
    LyingNumber(10**400),
    BadTime(2023, 11, 14, 22, 14, tzinfo=UTC),
    WordyTime(2023, 11, 14, 22, 14, tzinfo=UTC),
]


@pytest.mark.parametrize("side", ["arrived", "departed", "filtered"])
@pytest.mark.parametrize(
    ("message_id", "event_time", "cause"),
    [(odd, EPOCH_US, "bad message id") for odd in ODD_IDS] + [(1, odd, "bad event time") for odd in ODD_TIMES],
    ids=lambda value: type(value).__name__,
)
def test_an_odd_call_costs_itself_alone(side: str, message_id: object, event_time: object, cause: str) -> None:
    """A thousand others of the flush are sent, and the bye comes behind the drop that was told."""
    sink, clock = MemorySink(), ManualClock()
    with Probe("orders", "router", sink, clock=clock) as probe:
        for number in range(1_000):
            probe.arrived(uuid.UUID(int=number), EPOCH_US)
            if number == 500:
                getattr(probe, side)(message_id, event_time)
    assert {row.message_id for row in observations(sink)} == {id_bytes(number) for number in range(1_000)}
    assert drops(sink.records) == [Drop(MINUTE_MS, 1, cause)]
    assert probe.dropped == 1


def test_a_number_that_cannot_be_compared_is_the_number_that_it_is() -> None:
    """As an id and as an event time: it is asked for its value, and for nothing else."""
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock()) as probe:
        probe.arrived(BadNumber(7), BadNumber(EPOCH_US))
    assert [row[:2] for row in observations(sink)] == [(id_bytes(7), EPOCH_US)]
    assert drops(sink.records) == []


def test_a_lying_kind_of_bytes_is_known_by_its_bytes() -> None:
    """Sixteen are sixteen, whatever they say of themselves."""
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock()) as probe:
        probe.arrived(LyingBytes(bytes(16)), EPOCH_US)
    assert [row.message_id for row in observations(sink)] == [bytes(16)]


@pytest.mark.parametrize("error", [RuntimeError, MemoryError])
@pytest.mark.parametrize("odd", range(0, 40, 3))
def test_a_call_that_nothing_foresaw_costs_itself_alone(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception], odd: int
) -> None:
    """A call with an unforeseen error is found by halves and counted in its own window; all others are recorded."""
    real = recorder.build_batches

    def record(taken: Any, *rest: Any, **more: Any) -> Any:  # noqa: ANN401 - as it is
        if any(one.at_ns == EPOCH_US * 1_000 + odd for one in taken):
            raise error("odd")
        return real(taken, *rest, **more)

    monkeypatch.setattr(recorder, "build_batches", record)
    bench = Bench()
    for number in range(40):
        at_ns, event_us = EPOCH_US * 1_000 + number, EPOCH_US - number % 2 * 60_000_000
        if number % 3:
            bench.sender.queue.append(Stamp(StampKind.ARRIVED, number, event_us, at_ns))
        else:
            pairs = np.frombuffer(id_bytes(number), np.uint64).reshape(1, 2)
            assert bench.sender.append_many(StampArrays(StampKind.ARRIVED, pairs, np.array([event_us]), at_ns), 100)
    bench.clock.advance(2)
    bench.sender.flush(BatchKind.BYE)
    assert {row.message_id for row in observations(bench.sink)} == {id_bytes(n) for n in range(40) if n != odd}
    assert drops(bench.sink.records) == [Drop(MINUTE_MS - odd % 2 * 60_000, 1, "unrecordable")]
    assert (bench.batches()[-1].kind, bench.sender.waiting) == (BatchKind.BYE, 0)


@pytest.mark.parametrize("length", [10**12, 2**62])
def test_arrays_that_are_too_long_to_be_are_counted(length: int) -> None:
    """Arrays without room in memory count as dropped, up to the largest count of a record."""
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock()) as probe:
        probe.arrived_many(range(length), [EPOCH_US])
    assert [drop.cause for drop in drops(sink.records)] == ["bad arrays", "bad event time"]
    assert sum(drop.count for drop in drops(sink.records)) >= 2**31


def test_bad_ids_in_arrays_count_in_the_windows_of_their_events() -> None:
    """Event times that can be read say which minutes the drops are of."""
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock()) as probe:
        probe.arrived_many([1.5, 2.5], [EPOCH_US - 60_000_000, EPOCH_US])
    assert drops(sink.records) == [Drop(MINUTE_MS - 60_000, 1, "bad arrays"), Drop(MINUTE_MS, 1, "bad arrays")]


class Raising(type):
    """A class that raises at whatever is asked of it."""

    def __hash__(cls) -> int:
        """Raise."""
        raise RuntimeError("no hash")

    def __eq__(cls, _: object) -> bool:
        """Raise."""
        raise RuntimeError("no comparison")

    def __instancecheck__(cls, _: object) -> bool:
        """Raise."""
        raise RuntimeError("no instance")


def _fail(*_: object) -> Any:  # noqa: ANN401 - it returns nothing
    raise RuntimeError("no word")


METHODS = "str repr hash eq bytes len index int iter bool array buffer getattr lt format reduce sizeof"
HOSTILE = dict.fromkeys((f"__{name}__" for name in METHODS.split()), _fail)
"""A class of which every method raises."""


@pytest.mark.parametrize("base", [object, str, bytes, int, uuid.UUID], ids=lambda base: base.__name__)
@pytest.mark.parametrize("metaclass", [type, Raising], ids=["", "raising class"])
@pytest.mark.parametrize("side", ["arrived", "departed", "passing", "filtered", "arrived_many"])
def test_ids_that_raise_wherever_they_can_cost_themselves_alone(base: type, metaclass: type, side: str) -> None:
    """Ids that raise at every use cost their own stamps only; all others are sent, and the bye is complete."""
    hostile = metaclass("Hostile", (base,), dict(HOSTILE))
    made: Any = base.__new__
    message_id = made(hostile)
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock()) as probe:
        probe.arrived(1, EPOCH_US)
        if side == "passing":
            with probe.passing(message_id, EPOCH_US):
                pass
        elif side == "arrived_many":
            probe.arrived_many([message_id], [EPOCH_US])
        else:
            getattr(probe, side)(message_id, EPOCH_US)
        probe.arrived(2, EPOCH_US)
    sent = {row.message_id for row in observations(sink)}
    assert {id_bytes(1), id_bytes(2)} <= sent
    assert len(sent) + sum(drop.count for drop in drops(sink.records)) >= 3
    assert decode(sink.records[-1]).kind is BatchKind.BYE
