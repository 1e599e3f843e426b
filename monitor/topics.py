"""Topics of observations: what one needs, how one is made, and what is wrong with one that is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, cast

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from monitor.errors import ConfigurationError, TransportError
from probes.contract.kafka import KafkaAccess, KafkaPlace
from probes.contract.limits import MAX_RECORD_BYTES

PARTITIONS: Final = 6
REPLICATION: Final = 3
MIN_INSYNC: Final = 2
RETENTION_HOURS: Final = 7 * 24
MOST_MESSAGE_BYTES: Final = MAX_RECORD_BYTES + 64 * 1_024
"""A record of the largest size, and what Kafka adds to it."""
PATIENCE_S: Final = 10.0

TIMESTAMPS: Final = "message.timestamp.type"
LOG_APPEND: Final = "LogAppendTime"
_INSYNC: Final = "min.insync.replicas"
_MESSAGE_BYTES: Final = "max.message.bytes"
_CLEANUP: Final = "cleanup.policy"
_NO_COORDINATOR: Final = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE)


@dataclass(frozen=True, slots=True)
class Topic:
    """What is known of a topic that is there."""

    partitions: int
    replication: int
    config: dict[str, str]
    topic_id: str = ""
    """What tells it from another one of its name: each that is made has one of its own."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a topic: ``is_weak`` where it may lose data but can be read, and how to mend it."""

    message: str
    advice: str
    is_weak: bool = False

    def __str__(self) -> str:
        """Return both in one line."""
        return f"{self.message}: {self.advice}"


def describe(place: KafkaPlace, access: KafkaAccess) -> Topic | None:
    """Return what the brokers say of a topic, None where there is none.

    Raises:
        TransportError: no broker answers, or none lets us in.
    """
    admin, trouble = _admin(place, access)
    try:
        found = admin.list_topics(place.topic, timeout=PATIENCE_S).topics[place.topic]
        if found.error is not None and found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        _raise(found.error)
        asked = ConfigResource(ResourceType.TOPIC, place.topic)
        (answer,) = admin.describe_configs([asked], request_timeout=PATIENCE_S).values()
        config = {name: str(entry.value) for name, entry in answer.result().items()}
        (told,) = admin.describe_topics(TopicCollection([place.topic]), request_timeout=PATIENCE_S).values()
        topic_id = str(told.result().topic_id)
    except KafkaException as error:
        raise _unreachable(place, admin, error, trouble) from None
    replicas = [len(partition.replicas) for partition in found.partitions.values()]
    return Topic(len(replicas), min(replicas), config, topic_id)


def problems(place: KafkaPlace, topic: Topic) -> Iterator[Problem]:
    """Yield what is wrong with a topic of observations."""
    said = topic.config.get(TIMESTAMPS)
    if said != LOG_APPEND:
        what = f"the topic {place.topic} has {TIMESTAMPS}={said}, and {LOG_APPEND} is the arrival clock"
        yield Problem(what, _alter(place, TIMESTAMPS, LOG_APPEND))
    if "compact" in topic.config.get(_CLEANUP, ""):
        what = f"the topic {place.topic} has {_CLEANUP}={topic.config[_CLEANUP]}, which deletes batches of a probe"
        yield Problem(what, _alter(place, _CLEANUP, "delete"))
    if int(topic.config.get(_MESSAGE_BYTES, MOST_MESSAGE_BYTES)) < MOST_MESSAGE_BYTES:
        what = f"the topic {place.topic} takes messages of {topic.config[_MESSAGE_BYTES]} bytes, a batch may be larger"
        yield Problem(what, _alter(place, _MESSAGE_BYTES, str(MOST_MESSAGE_BYTES)), is_weak=True)
    if topic.replication < REPLICATION:
        what = f"the topic {place.topic} has replication {topic.replication}: a broker that dies takes data along"
        yield Problem(what, f"make it with replication {REPLICATION}, or pass --allow-weak", is_weak=True)
    if int(topic.config.get(_INSYNC, "1")) < MIN_INSYNC:
        what = f"the topic {place.topic} has {_INSYNC}={topic.config.get(_INSYNC)}"
        yield Problem(what, f"{_alter(place, _INSYNC, str(MIN_INSYNC))}, or pass --allow-weak", is_weak=True)


def missing(place: KafkaPlace) -> Problem:
    """Return what is wrong when there is no topic."""
    what = f"the topic {place.topic} is not on {place.brokers}"
    return Problem(what, "make it with 'hopwatch topics create', or correct [transport] url")


