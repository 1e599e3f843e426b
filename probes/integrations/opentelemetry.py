"""Integration with OpenTelemetry: a propagator that stamps the messages of services that are traced.

It is enabled as every propagator is, without a change of the service::

    OTEL_PROPAGATORS=tracecontext,baggage,hopwatch HOPWATCH_SINK=kafka://broker:9092 opentelemetry-instrument ...

Each destination (a topic or a queue) is a stream of two nodes, named as the services are: the one that sends stamps
``out`` once its producer span has ended without an error, the others stamp ``in`` where their client takes a message
in. Id, event time and destination travel in a header of their own, so that it makes no difference whether an SDK drops
a span, a link or a batch of them. A producer span that is not sampled marks no message, and so none of its messages is
expected anywhere.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, MutableMapping, Sequence
from itertools import count
from random import getrandbits
from typing import Final, NamedTuple

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import (
    CarrierT,
    Getter,
    Setter,
    TextMapPropagator,
    default_getter,
    default_setter,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.trace import SpanKind, StatusCode

from hopwatch.probes import Probe, message_headers, messaging_attributes
from hopwatch.probes.clock import Clock, SystemClock
from hopwatch.probes.contract.limits import MAX_LABEL_CHARS, NAME_PATTERN
from hopwatch.probes.environment import read_sink_url
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.sinks import Sink, SinkOpener

MESSAGE_HEADER: Final = "hopwatch-message"
"""Header of a message that a traced service sends: process; event time in µs since 1970; destination; id."""
MAX_DESTINATIONS: Final = 64
"""Destinations of one process that are stamped. Of further ones it announces a probe and ends it: they are UNKNOWN."""
MAX_ANNOUNCED: Final = 1_000
"""Destinations of which a probe is announced, at most: whoever makes up more names would fill the spool."""
MAX_OPEN_SPANS: Final = 10_000
"""Producer spans that have not ended, at most: the oldest make room, and their messages are expected nowhere."""
BAD_MARKS: Final = "bad marks"
UNNAMED_SERVICE: Final = "unknown_service"
"""Name that SDKs give to a service without one; more may follow it."""

_LABELS: Final = {
    "version": "service.version",
    "host": "host.name",
    "pod": "k8s.pod.name",
    "zone": "cloud.availability_zone",
}
"""Attributes of a resource that are labels of its probes."""
_SPAN_NAME: Final = re.compile(r"(\S+) (?:send|publish|create)|(?:send|publish|create) (\S+)")
"""Names of producer spans, by both conventions: some clients set the attributes after the message was sent."""
_MARK: Final = re.compile(r"([0-9a-f]{1,24});(\d{1,19});([^;]+);(.+)")
_SEED: Final = getrandbits(32)
"""One of all propagators of a process: a second one knows the marks of the first."""
_log = logging.getLogger("hopwatch.probe")


class MessageMark(NamedTuple):
    """Mark of a message: the process that sent it, its event time in µs since 1970, its destination, and its id."""

    process: str
    event_us: int
    destination: str
    message_id: str

    def format(self) -> str:
        """Return the value of the header."""
        return f"{self.process};{self.event_us};{self.destination};{self.message_id}"

    @classmethod
    def parse(cls, value: object) -> MessageMark:
        """Parse the value of the header.

        Raises:
            ValueError: it is none.
        """
        text = value.decode() if isinstance(value, bytes) else value
        found = _MARK.fullmatch(text) if isinstance(text, str) else None
        if found is None or not NAME_PATTERN.fullmatch(found[3]):
            raise ValueError(f"{MESSAGE_HEADER} has a process, a time, a destination and an id, got {value!r:.80}")
        return cls(found[1], message_headers.read_time(found[2]), found[3], found[4])


class HopwatchPropagator(TextMapPropagator):
    """Propagator that stamps messages as they are sent and received; without a sink it does nothing.

    It never raises into the service, and takes no lock, which another thread might hold when the process forks.
    """

    def __init__(
        self,
        sink: str | Sink | SinkOpener | None = None,
        *,
        provider: TracerProvider | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Start without probes: each destination gets one with its first message.

        ``HOPWATCH_SINK`` names the sink if none is given; the provider is the global one by default.
        """
        self._sink = sink if sink is not None else read_sink_url()
        self._given_provider, self._clock = provider, clock or SystemClock()
        self._probes: dict[str, Probe] = {}
        self._sent = _SentMessages(self._find_probe)
        self._watched: TracerProvider | None = None
        self._environment: Resource | None = None
        self._seed, self._numbers = _SEED, count()
        self._logged = OncePerCause()

    @property
    def fields(self) -> set[str]:
        """The headers that are set."""
        return {MESSAGE_HEADER}

    def inject(
        self, carrier: CarrierT, context: Context | None = None, setter: Setter[CarrierT] = default_setter
    ) -> None:
        """Mark a message that is sent, if its producer span is recorded."""
        try:
            marks = None if self._sink is None else _find_marks(carrier)
            if marks is None:
                return
            process = f"{self._seed:08x}{os.getpid():x}"
            if any(_is_from(process, value) for _, value in marks):
                # It is of another message, which a client may not have read yet.
                self._warn("messages with a list of headers that others have too are not stamped: give each its own")
                return
            # They came with a message that was received, and whose headers are passed on.
            _remove_marks(carrier, marks)
            span = trace.get_current_span(context)
            destination = self._read_destination(span) if isinstance(span, Span) else None
            if destination is None:
                return
            # Where there is a probe, the service has a name.
            is_named = destination in self._probes or self._read_service() is not None
            if not is_named or not self._watch_spans():
                return
            spanned = span.get_span_context()
            # A span may send several messages.
            message_id = f"{spanned.trace_id:032x}-{spanned.span_id:016x}-{next(self._numbers):x}"
            mark = MessageMark(process, self._clock.wall_ns() // 1_000, destination, message_id)
            setter.set(carrier, MESSAGE_HEADER, mark.format())
            self._sent.add(spanned.span_id, mark)
        except Exception:  # noqa: BLE001 - a probe does not raise into its host
            self._warn("a message that is sent is not stamped", is_failure=True)

    def extract(
        self, carrier: CarrierT, context: Context | None = None, getter: Getter[CarrierT] = default_getter
    ) -> Context:
        """Stamp ``in`` of a message that has a mark; the context stays as it is."""
        try:
            for value in _read_marks(carrier, getter) if self._sink is not None else ():
                mark = MessageMark.parse(value)
                probe = self._find_probe(mark.destination)
                if probe is not None:
                    probe.arrived(mark.message_id, mark.event_us)
        except Exception as error:  # noqa: BLE001 - a probe does not raise into its host
            # It may be any message of any destination.
            for probe in list(self._probes.values()):
                probe.missed(BAD_MARKS)
            if not isinstance(error, ValueError):
                self._warn("a message that is received is not stamped", is_failure=True)
        return Context() if context is None else context

    def flush(self, patience_s: float = 0.0) -> bool:
        """Send all stamps now, and wait for the transport; return whether all are where a monitor finds them."""
        flushed = [probe.flush(patience_s) for probe in list(self._probes.values())]
        return all(flushed)

    def close(self) -> None:
        """Send what is left, and say that this service has ended; the end of the process does the same."""
        while self._probes:
            self._probes.popitem()[1].close()

    def _find_probe(self, destination: str) -> Probe | None:
        """Return the probe of a destination, started if need be; None where the service has no name, or too many."""
        found = self._probes.get(destination)
        if found is not None:
            return found
        service, attributes = self._read_service(), self._resource.attributes
        if service is None:
            return None
        if len(self._probes) >= MAX_ANNOUNCED:
            self._warn(f"messages of more than {MAX_ANNOUNCED:,} destinations are not stamped")
            return None
        labels = {
            name: str(attributes[attribute])[:MAX_LABEL_CHARS]
            for name, attribute in _LABELS.items()
            if attributes.get(attribute)
        }
        started = Probe(destination, service, self._sink, labels=labels, clock=self._clock)
        kept = self._probes.setdefault(destination, started)
        if kept is not started:
            started.end()
        elif len(self._probes) > MAX_DESTINATIONS:
            self._warn(
                f"messages of more than {MAX_DESTINATIONS} destinations are not stamped: of the others all is unknown"
            )
            started.end(bye=False)
        return kept

    @property
    def _resource(self) -> Resource:
        """The resource of the provider; that of the environment before there is one."""
        found = getattr(self._provider, "resource", None)
        if isinstance(found, Resource):
            return found
        if self._environment is None:
            self._environment = Resource.create()
        return self._environment

    def _read_service(self) -> str | None:
        """Return the name of the service; None where it cannot be that of a node."""
        name = self._resource.attributes.get("service.name")
        if isinstance(name, str) and NAME_PATTERN.fullmatch(name) and not name.startswith(UNNAMED_SERVICE):
            return name
        got = f"1 to 128 of the characters A-Za-z0-9._-, got {name!r:.160}"
        self._warn(f"no message is stamped, as the service has no name: set OTEL_SERVICE_NAME to {got}")
        return None

    def _read_destination(self, span: Span) -> str | None:
        """Return the destination of a producer span that is recorded; None where its messages are not stamped."""
        if span.kind is not SpanKind.PRODUCER or not span.is_recording():
            return None
        attributes = dict(span.attributes or {})
        if any(attributes.get(name) for name in messaging_attributes.TEMPORARY):
            return None
        name = next((attributes[one] for one in messaging_attributes.DESTINATION_NAMES if attributes.get(one)), None)
        if name is None and (named := _SPAN_NAME.fullmatch(span.name)):
            name = named[1] or named[2]
        if name is None or (isinstance(name, str) and NAME_PATTERN.fullmatch(name)):
            return name
        self._warn(f"messages to {name!r:.160} are not stamped: no stream has a name like that")
        return None

    def _watch_spans(self) -> bool:
        """Have the ends of spans told; return whether they are."""
        provider = self._provider
        if not isinstance(provider, TracerProvider):
            return False
        if self._watched is not provider:
            provider.add_span_processor(self._sent)
            self._watched = provider
        return True

    @property
    def _provider(self) -> trace.TracerProvider:
        return self._given_provider or trace.get_tracer_provider()

    def _warn(self, told: str, *, is_failure: bool = False) -> None:
        if self._logged.is_new(told):
            _log.warning("%s", told, exc_info=is_failure)


class _SentMessages(SpanProcessor):
    """Messages whose producer spans have not ended: those of a span that ends with an error were not sent."""

    def __init__(self, find_probe: Callable[[str], Probe | None]) -> None:
        self._find_probe = find_probe
        self._open: dict[int, list[MessageMark]] = {}

    def add(self, span_id: int, mark: MessageMark) -> None:
        """Add a message of a span that goes on."""
        if len(self._open) >= MAX_OPEN_SPANS:
            self._open.pop(next(iter(self._open)), None)
        self._open.setdefault(span_id, []).append(mark)

    def on_end(self, span: ReadableSpan) -> None:
        """Stamp ``out`` of the messages of a span."""
        try:
            self._stamp_departures(span)
        except Exception:  # noqa: BLE001 - a probe does not raise into its host; what has no stamp is expected nowhere
            _log.warning("a message that was sent is not stamped", exc_info=True)

    def _stamp_departures(self, span: ReadableSpan) -> None:
        spanned = span.get_span_context()
        marks = () if spanned is None else self._open.pop(spanned.span_id, ())
        if span.status.status_code is StatusCode.ERROR:
            return
        for mark in marks:
            probe = self._find_probe(mark.destination)
            if probe is not None:
                probe.departed(mark.message_id, mark.event_us)


def _find_marks(carrier: object) -> list[tuple[str, object]] | None:
    """Return the marks of a carrier; None of one that cannot be changed."""
    if isinstance(carrier, list):
        return [one for one in carrier if one[0] == MESSAGE_HEADER]
    if isinstance(carrier, MutableMapping):
        return [(MESSAGE_HEADER, carrier[MESSAGE_HEADER])] if MESSAGE_HEADER in carrier else []
    return None


def _is_from(process: str, value: object) -> bool:
    """Return whether a mark is from a process."""
    return f"{process};" in (value.decode("latin-1") if isinstance(value, bytes) else str(value))


def _remove_marks(carrier: object, marks: list[tuple[str, object]]) -> None:
    """Remove some marks one by one, as another thread may add its own meanwhile."""
    for mark in marks:
        if isinstance(carrier, list):
            carrier.remove(mark)
        elif isinstance(carrier, MutableMapping):
            carrier.pop(MESSAGE_HEADER, None)


def _read_marks(carrier: CarrierT, getter: Getter[CarrierT]) -> Sequence[object]:
    """Return the values of all marks; getters of Kafka clients return the first alone."""
    if isinstance(carrier, list | tuple):
        return [value for name, value in carrier if name == MESSAGE_HEADER]
    return getter.get(carrier, MESSAGE_HEADER) or ()
