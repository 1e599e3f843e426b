"""Source topic of a tap: its consumer, its errors, and the end offsets of its partitions."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.environment import read_variables
from hopwatch.probes.kafka.client import (
    Config,
    ask_topic,
    build_client_config,
    describe_kafka_error,
    get_kafka_error,
    is_fatal_error,
    read_access,
)
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError

ANSWER_S: Final = 10.0
"""Time that the brokers have to answer when the tap starts."""
LISTEN_S: Final = 0.2
SESSION_MS: Final = 10_000
ENDS_S: Final = 5.0
"""Time that the brokers have to return the end offsets."""

_REFUSED: Final = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE)  # noqa: SLF001 - public in all but name
"""Errors that explain more than a missing answer."""
_FINAL: Final = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
)
"""Errors that only an operator can fix."""
_LATEST: Final[OffsetSpec] = OffsetSpec.latest()


class SourceTopic:
    """Kafka topic with a consumer that commits nothing by itself."""

    def __init__(  # noqa: PLR0913 - what a client is made of
        self,
        url: str,
        group: str,
        around: RunContext,
        *,
        from_start: bool,
        access: KafkaAccess | None = None,
        more: Config | None = None,
    ) -> None:
        """Make the clients, without connecting yet; without ``access`` credentials come from the environment.

        ``more`` are settings of the consumer that go over those here, under librdkafka's names.

        Raises:
            TapUsageError: the URL, the group or the credentials are invalid.
            TapSourceError: a file with a secret cannot be read.
        """
        self._context = around
        self._is_reached = False
        self._errors: list[KafkaError] = []
        self._reported = OncePerCause()
        try:
            self.place = KafkaPlace.parse(url)
            if url.removeprefix("kafka://").rstrip("/") == self.place.brokers:
                raise ValueError(f"it names no topic, got {url!r:.80}")  # noqa: TRY301 - one sentence for all
            common = build_client_config(self.place.brokers, access or read_access(read_variables()))
            self.consumer = Consumer(
                common
                | {
                    "error_cb": self._on_error,
                    "group.id": group,
                    "client.id": "hopwatch-tap",
                    # After this time another group member takes over from a tap that has crashed.
                    "session.timeout.ms": SESSION_MS,
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "auto.offset.reset": "earliest" if from_start else "latest",
                    "partition.assignment.strategy": "cooperative-sticky",
                    "enable.partition.eof": True,
                }
                | (more or {})
            )
            self._admin = AdminClient(common)
            self._common = common | {"group.id": group}
        except ValueError as error:
            raise TapUsageError(f"--from: {error}") from None
        except KafkaException as error:
            raise TapUsageError(f"--from: the clients cannot be made: {describe_kafka_error(error)}") from None
        except OSError as error:
            raise TapSourceError(f"a secret for {url} cannot be read: {error}") from None

    def check(self) -> None:
        """Check that the topic can be reached.

        Raises:
            TapSourceError: no broker answers or accepts the client, or the topic does not exist.
        """
        where = f"{self.place.topic} at {self.place.brokers}"
        try:
            found = ask_topic(self.consumer, self.place.topic, ANSWER_S)
        except KafkaException as error:
            # Background errors of the client come with the next poll, and explain more than a time-out.
            self.consumer.poll(LISTEN_S)
            heard = min((*self._errors, get_kafka_error(error)), key=_vagueness)
            why = describe_kafka_error(heard, self.place.brokers)
            advice = "check the address, HOPWATCH_TRANSPORT__KAFKA__… and the brokers, then start again"
            raise TapSourceError(f"the topic {where} cannot be reached: {why}: {advice}") from None
        if found.error is not None:
            advice = "check the name, or make the topic, then start again"
            raise TapSourceError(f"the topic {where} cannot be read: {describe_kafka_error(found.error)}: {advice}")
        self._is_reached = True

    def find_partitions(self, topic: str) -> list[int]:
        """Return the numbers of a topic's partitions; callbacks of the consumer may ask for them, too.

        They may not ask by the consumer's own ``list_topics``: the next callback of the same poll would end the process
        (confluent-kafka 2.16).

        Raises:
            KafkaException: no broker answers.
        """
        return list(ask_topic(self._admin, topic, ANSWER_S).partitions)

    def poll(self, most: int, timeout_s: float) -> list[Message]:
        """Return new messages, and the ends of partitions and errors as messages, too.

        Raises:
            TapSourceError: the topic cannot be read.
        """
        try:
            return self.consumer.consume(most, timeout_s)
        except KafkaException as error:
            raise self._broken_error(error) from None

    def open_reader(self) -> Consumer:
        """Open another consumer, which joins no group, reads assigned partitions, and reports their ends."""
        # Where records age out before they are read, it goes on with the first that is left.
        more = {"enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "earliest"}
        return Consumer(self._common | more)

    def read_cluster_id(self) -> str:
        """Read the id of the topic's cluster.

        Raises:
            TapSourceError: no broker answers.
        """
        try:
            return ask_topic(self.consumer, self.place.topic, ANSWER_S).cluster_id
        except KafkaException as error:
            told = f"the brokers {self.place.brokers} do not answer: {describe_kafka_error(error)}"
            raise TapSourceError(told) from None

    def request_end_offsets(self, partitions: list[int]) -> dict[int, Future[Any]]:
        """Request the current end offsets of partitions of the topic; the answers come as futures."""
        answers = self.request_ends([(self.place.topic, number) for number in partitions])
        return {number: answer for (_, number), answer in answers.items()}

    def request_ends(self, partitions: list[tuple[str, int]]) -> dict[tuple[str, int], Future[Any]]:
        """Request the current end offsets of partitions, by topic and number; the answers come as futures."""
        asked = {TopicPartition(*partition): _LATEST for partition in partitions}
        answers = self._admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=ENDS_S)
        return {(partition.topic, partition.partition): answer for partition, answer in answers.items()}

    def report_error(self, error: KafkaError) -> None:
        """Log an error of the client, each code once.

        Raises:
            TapSourceError: the client cannot recover from it.
        """
        if is_fatal_error(error) or error.code() in _FINAL:
            raise self._broken_error(error)
        # By code, as the text holds durations and counts.
        if self._reported.is_new(str(error.code())):
            self._context.report(
                f"the topic {self.place} has trouble: {describe_kafka_error(error, self.place.brokers)}: trying on"
            )

    def _broken_error(self, error: KafkaError | KafkaException) -> TapSourceError:
        what = describe_kafka_error(error)
        return TapSourceError(f"the topic {self.place} cannot be read any more: {what}: start again")

    def _on_error(self, error: KafkaError) -> None:
        """Handle background errors of the client."""
        self._errors = [*self._errors[-9:], error]
        if self._is_reached:
            self.report_error(error)


def _vagueness(error: KafkaError) -> int:
    """Return a rank of an error by how little it explains a missing answer."""
    if error.code() in _REFUSED:
        return 0
    return 2 if error.code() == KafkaError._ALL_BROKERS_DOWN else 1  # noqa: SLF001 - public in all but name
