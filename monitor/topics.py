"""Kafka topics of observations: their configuration, creation and checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from hopwatch.monitor.errors import ConfigurationError, TransportError
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.contract.limits import MAX_RECORD_BYTES
from hopwatch.probes.kafka.client import ask_topic, build_client_config, describe_kafka_error, get_kafka_error

PARTITIONS: Final = 6
REPLICATION: Final = 3
MIN_INSYNC: Final = 2
RETENTION_HOURS: Final = 7 * 24
MIN_RETENTION_MS: Final = 3_600_000
"""A monitor that is down, or a backlog that it reads, may well take an hour."""
MAX_MESSAGE_BYTES: Final = MAX_RECORD_BYTES + 64 * 1_024
"""A record of the largest size, and what Kafka adds to it."""
TIMEOUT_S: Final = 10.0

TIMESTAMPS: Final = "message.timestamp.type"
LOG_APPEND: Final = "LogAppendTime"
_INSYNC: Final = "min.insync.replicas"
_MESSAGE_BYTES: Final = "max.message.bytes"
_CLEANUP: Final = "cleanup.policy"
_RETENTION: Final = "retention.ms"
_NO_COORDINATOR: Final = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE)

_log = structlog.get_logger("hopwatch")


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """Description of an existing topic."""

    partitions: int
    replication: int
    config: dict[str, str]
    topic_id: str = ""
    """Unique id that Kafka gives to each topic it creates, even under the same name."""


@dataclass(frozen=True, slots=True)
class TopicProblem:
    """Problem of a topic, with advice to fix it.

    ``is_weak`` where it works as long as no broker dies and no monitor is down for long, which somebody may want so;
    ``is_readable`` where a monitor can read what is there, though probes may not be able to write it.
    """

    message: str
    advice: str
    is_weak: bool = False
    is_readable: bool = True

    def __str__(self) -> str:
        """Return both in one line."""
        return f"{self.message}: {self.advice}"


def describe_topic(place: KafkaPlace, access: KafkaAccess) -> TopicDescription | None:
    """Return the description of a topic, None if it does not exist.

    Raises:
        TransportError: no broker answers, or none lets us in.
    """
    admin, trouble = _open_admin(place, access)
    try:
        found = ask_topic(admin, place.topic, TIMEOUT_S)
        if found.error is not None and found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        _raise_error(found.error)
        asked = ConfigResource(ResourceType.TOPIC, place.topic)
        (answer,) = admin.describe_configs([asked], request_timeout=TIMEOUT_S).values()
        config = {name: str(entry.value) for name, entry in answer.result().items()}
        (told,) = admin.describe_topics(TopicCollection([place.topic]), request_timeout=TIMEOUT_S).values()
        topic_id = str(told.result().topic_id)
    except KafkaException as error:
        raise _unreachable_error(place, admin, error, trouble) from None
    replicas = [len(partition.replicas) for partition in found.partitions.values()]
    return TopicDescription(len(replicas), min(replicas), config, topic_id)


def find_problems(place: KafkaPlace, topic: TopicDescription) -> Iterator[TopicProblem]:
    """Yield the problems of a topic of observations, those that block reading or writing first."""
    name, config = f"the topic {place.topic}", topic.config
    said = config.get(TIMESTAMPS)
    if said != LOG_APPEND:
        what = f"{name} has {TIMESTAMPS}={said}, and {LOG_APPEND} is the arrival clock"
        yield TopicProblem(what, _advise_alter(place, TIMESTAMPS, LOG_APPEND), is_readable=False)
    if "compact" in config.get(_CLEANUP, ""):
        what = f"{name} has {_CLEANUP}={config[_CLEANUP]}, which deletes batches of a probe"
        yield TopicProblem(what, _advise_alter(place, _CLEANUP, "delete"), is_readable=False)
    if int(config.get(_MESSAGE_BYTES, MAX_MESSAGE_BYTES)) < MAX_MESSAGE_BYTES:
        what = f"{name} takes messages of {config[_MESSAGE_BYTES]} bytes, and a larger batch of a probe is lost"
        yield TopicProblem(what, _advise_alter(place, _MESSAGE_BYTES, str(MAX_MESSAGE_BYTES)))
    in_sync = int(config.get(_INSYNC, "1"))
    if in_sync > topic.replication:
        what = f"{name} has {_INSYNC}={in_sync} and replication {topic.replication}, and takes no record"
        yield TopicProblem(what, _advise_alter(place, _INSYNC, str(min(MIN_INSYNC, topic.replication))))
    yield from find_weaknesses(place, topic)


def find_weaknesses(
    place: KafkaPlace, topic: TopicDescription, least_ms: int = MIN_RETENTION_MS
) -> Iterator[TopicProblem]:
    """Yield the problems by which a topic of any kind loses data on a bad day.

    ``least_ms`` is the time for which it has to keep records, in ms.
    """
    name, in_sync = f"the topic {place.topic}", int(topic.config.get(_INSYNC, "1"))
    if topic.replication < REPLICATION:
        what = f"{name} has replication {topic.replication}: a broker that dies takes data along"
        yield TopicProblem(what, f"make it with replication {REPLICATION}", is_weak=True)
    if in_sync < MIN_INSYNC:
        what = f"{name} has {_INSYNC}={in_sync}: what one broker has acknowledged may die with it"
        # With fewer replicas than that no record would be taken.
        is_enough = topic.replication >= MIN_INSYNC
        again = f"make it with replication {REPLICATION} and {_INSYNC} {MIN_INSYNC}"
        yield TopicProblem(what, _advise_alter(place, _INSYNC, str(MIN_INSYNC)) if is_enough else again, is_weak=True)
    kept_ms = int(topic.config.get(_RETENTION, "-1"))
    # A negative one is no limit.
    if 0 <= kept_ms < least_ms:
        what = f"{name} keeps records for {kept_ms / 1_000:,.10g} s: a reader that is down for longer misses some"
        yield TopicProblem(what, _advise_alter(place, _RETENTION, str(RETENTION_HOURS * 3_600_000)), is_weak=True)


def missing_topic_problem(place: KafkaPlace) -> TopicProblem:
    """Return what is wrong when there is no topic."""
    what = f"the topic {place.topic} is not on {place.brokers}"
    return TopicProblem(what, "make it with 'hopwatch topics create', or correct [transport] url", is_readable=False)


def require_topic(place: KafkaPlace, access: KafkaAccess) -> TopicDescription:
    """Return a topic that can be read from; what else is wrong with it is logged.

    Raises:
        TransportError: it is not there, lacks what reading it needs, or no broker answers.
    """
    topic = describe_topic(place, access)
    if topic is None:
        raise TransportError(str(missing_topic_problem(place)))
    for problem in find_problems(place, topic):
        if not problem.is_readable:
            raise TransportError(str(problem))
        _log.warning("the topic is not as it should be", problem=problem.message, advice=problem.advice)
    return topic


def create_topic(  # noqa: PLR0913 - what a topic is made of
    place: KafkaPlace,
    access: KafkaAccess,
    *,
    partitions: int = PARTITIONS,
    replication: int = REPLICATION,
    min_insync: int = MIN_INSYNC,
    retention_hours: int = RETENTION_HOURS,
    config: Mapping[str, str] | None = None,
) -> None:
    """Make the topic; one of observations, without ``config``.

    A client sends its request again where the answer is late, and then hears that the topic exists: it is the one it
    asked for where there was none before.

    Raises:
        ConfigurationError: it is there already, or the brokers do not take these numbers.
        TransportError: no broker answers, or none lets us in.
    """
    there_already = f"the topic {place.topic} is there already: 'hopwatch topics check' says whether it will do"
    if describe_topic(place, access) is not None:
        raise ConfigurationError(there_already)
    admin, trouble = _open_admin(place, access)
    wanted = TopicDescription(partitions, replication, dict(config or build_config(min_insync, retention_hours)))
    try:
        asked = NewTopic(place.topic, partitions, replication, config=wanted.config)
        (answer,) = admin.create_topics([asked], request_timeout=TIMEOUT_S).values()
        answer.result()
    except KafkaException as error:
        code = get_kafka_error(error).code()
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            if not _is_as_wanted(describe_topic(place, access), wanted):
                raise ConfigurationError(there_already) from None
            return
        if code in (KafkaError.INVALID_REPLICATION_FACTOR, KafkaError.INVALID_PARTITIONS, KafkaError.INVALID_CONFIG):
            refused = f"the brokers do not take {partitions} partitions with replication {replication}"
            what = f"{refused}: {describe_kafka_error(error).rstrip('.')}"
            raise ConfigurationError(f"{what}{_advise_fewer_replicas(admin, replication, min_insync)}") from None
        raise _unreachable_error(place, admin, error, trouble) from None


def _is_as_wanted(found: TopicDescription | None, wanted: TopicDescription) -> bool:
    """Return whether a topic is what was asked for; one that no broker describes yet was made just now."""
    if found is None:
        return True
    is_as_large = (found.partitions, found.replication) == (wanted.partitions, wanted.replication)
    return is_as_large and wanted.config.items() <= found.config.items()


def build_config(min_insync: int, retention_hours: int) -> dict[str, str]:
    """Return how a topic of observations is set up."""
    return {
        TIMESTAMPS: LOG_APPEND,
        _INSYNC: str(min_insync),
        _MESSAGE_BYTES: str(MAX_MESSAGE_BYTES),
        _CLEANUP: "delete",
        _RETENTION: str(retention_hours * 3_600_000),
    }


def format_create_flags(replication: int, min_insync: int) -> str:
    """Return the flags of ``hopwatch topics create`` that make such a topic."""
    is_weak = replication < REPLICATION or min_insync < MIN_INSYNC
    return f"--replication {replication} --min-insync {min_insync}{' --allow-weak' if is_weak else ''}"


def _advise_fewer_replicas(admin: AdminClient, replication: int, min_insync: int) -> str:
    """Return what to do where there are fewer brokers than copies are to be; nothing where that is not it."""
    try:
        brokers = len(admin.list_topics(timeout=TIMEOUT_S).brokers)
    except KafkaException:
        return ""
    if not 0 < brokers < replication:
        return ""
    what = "there is 1 broker" if brokers == 1 else f"there are {brokers} brokers"
    return f"; {what}: pass {format_create_flags(brokers, min(min_insync, brokers))}, or start more"


def delete_topics(places: Sequence[KafkaPlace], access: KafkaAccess, groups: Sequence[str] = ()) -> None:
    """Delete topics of the same brokers, and groups of readers; what is not there is as good as deleted.

    Raises:
        TransportError: no broker answers, or it does not do it.
    """
    admin, trouble = _open_admin(places[0], access)
    topics = admin.delete_topics([place.topic for place in places], request_timeout=TIMEOUT_S)
    readers = admin.delete_consumer_groups(list(groups), request_timeout=TIMEOUT_S) if groups else {}
    for answer in (*topics.values(), *(reader for reader in readers.values() if not _has_no_coordinator(reader))):
        try:
            answer.result()
        except KafkaException as error:
            if get_kafka_error(error).code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND):
                raise _unreachable_error(places[0], admin, error, trouble) from None


def _has_no_coordinator(reader: Future[None]) -> bool:
    """Return whether the brokers have no consumer groups yet, because no client has read from them."""
    error = reader.exception()
    return isinstance(error, KafkaException) and get_kafka_error(error).code() in _NO_COORDINATOR


def _raise_error(error: KafkaError | None) -> None:
    if error is not None:
        raise KafkaException(error)


def _open_admin(place: KafkaPlace, access: KafkaAccess) -> tuple[AdminClient, list[KafkaError]]:
    """Return a client, and the list in which it writes down what it has trouble with."""
    trouble: list[KafkaError] = []
    return AdminClient(build_client_config(place.brokers, access, "hopwatch") | {"error_cb": trouble.append}), trouble


def _unreachable_error(
    place: KafkaPlace, admin: AdminClient, error: KafkaException, trouble: list[KafkaError]
) -> TransportError:
    # What the client waited for in vain says less than what it met on the way.
    admin.poll(0)
    met = sorted(trouble, key=lambda one: one.code() == KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001 - its public name
    why = describe_kafka_error(next(iter(met), get_kafka_error(error)), place.brokers)
    advice = "check the address, that a broker runs there, and what [transport.kafka] says of access; then try again"
    return TransportError(f"the Kafka brokers {place.brokers} cannot be reached: {why}; {advice}")


def _advise_alter(place: KafkaPlace, name: str, value: str) -> str:
    where = f"--bootstrap-server {place.brokers} --entity-type topics --entity-name {place.topic}"
    return f"mend it with 'kafka-configs.sh {where} --alter --add-config {name}={value}'"
