"""Source topic of a tap: its consumer, its errors, and the end offsets of its partitions."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Final, cast

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace, describe_error
from hopwatch.probes.environment import read_variables
from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.sinks.kafka import read_access
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

    def __init__(
        self, url: str, group: str, around: RunContext, *, from_start: bool, access: KafkaAccess | None = None
    ) -> None:
        """Make the clients, without connecting yet; without ``access`` credentials come from the environment.

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
            let_in = (access or read_access(read_variables())).for_librdkafka(self.place.brokers)
            common = {**let_in, "log_level": 0}
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
            )
            self._admin = AdminClient(common)
            self._common = common | {"group.id": group}
        except ValueError as error:
            raise TapUsageError(f"--from: {error}") from None
        except KafkaException as error:
            raise TapUsageError(f"--from: the clients cannot be made: {get_kafka_error(error).str()}") from None
        except OSError as error:
            raise TapSourceError(f"a secret for {url} cannot be read: {error}") from None

    def check(self) -> None:
        """Check that the topic can be reached.

        Raises:
            TapSourceError: no broker answers or accepts the client, or the topic does not exist.
        """
        where = f"{self.place.topic} at {self.place.brokers}"
        try:
            found = self.consumer.list_topics(self.place.topic, timeout=ANSWER_S).topics[self.place.topic]
        except KafkaException as error:
            # Background errors of the client come with the next poll, and explain more than a time-out.
            self.consumer.poll(LISTEN_S)
            heard = min((*self._errors, get_kafka_error(error)), key=_vagueness)
            why = describe_error(heard.str(), self.place.brokers)
            advice = "check the address, HOPWATCH_TRANSPORT__KAFKA__… and the brokers, then start again"
            raise TapSourceError(f"the topic {where} cannot be reached: {why}: {advice}") from None
        if found.error is not None:
            advice = "check the name, or make the topic, then start again"
            raise TapSourceError(f"the topic {where} cannot be read: {found.error.str()}: {advice}")
        self._is_reached = True

    def open_reader(self) -> Consumer:
        """Open another consumer, which joins no group, reads assigned partitions, and reports their ends."""
        return Consumer(self._common | {"enable.auto.commit": False, "enable.partition.eof": True})

    def read_cluster_id(self) -> str:
        """Read the id of the topic's cluster.

        Raises:
            TapSourceError: no broker answers.
        """
        try:
            return str(self.consumer.list_topics(self.place.topic, timeout=ANSWER_S).cluster_id)
        except KafkaException as error:
            raise TapSourceError(
                f"the brokers {self.place.brokers} do not answer: {get_kafka_error(error).str()}"
            ) from None

    def request_end_offsets(self, partitions: list[int]) -> dict[int, Future[Any]]:
        """Request the current end offsets of partitions; the answers come as futures."""
        asked = {TopicPartition(self.place.topic, number): _LATEST for number in partitions}
        answers = self._admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=ENDS_S)
        return {partition.partition: answer for partition, answer in answers.items()}

    def report_error(self, error: KafkaError) -> None:
        """Log an error of the client, each code once.

        Raises:
            TapSourceError: the client cannot recover from it.
        """
        if error.fatal() or error.code() in _FINAL:
            raise TapSourceError(f"the topic {self.place} cannot be read any more: {error.str()}: start again")
        # By code, as the text holds durations and counts.
        if self._reported.is_new(str(error.code())):
            self._context.report(
                f"the topic {self.place} has trouble: {describe_error(error.str(), self.place.brokers)}: trying on"
            )

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


def get_kafka_error(error: KafkaException) -> KafkaError:
    """Return the KafkaError of an exception."""
    return cast("KafkaError", error.args[0])
