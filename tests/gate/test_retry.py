"""Tests of retried calls: transient errors are retried and reported once, permanent ones are raised."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from hopwatch.gate import retry
from hopwatch.gate.retry import KafkaRetry, StoppedError
from hopwatch.probes.contract.kafka import describe_error
from hopwatch.probes.taps.context import RunContext

PASSING = [
    KafkaError._TRANSPORT,
    KafkaError._DESTROY_BROKER,  # type: ignore[attr-defined]  # the stub is older
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for as good as nothing."""
    monkeypatch.setattr(retry, "RETRY_S", 0.001)


def failing(codes: Iterator[int]) -> str:
    """Fail with the next code, or return when there is none."""
    for code in codes:
        raise KafkaException(KafkaError(code))
    return "done"


@pytest.mark.parametrize("code", PASSING)
def test_what_passes_is_waited_for_and_told_once(code: int) -> None:
    """As when a partition agrees on a new leader; and that it goes well again."""
    heard: list[str] = []
    patience, codes = KafkaRetry(RunContext(heard.append)), iter([code] * 3)
    assert patience.call(lambda: failing(codes)) == "done"
    patience.reset()
    what = describe_error(KafkaError(code).str())
    assert heard == [
        f"the calls to the brokers fail: {what}: retrying, nothing is lost", "the brokers answer again",
    ]  # fmt: skip


def test_what_does_not_pass_is_raised() -> None:
    """At once, with Kafka's own words."""
    heard: list[str] = []
    codes = iter([KafkaError.GROUP_AUTHORIZATION_FAILED])
    with pytest.raises(KafkaException, match="Group authorization failed"):
        KafkaRetry(RunContext(heard.append)).call(lambda: failing(codes))
    assert heard == []


def test_whoever_is_to_stop_waits_only_a_little_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it ends without an answer."""
    monkeypatch.setattr(retry, "STOP_GRACE_S", 0.01)
    around = RunContext(lambda _: None)
    around.stop.set()
    codes = iter([KafkaError._TRANSPORT] * 1_000)
    with pytest.raises(StoppedError):
        KafkaRetry(around).call(lambda: failing(codes))
