"""Process of a receiver: takes batches of events by HTTP, fails as its book says, and is down for a while once."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from contextlib import closing, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final

from aiohttp import web

from hopwatch.demo.nodes.process import is_stop_requested
from hopwatch.demo.records import wall_clock_us
from hopwatch.demo.service.receiver_book import FailureMode, Reaction, ReceiverBook
from hopwatch.demo.service.settings import ReceiverSettings
from hopwatch.demo.truth import TruthLog

HOST: Final = "127.0.0.1"
MAX_BODY_BYTES: Final = 16 * 1024 * 1024
SLOW_S: Final = 1.0
HANG_S: Final = 60.0
RETRY_AFTER_S: Final = 1
POLL_S: Final = 0.1


class ReceiverServer:
    """HTTP server of one receiver."""

    def __init__(self, settings: ReceiverSettings, log: TruthLog) -> None:
        """Take the settings, and the log of what becomes of messages."""
        self._settings, self._log = settings, log
        self._book = ReceiverBook(settings.fail_ratio, settings.seed)
        self._first_s: float | None = None

    async def run(self) -> None:
        """Serve until a stop is requested; be down for a while once, if that is asked for."""
        runner, loop, settings = await self._listen(), asyncio.get_running_loop(), self._settings
        up_again_s: float | None = None
        is_down_due = settings.down_s > 0
        while not is_stop_requested():
            await asyncio.sleep(POLL_S)
            first_s, now_s = self._first_s, loop.time()
            if is_down_due and first_s is not None and now_s - first_s >= settings.down_after_s:
                is_down_due, up_again_s = False, now_s + settings.down_s
                await runner.cleanup()
                sys.stderr.write(f"down for {settings.down_s:g} s\n")
            elif up_again_s is not None and now_s >= up_again_s:
                up_again_s = None
                runner = await self._listen()
                sys.stderr.write("up again\n")
        await runner.cleanup()

    async def _listen(self) -> web.AppRunner:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post("/events", self._answer)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.0)
        await runner.setup()
        await web.TCPSite(runner, HOST, self._settings.port, reuse_address=True).start()
        return runner

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        names = [event["id"] for event in json.loads(await request.read())]
        if self._first_s is None:
            self._first_s = asyncio.get_running_loop().time()
        reaction = self._book.decide([uuid.UUID(name).bytes for name in names])
        now_us = wall_clock_us()
        for deed, ids in reaction.deeds.items():
            self._log.write(deed, now_us, *ids)
        if reaction.failure is FailureMode.HANG:
            await asyncio.sleep(HANG_S)
        if reaction.failure in {FailureMode.HANG, FailureMode.RESET}:
            with suppress(AttributeError):  # the transport of a connection that has ended is None
                request.transport.abort()  # type: ignore[union-attr]  # as it is here
            return web.Response(status=HTTPStatus.INTERNAL_SERVER_ERROR)
        if reaction.failure is FailureMode.SLOW:
            await asyncio.sleep(SLOW_S)
        return build_response(names, reaction)


def build_response(names: list[str], reaction: Reaction) -> web.Response:
    """Return the response to a request: one status where all have the same, else 207 with one for each."""
    if len(set(reaction.statuses)) == 1:
        headers = {"Retry-After": str(RETRY_AFTER_S)} if reaction.failure is FailureMode.BUSY else None
        return web.Response(status=reaction.statuses[0], headers=headers)
    items = [{"id": name, "status": status} for name, status in zip(names, reaction.statuses, strict=True)]
    return web.json_response({"events": items}, status=HTTPStatus.MULTI_STATUS)


async def run_receiver(settings: ReceiverSettings) -> None:
    """Run one receiver until a stop is requested."""
    with closing(TruthLog(Path(settings.log))) as log:
        await ReceiverServer(settings, log).run()


if __name__ == "__main__":
    asyncio.run(run_receiver(ReceiverSettings.from_json(sys.argv[1])))
