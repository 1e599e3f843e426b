"""Topics of observations: what one needs, how one is made, and what is wrong with one that is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, cast

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from hopwatch.monitor.errors import ConfigurationError, TransportError
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace, describe_error
from hopwatch.probes.contract.limits import MAX_RECORD_BYTES

PARTITIONS: Final = 6
REPLICATION: Final = 3
MIN_INSYNC: Final = 2
RETENTION_HOURS: Final = 7 * 24
LEAST_RETENTION_MS: Final = 3_600_000
"""A monitor that is down, or a backlog that it reads, may well take an hour."""
MOST_MESSAGE_BYTES: Final = MAX_RECORD_BYTES + 64 * 1_024
"""A record of the largest size, and what Kafka adds to it."""
PATIENCE_S: Final = 10.0

TIMESTAMPS: Final = "message.timestamp.type"
LOG_APPEND: Final = "LogAppendTime"
_INSYNC: Final = "min.insync.replicas"
_MESSAGE_BYTES: Final = "max.message.bytes"
_CLEANUP: Final = "cleanup.policy"
_RETENTION: Final = "retention.ms"
_NO_COORDINATOR: Final = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE)

_log = structlog.get_logger("hopwatch")


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
    """What is wrong with a topic, and how to mend it.

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
    """Yield what is wrong with a topic of observations, what keeps it from being read or written first."""
    name, config = f"the topic {place.topic}", topic.config
    said = config.get(TIMESTAMPS)
    if said != LOG_APPEND:
        what = f"{name} has {TIMESTAMPS}={said}, and {LOG_APPEND} is the arrival clock"
        yield Problem(what, _alter(place, TIMESTAMPS, LOG_APPEND), is_readable=False)
    if "compact" in config.get(_CLEANUP, ""):
        what = f"{name} has {_CLEANUP}={config[_CLEANUP]}, which deletes batches of a probe"
        yield Problem(what, _alter(place, _CLEANUP, "delete"), is_readable=False)
    if int(config.get(_MESSAGE_BYTES, MOST_MESSAGE_BYTES)) < MOST_MESSAGE_BYTES:
        what = f"{name} takes messages of {config[_MESSAGE_BYTES]} bytes, and a larger batch of a probe is lost"
        yield Problem(what, _alter(place, _MESSAGE_BYTES, str(MOST_MESSAGE_BYTES)))
    in_sync = int(config.get(_INSYNC, "1"))
    if in_sync > topic.replication:
        what = f"{name} has {_INSYNC}={in_sync} and replication {topic.replication}, and takes no record"
        yield Problem(what, _alter(place, _INSYNC, str(min(MIN_INSYNC, topic.replication))))
    yield from _weaknesses(place, topic, in_sync)


def _weaknesses(place: KafkaPlace, topic: Topic, in_sync: int) -> Iterator[Problem]:
    """Yield what costs data on a bad day."""
    name = f"the topic {place.topic}"
    if topic.replication < REPLICATION:
        what = f"{name} has replication {topic.replication}: a broker that dies takes data along"
        yield Problem(what, f"make it with replication {REPLICATION}", is_weak=True)
    if in_sync < MIN_INSYNC:
        what = f"{name} has {_INSYNC}={in_sync}: what one broker has acknowledged may die with it"
        # With fewer replicas than that no record would be taken.
        is_enough = topic.replication >= MIN_INSYNC
        again = f"make it with replication {REPLICATION} and {_INSYNC} {MIN_INSYNC}"
        yield Problem(what, _alter(place, _INSYNC, str(MIN_INSYNC)) if is_enough else again, is_weak=True)
    kept_ms = int(topic.config.get(_RETENTION, "-1"))
    # A negative one is no limit.
    if 0 <= kept_ms < LEAST_RETENTION_MS:
        what = f"{name} keeps records for {kept_ms / 1_000:,.10g} s: a monitor that is down for longer misses some"
        yield Problem(what, _alter(place, _RETENTION, str(RETENTION_HOURS * 3_600_000)), is_weak=True)


def missing(place: KafkaPlace) -> Problem:
    """Return what is wrong when there is no topic."""
    what = f"the topic {place.topic} is not on {place.brokers}"
    return Problem(what, "make it with 'hopwatch topics create', or correct [transport] url", is_readable=False)


