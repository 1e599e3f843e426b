"""``hopwatch topics``: create the Kafka topic of observations, or check it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated

import typer

from hopwatch.cli import console
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings
from hopwatch.monitor import topics
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.settings import Settings
from hopwatch.probes.contract.kafka import KafkaPlace

FINDING_EXIT_CODE = 1

command = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)

Replication = Annotated[int, typer.Option(min=1, help="On how many brokers each record is.")]
MinInsync = Annotated[int, typer.Option(min=1, help="How many of them acknowledge it.")]
RetentionHours = Annotated[int, typer.Option(min=1, help="How long records are kept.")]
AllowWeak = Annotated[
    bool, typer.Option("--allow-weak", help="Take a topic that loses data when a broker dies, or soon.")
]


@command.callback()
def _topics() -> None:
    """Create the Kafka topic of observations, or check it."""


@command.command()
def create(  # noqa: PLR0913 - what a topic is made of
    config: Config = DEFAULT_CONFIG,
    *,
    partitions: Annotated[int, typer.Option(min=1, help="Over how many partitions instances are spread.")] = (
        topics.PARTITIONS
    ),
    replication: Replication = topics.REPLICATION,
    min_insync: MinInsync = topics.MIN_INSYNC,
    retention_hours: RetentionHours = topics.RETENTION_HOURS,
    allow_weak: AllowWeak = False,
) -> None:
    """Create the topic that [transport] url names.

    It has the broker's time of arrival, and takes the largest batch of a probe.
    """
    chosen = load_settings(config)
    place = _require_topic(chosen)
    check_numbers(replication, min_insync, allow_weak=allow_weak)
    topics.create_topic(
        place,
        chosen.transport.access,
        partitions=partitions,
        replication=replication,
        min_insync=min_insync,
        retention_hours=retention_hours,
    )
    told = f"{partitions} partitions, replication {replication}, min.insync.replicas {min_insync}"
    words = console.stderr()
    words.print(f"made the topic {place.topic}: {told}, {topics.TIMESTAMPS}={topics.LOG_APPEND}", soft_wrap=True)
    made = topics.TopicDescription(partitions, replication, topics.build_config(min_insync, retention_hours))
    for problem in topics.find_problems(place, made):
        words.print(format_allowed(problem), soft_wrap=True)


@command.command()
def check(
    config: Config = DEFAULT_CONFIG,
    *,
    allow_weak: AllowWeak = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say what is wrong with the topic, and how to mend it. Exit 1 when something is."""
    chosen = load_settings(config)
    place = _require_topic(chosen)
    topic = topics.describe_topic(place, chosen.transport.access)
    all_found = [topics.missing_topic_problem(place)] if topic is None else list(topics.find_problems(place, topic))
    found = [with_allow_flag(problem) for problem in all_found if not (allow_weak and problem.is_weak)]
    allowed = [problem for problem in all_found if allow_weak and problem.is_weak]
    if as_json:
        console.emit_json(
            {
                "topic": place.topic,
                "partitions": topic and topic.partitions,
                "replication": topic and topic.replication,
                "problems": [asdict(problem) for problem in found],
                "allowed": [asdict(problem) for problem in allowed],
            }
        )
    for problem in found if not as_json else ():
        console.stdout().print(f"{'weak' if problem.is_weak else 'wrong'}: {problem}", soft_wrap=True)
    for problem in allowed if not as_json else ():
        console.stdout().print(format_allowed(problem), soft_wrap=True)
    if found:
        raise typer.Exit(FINDING_EXIT_CODE)
    if topic is not None and not as_json:
        told = f"{topic.partitions} partitions, replication {topic.replication}"
        console.stdout().print(f"the topic {place.topic} will do: {told}")


def check_numbers(replication: int, min_insync: int, *, allow_weak: bool) -> None:
    """Check that a topic with these numbers accepts records, and is not weak unless that is allowed.

    Raises:
        ConfigurationError: it accepts none, or is weak without --allow-weak.
    """
    if min_insync > replication:
        what = f"min.insync.replicas {min_insync} of replication {replication} cannot be, no record would be taken"
        raise ConfigurationError(
            f"{what}: pass {topics.format_create_flags(replication, min(topics.MIN_INSYNC, replication))}"
        )
    is_weak = replication < topics.REPLICATION or min_insync < topics.MIN_INSYNC
    if is_weak and not allow_weak:
        least = f"replication {topics.REPLICATION} and min.insync.replicas {topics.MIN_INSYNC}"
        what = f"a topic with replication {replication} and min.insync.replicas {min_insync} may lose what it has"
        raise ConfigurationError(f"{what} acknowledged, {least} does not: pass --allow-weak if that will do")


def with_allow_flag(problem: topics.TopicProblem) -> topics.TopicProblem:
    """Add the flag --allow-weak to the advice of a weak topic."""
    return replace(problem, advice=f"{problem.advice}, or pass --allow-weak") if problem.is_weak else problem


def format_allowed(problem: topics.TopicProblem) -> str:
    """Return the line about a weak topic that was allowed."""
    return f"weak, and allowed: {problem.message}"


def _require_topic(chosen: Settings) -> KafkaPlace:
    place = chosen.transport.kafka_place
    if place is None:
        what = f"[transport] url is {chosen.transport.url!r}, which is no topic"
        raise ConfigurationError(f'{what}: name one, "kafka://HOST:PORT/TOPIC"')
    return place
