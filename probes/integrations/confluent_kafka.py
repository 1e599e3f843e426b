"""Integration with confluent-kafka: a producer stamps ``out`` on delivery, a consumer ``in`` on poll.

The id and the event time of a message travel in two headers (:mod:`hopwatch.probes.message_headers`). They are set
where the message is created, and forwarded at every hop::

    producer = instrument(Producer(config), stream="orders", node="router", sink="spool:./var/spool")
    consumer = instrument(Consumer(config), stream="orders", node="router", probe=producer.hopwatch_probe)
    message = consumer.poll(1.0)
    producer.produce("next", message.value(), headers=message.headers())

A header whose name is no UTF-8 would crash whoever reads the headers of its message by confluent-kafka 2.16. Such a
message counts as dropped, and its ``headers()`` are empty from then on: a host takes it for one without headers, and
sends it on as one. Only its producer can mend it; the log says by which topic the first one came.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, TypeVar, cast

from confluent_kafka import Consumer, Message, Producer, SerializingProducer

from hopwatch.probes import Probe, message_headers
from hopwatch.probes.clock import Clock
from hopwatch.probes.contract.limits import OUT_PARTITION_LABEL, PARTITION_LABEL
from hopwatch.probes.integrations.message_marker import BAD_MARKS, UNMARKED, ClientProxy, MessageMarker
from hopwatch.probes.kafka.consumer import read_headers
from hopwatch.probes.sinks import Sink

_PRODUCE_ARGUMENTS: Final = ("value", "key", "partition", "callback", "on_delivery", "timestamp", "headers")
_SERIALIZING_ARGUMENTS: Final = ("key", "value", "partition", "on_delivery", "timestamp", "headers")

Client = TypeVar("Client", bound=Producer | Consumer)
DeliveryCallback = Callable[[Any, Any], None]


def instrument(  # noqa: PLR0913 - what can be chosen, all but the client by name
    client: Client,
    *,
    stream: str | None = None,
    node: str | None = None,
    sink: str | Sink | None = None,
    probe: Probe | None = None,
    origin: bool | None = None,
    ignore_unmarked: bool = False,
    on_delivery: DeliveryCallback | None = None,
    clock: Clock | None = None,
) -> Client:
    """Wrap a client so that it stamps messages; the wrapper has all its methods, and raises the same errors.

    Pass either ``probe``, or ``stream`` and ``node``, and ``sink`` unless ``HOPWATCH_SINK`` names one. The probe is
    ``hopwatch_probe`` of the wrapper; one that is made here is closed when the process ends.

    Args:
        client: a Producer or Consumer of confluent-kafka, a serializing one too.
        stream: the stream that the messages belong to.
        node: the node that sends, or receives, them.
        sink: the sink of the stamps.
        probe: an existing probe, instead of these three.
        origin: whether messages are created here, so that those without headers get new ones. By default they are,
            unless a consumer of the same stream and node is instrumented in this process too.
        ignore_unmarked: whether to ignore messages without headers, as not of this stream. By default they count as
            dropped, so that the monitor reports no loss of a message that only lost its headers.
        on_delivery: the callback of the producer's own configuration, which ours replaces; it is called after ours.
        clock: a clock, for tests.
    """
    stamping = probe or Probe(stream or "", node or "", sink, clock=clock)
    marker = MessageMarker(
        stamping,
        "confluent-kafka",
        origin=origin,
        ignores=ignore_unmarked,
        advice="headers=message.headers()",
        clock=clock,
    )
    if isinstance(client, Producer):
        return cast("Client", _InstrumentedProducer(client, marker, on_delivery))
    marker.note_consumer()
    return cast("Client", _InstrumentedConsumer(client, marker))


def _label_partition(name: str, message: Any) -> dict[str, object] | None:  # noqa: ANN401 - as the client gives it
    """Return the partition of a message as a label; None if it is not known."""
    try:
        partition = message.partition()
    except Exception:  # noqa: BLE001 - a stamp counts without labels
        return None
    return None if partition is None else {name: partition}


class _Instrumented(ClientProxy):
    """Proxy of a client of confluent-kafka."""

    def __enter__(self) -> Any:  # noqa: ANN401 - itself, which types take for the client
        self._client.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:  # noqa: ANN401 - as the client says
        return self._client.__exit__(kind, error, trace)


class _InstrumentedProducer(_Instrumented):
    """Proxy of a producer: adds headers to new messages, and stamps delivered ones."""

    def __init__(self, client: Producer, marker: MessageMarker, default_report: DeliveryCallback | None) -> None:
        super().__init__(client, marker)
        self._default_report = default_report
        self._names = _SERIALIZING_ARGUMENTS if isinstance(client, SerializingProducer) else _PRODUCE_ARGUMENTS

    def __len__(self) -> int:
        return len(self._client)

    def __bool__(self) -> bool:
        return bool(self._client)

    def produce(self, topic: str, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as the client takes them
        """Add headers, produce, and stamp ``out`` on delivery."""
        found, args, kwargs = self._mark_arguments(self._names, args, kwargs)
        if found is not None:
            theirs = kwargs.get("on_delivery") or self._default_report
            if "callback" in self._names:
                theirs = kwargs.pop("callback", None) or theirs
            kwargs["on_delivery"] = _DeliveryReport(self.hopwatch_probe, found, theirs)
        self._client.produce(topic, *args, **kwargs)

    def produce_batch(self, topic: str, messages: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as above
        """Produce a batch, unstamped: the client sends batches without headers."""
        queued = self._client.produce_batch(topic, messages, *args, **kwargs)
        for _ in range(queued if isinstance(queued, int) else 0):
            self._marker.miss(UNMARKED, "produce_batch sends no headers: use produce")
        return queued


class _DeliveryReport:
    """Delivery callback of one message: ours first, then the host's own."""

    __slots__ = ("_callback", "_identity", "_probe")

    def __init__(self, probe: Probe, found: message_headers.MessageIdentity, theirs: DeliveryCallback | None) -> None:
        self._probe, self._identity, self._callback = probe, found, theirs

    def __call__(self, error: Any, message: Any) -> None:  # noqa: ANN401 - as the client gives them
        if error is None:
            self._probe.departed(*self._identity, labels=_label_partition(OUT_PARTITION_LABEL, message))
        if self._callback is not None:
            self._callback(error, message)


class _InstrumentedConsumer(_Instrumented):
    """Proxy of a consumer: stamps polled messages."""

    def poll(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the client takes and gives them
        """Poll, and stamp the message ``in``."""
        message = self._client.poll(*args, **kwargs)
        self._stamp_arrival(message)
        return message

    def consume(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as above
        """Consume, and stamp the messages ``in``."""
        messages = self._client.consume(*args, **kwargs)
        for message in messages or ():
            self._stamp_arrival(message)
        return messages

    def _stamp_arrival(self, message: Message | None) -> None:
        try:
            if message is None or message.error() is not None:
                return
            self._marker.stamp_arrival(
                read_headers(message), message.topic(), _label_partition(PARTITION_LABEL, message)
            )
        except ValueError as error:
            self._marker.miss(BAD_MARKS, f"{error}: it came by the topic {message and message.topic()}")
        except Exception:  # noqa: BLE001 - what we cannot do is not the host's trouble
            self._marker.fail()
