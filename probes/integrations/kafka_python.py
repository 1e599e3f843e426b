"""Integration with kafka-python: a producer stamps ``out`` on delivery, a consumer ``in`` where it returns a message.

The id and the event time of a message travel in two headers (:mod:`hopwatch.probes.message_headers`), which are
forwarded at every hop::

    producer = instrument(KafkaProducer(...), stream="orders", node="router", sink="spool:./var/spool")
    consumer = instrument(KafkaConsumer(...), stream="orders", node="router", probe=producer.hopwatch_probe)
    for message in consumer:
        producer.send("next", message.value, headers=message.headers)
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, TypeVar, cast

from kafka import KafkaConsumer, KafkaProducer

from hopwatch.probes import Probe
from hopwatch.probes.clock import Clock
from hopwatch.probes.integrations.kafka_records import RecordClientProxy
from hopwatch.probes.integrations.message_marker import MessageMarker
from hopwatch.probes.sinks import Sink

_SEND_ARGUMENTS: Final = ("topic", "value", "key", "headers", "partition", "timestamp_ms")

Client = TypeVar("Client", bound=KafkaProducer | KafkaConsumer)


def instrument(  # noqa: PLR0913 - what can be chosen, all but the client by name
    client: Client,
    *,
    stream: str | None = None,
    node: str | None = None,
    sink: str | Sink | None = None,
    probe: Probe | None = None,
    origin: bool | None = None,
    ignore_unmarked: bool = False,
    clock: Clock | None = None,
) -> Client:
    """Wrap a client so that it stamps messages; the wrapper has all its methods, and raises the same errors.

    The arguments are those of :func:`hopwatch.integrations.confluent_kafka.instrument`; ``client`` is a KafkaProducer
    or a KafkaConsumer.
    """
    stamping = probe or Probe(stream or "", node or "", sink, clock=clock)
    marker = MessageMarker(
        stamping, "kafka-python", origin=origin, ignores=ignore_unmarked, advice="headers=message.headers", clock=clock
    )
    if isinstance(client, KafkaProducer):
        return cast("Client", _InstrumentedProducer(client, marker))
    marker.note_consumer()
    return cast("Client", _InstrumentedConsumer(client, marker))


class _Instrumented(RecordClientProxy):
    """Proxy of a client of kafka-python."""

    def __enter__(self) -> Any:  # noqa: ANN401 - itself, which types take for the client
        self._client.__enter__()
        return self

    def __exit__(self, *how: object) -> Any:  # noqa: ANN401 - as the client says
        return self._client.__exit__(*how)


class _InstrumentedProducer(_Instrumented):
    """Proxy of a producer: adds headers to new messages, and stamps delivered ones."""

    def send(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the client takes and gives them
        """Add headers, send, and stamp ``out`` on delivery."""
        found, args, kwargs = self._mark_arguments(_SEND_ARGUMENTS, args, kwargs)
        future = self._client.send(*args, **kwargs)
        if found is not None:
            future.add_callback(partial(self._stamp_delivery, found))
        return future


class _InstrumentedConsumer(_Instrumented):
    """Proxy of a consumer: stamps the messages that it returns."""

    def poll(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the client takes and gives them
        """Poll, and stamp the messages ``in``."""
        found = self._client.poll(*args, **kwargs)
        self._stamp_arrivals(found)
        return found

    def __iter__(self) -> Any:  # noqa: ANN401 - itself, as the client
        return self

    def __next__(self) -> Any:  # noqa: ANN401 - as the client gives them
        message = next(self._client)
        self._stamp_arrival(message)
        return message
