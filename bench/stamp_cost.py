"""Cost of a stamp to a service, beside other instruments: one process each, in one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.contestant import run
from bench.speed import Progress


@dataclass(frozen=True, slots=True)
class Cost:
    """One call, or one stamp of an array: ns for the caller at the median, and CPU ns with what threads do later."""

    who: str
    call: str
    ns: float
    cpu_ns: float
    goal_ns: float | None


_CONTESTANTS: Final = {
    "ours": "Hopwatch",
    "opentelemetry": "OpenTelemetry SDK",
    "traced": "OpenTelemetry SDK, confluent-kafka",
    "confluent_kafka": "confluent-kafka",
    "datadog": "ddtrace data streams",
    "prometheus": "prometheus_client",
}
_CALLS: Final = {
    "arrived": ("probe.arrived", 1_000.0),
    "departed": ("probe.departed", 1_000.0),
    "passing": ("with probe.passing, both stamps", 2_500.0),
    "arrays": ("arrived_many and departed_many, a stamp", 30.0),
    "span": ("with start_as_current_span, BatchSpanProcessor", None),
    "traced send": ("a message sent, traced", None),
    "traced receive": ("a message received, traced", None),
    "stamped send": ("a message sent, traced and stamped by HopwatchPropagator", None),
    "stamped receive": ("a message received, traced and stamped", None),
    "bare produce": ("produce", None),
    "stamped produce": ("produce, instrumented", None),
    "consume": ("set_consume_checkpoint", None),
    "produce": ("set_produce_checkpoint", None),
    "observe": ("Histogram.observe", None),
}


def measure(scratch: Path, tell: Progress) -> list[Cost]:
    """Return the cost of each call.

    Raises:
        ContestantError: a contestant failed, or kept not what it was called with.
    """
    costs = []
    for function, who in _CONTESTANTS.items():
        tell(f"stamps: {who}")
        for name, told in run(f"bench.stamp_contestants:{function}", scratch).result.items():
            call, goal_ns = _CALLS[name]
            costs.append(Cost(who, call, told["ns"], told["cpu_ns"], goal_ns))
    return costs
