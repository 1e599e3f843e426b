"""Configuration of Kafka clients, what the brokers answer about a topic, and the text of their errors.

Nothing here imports confluent-kafka before a client is made: a probe that spools does without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from hopwatch.probes.contract.kafka import SECRETS, KafkaAccess, KafkaPlace, describe_error, read_secret
from hopwatch.probes.contract.limits import MAX_RECORD_BYTES

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
    from confluent_kafka.admin import AdminClient, PartitionMetadata

_PREFIX: Final = "HOPWATCH_TRANSPORT__KAFKA__"
_ENVELOPE_BYTES: Final = 1_024
"""Bytes that Kafka adds to a record at most: key, headers, lengths."""

Config = dict[str, Any]
"""Configuration of a client, under librdkafka's names."""


class TopicAnswer(NamedTuple):
    """Answer of the brokers about a topic; with an ``error`` it cannot be used."""

    partitions: Mapping[int, PartitionMetadata]
    cluster_id: str
    error: KafkaError | None


class BrokersError(OSError):
    """No broker answers."""


class TopicError(OSError):
    """The brokers answer, and refuse the topic."""


def read_access(environ: Mapping[str, str]) -> KafkaAccess:
    """Read the Kafka credentials from the environment, under the names that the monitor uses, too.

    Raises:
        ValueError: a value is invalid, or a secret is given twice.
        OSError: a file with a secret cannot be read.
    """
    said = {name.removeprefix(_PREFIX).lower(): value for name, value in environ.items() if name.startswith(_PREFIX)}
    said |= {secret: read_secret(secret, said, _read_text) for secret in SECRETS}
    return KafkaAccess(**{name: said[name] for name in KafkaAccess.__dataclass_fields__ if name in said})


def _read_text(file: str) -> str:
    return Path(file).read_text("utf-8")


def build_client_config(brokers: str, access: KafkaAccess, client_id: str = "") -> Config:
    """Build the configuration that all clients share; they log nothing by themselves."""
    return {**access.for_librdkafka(brokers), **({"client.id": client_id} if client_id else {}), "log_level": 0}


def build_producer_config(place: KafkaPlace, access: KafkaAccess, most_bytes: int) -> Config:
    """Build the configuration of a producer whose records are acknowledged by all in-sync replicas, in order, once."""
    return build_client_config(place.brokers, access, "hopwatch-probe") | {
        "acks": "all",
        "enable.idempotence": True,
        "compression.type": "zstd",
        "linger.ms": 50,
        "message.max.bytes": MAX_RECORD_BYTES + _ENVELOPE_BYTES,
        # Our own bound comes first; this one is for what the client itself adds.
        "queue.buffering.max.kbytes": 2 * most_bytes // 1_024 + 1,
        # No time-out: a record that waits costs no more than one that is refused in its place.
        "message.timeout.ms": 0,
        "log.connection.close": False,
        # The client logs every failed attempt to connect; its callbacks report the errors that matter.
        "log_level": 2,
    }


def ask_topic(client: Producer | Consumer | AdminClient, topic: str, timeout_s: float) -> TopicAnswer:
    """Ask the brokers for a topic.

    Raises:
        KafkaException: no broker answers.
    """
    answer = client.list_topics(topic, timeout_s)
    found = answer.topics[topic]
    return TopicAnswer(found.partitions, str(answer.cluster_id), found.error)


def check_topic(client: Producer | Consumer | AdminClient, place: KafkaPlace, timeout_s: float) -> None:
    """Check that a topic can be reached to be written.

    Raises:
        BrokersError: no broker answers.
        TopicError: the topic does not exist, or may not be used.
    """
    from confluent_kafka import KafkaException  # noqa: PLC0415 - a probe that spools does without it

    try:
        found = ask_topic(client, place.topic, timeout_s)
    except KafkaException as error:
        raise BrokersError(f"the brokers {place.brokers} cannot be reached: {describe_kafka_error(error)}") from None
    if found.error is not None:
        raise TopicError(f"the topic {place.topic} cannot be written: {describe_kafka_error(found.error)}")


def get_kafka_error(error: KafkaException) -> KafkaError:
    """Return the KafkaError of an exception."""
    return cast("KafkaError", error.args[0])


def is_fatal_error(error: KafkaError) -> bool:
    """Return whether a client has failed for good: it has to be replaced.

    Of a consumer that was fenced, as another one took its ``group.instance.id``, the error comes once, as that of a
    message, with the code ``_FATAL`` and without the mark ``fatal()`` (confluent-kafka 2.16). Nothing comes after it.
    """
    from confluent_kafka import KafkaError  # noqa: PLC0415 - a probe that spools does without it

    return error.fatal() or error.code() == KafkaError._FATAL  # noqa: SLF001 - public in all but name


def describe_kafka_error(error: Exception | KafkaError, brokers: str = "") -> str:
    """Return the text of an error; for a missing client, tell how to install it.

    ``brokers`` are the configured ones; the error may be of others, which these advertise.
    """
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "confluent_kafka":
        return "confluent-kafka is not installed: pip install 'hopwatch[kafka]'"
    about = next(iter(error.args), None) if isinstance(error, Exception) else error
    say = getattr(about, "str", None)
    return describe_error(str(say() if callable(say) else error), brokers)
