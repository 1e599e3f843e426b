"""Ingest time of the gate by batch size, over a real broker with acks=all: what a batch saves of the wait for it.

One connection sends one request after the other, so that a request waits for nothing but itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final
from urllib.request import urlopen

from rich.table import Table

from bench.contestant import Json, keep_to_cores_for_children, run
from bench.gate import server
from bench.gate.client import HOST
from bench.gate.preflight import check_entrance
from bench.speed import Progress
from bench.table_style import format_number, new_table
from bench.truth import WrongResultError
from hopwatch.probes.metrics.catalog import GATE_INGEST
from servers.kafka import Kafka

BATCHES: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
PARTITIONS: Final = 4
_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class IngestSizes:
    """Repetitions, and seconds of each load."""

    rounds: int = 5
    seconds: float = 3.0
    warm_s: float = 1.0


@dataclass(frozen=True, slots=True)
class IngestLine:
    """Ingest time of requests with so many events: median of all rounds, and the least and the most of them.

    ``ingest_ms`` is the mean of a round by the gate's own histogram, ``round_trip_p95_ms`` that of the client.
    """

    batch: int
    ingest_ms: float
    ingest_least_ms: float
    ingest_most_ms: float
    us_per_event: float
    round_trip_p95_ms: float
    rate: float
    cpu_us_per_event: float


def measure(scratch: Path, tell: Progress, sizes: IngestSizes = IngestSizes()) -> list[IngestLine]:
    """Return a line a batch size; the gate and the client have counted the same requests.

    Raises:
        ServerError: the broker does not start.
        ContestantError: the gate or the client failed.
        WrongResultError: the gate has counted other requests than the client.
    """
    broker = Kafka(scratch / "broker")
    try:
        with keep_to_cores_for_children():
            broker.start()
        for name in (server.OBSERVATIONS, *server.topics(server.GATE)):
            broker.create_topic(name, PARTITIONS)
        rounds: dict[int, list[Json]] = {batch: [] for batch in BATCHES}
        with server.run_server(server.GATE, scratch, broker) as gate:
            check_entrance(server.GATE, gate.port)
            for number in range(sizes.rounds):
                for batch in BATCHES:
                    tell(f"round {number + 1} of {sizes.rounds}: batches of {batch}")
                    rounds[batch].append(_measure_round(scratch, gate, batch, sizes))
        return [summarize_ingest(batch, of_batch) for batch, of_batch in rounds.items()]
    finally:
        broker.stop()


def _measure_round(scratch: Path, gate: server.EntranceServer, batch: int, sizes: IngestSizes) -> Json:
    to = {"port": gate.port, "process": gate.process, "warm_s": sizes.warm_s, "seconds": sizes.seconds}
    before = read_histogram(gate.metrics_port)
    done = run("bench.gate.load:serial_batches", scratch, connections=1, batch=batch, **to).result
    after = read_histogram(gate.metrics_port)
    requests = after[0] - before[0]
    if requests != done["requests"]:
        raise WrongResultError(f"the client has {done['requests']:,} answers, the gate has counted {requests:,}")
    return {**done, "ingest_ms": (after[1] - before[1]) / requests * 1e3}


def read_histogram(port: int) -> tuple[int, float]:
    """Return the number of requests that the gate's histogram has, and the sum of their times in s."""
    with urlopen(f"http://{HOST}:{port}/metrics", timeout=_TIMEOUT_S) as answer:
        page = answer.read().decode()
    values = {"count": 0.0, "sum": 0.0}
    for line in page.splitlines():
        name, _, value = line.rpartition(" ")
        for what in values:
            if name.startswith(f"{GATE_INGEST.name}_{what}"):
                values[what] = float(value)
    return int(values["count"]), values["sum"]


def summarize_ingest(batch: int, rounds: list[Json]) -> IngestLine:
    """Return the line of a batch size."""
    spans_ms = [float(one["ingest_ms"]) for one in rounds]
    middle_ms = median(spans_ms)
    return IngestLine(
        batch,
        middle_ms,
        min(spans_ms),
        max(spans_ms),
        middle_ms * 1e3 / batch,
        median(float(one["p95_ms"]) for one in rounds),
        median(float(one["rate"]) for one in rounds),
        median(float(one["cpu_us"]) for one in rounds),
    )


def build_table(lines: list[IngestLine]) -> Table:
    """Return the table."""
    table = new_table(
        "Ingest time of the gate by batch size; one connection, acks=all, one broker, all on the same 2 cores",
        ("events a request",),
        ("ingest ms", "least", "most", "µs an event", "round trip p95 ms", "events/s", "CPU µs an event"),
    )
    for line in lines:
        table.add_row(
            f"{line.batch:,}",
            *(format_number(span, 2) for span in (line.ingest_ms, line.ingest_least_ms, line.ingest_most_ms)),
            format_number(line.us_per_event, 1),
            format_number(line.round_trip_p95_ms, 2),
            format_number(line.rate, 0),
            format_number(line.cpu_us_per_event, 1),
        )
    return table
