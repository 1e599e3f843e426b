"""Cost of a span at the OTLP tap, beside reading the request alone, as any collector does, in turns in one process."""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from rich.table import Table

from bench.speed import Progress
from bench.table_style import format_number, new_table
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.otlp.intake import KnownServices, SpanIntake
from hopwatch.probes.taps.otlp.request_decoder import PROTOBUF, decode_spans

REQUESTS: Final = 100
SPANS: Final = 512
"""Spans of a request, as many as an SDK sends at once by default."""
ROUNDS: Final = 5
_ATTRIBUTES: Final = {
    "messaging.system": "kafka",
    "messaging.destination.name": "orders",
    "messaging.operation.type": "process",
    "messaging.destination.partition.id": "3",
    "messaging.kafka.offset": "104729",
    "messaging.client.id": "shop-7",
    "server.address": "kafka.shop.example",
    "server.port": "9092",
}
_TITLES: Final = {
    "read": "read, and no more",
    "other spans": "`tap otlp`, spans of no messages",
    "messages": "`tap otlp`, spans of messages",
}


@dataclass(frozen=True, slots=True)
class SpanCost:
    """Cost of a span in µs, in each round, sorted."""

    name: str
    us: tuple[float, ...]


def measure(scratch: Path, tell: Progress) -> list[SpanCost]:
    """Return what a span costs in each way."""
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(ROUNDS):
        tell(f"round {number + 1} of {ROUNDS}: {REQUESTS} requests of {SPANS} spans")
        found["read"].append(_time(list(build_requests(number, Span.SPAN_KIND_CONSUMER)), _read))
        for name, kind in (("other spans", Span.SPAN_KIND_SERVER), ("messages", Span.SPAN_KIND_CONSUMER)):
            bodies = list(build_requests(number, kind))
            spool = scratch / f"spool-{name}-{number}"
            known = KnownServices(instances={"shop": 1, "billing": 1})
            intake = SpanIntake(f"spool:{spool}", RunContext(lambda _: None), known)
            found[name].append(_time(bodies, partial(intake.take_spans, media_type=PROTOBUF)))
            intake.close()
            shutil.rmtree(spool)
    return [SpanCost(name, tuple(sorted(us))) for name, us in found.items()]


def build_table(costs: list[SpanCost]) -> Table:
    """Return the table of the costs."""
    table = new_table("Cost of a span", ("request of 512 spans",), ("µs a span", "least", "most", "ratio"))
    read_us = median(next(cost.us for cost in costs if cost.name == "read"))
    for cost in costs:
        figures = (median(cost.us), cost.us[0], cost.us[-1], median(cost.us) / read_us)
        table.add_row(_TITLES[cost.name], *(format_number(one, 1) for one in figures))
    return table


def build_requests(seed: int, kind: int) -> Iterator[bytes]:
    """Yield requests of spans of a kind: half of each link the others, which of consumers are those that sent them."""
    rng, now_ns = Random(seed), time.time_ns()  # noqa: S311 - ids for a bench
    is_message = kind == Span.SPAN_KIND_CONSUMER
    attributes = [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in _ATTRIBUTES.items()]
    for _ in range(REQUESTS):
        request = ExportTraceServiceRequest()
        contexts = [rng.randbytes(24) for _ in range(SPANS // 2)]
        for service in ("shop", "billing"):
            named = KeyValue(key="service.name", value=AnyValue(string_value=service))
            scope = request.resource_spans.add(resource=Resource(attributes=[named])).scope_spans.add()
            for context in contexts:
                own, sends = rng.randbytes(24), service == "shop"
                span = scope.spans.add(
                    name=f"orders {'send' if sends else 'process'}",
                    kind=Span.SPAN_KIND_PRODUCER if sends and is_message else kind,
                    trace_id=context[:16],
                    span_id=context[16:] if sends else own[16:],
                    start_time_unix_nano=now_ns,
                    end_time_unix_nano=now_ns + 1_000_000,
                    attributes=attributes,
                )
                if not sends:
                    span.links.add(trace_id=context[:16], span_id=context[16:])
        yield request.SerializeToString()


def _read(body: bytes) -> object:
    return decode_spans(body, PROTOBUF)


def _time(bodies: list[bytes], take: Callable[[bytes], object]) -> float:
    since_s = time.perf_counter()
    for body in bodies:
        take(body)
    return (time.perf_counter() - since_s) / (len(bodies) * SPANS) * 1e6
