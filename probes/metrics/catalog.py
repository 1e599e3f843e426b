"""Catalog of the metrics of components that events pass through; docs/METRICS.md is written from it."""

from __future__ import annotations

from typing import Final

from hopwatch.probes.metrics.account import DropReason, Output, RefusalReason
from hopwatch.probes.metrics.metric import Label, Metric, MetricType
from hopwatch.probes.values import SkipReason

GATE: Final = "gate"
VALIDATOR: Final = "validator"
JSONL_TAP: Final = "jsonl_tap"
KAFKA_TAP: Final = "kafka_tap"
HTTP_TAP: Final = "http_tap"
DASHBOARD: Final = "dashboard"

COMPONENT: Final = Label("component", (GATE, VALIDATOR, JSONL_TAP, KAFKA_TAP, HTTP_TAP, DASHBOARD))
STREAM: Final = Label("stream")
WITH_REQUESTS: Final = Label("component", (GATE, HTTP_TAP, DASHBOARD))
WITH_EVENTS: Final = Label("component", (GATE, VALIDATOR, JSONL_TAP, KAFKA_TAP, HTTP_TAP))

BUILD: Final = Metric(
    "hopwatch_component_build_info",
    MetricType.GAUGE,
    "1; the labels say which component of which version runs.",
    (COMPONENT, Label("version")),
)
RECEIVED_EVENTS: Final = Metric(
    "hopwatch_component_received_events_total",
    MetricType.COUNTER,
    "Events, messages, lines or observations that arrived; one that is sent or read again counts again.",
    (WITH_EVENTS, STREAM),
)
EMITTED_EVENTS: Final = Metric(
    "hopwatch_component_emitted_events_total",
    MetricType.COUNTER,
    "Events that the transport has, by where they went: into the stream, into quarantine, or as stamps.",
    (WITH_EVENTS, STREAM, Label("output", tuple(Output))),
)
DROPPED_EVENTS: Final = Metric(
    "hopwatch_component_dropped_events_total",
    MetricType.COUNTER,
    "Events that nothing was done with and nobody is asked for again: repeats at the gate, and what a tap cannot read.",
    (WITH_EVENTS, STREAM, Label("reason", (DropReason.REPEAT, *SkipReason))),
)
REFUSED_EVENTS: Final = Metric(
    "hopwatch_component_refused_events_total",
    MetricType.COUNTER,
    "Events given back to their sender, or left in their topic or file: they may be sent, or are read, again.",
    (WITH_EVENTS, STREAM, Label("reason", tuple(RefusalReason))),
)
IN_FLIGHT_EVENTS: Final = Metric(
    "hopwatch_component_in_flight_events",
    MetricType.GAUGE,
    "Events received that are not emitted, dropped or refused yet; what stays here is stuck.",
    (WITH_EVENTS, STREAM),
)
RECEIVED_REQUESTS: Final = Metric(
    "hopwatch_component_received_requests_total",
    MetricType.COUNTER,
    "HTTP requests and WebSockets that arrived.",
    (WITH_REQUESTS,),
)
ANSWERED_REQUESTS: Final = Metric(
    "hopwatch_component_answered_requests_total",
    MetricType.COUNTER,
    "Requests answered, by status code; 4xx and 5xx are refused. A WebSocket has 101, and counts when it ends.",
    (WITH_REQUESTS, Label("code")),
)
DROPPED_REQUESTS: Final = Metric(
    "hopwatch_component_dropped_requests_total",
    MetricType.COUNTER,
    "Requests that ended without an answer: the client hung up, or Hopwatch has a fault.",
    (WITH_REQUESTS, Label("reason", (DropReason.NO_ANSWER,))),
)
IN_FLIGHT_REQUESTS: Final = Metric(
    "hopwatch_component_in_flight_requests",
    MetricType.GAUGE,
    "Requests that are being worked on, and WebSockets that are open.",
    (WITH_REQUESTS,),
)

COMPONENT_METRICS: Final = (
    BUILD,
    RECEIVED_EVENTS,
    EMITTED_EVENTS,
    DROPPED_EVENTS,
    REFUSED_EVENTS,
    IN_FLIGHT_EVENTS,
    RECEIVED_REQUESTS,
    ANSWERED_REQUESTS,
    DROPPED_REQUESTS,
    IN_FLIGHT_REQUESTS,
)