def require(place: KafkaPlace, access: KafkaAccess) -> Topic:
    """Return a topic that can be read from.

    Raises:
        TransportError: it is not there, lacks what reading it needs, or no broker answers.
    """
    topic = describe(place, access)
    if topic is None:
        raise TransportError(str(missing(place)))
    for problem in problems(place, topic):
        if not problem.is_weak:
            raise TransportError(str(problem))
    return topic


def create(  # noqa: PLR0913 - what a topic is made of
    place: KafkaPlace,
    access: KafkaAccess,
    *,
    partitions: int = PARTITIONS,
    replication: int = REPLICATION,
    min_insync: int = MIN_INSYNC,
    retention_hours: int = RETENTION_HOURS,
) -> None:
    """Make the topic.

    Raises:
        ConfigurationError: it is there already, or the brokers do not take these numbers.
        TransportError: no broker answers, or none lets us in.
    """
    config = {
        TIMESTAMPS: LOG_APPEND,
        _INSYNC: str(min_insync),
        _MESSAGE_BYTES: str(MOST_MESSAGE_BYTES),
        _CLEANUP: "delete",
        "retention.ms": str(retention_hours * 3_600_000),
    }
    admin, trouble = _admin(place, access)
    try:
        asked = NewTopic(place.topic, partitions, replication, config=config)
        (answer,) = admin.create_topics([asked], request_timeout=PATIENCE_S).values()
        answer.result()
    except KafkaException as error:
        code = _of(error).code()
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            what = f"the topic {place.topic} is there already"
            raise ConfigurationError(f"{what}: 'hopwatch topics check' says whether it will do") from None
        if code in (KafkaError.INVALID_REPLICATION_FACTOR, KafkaError.INVALID_PARTITIONS, KafkaError.INVALID_CONFIG):
            what = f"the brokers do not take {partitions} partitions with replication {replication}"
            raise ConfigurationError(f"{what}: {_of(error).str()}") from None
        raise _unreachable(place, admin, error, trouble) from None


def delete(places: Sequence[KafkaPlace], access: KafkaAccess, groups: Sequence[str] = ()) -> None:
    """Delete topics of the same brokers, and groups of readers; what is not there is as good as deleted.

    Raises:
        TransportError: no broker answers, or it does not do it.
    """
    admin, trouble = _admin(places[0], access)
    topics = admin.delete_topics([place.topic for place in places], request_timeout=PATIENCE_S)
    readers = admin.delete_consumer_groups(list(groups), request_timeout=PATIENCE_S) if groups else {}
    for answer in (*topics.values(), *(reader for reader in readers.values() if not _is_unheard_of(reader))):
        try:
            answer.result()
        except KafkaException as error:
            if _of(error).code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND):
                raise _unreachable(places[0], admin, error, trouble) from None


def _is_unheard_of(reader: Future[None]) -> bool:
    """Return whether nobody has read from these brokers yet, so that none of them keeps groups."""
    error = reader.exception()
    return isinstance(error, KafkaException) and _of(error).code() in _NO_COORDINATOR


def _raise(error: KafkaError | None) -> None:
    if error is not None:
        raise KafkaException(error)


def _of(error: KafkaException) -> KafkaError:
    """Return what an exception is about."""
    return cast("KafkaError", error.args[0])


def _admin(place: KafkaPlace, access: KafkaAccess) -> tuple[AdminClient, list[KafkaError]]:
    """Return a client, and the list in which it writes down what it has trouble with."""
    trouble: list[KafkaError] = []
    config = {
        **access.for_librdkafka(),
        "bootstrap.servers": place.brokers,
        "client.id": "hopwatch",
        "log_level": 0,
        "error_cb": trouble.append,
    }
    return AdminClient(config), trouble


def _unreachable(
    place: KafkaPlace, admin: AdminClient, error: KafkaException, trouble: list[KafkaError]
) -> TransportError:
    # What the client waited for in vain says less than what it met on the way.
    admin.poll(0)
    met = sorted(trouble, key=lambda one: one.code() == KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001 - its public name
    why = next(iter(met), _of(error)).str()
    advice = "check the address, that a broker runs there, and what [transport.kafka] says of access; then try again"
    return TransportError(f"the Kafka brokers {place.brokers} cannot be reached: {why}; {advice}")


def _alter(place: KafkaPlace, name: str, value: str) -> str:
    where = f"--bootstrap-server {place.brokers} --entity-type topics --entity-name {place.topic}"
    return f"mend it with 'kafka-configs.sh {where} --alter --add-config {name}={value}'"
