"""Readers of the stream's own observations, as they come: of a spool or of a topic, in a thread each."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from confluent_kafka import Consumer, KafkaException

from hopwatch.probes.contract import envelope, segment
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.kafka.client import ask_topic, build_client_config, describe_kafka_error
from hopwatch.rate.point_log import PointLog
from hopwatch.rate.topic_end import find_end

SCAN_S: Final = 0.5
ANSWER_S: Final = 10.0
MAX_RECORDS: Final = 500
_FETCH: Final = {"group.id": "hopwatch-rate", "enable.auto.commit": False, "enable.auto.offset.store": False}

ReadNew = Callable[[float], Iterator[bytes]]
"""Yields new records, after at most so many seconds."""


class ObservationsError(Exception):
    """The observations cannot be read: what saturates is not known."""


class ObservationReader:
    """Thread that notes new observations, as a context."""

    def __init__(self, read_new: ReadNew, close: Callable[[], object], log: PointLog) -> None:
        """Take what reads records."""
        self._read_new, self._close, self._log = read_new, close, log
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="hopwatch-rate-observations", daemon=True)

    def __enter__(self) -> Self:
        """Begin to read."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()
        self._close()

    def _read(self) -> None:
        while not self._stop.is_set():
            for record in self._read_new(SCAN_S):
                # The monitor counts what cannot be read.
                with suppress(envelope.RecordError):
                    view = envelope.read_record(record)
                    envelope.check_values(record, view)
                    self._log.note(record, view)


def open_spool(folder: Path, log: PointLog) -> ObservationReader:
    """Open the segments of a spool that are published from now on."""
    new_segments, pause = NewSegments(folder), threading.Event()
    new_segments.list_new()

    def read_new(patience_s: float) -> Iterator[bytes]:
        found = new_segments.list_new()
        if not found:
            pause.wait(patience_s)
        for path in found:
            # The monitor deletes segments that it needs no more.
            with suppress(OSError):
                data = path.read_bytes()
                yield from (data[one.start : one.end] for one in segment.read_frames(data) if not one.fault)

    return ObservationReader(read_new, pause.set, log)


class NewSegments:
    """Segments of a spool that were published since the last look.

    A spool that no monitor empties has thousands of them, and the sender of the load shares the interpreter with this:
    so names are compared as sets, and a path is made of new ones alone.
    """

    def __init__(self, root: Path) -> None:
        """Take the folder of the spool, which may not be there yet."""
        self._root = root
        self._names: dict[str, set[str]] = {}

    def list_new(self) -> list[Path]:
        """Return the paths of the new ones, in order of folder and number."""
        found: list[Path] = []
        for folder in self._list_folders():
            try:
                names = set(os.listdir(folder))  # noqa: PTH208 - names, and no path of each
            except OSError:
                continue
            new = sorted(names - self._names.get(folder, set()))
            self._names[folder] = names
            found += [Path(folder, name) for name in new if name.endswith(segment.SEGMENT_SUFFIX)]
        return found

    def _list_folders(self) -> list[str]:
        try:
            with os.scandir(self._root) as entries:
                return sorted(entry.path for entry in entries if entry.is_dir())
        except OSError:
            return []


def open_topic(place: KafkaPlace, access: KafkaAccess, log: PointLog) -> ObservationReader:
    """Open a topic of observations at its end.

    Raises:
        ObservationsError: no broker answers, or the topic cannot be read.
    """
    consumer = Consumer(build_client_config(place.brokers, access, "hopwatch-rate") | _FETCH)
    try:
        found = ask_topic(consumer, place.topic, ANSWER_S)
        if found.error is not None:
            raise ObservationsError(f"the topic {place.topic} cannot be read: {describe_kafka_error(found.error)}")
        ends = [find_end(consumer, place.topic, number) for number in found.partitions]
        consumer.assign(ends)
    except KafkaException as error:
        why = describe_kafka_error(error, place.brokers)
        raise ObservationsError(f"the topic {place.topic} cannot be read: {why}") from None

    def read_new(patience_s: float) -> Iterator[bytes]:
        messages = consumer.consume(1, patience_s)
        if messages:
            messages += consumer.consume(MAX_RECORDS, 0)
        for message in messages:
            value = message.value()
            if message.error() is None and value:
                yield value

    return ObservationReader(read_new, consumer.close, log)
