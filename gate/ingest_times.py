"""Ingest time of the gate: from the last byte of a request with events to the first byte of its answer.

Both moments are those at which the server hands the byte to the app, and takes it from there. It counts for requests
that are answered with 2xx: the transport has their events.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, Final

from hopwatch.probes.clock import Clock
from hopwatch.probes.metrics import catalog
from hopwatch.probes.metrics.histogram import FigureHistogram
from hopwatch.probes.metrics.metric import Sample

if TYPE_CHECKING:
    from hopwatch.probes.http.limits import App, Receive, Scope, Send

_PATH: Final = re.compile(r"/streams/([^/]+)/events(?:/|$)")
_SUCCESS: Final = range(200, 300)


class IngestTimes:
    """Histograms of the ingest time, one a stream; filled in one event loop."""

    def __init__(self, clock: Clock) -> None:
        """Begin with none."""
        self._clock = clock
        self._streams: dict[str, FigureHistogram] = {}

    def now_ns(self) -> int:
        """Return the moment."""
        return self._clock.monotonic_ns()

    def add(self, stream: str, span_ns: int) -> None:
        """Count a request."""
        if stream not in self._streams:
            self._streams[stream] = FigureHistogram(catalog.GATE_INGEST, catalog.INGEST_BOUNDS_S)
        self._streams[stream].add(span_ns / 1e9)

    def build_samples(self) -> Iterator[Sample]:
        """Yield the samples of all streams that have had a request."""
        for stream, histogram in list(self._streams.items()):
            yield from histogram.build_samples(stream)


class IngestTimeMiddleware:
    """ASGI middleware that measures the ingest time, outside of all other middleware."""

    def __init__(self, app: App, times: IngestTimes) -> None:
        """Wrap an app."""
        self._app, self._times = app, times

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a request, and count it if its events were taken."""
        found = _PATH.match(scope["path"]) if scope["type"] == "http" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        times, last_byte_ns = self._times, 0

        async def note_last_byte() -> MutableMapping[str, Any]:
            nonlocal last_byte_ns
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body", False):
                last_byte_ns = times.now_ns()
            return message

        async def note_first_byte(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start" and message["status"] in _SUCCESS and last_byte_ns:
                times.add(found[1], times.now_ns() - last_byte_ns)
            await send(message)

        await self._app(scope, note_last_byte, note_first_byte)
