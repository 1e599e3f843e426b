"""Source of the job's records: a spool of segments or a Kafka topic, behind one interface."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from hopwatch.monitor.accounting.holes import NOTHING_PLANNED, PlannedRead
from hopwatch.monitor.accounting.unheard_instances import SpoolFolder
from hopwatch.monitor.spark.decoder import build_decoder
from hopwatch.monitor.spark.rows import DECODED_COLUMNS
from hopwatch.monitor.spark.sources import segment_log, spool
from hopwatch.monitor.spark.sources.kafka import KafkaSource
from hopwatch.monitor.stream_config import StreamConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hopwatch.monitor.results import CommittedBatch
    from hopwatch.monitor.settings import Settings

BYTES_PER_TRIGGER: Final = 512 * 1024 * 1024
"""Backlog that one trigger reads at most: enough to be fast, few enough to show progress and to bound memory."""


class RecordSource(Protocol):
    """Transport as the job sees it; ``str`` returns its location."""

    @property
    def spark_settings(self) -> Mapping[str, str]:
        """Spark settings that reading it needs."""

    def check(self, *, is_watched: bool) -> str:
        """Check that it can be read, and that the monitor's pulse can go through it when it is to be watched.

        Returns what tells it from another one of its name; nothing where nothing does.

        Raises:
            TransportError: it cannot.
        """

    def awaits_probe(self) -> bool:
        """Return whether it is known that no probe has sent anything yet."""

    def rights(self) -> str:
        """Return in words who may write to it, empty where that is not known here."""

    def stream(self, spark: SparkSession, rules: Mapping[str, StreamConfig]) -> DataFrame:
        """Return the rows of records as they come; columns of DECODED."""

    def batch(self, spark: SparkSession, rules: Mapping[str, StreamConfig]) -> DataFrame:
        """Return the rows of all records that are there now; columns of DECODED."""

    def segments(self) -> list[Path]:
        """Return the segments that are kept, in order of their names; a message may be looked for in them.

        Raises:
            TransportError: they cannot be read.
        """

    def tidy(self, kept: Collection[str], checkpoint: Path) -> None:
        """Delete what a crash has left behind, and let the checkpoint forget what is gone, before a stream starts.

        ``kept`` are the segments that windows need.
        """

    def log_bytes(self, checkpoint: Path) -> int:
        """Return the size of what Spark keeps of all it has read, where that grows; 0 where it does not."""

    def forget(self, kept: Collection[str], checkpoint: Path, spark: SparkSession, query_id: str) -> None:
        """Let checkpoint and stream forget what is gone; called by the stream itself, within a micro-batch."""

    def end_batch(self) -> None:
        """Delete what only the batch needed, when all of it is concluded."""

    def expected(self, checkpoint: Path, batch_id: int) -> PlannedRead:
        """Return what a batch was to read, where the transport may have lost some of it."""

    def widen(self, batch: CommittedBatch, trigger_us: int) -> RecordSource | None:
        """Return a source whose triggers read more, if a batch says that there is more and time for it; else None."""

    def folders(self) -> Iterable[SpoolFolder]:
        """Yield the folders of probe instances, where the transport has such."""

    def remove_folders(self, before_us: int) -> None:
        """Remove the empty folders of probe instances that were last changed before a moment."""

    def note_read_through(self, moment_us: int) -> None:
        """Take note of the moment up to which all parts of the transport are read."""


@dataclass(frozen=True, slots=True)
class SpoolSource:
    """A spool: Spark lists its segments, the workers open them."""

    folder: Path

    def __str__(self) -> str:
        """Return the folder."""
        return str(self.folder)

    @property
    def spark_settings(self) -> Mapping[str, str]:
        """Nothing beyond what every job needs."""
        return {}

    def check(self, *, is_watched: bool) -> str:
        """Check the folder; returns nothing, because what an emptied spool had, it had told.

        A spool that is to be watched is made where there is none: its first probe may start later.

        Raises:
            TransportError: it is not there or cannot be made, is no folder, cannot be read or written, or hides
                segments from a stream.
        """
        if is_watched:
            spool.make_folder(self.folder)
        spool.check_folder(self.folder, is_written=is_watched)
        return ""

    def awaits_probe(self) -> bool:
        """Return whether no folder is of a probe."""
        return not spool.has_probe(self.folder)

    def rights(self) -> str:
        """Return the folder's owner and mode, and what a probe of another user needs."""
        return spool.describe_rights(self.folder)

    def stream(self, spark: SparkSession, rules: Mapping[str, StreamConfig]) -> DataFrame:
        """Return the rows of segments as they come, in order of arrival."""
        return spool.read_stream(spark, self.folder, BYTES_PER_TRIGGER).mapInArrow(
            build_decoder(rules, samples=True), DECODED_COLUMNS
        )

    def batch(self, spark: SparkSession, rules: Mapping[str, StreamConfig]) -> DataFrame:
        """Return the rows of all segments that are there now."""
        return spool.read_batch(spark, self.folder).mapInArrow(build_decoder(rules), DECODED_COLUMNS)

    def segments(self) -> list[Path]:
        """Return the segments of the spool.

        Raises:
            TransportError: it is not there or cannot be read.
        """
        spool.check_folder(self.folder)
        return spool.list_segments(self.folder)

    def tidy(self, kept: Collection[str], checkpoint: Path) -> None:
        """Let Spark forget the segments that are gone; what lies in a spool is not ours."""
        if self._has_folders():
            segment_log.forget_gone(checkpoint, kept)

    def _has_folders(self) -> bool:
        """Return whether there is anything in the spool: an empty folder may be where a disk is not mounted."""
        return next(spool.list_folders(self.folder), None) is not None

    def log_bytes(self, checkpoint: Path) -> int:
        """Return the size of Spark's log of segments."""
        return segment_log.log_size_bytes(checkpoint)

    def forget(self, kept: Collection[str], checkpoint: Path, spark: SparkSession, query_id: str) -> None:
        """Let Spark forget the segments that are gone, in its log and in its memory."""
        gone: list[str] = []
        if not self._has_folders():
            return
        segment_log.forget_gone(checkpoint, kept, gone.append)
        segment_log.forget_in_memory(spark, query_id, gone)

    def end_batch(self) -> None:
        """Do nothing: a batch makes no files."""

    def expected(self, checkpoint: Path, batch_id: int) -> PlannedRead:  # noqa: ARG002 - a spool forgets nothing
        """Return nothing: segments stay until the monitor deletes them."""
        return NOTHING_PLANNED

    def widen(self, batch: CommittedBatch, trigger_us: int) -> RecordSource | None:  # noqa: ARG002 - as the protocol has it
        """Return None: a trigger reads as much of a spool as memory allows."""
        return None

    def folders(self) -> Iterable[SpoolFolder]:
        """Yield all that are in the spool."""
        return spool.list_folders(self.folder)

    def remove_folders(self, before_us: int) -> None:
        """Remove those that are empty."""
        spool.remove_empty_folders(self.folder, before_us)

    def note_read_through(self, moment_us: int) -> None:
        """Do nothing: a spool is read in order of arrival."""


def build_source(settings: Settings) -> RecordSource:
    """Return the source that the configuration names."""
    transport, workdir = settings.transport, settings.monitor.workdir
    if transport.kafka_place is None:
        return SpoolSource(spool.root_folder(transport.url))
    source = KafkaSource(transport.kafka_place, transport.access, workdir / "landed")
    chosen = transport.records_per_trigger
    return source if chosen is None else replace(source, max_records=chosen, is_adaptive=False)
