"""Cost of a stamp on the JVM, and of Kafka's own clients with interceptors and without, in turns in one process."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from rich.table import Table

from bench.contestant import ContestantError
from bench.speed import Progress
from bench.table_style import format_number, new_table
from servers.kafka import JARS, PROBE, Kafka

MESSAGES: Final = 100_000
ROUNDS: Final = 5
TOPIC: Final = "bench.jvm"
_PROGRAM: Final = Path(__file__).with_name("JvmCost.java")
_TITLES: Final = {
    "stamp": "`probe.arrived`",
    "send": "`KafkaProducer.send`, bare",
    "send stamped": "`KafkaProducer.send`, stamped",
    "receive": "`KafkaConsumer.poll`, bare",
    "receive stamped": "`KafkaConsumer.poll`, stamped",
}


@dataclass(frozen=True, slots=True)
class MessageCost:
    """Cost of a message, in ns: of its host's thread in each round, sorted; and the median of CPU in all threads."""

    name: str
    host_ns: tuple[float, ...]
    cpu_ns: float


def measure(scratch: Path, tell: Progress) -> list[MessageCost]:
    """Return what each way costs, by a broker on the same machine.

    Raises:
        ContestantError: the program on the JVM failed.
    """
    broker = Kafka(scratch / "broker")
    try:
        broker.start()
        broker.create_topic(TOPIC)
        tell(f"{ROUNDS} rounds of {MESSAGES:,} messages")
        said = broker.bootstrap, f"spool:{scratch / 'spool'}", TOPIC, str(MESSAGES), str(ROUNDS)
        java = ["java", "-Xmx1g", "-cp", f"{JARS}/*:{PROBE}/*", str(_PROGRAM)]
        run = subprocess.run([*java, *said], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    finally:
        broker.stop()
    if run.returncode:
        raise ContestantError(f"the program on the JVM failed: {run.stderr[-2_000:]}")
    return read_costs(run.stdout)


def read_costs(printed: str) -> list[MessageCost]:
    """Return the costs that the program has printed: a line a round, with name, ns, and CPU ns."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for line in printed.splitlines():
        name, host_ns, cpu_ns = line.split(",")
        found[name].append((float(host_ns), float(cpu_ns)))
    return [
        MessageCost(name, tuple(sorted(host for host, _ in rounds)), median(cpu for _, cpu in rounds))
        for name, rounds in found.items()
    ]


def build_table(costs: list[MessageCost]) -> Table:
    """Return the table of the costs."""
    table = new_table("Cost of a probe on the JVM", ("a message",), ("ns", "least", "most", "CPU ns, all threads"))
    for cost in costs:
        figures = (median(cost.host_ns), cost.host_ns[0], cost.host_ns[-1], cost.cpu_ns)
        table.add_row(_TITLES[cost.name], *(format_number(one, 0) for one in figures))
    return table
