"""A real dashboard and clients that mean it no good: pages of other origins."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin, Subprotocol

from tests.e2e.browser import dashboard
from tests.support.dashboard_stores import build_windows, fill
from tests.support.workspace import Workspace

PATIENCE_S: Final = 60.0
LOOKUPS: Final = "lookups.txt"
GUARD: Final = '''
"""Notes each call of this process beyond this machine in a file, and lets none of them out."""
import os, socket

def guarded(original, place):
    def call(*arguments, **more):
        told = arguments[place]
        host = told[0] if isinstance(told, tuple) else told
        if host not in (None, "", "127.0.0.1", "::1", "localhost", b"127.0.0.1"):
            with open({file!r}, "a") as file:
                file.write(f"{{original.__name__}} {{told!r}}\\n")
            raise OSError("this process calls nobody")
        return original(*arguments, **more)
    return call

class Guarded(socket.socket):
    connect = guarded(socket.socket.connect, 1)
    connect_ex = guarded(socket.socket.connect_ex, 1)
    sendto = guarded(socket.socket.sendto, -1)

socket.socket = Guarded
socket.getaddrinfo = guarded(socket.getaddrinfo, 0)
socket.gethostbyname = guarded(socket.gethostbyname, 0)
'''
"""What Python runs at the start of a process that finds it on its path."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a place with a store."""
    made = Workspace(tmp_path_factory.mktemp("strangers")).configure()
    fill(made.store_url, *build_windows(5)).dispose()
    return made


@pytest.fixture(scope="module")
def url(place: Workspace) -> Iterator[str]:
    """Yield the URL of a dashboard over it that cannot call another machine."""
    (place.folder / "sitecustomize.py").write_text(GUARD.format(file=str(place.folder / LOOKUPS)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(place.folder), os.environ.get("PYTHONPATH")))))
        with dashboard(place.config) as started:
            yield started


async def answer(url: str, said: str | None) -> int:
    """Return the status of the answer to a WebSocket that a page of an origin opens: 101 where it is let in."""
    origin = None if said is None else Origin(said)
    where = f"ws://{urlsplit(url).netloc}/_stcore/stream"
    try:
        async with connect(
            where, origin=origin, subprotocols=[Subprotocol("streamlit")], proxy=None, open_timeout=PATIENCE_S
        ) as one:
            return one.response.status_code if one.response else 0
    except InvalidStatus as refused:
        return refused.response.status_code


def test_pages_of_others_are_refused_and_nobody_is_called(url: str, place: Workspace) -> None:
    """The dashboard has never called another machine, neither at its start nor to find out which pages are its own."""
    foreign = ("https://foreign.example", "http://localhost:9999", "http://192.0.2.7:8501", "null")
    assert [asyncio.run(answer(url, one)) for one in foreign] == [403] * len(foreign)
    assert [asyncio.run(answer(url, one)) for one in (url.rstrip("/"), None)] == [101, 101]
    assert _looked_up(place.folder) == ""


def _looked_up(folder: Path) -> str:
    file = folder / LOOKUPS
    return file.read_text() if file.exists() else ""
