"""Receiver by HTTP: a server that a ``[deliver.NAME]`` delivers to, and that answers each request with 204."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, Self

import orjson
from aiohttp import web

from hopwatch.probes.contract.addresses import ListenAddress
from hopwatch.rate.arrival_log import ArrivalLog
from hopwatch.rate.message_ids import TEXT_CHARS, find_places, parse_ids
from hopwatch.rate.receiver import ReceiverError

MAX_BODY_BYTES: Final = 64 * 1024 * 1024
ID_HEADERS: Final = ("webhook-id", "Idempotency-Key", "hopwatch-id")
"""Headers with the id of a request that carries one message as it is."""


class HttpArrivals:
    """Server that notes the ids of what is posted to any path."""

    def __init__(self, listen: ListenAddress, run: int, log: ArrivalLog) -> None:
        """Take the address; nothing listens yet."""
        self._listen, self._run, self._log = listen, run, log
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post("/{path:.*}", self._receive)
        self._runner = web.AppRunner(app, access_log=None)

    async def __aenter__(self) -> Self:
        """Begin to listen.

        Raises:
            ReceiverError: the address cannot be had.
        """
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._listen.host, self._listen.port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise ReceiverError(f"--receiver {self._listen} cannot be had: {error.strerror or error}") from None
        return self

    async def __aexit__(self, *_: object) -> None:
        """End it."""
        await self._runner.cleanup()

    def check(self) -> None:
        """Do nothing: it receives until it is closed."""

    async def _receive(self, request: web.Request) -> web.Response:
        body = await request.read()
        at_s = time.monotonic()
        texts = b"".join(_find_ids(body, request))
        if texts:
            self._log.note(find_places(self._run, parse_ids(texts)), at_s)
        return web.Response(status=204)


def _find_ids(body: bytes, request: web.Request) -> Iterator[bytes]:
    """Yield the UUIDs of a list of events, or of the one message that the headers name."""
    try:
        events = orjson.loads(body) if body[:1] == b"[" else None
    except orjson.JSONDecodeError:
        events = None
    named = events if isinstance(events, list) else [{"id": request.headers.get(name)} for name in ID_HEADERS]
    for event in named:
        text = event.get("id") if isinstance(event, dict) else None
        if isinstance(text, str) and len(text) == TEXT_CHARS and text.isascii():
            yield text.encode()
            if events is None:
                return