def require(place: KafkaPlace, access: KafkaAccess) -> Topic:
    """Return a topic that can be read from; what else is wrong with it is logged.

    Raises:
        TransportError: it is not there, lacks what reading it needs, or no broker answers.
    """
    topic = describe(place, access)
    if topic is None:
        raise TransportError(str(missing(place)))
    for problem in problems(place, topic):
        if not problem.is_readable:
            raise TransportError(str(problem))
        _log.warning("the topic is not as it should be", problem=problem.message, advice=problem.advice)
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

    A client sends its request again where the answer is late, and then hears that the topic exists: it is the one it
    asked for where there was none before.

    Raises:
        ConfigurationError: it is there already, or the brokers do not take these numbers.
        TransportError: no broker answers, or none lets us in.
    """
    there_already = f"the topic {place.topic} is there already: 'hopwatch topics check' says whether it will do"
    if describe(place, access) is not None:
        raise ConfigurationError(there_already)
    admin, trouble = _admin(place, access)
    wanted = Topic(partitions, replication, config_of(min_insync, retention_hours))
    try:
        asked = NewTopic(place.topic, partitions, replication, config=wanted.config)
        (answer,) = admin.create_topics([asked], request_timeout=PATIENCE_S).values()
        answer.result()
    except KafkaException as error:
        code = _of(error).code()
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            if not _is_as_wanted(describe(place, access), wanted):
                raise ConfigurationError(there_already) from None
            return
        if code in (KafkaError.INVALID_REPLICATION_FACTOR, KafkaError.INVALID_PARTITIONS, KafkaError.INVALID_CONFIG):
            what = f"the brokers do not take {partitions} partitions with replication {replication}: {_of(error).str()}"
            raise ConfigurationError(f"{what}{_with_fewer(admin, replication, min_insync)}") from None
        raise _unreachable(place, admin, error, trouble) from None


def _is_as_wanted(found: Topic | None, wanted: Topic) -> bool:
    """Return whether a topic is what was asked for; one that no broker describes yet was made just now."""
    if found is None:
        return True
    is_as_large = (found.partitions, found.replication) == (wanted.partitions, wanted.replication)
    return is_as_large and wanted.config.items() <= found.config.items()


def config_of(min_insync: int, retention_hours: int) -> dict[str, str]:
    """Return how a topic of observations is set up."""
    return {
        TIMESTAMPS: LOG_APPEND,
        _INSYNC: str(min_insync),
        _MESSAGE_BYTES: str(MOST_MESSAGE_BYTES),
        _CLEANUP: "delete",
        _RETENTION: str(retention_hours * 3_600_000),
    }


def flags_of(replication: int, min_insync: int) -> str:
    """Return the flags of ``hopwatch topics create`` that make such a topic."""
    is_weak = replication < REPLICATION or min_insync < MIN_INSYNC
    return f"--replication {replication} --min-insync {min_insync}{' --allow-weak' if is_weak else ''}"


def _with_fewer(admin: AdminClient, replication: int, min_insync: int) -> str:
    """Return what to do where there are fewer brokers than copies are to be; nothing where that is not it."""
    try:
        brokers = len(admin.list_topics(timeout=PATIENCE_S).brokers)
    except KafkaException:
        return ""
    if not 0 < brokers < replication:
        return ""
    what = "there is 1 broker" if brokers == 1 else f"there are {brokers} brokers"
    return f" {what}: pass {flags_of(brokers, min(min_insync, brokers))}, or start more"


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
        **access.for_librdkafka(place.brokers),
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
    why = describe_error(next(iter(met), _of(error)).str(), place.brokers)
    advice = "check the address, that a broker runs there, and what [transport.kafka] says of access; then try again"
    return TransportError(f"the Kafka brokers {place.brokers} cannot be reached: {why}; {advice}")


def _alter(place: KafkaPlace, name: str, value: str) -> str:
    where = f"--bootstrap-server {place.brokers} --entity-type topics --entity-name {place.topic}"
    return f"mend it with 'kafka-configs.sh {where} --alter --add-config {name}={value}'"
