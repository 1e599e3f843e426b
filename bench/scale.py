"""Scaling by lag beside scaling by processor share, of a consumer whose work is to wait for 50 ms a message.

One process takes 20 messages a second at most. The traffic is open-loop: a message has the moment at which it should
have been sent, so that what waits for the producer counts as lag too. Lags and losses are found from what the consumers
have written, not from what Hopwatch says.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from bench import waiting_consumer
from bench.speed import Progress
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.scale.group_backlog import GroupBacklog
from hopwatch.scale.metric import MetricUnavailableError
from servers.kafka import Kafka
from servers.process import Process

PARTITIONS: Final = 12
MAX_PROCESSES: Final = 4
STEP_S: Final = 10.0
"""Distance of the points of the curve."""
LOOK_S: Final = 1.0
STOP_S: Final = 60.0
RUN: Final = (sys.executable, "-m", "hopwatch", "scale")
P95: Final = 0.95
HELD_S: Final = 5.0
"""A policy holds where p95 of lag stays within this at the end of the heavy traffic."""
JUDGED_S: Final = 30.0
"""End of the heavy traffic by which a policy is judged; before it the processes may still start."""


class TrafficPhase(NamedTuple):
    """Messages a second, for some seconds."""

    per_s: float
    seconds: float


PHASES: Final = (TrafficPhase(10, 20), TrafficPhase(55, 80), TrafficPhase(4, 60))


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Ten seconds: the traffic, processes and backlog at their end, p95 of the lag of what was received in them."""

    at_s: float
    per_s: float
    processes: int
    backlog: int
    p95_s: float | None


@dataclass(frozen=True, slots=True)
class ScalingRun:
    """Run of one policy; ``waiting`` messages were still in the topic when it ended, and are not lost.

    ``worst_p95_s`` is the worst p95 of lag of ten seconds at the end of the heavy traffic; None if nothing was
    received then.
    """

    policy: str
    target: float
    sent: int
    received: int
    repeats: int
    waiting: int
    lost: int
    most_processes: int
    last_processes: int
    worst_p95_s: float | None
    curve: tuple[CurvePoint, ...]

    @property
    def has_held(self) -> bool:
        """Return whether the policy held the lag, and lost nothing."""
        return self.lost == 0 and self.worst_p95_s is not None and self.worst_p95_s <= HELD_S


