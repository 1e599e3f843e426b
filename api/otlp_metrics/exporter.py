"""Exporter of results as metrics: sends windows that became final, or were judged again, to a receiver of OTLP.

The store is the outbox, as for the topic of results: one position says how far the receiver has come. It begins with
the windows that are written from then on, as receivers refuse what is old.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from sqlalchemy import Connection, Engine

from hopwatch.alerts.channels.channel import Accepted, Outcome
from hopwatch.alerts.delivery import log
from hopwatch.alerts.delivery.store_writer import StoreWriter
from hopwatch.api.otlp_metrics.metric_points import build_request
from hopwatch.api.results_topic.publisher import find_spans, find_window_limit
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.errors import TransportError
from hopwatch.monitor.kernel.rollup import SpanPart
from hopwatch.monitor.results import WindowResult
from hopwatch.monitor.store import fencing, publication, reader, schema
from hopwatch.monitor.store.dialect import StoreLock
from hopwatch.monitor.store.publication import WrittenWindow
from hopwatch.monitor.store.writer import EXPORTED
from hopwatch.probes.once_per_cause import OncePerCause

MAX_NODES: Final = 1_000
"""Nodes of the windows of one request, at most, but for a window that has more."""
POST_S: Final = 10.0
"""Deadline of a post."""
HEADERS: Final = {"Content-Type": "application/x-protobuf"}

Post = Callable[[bytes, int], Outcome]
"""Posts a body; the second argument is the wall clock, in µs."""


class MetricsExporter:
    """Exports what the store holds; one thread at a time calls it."""

    def __init__(  # noqa: PLR0913 - the store, the right to it, and where metrics go
        self, engine: Engine, url: str, post: Post, *, clock: Clock, run: str, hold: StoreLock
    ) -> None:
        """Export from the store of ``engine``, while it is that of ``run`` and this monitor has ``hold``."""
        self._engine, self._url, self._post, self._clock, self._run = engine, url, post, clock, run
        self._store_writer = StoreWriter(engine, clock, hold)
        self._refused = OncePerCause()

    def publish_next(self) -> int:
        """Export the next windows in one request; return how many, 0 if all are exported.

        Raises:
            TransportError: the receiver does not take them now; nothing is lost.
            StoreError: the store fails, or is another monitor's; nothing is lost.
        """
        self._store_writer.check()
        fencing.check_run(self._engine, self._run)
        with schema.open_snapshot(self._engine) as connection:
            position = publication.find_position(connection, self._url, EXPORTED)
            if position is None:
                windows, body, position = [], None, publication.read_last(connection)
            else:
                windows = publication.read_waiting(connection, position, find_window_limit(connection, MAX_NODES))
                body = self._build_body(connection, windows)
                position = windows[-1] if windows else None
        if body is not None:
            self._send(body)
        if position is not None:
            self._store_writer.write(partial(self._save, position))
        return len(windows)

    def close(self) -> None:
        """Nothing is kept open."""

    def _build_body(self, connection: Connection, windows: Sequence[WrittenWindow]) -> bytes | None:
        """Build the request of the windows that are final; None without any."""
        parts: list[SpanPart[WindowResult]] = []
        lost_ids: dict[tuple[str, int, str], list[str]] = {}
        for stream, from_us, to_us in find_spans(windows):
            parts += reader.read_parts(connection, stream, from_us, to_us)
            lost_ids |= reader.read_first_lost_ids(connection, stream, from_us, to_us)
        return build_request(parts, lost_ids) if parts else None

    def _send(self, body: bytes) -> None:
        outcome = self._post(body, self._clock.now_us())
        if isinstance(outcome, Accepted):
            self._refused.rearm()
        elif not outcome.is_for_good:
            raise TransportError(f"the receiver of [otlp] does not take metrics now: {outcome.why}")
        elif self._refused.is_new(outcome.why):
            # The same windows would be refused again, and hold up all others.
            log.warning("metrics are left out, as the receiver of [otlp] refuses them", why=outcome.why)

    def _save(self, position: WrittenWindow) -> None:
        with fencing.open_run_change(self._engine, self._run) as connection:
            publication.save_position(connection, self._url, position, EXPORTED)
