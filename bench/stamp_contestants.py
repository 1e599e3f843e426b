"""Cost of one stamp to the service: our probe and its alternatives, each on its own.

A round is a loop of calls and nothing else. Between rounds all that waits is sent, so that no queue is ever full and no
thread wakes in a round; that work shows in the CPU time. The functions are called in a process of their own, see
:mod:`bench.contestant`; of each call they report ``ns``, the median of all rounds, and ``cpu_ns``, of all threads.
"""

from __future__ import annotations

import importlib
import os
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np
from confluent_kafka import Producer
from opentelemetry.instrumentation.confluent_kafka import ConfluentKafkaInstrumentor
from opentelemetry.propagate import set_global_textmap
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import CollectorRegistry, Histogram

from bench.contestant import Json
from bench.truth import WrongResultError
from hopwatch import Probe
from hopwatch.integrations.confluent_kafka import instrument
from hopwatch.integrations.opentelemetry import HopwatchPropagator
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.limits import ID_BYTES, NOT_STAMPED
from hopwatch.testing import MemorySink

CALLS: Final = 256
"""Calls a round: fewer than the 512 spans that wake OpenTelemetry's thread."""
ARRAY: Final = 1_000
"""Messages in an array: with both stamps still fewer than the 4,096 that wake our own thread."""
ROUNDS: Final = 1_000
WARMING: Final = 50

_TRACE_CONTEXT: Final = TraceContextTextMapPropagator()
_UNTYPED_WRAPPER: Final[Any] = ConfluentKafkaInstrumentor
_DATADOG: Final = {
    "DD_DATA_STREAMS_ENABLED": "true",
    "DD_TRACE_ENABLED": "false",
    "DD_REMOTE_CONFIGURATION_ENABLED": "false",
    "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
    "DD_TRACE_AGENT_URL": "http://127.0.0.1:8126",
}


class CountingExporter(SpanExporter):
    """Takes every span and keeps none."""

    def __init__(self) -> None:
        """Start at zero."""
        self.spans = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Count the spans."""
        self.spans += len(spans)
        return SpanExportResult.SUCCESS


def ours(folder: Path, rounds: int = ROUNDS) -> Json:
    """Stamp with a probe whose sink is in memory; every stamp is checked to have come."""
    del folder
    ids, event_us = [uuid.uuid4() for _ in range(CALLS)], time.time_ns() // 1_000
    array, events_us = np.frombuffer(os.urandom(ID_BYTES * ARRAY), f"V{ID_BYTES}"), np.full(ARRAY, event_us)
    sink = MemorySink()
    probe = Probe("bench", "n0", sink)

    def arrived() -> None:
        for message_id in ids:
            probe.arrived(message_id, event_us)

    def departed() -> None:
        for message_id in ids:
            probe.departed(message_id, event_us)

    def passing() -> None:
        for message_id in ids:
            with probe.passing(message_id, event_us):
                pass

    def arrays() -> None:
        probe.arrived_many(array, events_us)
        probe.departed_many(array, events_us)

    told = {
        "arrived": measure(arrived, CALLS, probe.flush, rounds),
        "departed": measure(departed, CALLS, probe.flush, rounds),
        "passing": measure(passing, CALLS, probe.flush, rounds),
        "arrays": measure(arrays, 2 * ARRAY, probe.flush, rounds),
    }
    probe.close()
    check_kept("Hopwatch's probe", (WARMING + rounds) * (4 * CALLS + 2 * ARRAY), stamps_in(sink.records))
    return told


def opentelemetry(folder: Path, rounds: int = ROUNDS) -> Json:
    """Open and end a span of OpenTelemetry's SDK, sent in batches by its own thread to an exporter that counts."""
    del folder
    exporter, provider = CountingExporter(), TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("bench")

    def span() -> None:
        for _ in range(CALLS):
            with tracer.start_as_current_span("handle"):
                pass

    told = {"span": measure(span, CALLS, provider.force_flush, rounds)}
    provider.shutdown()
    check_kept("OpenTelemetry", (WARMING + rounds) * CALLS, exporter.spans)
    return told


