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
OTLP_TAP: Final = "otlp_tap"
TABLE_TAP: Final = "table_tap"
DASHBOARD: Final = "dashboard"
DELIVERY: Final = "delivery"

TAPS: Final = (JSONL_TAP, KAFKA_TAP, HTTP_TAP, OTLP_TAP, TABLE_TAP)
COMPONENT: Final = Label("component", (GATE, VALIDATOR, *TAPS, DASHBOARD, DELIVERY))
STREAM: Final = Label("stream")
WITH_REQUESTS: Final = Label("component", (GATE, HTTP_TAP, OTLP_TAP, DASHBOARD))
WITH_EVENTS: Final = Label("component", (GATE, VALIDATOR, *TAPS, DELIVERY))

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
    "Events that are where they went: in the stream, in quarantine, as stamps, at a receiver, or in a retry topic.",
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

INFINITY: Final = "+Inf"
INGEST_BOUNDS_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
GATE_INGEST: Final = Metric(
    "hopwatch_gate_ingest_seconds",
    MetricType.HISTOGRAM,
    "Time from the last byte of a request with events to the first byte of its answer, for those answered with 2xx.",
    (STREAM, Label("le", (*map(str, INGEST_BOUNDS_S), INFINITY))),
)

GATE_THROTTLE_WAIT: Final = Metric(
    "hopwatch_gate_throttle_wait_seconds",
    MetricType.GAUGE,
    "Longest time that a message waits now for the consumers which a throttle looks at.",
    (STREAM,),
)
GATE_THROTTLE_LIMIT: Final = Metric(
    "hopwatch_gate_throttle_limit_events_per_second",
    MetricType.GAUGE,
    "Events a second that this gate admits; absent while it admits all.",
    (STREAM,),
)
GATE_THROTTLED: Final = Metric(
    "hopwatch_gate_throttled_events_total",
    MetricType.COUNTER,
    "Events over the limit of a throttle: refused with 429, or admitted in a dry run.",
    (STREAM, Label("mode", ("refused", "dry_run"))),
)

ATTEMPT_RESULTS: Final = (
    "accepted", "partial", "rejected", "too-large", "rate-limited", "failed", "timeout", "broken", "unreachable",
    "cancelled",
)  # fmt: skip
"""Results of a request of a delivery; the last one was given up when its process ended."""
BREAKER_STATES: Final = ("closed", "open", "half-open")
BATCH_BOUNDS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
ROUND_TRIP_BOUNDS_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
NAME: Final = Label("delivery")

DELIVERY_REQUESTS: Final = Metric(
    "hopwatch_delivery_requests_total",
    MetricType.COUNTER,
    "Requests that ended, by their result; one of a batch in which some messages were refused is partial.",
    (NAME, Label("result", ATTEMPT_RESULTS)),
)
DELIVERY_BATCH: Final = Metric(
    "hopwatch_delivery_batch_messages",
    MetricType.HISTOGRAM,
    "Messages of a request.",
    (NAME, Label("le", (*map(str, BATCH_BOUNDS), INFINITY))),
)
DELIVERY_ROUND_TRIP: Final = Metric(
    "hopwatch_delivery_round_trip_seconds",
    MetricType.HISTOGRAM,
    "Time from the start of a request to its answer, or to its failure.",
    (NAME, Label("le", (*map(str, ROUND_TRIP_BOUNDS_S), INFINITY))),
)
DELIVERY_IN_FLIGHT: Final = Metric(
    "hopwatch_delivery_in_flight_requests", MetricType.GAUGE, "Requests that are under way.", (NAME,)
)
DELIVERY_BREAKER: Final = Metric(
    "hopwatch_delivery_breaker_state",
    MetricType.GAUGE,
    "1 for the state of the circuit breaker, 0 for the others; while it is open nothing is sent.",
    (NAME, Label("state", BREAKER_STATES)),
)
DELIVERY_PAUSED: Final = Metric(
    "hopwatch_delivery_paused", MetricType.GAUGE, "1 while the delivery is paused, else 0.", (NAME,)
)
DELIVERY_RETRY_BACKLOG: Final = Metric(
    "hopwatch_delivery_retry_backlog_messages",
    MetricType.GAUGE,
    "Messages that wait in the retry topics, by offsets: the marks that Kafka writes after transactions count, too.",
    (NAME,),
)
DELIVERY_RETRY_AGE: Final = Metric(
    "hopwatch_delivery_retry_age_seconds",
    MetricType.GAUGE,
    "Time since the first request of the oldest message in the retry topics; 0 if there is none.",
    (NAME,),
)

VALIDATOR_WAITING: Final = Metric(
    "hopwatch_validator_waiting_records",
    MetricType.GAUGE,
    "Records in the waiting topic, in the partitions of this process, by the schema that is not registered.",
    (STREAM, Label("schema")),
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
    GATE_INGEST,
    GATE_THROTTLE_WAIT,
    GATE_THROTTLE_LIMIT,
    GATE_THROTTLED,
    DELIVERY_REQUESTS,
    DELIVERY_BATCH,
    DELIVERY_ROUND_TRIP,
    DELIVERY_IN_FLIGHT,
    DELIVERY_BREAKER,
    DELIVERY_PAUSED,
    DELIVERY_RETRY_BACKLOG,
    DELIVERY_RETRY_AGE,
    VALIDATOR_WAITING,
)
