"""Integration with aiokafka: a producer stamps ``out`` on delivery, a consumer ``in`` where it returns a message.

The id and the event time of a message travel in two headers (:mod:`hopwatch.probes.message_headers`), which are
forwarded at every hop::

    producer = instrument(AIOKafkaProducer(...), stream="orders", node="router", sink="spool:./var/spool")
    consumer = instrument(AIOKafkaConsumer(...), stream="orders", node="router", probe=producer.hopwatch_probe)
    async for message in consumer:
        await producer.send("next", message.value, headers=message.headers)
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final, TypeVar, cast

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from hopwatch.probes import Probe
from hopwatch.probes.clock import Clock
from hopwatch.probes.integrations.kafka_records import RecordClientProxy
from hopwatch.probes.integrations.message_marker import UNMARKED, MessageMarker
from hopwatch.probes.message_headers import MessageIdentity
from hopwatch.probes.sinks import Sink

_SEND_ARGUMENTS: Final = ("topic", "value", "key", "partition", "timestamp_ms", "headers")

Client = TypeVar("Client", bound=AIOKafkaProducer | AIOKafkaConsumer)


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

    The arguments are those of :func:`hopwatch.integrations.confluent_kafka.instrument`; ``client`` is an
    AIOKafkaProducer or an AIOKafkaConsumer.
    """
    stamping = probe or Probe(stream or "", node or "", sink, clock=clock)
    marker = MessageMarker(
        stamping, "aiokafka", origin=origin, ignores=ignore_unmarked, advice="headers=message.headers", clock=clock
    )
    if isinstance(client, AIOKafkaProducer):
        return cast("Client", _InstrumentedProducer(client, marker))
    marker.note_consumer()
    return cast("Client", _InstrumentedConsumer(client, marker))


class _Instrumented(RecordClientProxy):
    """Proxy of a client of aiokafka."""

    async def __aenter__(self) -> Any:  # noqa: ANN401 - itself, which types take for the client
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *how: object) -> Any:  # noqa: ANN401 - as the client says
        return await self._client.__aexit__(*how)


class _InstrumentedProducer(_Instrumented):
    """Proxy of a producer: adds headers to new messages, and stamps delivered ones."""

    async def send(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the client takes and gives them
        """Add headers, send, and stamp ``out`` on delivery."""
        found, args, kwargs = self._mark_arguments(_SEND_ARGUMENTS, args, kwargs)
        future = await self._client.send(*args, **kwargs)
        if found is not None:
            future.add_done_callback(partial(self._stamp_outcome, found))
        return future

    async def send_and_wait(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as above
        """Send, and wait for the delivery."""
        return await (await self.send(*args, **kwargs))

    async def send_batch(self, batch: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as above
        """Send a batch, unstamped: it is built without us."""
        future = await self._client.send_batch(batch, *args, **kwargs)
        for _ in range(batch.record_count()):
            self._marker.miss(UNMARKED, "the messages of send_batch are not marked: use send")
        return future

    def _stamp_outcome(self, identity: MessageIdentity, future: asyncio.Future[Any]) -> None:
        # To ask for the exception counts as its retrieval, and asyncio would not tell of one that the host forgot.
        if not future.cancelled() and getattr(future, "_exception", None) is None:
            self._stamp_delivery(identity, future.result())


class _InstrumentedConsumer(_Instrumented):
    """Proxy of a consumer: stamps the messages that it returns."""

    async def getone(self, *partitions: Any) -> Any:  # noqa: ANN401 - as the client takes and gives them
        """Get one message, and stamp it ``in``."""
        message = await self._client.getone(*partitions)
        self._stamp_arrival(message)
        return message

    async def getmany(self, *partitions: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as above
        """Get messages, and stamp them ``in``."""
        found = await self._client.getmany(*partitions, **kwargs)
        self._stamp_arrivals(found)
        return found

    def __aiter__(self) -> Any:  # noqa: ANN401 - itself, as the client
        # It raises where the client has ended.
        self._client.__aiter__()
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - as the client gives them
        message = await self._client.__anext__()
        self._stamp_arrival(message)
        return message
