"""Tests of the Kafka sink without its client; real brokers are in tests/real."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hopwatch import Probe
from hopwatch.probes.clock import Clock
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.errors import ProbeError
from hopwatch.probes.sinks.kafka import CLOCK_EVERY_S, CLOCK_WAIT_S, KafkaSink
from hopwatch.testing import ManualClock

MOMENT_MS = 1_767_225_600_000


def test_a_client_that_is_not_installed_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once in the log of a service, which goes on; raised where a probe is strict."""
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    told = "confluent-kafka is not installed: pip install 'hopwatch[kafka]'"
    sink = KafkaSink(KafkaPlace.parse("kafka://127.0.0.1:1/obs"), "orders.a.x")
    assert not sink.send(b"record")
    assert [record.getMessage() for record in caplog.records] == [
        f"the topic kafka://127.0.0.1:1/obs cannot be reached: {told}"
    ]
    with pytest.raises(OSError, match=re.escape(told)):
        sink.check()
    with pytest.raises(ProbeError, match=re.escape(told)):
        Probe(stream="orders", node="a", sink="kafka://127.0.0.1:1/obs", strict=True)


def test_a_client_that_cannot_be_made_fails_the_check_as_brokers_that_are_away_do(tmp_path: Path) -> None:
    """A tap and a strict probe show one line for a file of certificates that is missing, and no traceback."""
    access = KafkaAccess(security_protocol="SSL", ssl_ca_file=str(tmp_path / "ca.pem"))
    sink = KafkaSink(KafkaPlace.parse("kafka://127.0.0.1:1/obs"), "orders.a.x", access=access)
    with pytest.raises(OSError, match=r"^the brokers 127\.0\.0\.1:1 cannot be reached: .*ssl\.ca\.location"):
        sink.check()


class AcknowledgedRecord:
    """A record with the time that the broker, or its producer, gave it."""

    def __init__(self, record: bytes, kind: int, moment_ms: int) -> None:
        """Take its time, of the kind that the client names by a number."""
        self._record, self._timestamp = record, (kind, moment_ms)

    def value(self) -> bytes:
        """Return its bytes."""
        return self._record

    def timestamp(self) -> tuple[int, int]:
        """Return the kind of its time, and the time, ms."""
        return self._timestamp


class HandProducer:
    """A client that acknowledges records when it is flushed, 4 ms later by a clock that is set by hand."""

    has_given_up = False

    def __init__(self, clock: ManualClock, kind: int = 2, *, answers: bool = True) -> None:
        """Stamp with the time of the broker, or of another kind; or answer never."""
        self.clock, self.kind, self.answers = clock, kind, answers
        self.current = self
        self.headers: list[dict[str, str]] = []
        self.flushes: list[float] = []
        self._waiting: list[tuple[bytes, Callable[[None, AcknowledgedRecord], None]]] = []

    def poll(self, patience_s: float) -> int:
        """Report nothing."""
        assert patience_s == 0
        return 0

    def produce(
        self,
        topic: str,
        record: bytes,
        key: bytes,
        headers: dict[str, str],
        on_delivery: Callable[[None, AcknowledgedRecord], None],
    ) -> None:
        """Queue a record."""
        assert (topic, key) == ("obs", b"orders.a.x")
        self.headers.append(headers)
        self._waiting.append((record, on_delivery))

    def flush(self, patience_s: float) -> int:
        """Acknowledge what waits, one after the other."""
        self.flushes.append(patience_s)
        while self.answers and self._waiting:
            record, report = self._waiting.pop(0)
            self.clock.advance(0.004)
            report(None, AcknowledgedRecord(record, self.kind, MOMENT_MS))
        return len(self._waiting)


def open_measured(clock: ManualClock, producer: HandProducer, monkeypatch: pytest.MonkeyPatch) -> KafkaSink:
    """Return a sink with a client that is worked by hand."""
    measured: Clock = clock
    sink = KafkaSink(KafkaPlace.parse("kafka://127.0.0.1:1/obs"), "orders.a.x", measured)
    monkeypatch.setattr(sink, "_client", producer)
    return sink


def test_the_clock_is_held_against_the_brokers_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record behind the one that was acknowledged has the bound, and no other: the least of all that came back."""
    clock = ManualClock(MOMENT_MS * 1_000 + 150_000)
    producer = HandProducer(clock)
    sink = open_measured(clock, producer, monkeypatch)
    for pause_s in (0.0, 1.0, 1.0, CLOCK_EVERY_S, 1.0):
        clock.advance(pause_s)
        assert sink.send(b"record")
    assert producer.flushes == [CLOCK_WAIT_S] * 2
    # At the fourth the second and the third are acknowledged, too, and the clock has gone on.
    assert producer.headers == [
        {},
        {"hopwatch-clock-offset-max-us": "154000"},
        {},
        {},
        {"hopwatch-clock-offset-max-us": str(154_000 + 12_000_000 + 4_000)},
    ]
    assert sink.settle(1)


def test_an_acknowledgement_that_takes_long_is_told_when_it_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers that are far away give a bound, too; the time until the report is read is in it."""
    clock = ManualClock(MOMENT_MS * 1_000)
    producer = HandProducer(clock, answers=False)
    sink = open_measured(clock, producer, monkeypatch)
    assert sink.send(b"record")
    producer.answers = True
    clock.advance(0.4)
    producer.flush(0.0)
    for _ in range(2):
        assert sink.send(b"record")
    assert producer.headers == [{}, {"hopwatch-clock-offset-max-us": "404000"}, {}]


@pytest.mark.parametrize(("kind", "answers"), [(1, True), (0, True), (2, False)])
def test_a_clock_that_was_not_measured_is_not_told(kind: int, answers: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001 - a fact
    """A topic has the time of producers, or none, or no broker answers: it is tried once in ten seconds."""
    clock = ManualClock(MOMENT_MS * 1_000)
    producer = HandProducer(clock, kind, answers=answers)
    sink = open_measured(clock, producer, monkeypatch)
    for _ in range(20):
        clock.advance(1)
        assert sink.send(b"record")
    assert producer.headers == [{}] * 20
    assert producer.flushes == [CLOCK_WAIT_S] * 2
