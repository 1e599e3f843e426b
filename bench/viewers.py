"""Viewers without a browser: each holds a WebSocket session of its own and asks for a new page as the browser would."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Final

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

REFRESH_S: Final = 5.0
PATIENCE_S: Final = 120.0
MOST_BYTES: Final = 200_000_000


@dataclass(slots=True)
class Seen:
    """How long each viewer waited for each refresh, s, and how many there were."""

    waited_s: list[float] = field(default_factory=list)


async def _drawn(socket: ClientConnection, asked: BackMsg) -> str:
    """Ask for a page, wait until all of it has come, and return which part of it wants to be asked for again."""
    await socket.send(asked.SerializeToString())
    fragment = ""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            told = ForwardMsg()
            told.ParseFromString(_bytes(await socket.recv()))
            if told.WhichOneof("type") == "auto_rerun":
                fragment = told.auto_rerun.fragment_id
            if told.WhichOneof("type") == "script_finished":
                return fragment


def _bytes(message: str | bytes) -> bytes:
    return message.encode() if isinstance(message, str) else message


async def _view(url: str, query: str, wait_s: float, refreshes: int, seen: Seen, ready: asyncio.Barrier) -> None:
    """Open a page, wait for all others, then look at it anew every few seconds, so many times."""
    async with connect(f"{url}_stcore/stream", max_size=MOST_BYTES, subprotocols=["streamlit"]) as socket:  # type: ignore[list-item]  # a name
        asked = BackMsg()
        asked.rerun_script.query_string = query
        asked.rerun_script.context_info.timezone = "UTC"
        asked.rerun_script.fragment_id = await _drawn(socket, asked)
        await ready.wait()
        # Spread over the interval, as people come when they come.
        await asyncio.sleep(wait_s)
        for _ in range(refreshes):
            began_s = time.perf_counter()
            await _drawn(socket, asked)
            took_s = time.perf_counter() - began_s
            seen.waited_s.append(took_s)
            await asyncio.sleep(max(0.0, REFRESH_S - took_s))


async def _all(url: str, queries: list[str], refreshes: int) -> Seen:
    seen, ready = Seen(), asyncio.Barrier(len(queries))
    views = [
        _view(url, query, REFRESH_S * number / len(queries), refreshes, seen, ready)
        for number, query in enumerate(queries)
    ]
    await asyncio.gather(*views)
    return seen


def looked(url: str, queries: list[str], refreshes: int) -> Seen:
    """Let a viewer for each query look at the dashboard, and refresh it so many times."""
    return asyncio.run(_all(url.replace("http", "ws", 1), queries, refreshes))
