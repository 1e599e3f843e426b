"""Publisher of results: writes windows that have changed to the topic, in the order of the store's writes.

The store itself is the outbox: a window has the number of its last write, and one position says how far the topic has
come. Of a window that changes several times before it is published, the last state is. After a kill the windows behind
the position are written again: at least once, and never an older state behind a newer one of the same key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Final, Protocol

from sqlalchemy import Connection, Engine

from hopwatch.alerts.delivery.store_writer import StoreWriter
from hopwatch.api.results_topic.records import ResultRecord, build_record, build_schema
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.subjects import Registry, RegistryError
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import dialect, fencing, pathway_versions, publication, reader, schema
from hopwatch.monitor.store.dialect import StoreLock
from hopwatch.monitor.store.publication import WrittenWindow
from hopwatch.monitor.store.subjects import SubjectStore
from hopwatch.probes.contract.limits import WINDOW_US

MAX_RECORDS: Final = 1_000
"""Records of one transaction at most, but for a window that has more nodes: what is held in memory at once."""


class ResultsWriter(Protocol):
    """Place that records go to."""

    def open(self) -> str:
        """Connect unless that is done, end whoever wrote for this store before, and return the topic's unique name.

        Raises:
            TransportError: the topic cannot be written now.
        """

    def write(self, records: Sequence[ResultRecord]) -> None:
        """Write all records, in order, or none that readers of committed records see.

        Raises:
            TransportError: they were not written, or nobody knows.
        """

    def close(self) -> None:
        """Release all resources."""


def register_schema(engine: Engine, clock: Clock, topic: str) -> int:
    """Register the schema of the records in the store's registry, by the topic's name; return its number.

    Raises:
        ConfigurationError: the subject holds schemas that this one does not fit.
        StoreError: the store fails.
    """
    subject = f"{topic}-value"
    try:
        made = Registry(SubjectStore(engine, clock)).register(subject, Schema.parse(json.dumps(build_schema())))
    except RegistryError as error:
        advice = "name another topic in [results] topic"
        raise ConfigurationError(f"the subject {subject} is not that of results: {error}: {advice}") from None
    return made.entry.schema.number


def identify_store(engine: Engine) -> str:
    """Return the id of the store, which it gets here the first time.

    Raises:
        StoreError: the store fails.
    """
    with dialect.translate_errors(engine.url), engine.execution_options(writes=True).begin() as connection:
        return publication.identify_store(connection)


class ResultsPublisher:
    """Publishes what the store holds; one thread at a time calls it."""

    def __init__(  # noqa: PLR0913 - the store, the right to it, and where records go
        self, engine: Engine, writer: ResultsWriter, *, schema_number: int, clock: Clock, run: str, hold: StoreLock
    ) -> None:
        """Publish from the store of ``engine``, while it is that of ``run`` and this monitor has ``hold``."""
        self._engine, self._writer, self._schema_number, self._run = engine, writer, schema_number, run
        self._store_writer = StoreWriter(engine, clock, hold)

    def publish_next(self) -> int:
        """Publish the next windows in one transaction of the topic; return how many, 0 if all are published.

        Raises:
            TransportError: the topic does not take them now; nothing is lost.
            StoreError: the store fails, or is another monitor's; nothing is lost.
        """
        # Whoever has lost the store must not end the producer of the one who has it.
        self._require_run()
        topic = self._writer.open()
        with schema.open_snapshot(self._engine) as connection:
            windows = self._read_next(connection, topic)
            records = list(self._build_records(connection, windows))
        if not windows:
            return 0
        self._writer.write(records)
        self._store_writer.write(partial(self._save, topic, windows[-1]))
        return len(windows)

    def check(self) -> None:
        """Check that the topic can be written.

        Raises:
            TransportError: it cannot.
        """
        self._writer.open()

    def close(self) -> None:
        """Release the connection to the brokers."""
        self._writer.close()

    def _require_run(self) -> None:
        self._store_writer.check()
        fencing.check_run(self._engine, self._run)

    def _read_next(self, connection: Connection, topic: str) -> list[WrittenWindow]:
        position = publication.read_position(connection, topic)
        return publication.read_waiting(connection, position, find_window_limit(connection, MAX_RECORDS))

    def _build_records(self, connection: Connection, windows: Sequence[WrittenWindow]) -> Iterator[ResultRecord]:
        for stream, from_us, to_us in find_spans(windows):
            sequences = {one.window_start_us: one.sequence for one in windows if one.stream == stream}
            starts = {format_iso(start_us): start_us for start_us in sequences}
            for window in reader.read_windows_json(connection, stream, from_us, to_us):
                start_us = starts[window["window_start"]]
                for node in window["nodes"]:
                    place = start_us, sequences[start_us]
                    yield build_record(self._schema_number, stream, window, node, place)

    def _save(self, topic: str, position: WrittenWindow) -> None:
        with fencing.open_run_change(self._engine, self._run) as connection:
            publication.save_position(connection, topic, position)


def find_window_limit(connection: Connection, most: int) -> int:
    """Return how many windows have ``most`` nodes or fewer together; one, where one may have more."""
    configs = pathway_versions.read_versions(connection).values()
    most_nodes = max((len(version.pathway.nodes) for of in configs for version in of.versions), default=1)
    return max(1, most // max(1, most_nodes))


def find_spans(windows: Sequence[WrittenWindow]) -> Iterator[tuple[str, int, int]]:
    """Yield spans that hold some windows and no others: stream, start and end, µs."""
    ordered = sorted((one.stream, one.window_start_us) for one in windows)
    numbered = enumerate(ordered)
    for _, span in groupby(numbered, lambda one: (one[1][0], one[1][1] - one[0] * WINDOW_US)):
        found = [window for _, window in span]
        yield found[0][0], found[0][1], found[-1][1] + WINDOW_US
