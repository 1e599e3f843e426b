"""Figures of entrances, slow clients and bombs, computed from the measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from bench.contestant import Json
from bench.gate.server import GATE, PLAIN, UNCHECKED

RATE: Final = 500
"""Single events a second."""
CLIENTS: Final = 200
RATE_GOAL: Final = 20_000.0
P99_GOAL_MS: Final = 25.0
WHO: Final = {GATE: "Hopwatch's gate", UNCHECKED: "… without validation", PLAIN: "FastAPI, pydantic, fastavro"}
INCLUDES: Final = {
    GATE: "schema, ids, times, Avro, known again, stamps to Kafka, acknowledged by Kafka",
    UNCHECKED: "the same, but an event's JSON is written as it came: it is not read, and becomes no Avro",
    PLAIN: "a model of pydantic, Avro, acknowledged by Kafka; the same server and settings of Kafka's client; no"
    " registry, ids known again, stamps, bounds",
}


@dataclass(frozen=True, slots=True)
class EntranceFigures:
    """Throughput and latency of an entrance: medians of all rounds; maxima of ``most_ms`` and memory.

    ``rate`` is events a second in batches of 100; the spans are those of single events, from when they were due.
    """

    who: str
    rate: float
    batch_cpu_us: float
    p50_ms: float
    p99_ms: float
    most_ms: float
    single_cpu_us: float
    memory_bytes: int
    includes: str


@dataclass(frozen=True, slots=True)
class SlowFigures:
    """Single events without and with clients that trickle; how many of these were cut off, after how long at most.

    The slow ones come first, and each question to ``/healthz`` comes by a connection of its own.
    """

    clients: int
    without_p99_ms: float
    with_p99_ms: float
    with_most_ms: float
    health_most_ms: float
    cut: int
    lived_most_s: float | None


@dataclass(frozen=True, slots=True)
class BombFigures:
    """A body that is small packed: the longest time to its refusal, and how far memory grew over all of them."""

    packed_bytes: int
    unpacked_bytes: int
    times: int
    most_ms: float
    grown_bytes: int


Line = EntranceFigures | SlowFigures | BombFigures


def summarize_entrance(kind: str, rounds: Sequence[Mapping[str, Any]]) -> EntranceFigures:
    """Return the line of a contestant."""

    def middle(what: str, figure: str) -> float:
        return median(float(one[what][figure]) for one in rounds)

    return EntranceFigures(
        WHO[kind],
        middle("batches", "rate"),
        middle("batches", "cpu_us"),
        middle("singles", "p50_ms"),
        middle("singles", "p99_ms"),
        max(float(one["singles"]["most_ms"]) for one in rounds),
        middle("singles", "cpu_us"),
        max(int(one["memory_bytes"]) for one in rounds),
        INCLUDES[kind],
    )


def summarize_slow(without: Sequence[Json], beside: Sequence[Json], crowds: Sequence[Json]) -> SlowFigures:
    """Return the line of slow clients, from rounds without and with them."""
    return SlowFigures(
        min(one["clients"] for one in crowds),
        median(one["p99_ms"] for one in without),
        median(one["p99_ms"] for one in beside),
        max(one["most_ms"] for one in beside),
        max(one["health_most_ms"] for one in beside),
        sum(one["cut"] for one in crowds),
        max((one["lived_most_s"] for one in crowds if one["cut"]), default=None),
    )
