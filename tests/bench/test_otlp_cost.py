"""Cost of a span, as the bench measures and shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from bench import otlp_cost
from bench.otlp_cost import SpanCost, build_requests, build_table, measure
from hopwatch.probes.taps.otlp.request_decoder import PROTOBUF, decode_spans
from tests.bench.table_cells import cells


def test_requests_are_of_messages_that_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the spans send a message, and half take one of these in."""
    monkeypatch.setattr(otlp_cost, "REQUESTS", 1)
    (body,) = build_requests(1, Span.SPAN_KIND_CONSUMER)
    shop, billing = (of.scope_spans[0].spans for of in decode_spans(body, PROTOBUF).resource_spans)
    assert [one.span_id for one in shop] == [one.links[0].span_id for one in billing]
    assert len(shop) == len(billing) == otlp_cost.SPANS // 2


def test_each_way_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In each round, and nothing is left behind."""
    monkeypatch.setattr(otlp_cost, "REQUESTS", 2)
    monkeypatch.setattr(otlp_cost, "ROUNDS", 2)
    costs = measure(tmp_path, lambda _: None)
    assert [(cost.name, len(cost.us)) for cost in costs] == [("read", 2), ("other spans", 2), ("messages", 2)]
    assert list(tmp_path.iterdir()) == []


def test_the_table_has_ratios() -> None:
    """To reading a request alone."""
    costs = [SpanCost("read", (1.0, 2.0, 4.0)), SpanCost("messages", (5.0, 9.0, 9.5))]
    shown = cells(build_table(costs))
    assert shown["read, and no more"] == ["2.0", "1.0", "4.0", "1.0"]
    assert shown["`tap otlp`, spans of messages"] == ["9.0", "5.0", "9.5", "4.5"]
