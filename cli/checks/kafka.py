"""Checks of Kafka topics: that of observations, and those that the gate writes."""

from __future__ import annotations

from hopwatch.cli.checks.finding import Finding, Level
from hopwatch.cli.gate_topics import find_gate_topics, find_topic_problems
from hopwatch.monitor import topics
from hopwatch.monitor.errors import TransportError
from hopwatch.monitor.settings import Settings
from hopwatch.monitor.topics import TopicProblem
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
    told = f"the topic {place} can be read: {found.partitions} partitions, replication {found.replication}"
    return _build_finding("transport", wrong, told, allow_weak=allow_weak)


def check_gate_topics(settings: Settings, *, allow_weak: bool = False) -> Finding | None:
    """Check the topics that the gate writes and report the worst problem; None if it writes none."""
    places = find_gate_topics(settings)
    if not places:
        return None
    try:
        wrong = list(find_topic_problems(settings))
    except TransportError as error:
        what, _, advice = str(error).rpartition("; ")
        return Finding("gate", Level.FAIL, what, advice)
    told = f"{', '.join(place.topic for place in places)}: the topics that the gate writes"
    return _build_finding("gate", wrong, told, allow_weak=allow_weak)


def _build_finding(name: str, wrong: list[TopicProblem], told: str, *, allow_weak: bool) -> Finding:
    worst = sorted((one for one in wrong if not (allow_weak and one.is_weak)), key=lambda problem: problem.is_weak)
    if worst and worst[0].is_weak:
        return Finding(name, Level.WARN, worst[0].message, f"{worst[0].advice}, or pass --allow-weak")
    if worst:
        return Finding(name, Level.FAIL, worst[0].message, worst[0].advice)
    return Finding(name, Level.OK, "; ".join([told, *(f"weak, and allowed: {one.message}" for one in wrong)]))
