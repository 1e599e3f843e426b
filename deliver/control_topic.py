"""Control topic of deliveries: a compacted topic that keeps which of them are paused, one record a name.

A pause lasts until it is ended, over restarts of all processes, and each process of a delivery hears of it within a
second. A record without a value ends the pause of its name; one that cannot be read changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition

from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.kafka.client import build_client_config, build_producer_config, describe_kafka_error
from hopwatch.probes.kafka.consumer import find_partitions, is_partition_end
from hopwatch.probes.taps.errors import TapSourceError

CONTROL_TOPIC: Final = "hopwatch.deliveries"
ANSWER_S: Final = 10.0
_POLL_S: Final = 0.2
_MAX_MESSAGES: Final = 1_000
_MAX_BYTES: Final = 1_048_576
_MAX_SHOWN_BYTES: Final = 80


class Pause(NamedTuple):
    """Pause of a delivery: the moment of the command, µs since 1970, and the keys of the incidents that hold it.

    Without a key a person made it.
    """

    since_us: int
    by: tuple[str, ...] = ()

    def hold(self, key: str) -> Pause:
        """Return the pause as one more incident holds it."""
        return Pause(self.since_us, (*self.by, key))

    def release(self, key: str) -> Pause | None:
        """Return the pause as an incident holds it no more; None if no other does."""
        left = tuple(one for one in self.by if one != key)
        return Pause(self.since_us, left) if left else None


def encode_pause(pause: Pause) -> bytes:
    """Return the value of a record in the control topic."""
    by = {"by": list(pause.by)} if pause.by else {}
    return orjson.dumps({"state": "paused", "since_us": pause.since_us} | by)


def decode_pause(value: bytes | None) -> Pause | None:
    """Return the pause that a value says; None if there is none, which ends one.

    Raises:
        ValueError: it says something else.
    """
    if value is None:
        return None
    try:
        said = orjson.loads(value)
    except orjson.JSONDecodeError:
        said = None
    since_us = said.get("since_us") if isinstance(said, dict) and said.get("state") == "paused" else None
    by = said.get("by", []) if isinstance(said, dict) else []
    if type(since_us) is not int or not (isinstance(by, list) and all(isinstance(key, str) for key in by)):
        raise ValueError(f"a pause is a state of paused with since_us, got {value[:_MAX_SHOWN_BYTES]!r}")
    return Pause(since_us, tuple(by))


class ControlReader:
    """Reader of the control topic; it joins no group, and begins at the topic's start."""

    def __init__(self, brokers: str, access: KafkaAccess, report: Callable[[str], object]) -> None:
        """Make the client, without connecting yet; ``report`` is called with a line for what cannot be read."""
        config = {"group.id": "hopwatch-deliveries", "enable.auto.commit": False, "enable.partition.eof": True}
        self._brokers, self._report = brokers, report
        self._consumer = Consumer(build_client_config(brokers, access, "hopwatch-deliver") | config)
        self._pauses: dict[str, Pause] = {}
        self._unread: set[int] = set()

    @property
    def pauses(self) -> dict[str, Pause]:
        """Pauses by the names of deliveries, as of the last read."""
        return dict(self._pauses)

    def open(self) -> None:
        """Read the topic to its present end, for as long as records come.

        Raises:
            TapSourceError: it is not there, or the brokers do not answer.
        """
        where = f"the topic {CONTROL_TOPIC} at {self._brokers}"
        try:
            numbers = [one.partition for one in find_partitions(self._consumer, CONTROL_TOPIC, ANSWER_S)]
            self._unread = set(numbers)
            starts = [TopicPartition(CONTROL_TOPIC, number, OFFSET_BEGINNING) for number in numbers]
            self._consumer.assign(starts)
            # By polls and not by a clock, which goes on while a machine is suspended.
            idle_polls = 0
            while self._unread and idle_polls * _POLL_S < ANSWER_S:
                idle_polls = 0 if self.read_changes(_POLL_S) else idle_polls + 1
        except KafkaException as error:
            what = describe_kafka_error(error, self._brokers)
            raise TapSourceError(f"{where} cannot be read: {what}: 'hopwatch deliver create-topics' makes it") from None
        if self._unread:
            raise TapSourceError(f"{where} cannot be read: nothing came for {ANSWER_S:g} s: check the brokers")

    def read_changes(self, timeout_s: float) -> int:
        """Read what was written since, and return the number of records.

        Errors of brokers that are away pass, and the pauses stay as they are.
        """
        count = 0
        for message in self._consumer.consume(_MAX_MESSAGES, timeout_s):
            error = message.error()
            if error is None:
                count += 1
                self._take_record(message)
            elif is_partition_end(error):
                self._unread.discard(message.partition() or 0)
        return count

    def close(self) -> None:
        """Close the client."""
        self._consumer.close()

    def _take_record(self, message: Message) -> None:
        name = (message.key() or b"").decode("utf-8", "replace")
        try:
            pause = decode_pause(message.value())
        except ValueError as error:
            where = f"{CONTROL_TOPIC}/{message.partition()}/{message.offset()}"
            kept = "stays paused" if name in self._pauses else "is not paused"
            self._report(f"the record {where} cannot be read: {error}: {name!r:.{_MAX_SHOWN_BYTES}} {kept}")
            return
        if pause is None:
            self._pauses.pop(name, None)
        else:
            self._pauses[name] = pause


def read_pauses(brokers: str, access: KafkaAccess, report: Callable[[str], object]) -> dict[str, Pause]:
    """Return the pauses by the names of deliveries, as the control topic has them now.

    Raises:
        TapSourceError: it is not there, or the brokers do not answer.
    """
    reader = ControlReader(brokers, access, report)
    try:
        reader.open()
        return reader.pauses
    finally:
        reader.close()


def write_pause(brokers: str, access: KafkaAccess, name: str, pause: Pause | None) -> None:
    """Write the pause of a delivery, or its end; returns once the brokers have it.

    Raises:
        TapSourceError: they do not take it.
    """
    failures: list[str] = []

    def on_delivery(error: object, _: object) -> None:
        if error is not None:
            failures.append(str(error))

    place = KafkaPlace(brokers, CONTROL_TOPIC)
    producer = Producer(build_producer_config(place, access, _MAX_BYTES) | {"message.timeout.ms": int(ANSWER_S * 1e3)})
    value = None if pause is None else encode_pause(pause)
    producer.produce(CONTROL_TOPIC, value, name.encode(), on_delivery=on_delivery)
    left = producer.flush(ANSWER_S + 1)
    if left or failures:
        what = failures[0] if failures else "no answer"
        raise TapSourceError(
            f"the topic {place} cannot be written: {what}: 'hopwatch deliver create-topics' makes it, if it is missing"
        )
