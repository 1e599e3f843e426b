"""Check of the Kafka topic: it exists, is readable, has the broker's timestamps, and is replicated."""

from __future__ import annotations

from hopwatch.cli.checks.finding import Finding, Level
from hopwatch.monitor import topics
from hopwatch.monitor.errors import TransportError
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace


def check_topic(place: KafkaPlace, access: KafkaAccess, *, allow_weak: bool = False) -> Finding:
    """Check the topic and report the worst problem; ``allow_weak`` accepts a topic that may lose data."""
    try:
        found = topics.describe_topic(place, access)
    except TransportError as error:
        what, _, advice = str(error).rpartition("; ")
        return Finding("transport", Level.FAIL, what, advice)
    if found is None:
        problem = topics.missing_topic_problem(place)
        return Finding("transport", Level.FAIL, problem.message, problem.advice)
    wrong = list(topics.find_problems(place, found))
    worst = sorted((one for one in wrong if not (allow_weak and one.is_weak)), key=lambda problem: problem.is_weak)
    if worst and worst[0].is_weak:
        return Finding("transport", Level.WARN, worst[0].message, f"{worst[0].advice}, or pass --allow-weak")
    if worst:
        return Finding("transport", Level.FAIL, worst[0].message, worst[0].advice)
    told = [f"{found.partitions} partitions, replication {found.replication}"]
    told += [f"weak, and allowed: {one.message}" for one in wrong]
    return Finding("transport", Level.OK, f"the topic {place} can be read: {'; '.join(told)}")
