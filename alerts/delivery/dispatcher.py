"""Dispatcher of notifications: finds due deliveries in the outbox; each channel has a worker that sends them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final

from sqlalchemy import Engine

from hopwatch.alerts.channels.routing import Routing
from hopwatch.alerts.delivery import log
from hopwatch.alerts.delivery.store_writer import StoreWriter
from hopwatch.alerts.delivery.worker import ChannelCounts, ChannelWorker, DeliveryResult
from hopwatch.alerts.storage import outbox
from hopwatch.alerts.storage.outbox import ChannelBacklog
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.store.dialect import StoreLock
from hopwatch.probes.once_per_cause import OncePerCause

UNKNOWN_CHANNEL: Final = "no channel of this name is configured"


@dataclass(frozen=True, slots=True)
class ChannelFigures(ChannelCounts):
    """Counts of one channel since the monitor started, and its backlog.

    ``oldest_waiting_us`` is the watermark at which the oldest waiting notification was decided, µs since 1970; none if
    nothing waits.
    """

    waiting: int = 0
    oldest_waiting_us: int | None = None


class Dispatcher:
    """Delivers what is due; :mod:`alerts.delivery.threads` runs it in threads, tests call :meth:`deliver_due`."""

    def __init__(self, engine: Engine, routing: Routing, clock: Clock, hold: StoreLock | None = None) -> None:
        """Deliver from the store of ``engine``, which has connections of its own, while this monitor has ``hold``."""
        self._engine, self._routing, self._clock, self.writer = engine, routing, clock, StoreWriter(engine, clock, hold)
        self.workers: Mapping[str, ChannelWorker] = {
            name: ChannelWorker(name, channel, self._find_fallback(name), engine, clock, self.writer)
            for name, channel in routing.channels.items()
        }
        self._waiting: Mapping[str, ChannelBacklog] = {}
        self._has_begun = False
        self._unknown = OncePerCause()

    def deliver_due(self) -> list[DeliveryResult]:
        """Deliver what is due now, one channel after the other; return the result of each delivery.

        Raises:
            StoreError: the store fails, or is another monitor's; nothing is lost.
        """
        return [result for name in self.find_due_channels() for result in self.workers[name].deliver_due()]

    def find_due_channels(self) -> list[str]:
        """Return the channels that may have due deliveries; deliveries for unknown channels are given up.

        Raises:
            StoreError: the store fails, or is another monitor's.
        """
        if not self._has_begun:
            self.writer.write(partial(outbox.catch_up_channels, self._engine, self._routing.routes, self.workers))
            self._has_begun = True
        if ended := outbox.query_ended_in_silence(self._engine, self._clock.now_us()):
            self.writer.write(partial(outbox.mark_silenced, self._engine, ended))
        due, self._waiting = outbox.query_backlog(self._engine, self._clock.now_us())
        self._give_up(sorted(due - self.workers.keys()))
        return sorted(due & self.workers.keys())

    def collect_figures(self) -> Mapping[str, ChannelFigures]:
        """Return counts and backlog of each channel, as of the last poll; any thread may call it."""
        waiting = self._waiting
        return {name: _channel_figures(worker.counts, waiting.get(name)) for name, worker in self.workers.items()}

    def _give_up(self, names: Iterable[str]) -> None:
        """Give up deliveries for channels that are no longer configured."""
        for name in names:
            if self._unknown.is_new(name):
                known = ", ".join(self.workers) or "none"
                log.error("what waits for a channel is given up: " + UNKNOWN_CHANNEL, channel=name, known=known)
            for delivery in outbox.query_due(self._engine, self._clock.now_us(), channel=name):
                self.writer.write(partial(outbox.mark_dead, self._engine, delivery, UNKNOWN_CHANNEL))

    def _find_fallback(self, name: str) -> str | None:
        fallback = self._routing.fallbacks.get(name)
        return fallback if fallback in self._routing.channels else None


def _channel_figures(counts: ChannelCounts, waiting: ChannelBacklog | None) -> ChannelFigures:
    done = asdict(counts)
    return (
        ChannelFigures(**done, waiting=waiting.rows, oldest_waiting_us=waiting.oldest_us)
        if waiting
        else ChannelFigures(**done)
    )
