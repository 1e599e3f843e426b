"""Viewers without a browser: each holds a WebSocket session of its own and asks for a new page as the browser would."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

REFRESH_S: Final = 5.0
PATIENCE_S: Final = 120.0
MAX_BYTES: Final = 200_000_000


class Viewer:
    """One who has opened a page."""

    def __init__(self, socket: ClientConnection, query: str) -> None:
        """Take a session of a server, and the query string of the page."""
        self._socket = socket
        self._asked = BackMsg()
        self._asked.rerun_script.query_string = query
        self._asked.rerun_script.context_info.timezone = "UTC"

    async def open(self) -> None:
        """Load the page, and learn which part of it is to be asked for again."""
        self._asked.rerun_script.fragment_id = await self._drawn()

    async def refresh(self, times: int, after_s: float) -> list[float]:
        """Look at the page anew every few seconds; return how long each of these took, s."""
        await asyncio.sleep(after_s)
        spans_s = []
        for _ in range(times):
            began_s = time.perf_counter()
            await self._drawn()
            spans_s.append(time.perf_counter() - began_s)
            await asyncio.sleep(max(0.0, REFRESH_S - spans_s[-1]))
        return spans_s

    async def _drawn(self) -> str:
        """Ask for the page and wait until all of it has come; return what of it wants to be asked for again."""
        fragment = ""
        await self._socket.send(self._asked.SerializeToString())
        async with asyncio.timeout(PATIENCE_S):
            while True:
                told = ForwardMsg()
                told.ParseFromString(bytes(await self._socket.recv(decode=False)))
                if told.WhichOneof("type") == "auto_rerun":
                    fragment = told.auto_rerun.fragment_id
                if told.WhichOneof("type") == "script_finished":
                    return fragment


def looked(url: str, queries: Sequence[str], times: int, opened: Callable[[], None]) -> list[float]:
    """Let a viewer for each query open the dashboard, and then refresh it so many times; return the spans of these, s.

    They come one after the other in the interval of a refresh. ``opened`` is called when all have the page.
    """
    return asyncio.run(_looked(url.replace("http", "ws", 1), queries, times, opened))


async def _looked(url: str, queries: Sequence[str], times: int, opened: Callable[[], None]) -> list[float]:
    async with AsyncExitStack() as sockets:
        viewers = []
        for query in queries:
            socket = await sockets.enter_async_context(connect(f"{url}_stcore/stream", max_size=MAX_BYTES))
            viewers.append(Viewer(socket, query))
            await viewers[-1].open()
        opened()
        every_s = REFRESH_S / len(viewers)
        spans = await asyncio.gather(*(one.refresh(times, every_s * place) for place, one in enumerate(viewers)))
    return [span_s for of_viewer in spans for span_s in of_viewer]
