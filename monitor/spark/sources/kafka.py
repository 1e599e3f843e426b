"""A Kafka topic as Spark reads it: by the official connector, with the broker's time of arrival."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hopwatch.monitor import topics
from hopwatch.monitor.accounting.holes import PlannedRead
from hopwatch.monitor.accounting.unheard_instances import SpoolFolder
from hopwatch.monitor.errors import CheckpointError, TransportError
from hopwatch.monitor.spark import connector
from hopwatch.monitor.spark.landing import KAFKA_COLUMNS, READ_THROUGH, build_lander, save_read_through
from hopwatch.monitor.spark.rows import DECODED_COLUMNS
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.contract.segment import OPEN_SUFFIX, SEGMENT_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from hopwatch.monitor.results import CommittedBatch

FIRST_RECORDS_PER_TRIGGER: Final = 2_000
"""Records of a backlog that a trigger reads at first: full ones of 150 KB take about five seconds."""
MAX_RECORDS_PER_TRIGGER: Final = 100_000
"""Records that no trigger reads more of: as many full ones are 15 GB, which are on the disk twice meanwhile."""
FULL_SHARE: Final = 0.9
"""Share of the limit from which on a batch was full, since Spark rounds the share of each partition down."""
MIN_GROWTH: Final = 1.25
"""Growth of the limit for which the query is worth starting again."""
MAX_GROWTH: Final = 8.0
"""Growth of the limit at once: a batch of few records tells little of many."""
MAX_INTERVALS: Final = 3
"""Intervals of a trigger that one may take under a backlog: what it costs apart from its records, it costs once."""
MIN_TOOK_S: Final = 0.001
RECORDS_PER_BATCH: Final = 64
"""Records that go to a worker at once, of up to 4 MiB each and 150 KB as a rule."""
_LOGIN: Final = "org.apache.kafka.common.security"
_MODULES: Final = {"PLAIN": f"{_LOGIN}.plain.PlainLoginModule"}
_SCRAM: Final = f"{_LOGIN}.scram.ScramLoginModule"


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """A topic, and the folder where its records are landed; it has to be one that all workers share.

    A trigger reads ``max_records`` of a backlog; ``is_adaptive`` lets that grow while triggers are short.
    """

    place: KafkaPlace
    access: KafkaAccess
    landed: Path
    max_records: int = FIRST_RECORDS_PER_TRIGGER
    is_adaptive: bool = True

    def __str__(self) -> str:
        """Return the topic's URL."""
        return str(self.place)

    @property
    def spark_settings(self) -> Mapping[str, str]:
        """The connector, and batches of rows that are as large as records are."""
        return {
            **connector.connector_settings(),
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(RECORDS_PER_BATCH),
        }

    def check(self, *, is_watched: bool) -> str:  # noqa: ARG002 - a topic that can be read can be watched
        """Check that the topic is there and stamps records with the broker's time; return its name and id.

        Raises:
            TransportError: it is not, or no broker answers.
        """
        return f"{self.place.topic}, id {topics.require_topic(self.place, self.access).topic_id}"

    def awaits_probe(self) -> bool:
        """Return that it is not known: a topic does not tell who has sent to it."""
        return False

    def rights(self) -> str:
        """Return nothing: the brokers know."""
        return ""

    def stream(self, spark: SparkSession, rules: Mapping[str, StreamConfig]) -> DataFrame:
        """Return the rows of records as they come, so many records a trigger at most; columns of DECODED."""
        cores = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
        reader = spark.readStream.format("kafka").options(**self._options(cores))
        # Records that have aged out become a hole, and the job goes on.
        reader = reader.option("failOnDataLoss", "false").option("maxOffsetsPerTrigger", str(self.max_records))
        return self._landed(reader.option("startingOffsets", "earliest").load(), self.landed, rules, samples=True)

    def batch(self, spark: SparkSession, rules: Mapping[str, StreamConfig]) -> DataFrame:
        """Return the rows of all records that are there now; columns of DECODED."""
        tasks = spark.sparkContext.defaultParallelism
        reader = spark.read.format("kafka").options(**self._options(tasks)).option("failOnDataLoss", "false")
        reader = reader.option("startingOffsets", "earliest").option("endingOffsets", "latest")
        return self._landed(reader.load(), self._of_batch, rules)

    def segments(self) -> list[Path]:
        """Return what was landed and is still needed.

        Raises:
            TransportError: this user may not look into the working folder.
        """
        try:
            found = list(self.landed.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            what = f"the folder {self.landed}, where records of the topic are landed, cannot be read: {error.strerror}"
            folders = f"{self.landed.parent} {self.landed}"
            advice = f"run this as the monitor's user, or let this one in: chmod g+rx {folders}"
            raise TransportError(f"{what}: {advice}") from None
        return sorted(path for path in found if path.suffix == SEGMENT_SUFFIX)

    def tidy(self, kept: Collection[str], checkpoint: Path) -> None:  # noqa: ARG002 - Spark keeps a number a partition
        """Delete segments that no window needs, and those that were being written."""
        for path in (*self.landed.glob(f"*{SEGMENT_SUFFIX}"), *self.landed.glob(f"*{OPEN_SUFFIX}")):
            if str(path) not in kept:
                path.unlink(missing_ok=True)
        # It may be of another checkpoint; without it the first batch alone moves no clock.
        (self.landed / READ_THROUGH).unlink(missing_ok=True)

    def log_bytes(self, checkpoint: Path) -> int:  # noqa: ARG002 - Spark keeps a number a partition
        """Return 0: what Spark keeps does not grow."""
        return 0

    def forget(self, kept: Collection[str], checkpoint: Path, spark: SparkSession, query_id: str) -> None:
        """Do nothing: Spark keeps a number a partition."""

    def end_batch(self) -> None:
        """Delete what was landed for a batch."""
        shutil.rmtree(self._of_batch, ignore_errors=True)

    def expected(self, checkpoint: Path, batch_id: int) -> PlannedRead:
        """Return what Spark planned a batch to read: offsets by partition, and when.

        Raises:
            CheckpointError: the checkpoint does not tell.
        """
        log = checkpoint / "offsets"
        before = log / str(batch_id - 1) if batch_id else checkpoint / "sources" / "0" / "0"
        try:
            planned = (log / str(batch_id)).read_text("utf-8").splitlines()
            moment_us = int(json.loads(planned[1])["batchTimestampMs"]) * 1_000
            ends = json.loads(planned[2])[self.place.topic]
            starts = json.loads(before.read_text("utf-8").splitlines()[2 if batch_id else 1])[self.place.topic]
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            what = f"the checkpoint {checkpoint} does not tell what batch {batch_id} reads"
            raise CheckpointError(f"{what}: put it and the store aside to begin anew") from None
        topic = self.place.topic
        ranges = {f"{topic}/{partition}": (int(starts.get(partition, 0)), int(end)) for partition, end in ends.items()}
        for partition, (start, end) in ranges.items():
            if end < start:
                what = f"the topic {topic} was made anew: {partition} ends at {end}, and was read up to {start}"
                raise CheckpointError(f"{what}; pass --begin-anew, or name another store and workdir")
        whole = PlannedRead(ranges, moment_us)
        # Spark rounds the share of each partition down. A batch that is read again was planned with an earlier limit.
        most = min(self.max_records, FIRST_RECORDS_PER_TRIGGER) - len(ranges)
        return whole._replace(is_limited=whole.records > most)

    def widen(self, batch: CommittedBatch, trigger_us: int) -> KafkaSource | None:
        """Return this topic with a higher limit if a batch was full and its trigger short; else None."""
        if not self.is_adaptive or batch.records < FULL_SHARE * self.max_records:
            return None
        # At the same pace so many records would have taken as long as one may take.
        longest_s = MAX_INTERVALS * trigger_us / 1e6
        fitting = int(self.max_records * min(MAX_GROWTH, longest_s / max(batch.took_s, MIN_TOOK_S)))
        limit = min(fitting, MAX_RECORDS_PER_TRIGGER)
        return replace(self, max_records=limit) if limit >= MIN_GROWTH * self.max_records else None

    def folders(self) -> tuple[SpoolFolder, ...]:
        """Return nothing: a topic has no place for each instance."""
        return ()

    def remove_folders(self, before_us: int) -> None:
        """Do nothing: a topic has no place for each instance."""

    def note_read_through(self, moment_us: int) -> None:
        """Tell the workers of the next batch up to which moment all partitions are read."""
        save_read_through(self.landed, moment_us)

    @property
    def _of_batch(self) -> Path:
        return self.landed / "once"

    def _landed(
        self, records: DataFrame, folder: Path, rules: Mapping[str, StreamConfig], *, samples: bool = False
    ) -> DataFrame:
        lander = build_lander(self.place.topic, folder, rules, samples=samples)
        return records.select(*KAFKA_COLUMNS).mapInArrow(lander, DECODED_COLUMNS)

    def _options(self, tasks: int) -> dict[str, str]:
        return {
            "subscribe": self.place.topic,
            "kafka.bootstrap.servers": self.place.brokers,
            # Brokers make, by default, each topic that a client asks for: one that was deleted would come back, empty.
            "kafka.allow.auto.create.topics": "false",
            "groupIdPrefix": "hopwatch",
            "includeHeaders": "true",
            # A topic of one partition is read by all cores.
            "minPartitions": str(tasks),
            **{f"kafka.{name}": value for name, value in java_client_config(self.access).items()},
        }


def java_client_config(access: KafkaAccess) -> dict[str, str]:
    """Return the access settings by the names of Kafka's Java client, which the connector uses.

    Raises:
        OSError: the certificate or key cannot be read.
    """
    said = {"security.protocol": access.security_protocol}
    if access.is_sasl:
        module = _MODULES.get(access.sasl_mechanism, _SCRAM)
        login = f"username={_quote(access.sasl_username)} password={_quote(access.sasl_password)}"
        said |= {"sasl.mechanism": access.sasl_mechanism, "sasl.jaas.config": f"{module} required {login};"}
    if access.is_ssl and access.ssl_ca_file:
        said |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": access.ssl_ca_file}
    if access.is_ssl and access.ssl_certificate_file:
        said |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": Path(access.ssl_certificate_file).read_text("ascii"),
            "ssl.keystore.key": Path(access.ssl_key_file).read_text("ascii"),
        }
        said |= {"ssl.key.password": access.ssl_key_password} if access.ssl_key_password else {}
    return said


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
