"""The gate beside itself without validation and beside an app of one's own: over one broker, in turns, in one run."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from bench.contestant import Json, keep_to_cores_for_children, run
from bench.footprint import memory_bytes
from bench.gate import server
from bench.gate.bomb import UNPACKED_BYTES
from bench.gate.figures import CLIENTS, RATE, WHO, BombFigures, Line, summarize_entrance, summarize_slow
from bench.gate.preflight import check_entrance
from bench.gate.server import GATE, KINDS, EntranceServer
from bench.gate.slow import SPREAD_S
from bench.speed import Progress
from bench.truth import WrongResultError
from servers.kafka import Kafka

PARTITIONS: Final = 4
_AHEAD_S: Final = 2.0
"""So long before the others the slow clients are there, and so long they stay; processes take a while to start."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Repetitions and durations: rounds of all contestants; seconds of batches, of single events."""

    rounds: int = 3
    batches_s: float = 5.0
    singles_s: float = 7.0
    slow_rounds: int = 2
    slow_s: float = 12.0
    warm_s: float = 2.0
    connections: int = 8
    single_connections: int = 32
    bombs: int = 20


def measure(scratch: Path, tell: Progress, sizes: Sizes = Sizes()) -> list[Line]:
    """Return what was measured; every answer has to be that of success, and the topics have what was acknowledged.

    Raises:
        ServerError: the broker does not start.
        ContestantError: an entrance or a client failed.
        WrongResultError: an entrance takes what it has to refuse, or the broker has less than was acknowledged.
    """
    broker = Kafka(scratch / "broker")
    try:
        with keep_to_cores_for_children():
            broker.start()
        for name in (server.OBSERVATIONS, *(name for kind in KINDS for name in server.topics(kind))):
            broker.create_topic(name, PARTITIONS)
        rounds: dict[str, list[Json]] = {kind: [] for kind in KINDS}
        for number in range(sizes.rounds):
            for place in range(len(KINDS)):
                kind = KINDS[(place + number) % len(KINDS)]
                tell(f"round {number + 1} of {sizes.rounds}: {WHO[kind]}")
                rounds[kind].append(_round(kind, scratch, broker, sizes))
        lines: list[Line] = [summarize_entrance(kind, of_kind) for kind, of_kind in rounds.items()]
        return [*lines, *_hardened(scratch, broker, sizes, tell)]
    finally:
        broker.stop()


def _round(kind: str, scratch: Path, broker: Kafka, sizes: Sizes) -> Json:
    """Return what one contestant does in one round; what was acknowledged is counted in its topic."""
    before = _records(broker, server.topic(kind))
    with server.run_server(kind, scratch, broker) as entrance:
        check_entrance(kind, entrance.port)
        batches = _load("batches", scratch, entrance, sizes, seconds=sizes.batches_s, connections=sizes.connections)
        singles = _singles(scratch, entrance, sizes, sizes.singles_s)
        peak_bytes = memory_bytes("VmHWM", entrance.process)
    check_kept(kind, batches["acknowledged"] + singles["acknowledged"], _records(broker, server.topic(kind)) - before)
    return {"batches": batches, "singles": singles, "memory_bytes": peak_bytes}


def _singles(scratch: Path, entrance: EntranceServer, sizes: Sizes, seconds: float) -> Json:
    return _load("singles", scratch, entrance, sizes, seconds=seconds, connections=sizes.single_connections, rate=RATE)


def _load(what: str, scratch: Path, entrance: EntranceServer, sizes: Sizes, **more: float) -> Json:
    to = {"port": entrance.port, "process": entrance.process, "warm_s": sizes.warm_s}
    return run(f"bench.gate.load:{what}", scratch, **to, **more).result


def _records(broker: Kafka, topic: str) -> int:
    """Return how many records a topic has."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "bench"})
    try:
        ends = (consumer.get_watermark_offsets(TopicPartition(topic, at), timeout=10) for at in range(PARTITIONS))
        return sum(high - low for low, high in ends)
    finally:
        consumer.close()


def check_kept(kind: str, acknowledged: int, kept: int) -> None:
    """Hold what a topic has got against what was acknowledged.

    Raises:
        WrongResultError: it is less.
    """
    if kept < acknowledged:
        raise WrongResultError(f"{kind!r} acknowledged {acknowledged:,} events, its topic has got {kept:,}")


def _hardened(scratch: Path, broker: Kafka, sizes: Sizes, tell: Progress) -> list[Line]:
    """Return what slow clients and a bomb cost."""
    with server.run_server(GATE, scratch, broker) as entrance, ThreadPoolExecutor(1) as beside:
        check_entrance(GATE, entrance.port)
        without, beside_slow, crowds = [], [], []
        for number in range(sizes.slow_rounds):
            tell(f"slow clients, {number + 1} of {sizes.slow_rounds}")
            without.append(_singles(scratch, entrance, sizes, sizes.slow_s))
            lasts_s = SPREAD_S + _AHEAD_S + sizes.warm_s + sizes.slow_s
            crowd = beside.submit(
                run, "bench.gate.slow:trickle", scratch, port=entrance.port, clients=CLIENTS, seconds=lasts_s + _AHEAD_S
            )
            time.sleep(SPREAD_S + _AHEAD_S)
            beside_slow.append(_singles(scratch, entrance, sizes, sizes.slow_s))
            crowds.append(crowd.result().result)
        tell("bombs")
        bomb = run(
            "bench.gate.bomb:throw_bombs", scratch, port=entrance.port, process=entrance.process, times=sizes.bombs
        )
    return [
        summarize_slow(without, beside_slow, crowds),
        BombFigures(unpacked_bytes=UNPACKED_BYTES, times=sizes.bombs, **bomb.result),
    ]
