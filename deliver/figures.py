"""Figures of a delivery for the page of metrics: requests, batches, round trips, circuit breaker and retry backlog."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from hopwatch.deliver.answers import AttemptResult
from hopwatch.deliver.circuit_breaker import BreakerState
from hopwatch.deliver.message import DeliveryMessage
from hopwatch.probes.metrics import catalog
from hopwatch.probes.metrics.histogram import FigureHistogram
from hopwatch.probes.metrics.metric import Sample

CANCELLED = "cancelled"


class DeliveryFigures:
    """Observer of one delivery that counts for the page of metrics; thread-safe."""

    def __init__(self, name: str, on_wait: Callable[[Sequence[DeliveryMessage], int], object] | None = None) -> None:
        """Begin with nothing; ``on_wait`` is called with the messages that wait in hand, and until when."""
        self.name, self._on_wait = name, on_wait
        self._lock = threading.Lock()
        self._results: Counter[str] = Counter(dict.fromkeys(catalog.ATTEMPT_RESULTS, 0))
        self._batches = FigureHistogram(catalog.DELIVERY_BATCH, catalog.BATCH_BOUNDS)
        self._round_trips = FigureHistogram(catalog.DELIVERY_ROUND_TRIP, catalog.ROUND_TRIP_BOUNDS_S)
        self._in_flight, self._breaker = 0, BreakerState.CLOSED
        self._is_paused = False
        self._backlog: tuple[int, float] | None = None

    def record_request(self, events: int, size_bytes: int) -> None:
        """Count a request that begins."""
        del size_bytes
        with self._lock:
            self._in_flight += 1
            self._batches.add(events)

    def record_result(self, events: int, result: AttemptResult, round_trip_s: float) -> None:
        """Count a request that ends."""
        del events
        with self._lock:
            self._in_flight -= 1
            self._results[result.value] += 1
            self._round_trips.add(round_trip_s)

    def record_cancellation(self) -> None:
        """Count a request that was given up."""
        with self._lock:
            self._in_flight -= 1
            self._results[CANCELLED] += 1

    def record_breaker_state(self, state: BreakerState) -> None:
        """Keep the state of the circuit breaker."""
        self._breaker = state

    def record_wait(self, messages: Sequence[DeliveryMessage], until_us: int) -> None:
        """Hand on messages that wait in hand."""
        if self._on_wait is not None:
            self._on_wait(messages, until_us)

    def record_in_hand(self, messages: int, size_bytes: int) -> None:
        """Leave messages in hand to the account, where they are in flight."""

    def record_pause(self, *, is_paused: bool) -> None:
        """Keep whether the delivery is paused."""
        self._is_paused = is_paused

    def record_backlog(self, waiting: int, age_s: float) -> None:
        """Keep the backlog of the retry topics, and the age of its oldest message."""
        self._backlog = waiting, age_s

    def build_samples(self) -> Iterator[Sample]:
        """Yield all samples; those of the backlog once it was read."""
        with self._lock:
            for result, count in self._results.items():
                yield Sample(catalog.DELIVERY_REQUESTS, (self.name, result), count)
            yield from self._batches.build_samples(self.name)
            yield from self._round_trips.build_samples(self.name)
            yield Sample(catalog.DELIVERY_IN_FLIGHT, (self.name,), self._in_flight)
        for state in BreakerState:
            yield Sample(catalog.DELIVERY_BREAKER, (self.name, state.value), int(state is self._breaker))
        yield Sample(catalog.DELIVERY_PAUSED, (self.name,), int(self._is_paused))
        if self._backlog is not None:
            yield Sample(catalog.DELIVERY_RETRY_BACKLOG, (self.name,), self._backlog[0])
            yield Sample(catalog.DELIVERY_RETRY_AGE, (self.name,), self._backlog[1])
