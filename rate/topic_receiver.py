"""Receiver of a Kafka topic: a consumer by itself, which joins no group and commits nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.kafka.client import ask_topic, build_client_config, describe_kafka_error
from hopwatch.probes.kafka.consumer import read_headers
from hopwatch.probes.message_headers import ID_HEADER
from hopwatch.rate.arrival_log import ArrivalLog
from hopwatch.rate.message_ids import TEXT_CHARS, find_places, parse_ids
from hopwatch.rate.receiver import ReceiverError
from hopwatch.rate.topic_end import find_end

ANSWER_S: Final = 10.0
POLL_S: Final = 0.1
MAX_POLLED: Final = 5_000
_LASTING_ERRORS: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED})
"""Errors that do not pass by themselves."""
_FETCH: Final = {
    "group.id": "hopwatch-rate",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "fetch.wait.max.ms": 50,
    "queued.max.messages.kbytes": 64 * 1_024,
}


class TopicReceiver:
    """Reader of all partitions of a topic from its end on, in a thread."""

    def __init__(self, place: KafkaPlace, access: KafkaAccess, run: int, log: ArrivalLog) -> None:
        """Take the topic; nothing is connected yet."""
        self._place, self._access, self._run, self._log = place, access, run, log
        self._stop = threading.Event()
        self._fault = ""
        self._thread = threading.Thread(target=self._receive, name="hopwatch-rate-receiver", daemon=True)
        self._consumer: Consumer | None = None

    async def __aenter__(self) -> Self:
        """Begin to read.

        Raises:
            ReceiverError: no broker answers, or the topic cannot be read.
        """
        await asyncio.to_thread(self._open)
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the thread."""
        self._stop.set()
        await asyncio.to_thread(self._thread.join)

    def check(self) -> None:
        """Check that it still reads.

        Raises:
            ReceiverError: an error has ended it.
        """
        if self._fault:
            raise ReceiverError(self._fault)

    def _open(self) -> None:
        topic = self._place.topic
        consumer = Consumer(build_client_config(self._place.brokers, self._access, "hopwatch-rate") | _FETCH)
        try:
            found = ask_topic(consumer, topic, ANSWER_S)
            if found.error is not None:
                raise ReceiverError(f"the topic {topic} cannot be read: {describe_kafka_error(found.error)}")
            ends = [find_end(consumer, topic, number) for number in found.partitions]
            consumer.assign(ends)
        except KafkaException as error:
            why = describe_kafka_error(error, self._place.brokers)
            raise ReceiverError(f"the topic {topic} cannot be read: {why}") from None
        self._consumer = consumer

    def _receive(self) -> None:
        consumer = self._consumer
        if consumer is None:
            return
        try:
            while not self._stop.is_set():
                # A call for many would wait for as many.
                messages = consumer.consume(1, POLL_S)
                if messages:
                    messages += consumer.consume(MAX_POLLED, 0)
                    self._note(messages, time.monotonic())
        except KafkaException as error:
            self._fault = f"the topic {self._place.topic} cannot be read: {describe_kafka_error(error)}"
        finally:
            consumer.close()

    def _note(self, messages: list[Message], at_s: float) -> None:
        texts = bytearray()
        for message in messages:
            error = message.error()
            if error is not None:
                if error.code() in _LASTING_ERRORS:
                    raise KafkaException(error)
                continue
            try:
                text = next((value for name, value in read_headers(message) if name == ID_HEADER), message.key())
            except ValueError:
                continue  # what a stranger sends is no message of the run
            if isinstance(text, bytes) and len(text) == TEXT_CHARS:
                texts += text
        if texts:
            self._log.note(find_places(self._run, parse_ids(bytes(texts))), at_s)