def traced(folder: Path, rounds: int = ROUNDS // 4) -> Json:
    """Send and receive by an instrumented client without a broker: traced alone, and stamped by our propagator too."""
    del folder
    provider = TracerProvider(resource=Resource.create({"service.name": "n0"}))
    tracer, sink, client = provider.get_tracer("bench"), MemorySink(), _SilentClient()
    ours, wrapper = HopwatchPropagator(sink, provider=provider), _UNTYPED_WRAPPER
    sent: list[list[tuple[str, bytes]]] = []

    def send() -> None:
        sent.clear()
        for _ in range(CALLS):
            sent.append([])
            wrapper.wrap_produce(client.produce, client, tracer, (), {"topic": "bench", "headers": sent[-1]})

    def receive() -> None:
        for client.headers in sent:
            wrapper.wrap_poll(client.poll, client, tracer, (), {})

    told: Json = {}
    for name, propagators in (("traced", [_TRACE_CONTEXT]), ("stamped", [_TRACE_CONTEXT, ours])):
        set_global_textmap(CompositePropagator(propagators))
        told[f"{name} send"] = measure(send, CALLS, ours.flush, rounds)
        told[f"{name} receive"] = measure(receive, CALLS, ours.flush, rounds)
    ours.close()
    check_kept("Hopwatch's propagator", 2 * (WARMING + rounds) * CALLS, stamps_in(sink.records))
    return told


def confluent_kafka(folder: Path, rounds: int = ROUNDS // 4) -> Json:
    """Produce to a broker that librdkafka simulates: by a bare client, and by one that is instrumented."""
    del folder
    sink = MemorySink()
    probe = Probe("bench", "n0", sink)
    told: Json = {}
    for name in ("bare produce", "stamped produce"):
        client = Producer({"test.mock.num.brokers": 1, "log_level": 0})
        producer = client if name == "bare produce" else instrument(client, probe=probe, origin=True)
        told[name] = measure(partial(_produce, producer), CALLS, partial(_settle, producer, probe), rounds)
    probe.close()
    check_kept("the instrumented client", (WARMING + rounds) * CALLS, stamps_in(sink.records))
    return told


def _produce(producer: Producer) -> None:
    for _ in range(CALLS):
        producer.produce("bench", b"value", b"key")


def _settle(producer: Producer, probe: Probe) -> None:
    producer.flush()
    probe.flush()


class _SilentClient:
    """Client of Kafka that sends nothing, and receives a message whose headers it is told."""

    _current_consume_span = _current_context_token = None

    def __init__(self) -> None:
        self.headers: list[tuple[str, bytes]] = []

    def produce(self, **_: object) -> None:
        """Take a message."""

    def poll(self) -> _SilentMessage:
        """Return a message."""
        return _SilentMessage(self.headers)


class _SilentMessage(NamedTuple):
    """Message as clients return it."""

    own_headers: list[tuple[str, bytes]]

    def headers(self) -> list[tuple[str, bytes]]:
        """Return its headers."""
        return self.own_headers

    def topic(self) -> str:
        """Return its topic."""
        return "bench"

    def partition(self) -> int:
        """Return its partition."""
        return 0

    def offset(self) -> int:
        """Return its offset."""
        return 0


def datadog(folder: Path, rounds: int = ROUNDS) -> Json:
    """Set a checkpoint of Datadog's data streams, arriving and leaving; no agent takes what it sends."""
    del folder
    # It reads the environment when it is imported.
    os.environ.update(_DATADOG)
    data_streams = importlib.import_module("ddtrace.data_streams")
    carrier: dict[str, str] = {}
    contexts: list[object] = []

    def consume() -> None:
        contexts.extend(data_streams.set_consume_checkpoint("tcp", "n0", carrier.get) for _ in range(CALLS))

    def produce() -> None:
        contexts.extend(data_streams.set_produce_checkpoint("tcp", "n1", carrier.__setitem__) for _ in range(CALLS))

    produce()
    told = {
        "consume": measure(consume, CALLS, lambda: None, rounds),
        "produce": measure(produce, CALLS, lambda: None, rounds),
    }
    set_in_all = sum(context is not None for context in contexts)
    check_kept("Datadog", CALLS + 2 * (WARMING + rounds) * CALLS, set_in_all)
    return told


def prometheus(folder: Path, rounds: int = ROUNDS) -> Json:
    """Observe a lag in a histogram with the default buckets: no ids, so it can tell no loss."""
    del folder
    registry = CollectorRegistry()
    histogram = Histogram("lag_seconds", "Lag at arrival.", registry=registry)

    def observe() -> None:
        for _ in range(CALLS):
            histogram.observe(0.012)

    told = {"observe": measure(observe, CALLS, lambda: None, rounds)}
    check_kept(
        "prometheus_client", (WARMING + rounds) * CALLS, int(registry.get_sample_value("lag_seconds_count") or 0)
    )
    return told


def measure(one_round: Callable[[], None], calls: int, settle: Callable[[], object], rounds: int) -> Json:
    """Return what a call takes: ``ns`` for the caller, and ``cpu_ns`` with all that is done later on any thread."""
    for _ in range(WARMING):
        one_round()
        settle()
    spans_ns, cpu_ns = [], time.process_time_ns()
    for _ in range(rounds):
        began_ns = time.perf_counter_ns()
        one_round()
        spans_ns.append(time.perf_counter_ns() - began_ns)
        settle()
    return {"ns": median(spans_ns) / calls, "cpu_ns": (time.process_time_ns() - cpu_ns) / calls / rounds}


def stamps_in(records: Sequence[bytes]) -> int:
    """Return how many stamps records hold."""
    batches = [decode(record) for record in records]
    lags = (np.frombuffer(packed, "<i8") for one in batches for packed in (one.lag_in_us, one.lag_out_us))
    return sum(int(np.count_nonzero(lag != NOT_STAMPED)) for lag in lags)


def check_kept(who: str, called: int, kept: int) -> None:
    """Hold what was kept against what was called: a call that does nothing is quick.

    Raises:
        WrongResultError: they differ.
    """
    if kept != called:
        raise WrongResultError(f"{who} was called {called:,} times and kept {kept:,}")
