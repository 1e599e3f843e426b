"""Traced service: a tracer of OpenTelemetry, the propagator, and what its probes have sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from opentelemetry.instrumentation.confluent_kafka.utils import KafkaContextGetter, KafkaContextSetter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON
from opentelemetry.trace import Span, SpanKind

from hopwatch.integrations.opentelemetry import HopwatchPropagator
from hopwatch.probes.contract.batch import Batch
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.integrations.opentelemetry import MessageMark
from hopwatch.probes.sinks import SinkOpener
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink
from tests.support.spool import at_us
from tests.support.workspace import Workspace

_PROCESSES: Final = count(1)
_opened: list[TracedService] = []


class TracedService:
    """Service by name; all its probes have one clock, which stands still."""

    def __init__(self, name: str | None, at_us: int = EPOCH_US, attributes: Mapping[str, str] | None = None) -> None:
        """Start a provider whose spans are all sampled, and another one that samples none."""
        given = dict(attributes or {}) | ({} if name is None else {"service.name": name})
        self.resource, self.clock = Resource.create(given), ManualClock(at_us)
        self.provider, unsampled = (TracerProvider(one, self.resource) for one in (ALWAYS_ON, ALWAYS_OFF))
        self._tracers = {True: self.provider.get_tracer("test"), False: unsampled.get_tracer("test")}
        self.sinks: list[MemorySink] = []
        self.propagator = HopwatchPropagator(SinkOpener(self._open), provider=self.provider, clock=self.clock)
        # Each service is a process of its own.
        self.propagator._seed = next(_PROCESSES)
        _opened.append(self)

    def _open(self, _: str) -> MemorySink:
        self.sinks.append(MemorySink())
        return self.sinks[-1]

    @contextmanager
    def sending(self, topic: str, headers: Any, *, is_sampled: bool = True) -> Iterator[Span]:  # noqa: ANN401
        """Mark a message as an instrumented client does; the span ends with the block."""
        with self._tracers[is_sampled].start_as_current_span(f"{topic} send", kind=SpanKind.PRODUCER) as span:
            span.set_attribute("messaging.destination.name", topic)
            self.propagator.inject(headers, setter=KafkaContextSetter())
            yield span

    def send(self, topic: str, headers: Any = None, *, is_sampled: bool = True) -> Any:  # noqa: ANN401 - as above
        """Send a message, and return its headers."""
        headers = [] if headers is None else headers
        with self.sending(topic, headers, is_sampled=is_sampled):
            return headers

    def receive(self, headers: Any) -> None:  # noqa: ANN401 - as above
        """Take a message in."""
        self.propagator.extract(headers, getter=KafkaContextGetter())

    def close(self) -> list[Batch]:
        """End the service, and return all that its probes have sent."""
        self.propagator.close()
        return [decode(record) for sink in self.sinks for record in sink.records]


def close_services() -> None:
    """End all services: the threads of their probes would go on beside later tests."""
    while _opened:
        _opened.pop().propagator.close()


TRACED_CONFIGURATION: Final = """
[transport]
url = "spool:./spool"
[store]
url = "sqlite:///./store.db"
[monitor]
workdir = "./work"
[dashboard]
trace_url = "https://jaeger.example/trace/{trace_id}"
[streams.orders]
path = "shop -> billing"
stamps = { shop = "out", billing = "in" }
"""


def lose_one_of_two(folder: Path) -> tuple[Workspace, str]:
    """Return a place whose monitor has judged two messages of traced services, and the id of the one that is lost."""
    shop, billing = TracedService("shop", at_us(10)), TracedService("billing", at_us(10))
    billing.receive(shop.send("orders"))
    ((_, value),) = shop.send("orders")
    records = [*shop.close(), *billing.close()]
    close_services()
    return Workspace(folder).configure(TRACED_CONFIGURATION).watch(*records), MessageMark.parse(value).message_id
