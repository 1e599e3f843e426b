"""The topic that the monitor reads: there, readable, with the broker's time, and strong enough to be trusted."""

from __future__ import annotations

from monitor import topics
from monitor.doctor.finding import Finding, Level
from monitor.errors import TransportError
from probes.contract.kafka import KafkaAccess, KafkaPlace


def topic(place: KafkaPlace, access: KafkaAccess) -> Finding:
    """Check the topic; of several things that are wrong the worst is told."""
    try:
        found = topics.describe(place, access)
    except TransportError as error:
        what, _, advice = str(error).rpartition("; ")
        return Finding("transport", Level.FAIL, what, advice)
    if found is None:
        problem = topics.missing(place)
        return Finding("transport", Level.FAIL, problem.message, problem.advice)
    worst = sorted(topics.problems(place, found), key=lambda problem: problem.is_weak)
    if worst:
        level = Level.WARN if worst[0].is_weak else Level.FAIL
        return Finding("transport", level, worst[0].message, worst[0].advice)
    told = f"{found.partitions} partitions, replication {found.replication}"
    return Finding("transport", Level.OK, f"the topic {place} can be read: {told}")