@dataclass(slots=True)
class Traffic:
    """Messages that are sent by a thread, one after the other at their moments."""

    phases: Sequence[TrafficPhase]
    producer: Producer
    topic: str
    acknowledged: set[int] = field(default_factory=set)
    begun_s: float = 0.0

    def start(self) -> threading.Thread:
        """Start sending; the thread ends when all is acknowledged."""
        self.begun_s = time.time()
        thread = threading.Thread(target=self._send, daemon=True)
        thread.start()
        return thread

    def rate(self, at_s: float) -> float:
        """Return the messages a second at a moment after the start."""
        for phase in self.phases:
            if at_s <= phase.seconds:
                return phase.per_s
            at_s -= phase.seconds
        return 0.0

    def _send(self) -> None:
        for number, due_s in enumerate(moments(self.phases)):
            time.sleep(max(0.0, self.begun_s + due_s - time.time()))
            due_ns = int((self.begun_s + due_s) * 1e9)
            value = f"{number} {due_ns}".encode()
            self.producer.produce(self.topic, value, partition=number % PARTITIONS, on_delivery=self._note_answer)
            self.producer.poll(0)
        self.producer.flush()

    def _note_answer(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.add(int((message.value() or b"").split()[0]))


def moments(phases: Sequence[TrafficPhase]) -> Iterator[float]:
    """Yield when messages are to be sent, in s after the start."""
    begun_s = 0.0
    for phase in phases:
        yield from (begun_s + number / phase.per_s for number in range(int(phase.per_s * phase.seconds)))
        begun_s += phase.seconds


def measure(scratch: Path, tell: Progress, repeats: int = 1) -> list[ScalingRun]:
    """Return the runs of both policies in turns, so many of each.

    Raises:
        ServerError: the broker does not start, or the scaler has ended.
    """
    kafka = Kafka(scratch / "kafka")
    try:
        tell("a broker")
        kafka.start()
        runs = []
        flags = ("--every", "1s", "--down-window", "20s", "--down-rate", "1/10s")
        for number, (policy, target) in product(range(1, repeats + 1), (("cpu", 0.7), ("lag", 40.0))):
            seconds = sum(phase.seconds for phase in PHASES)
            tell(f"scaling by {policy}, {number} of {repeats}, {seconds:.0f} s of traffic")
            runs.append(run_policy(kafka, scratch / str(number), policy, target, PHASES, flags))
        return runs
    finally:
        kafka.stop()


def run_policy(  # noqa: PLR0913, PLR0917 - what a run is made of
    kafka: Kafka, scratch: Path, policy: str, target: float, phases: Sequence[TrafficPhase], flags: Sequence[str]
) -> ScalingRun:
    """Return what became of the traffic under one policy.

    Raises:
        ServerError: the scaler has ended.
    """
    topic, folder = f"scaled.{policy}.{scratch.name}", scratch / policy
    folder.mkdir(parents=True)
    kafka.create_topic(topic, PARTITIONS, {})
    backlog = GroupBacklog(KafkaPlace(kafka.bootstrap, topic), topic, KafkaAccess())
    of_lag = ("--group", topic, "--from", kafka.url(topic)) if policy == "lag" else ()
    program = (sys.executable, waiting_consumer.__file__, kafka.bootstrap, topic, topic, str(folder))
    asked = ("--policy", policy, "--target", str(target), "--max", str(MAX_PROCESSES), *of_lag, *flags, "--json")
    log, common = scratch / f"{policy}.log", {"bootstrap.servers": kafka.bootstrap, "log_level": 0}
    scaler = Process((*RUN, *asked, "--", *program), log)
    try:
        traffic = Traffic(phases, Producer(common | {"enable.idempotence": True}), topic)
        sending = traffic.start()
        looked: list[tuple[float, int, int]] = []
        while sending.is_alive():
            sending.join(LOOK_S)
            scaler.check("hopwatch scale")
            looked.append((time.time() - traffic.begun_s, _count_processes(log), _read_backlog(backlog)))
    finally:
        scaler.stop(STOP_S)
    received = read_received(folder)
    missing = traffic.acknowledged - received.keys()
    committed = read_committed(Consumer(common | {"group.id": topic}), topic)
    curve = tuple(build_curve(traffic, looked, received))
    return ScalingRun(
        policy,
        target,
        len(traffic.acknowledged),
        len(received.keys() & traffic.acknowledged),
        sum(len(times) - 1 for times in received.values()),
        sum(number // PARTITIONS >= committed[number % PARTITIONS] for number in missing),
        sum(number // PARTITIONS < committed[number % PARTITIONS] for number in missing),
        max(processes for _, processes, _ in looked),
        looked[-1][1],
        find_worst_p95(phases, curve),
        curve,
    )


def read_committed(consumer: Consumer, topic: str) -> list[int]:
    """Return the committed offset of each partition, below 0 without one.

    The message of a number is in the partition of its remainder, and has its quotient as its offset.
    """
    committed = consumer.committed([TopicPartition(topic, number) for number in range(PARTITIONS)], 30)
    consumer.close()
    return [one.offset for one in committed]


def read_received(folder: Path) -> dict[int, list[tuple[float, float]]]:
    """Return of each message received when it should have been sent and when its work was done, in s since 1970."""
    found: dict[int, list[tuple[float, float]]] = {}
    for path in sorted(folder.iterdir()):
        for line in path.read_text("utf-8").splitlines():
            number, due_ns, done_ns = map(int, line.split())
            found.setdefault(number, []).append((due_ns / 1e9, done_ns / 1e9))
    return found


def build_curve(
    traffic: Traffic, looked: Sequence[tuple[float, int, int]], received: dict[int, list[tuple[float, float]]]
) -> Iterator[CurvePoint]:
    """Yield a point for each ten seconds."""
    done = sorted((done_s - traffic.begun_s, done_s - due_s) for times in received.values() for due_s, done_s in times)
    seconds = sum(phase.seconds for phase in traffic.phases)
    for number in range(1, int(seconds // STEP_S) + 1):
        end_s = number * STEP_S
        lags = sorted(lag_s for at_s, lag_s in done if end_s - STEP_S <= at_s < end_s)
        _, processes, backlog = min(looked, key=lambda one: abs(one[0] - end_s))
        p95_s = lags[int(P95 * (len(lags) - 1))] if lags else None
        yield CurvePoint(end_s, traffic.rate(end_s), processes, backlog, p95_s)


def find_worst_p95(phases: Sequence[TrafficPhase], curve: Sequence[CurvePoint]) -> float | None:
    """Return the worst p95 of lag at the end of the heaviest traffic, in s; None if nothing was received then."""
    heaviest = max(range(len(phases)), key=lambda place: phases[place].per_s)
    end_s = sum(phase.seconds for phase in phases[: heaviest + 1])
    judged = [point.p95_s for point in curve if end_s - JUDGED_S < point.at_s <= end_s]
    return max((p95_s for p95_s in judged if p95_s is not None), default=None)


def _count_processes(log: Path) -> int:
    """Return the number of processes of the newest decision, 1 before the first."""
    decisions = [line for line in log.read_text("utf-8", "replace").splitlines() if line.startswith("{")]
    return int(json.loads(decisions[-1])["processes"]) if decisions else 1


def _read_backlog(backlog: GroupBacklog) -> int:
    """Return the backlog, 0 before the group has committed anything."""
    try:
        return int(backlog.read())
    except MetricUnavailableError:
        return 0
