"""Changes of the store, found by one look a second for all clients who wait for them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson
from anyio import to_thread
from sqlalchemy import Connection, select

from hopwatch.api.result_store import ResultStore
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import instances, pathway_versions, tables
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import MONITOR_STREAM
from hopwatch.probes.http.problems import HttpProblem

LOOK_EVERY_S: Final = 1.0
MAX_RECENT: Final = 16
"""Changes that are kept for clients who are slow to take one; who is slower has all windows that can still change."""
MAX_WAITING: Final = 1_000
"""Clients that wait at once, for changes or for an answer that changes."""

WindowKey = tuple[str, int]


class WindowState(NamedTuple):
    """State of a window, as it is told when it changes."""

    status: str
    revision: int
    verdict: str | None
    known: int
    lost: int
    lost_lower: int
    lost_upper: int | None
    in_flight: int


@dataclass(frozen=True, slots=True)
class StoreChange:
    """One change: the number of the look that found it, how far the transport was read, and the windows."""

    number: int
    read_through_us: int
    windows: Mapping[WindowKey, WindowState] = field(default_factory=dict)
    _events: dict[str | None, bytes] = field(default_factory=dict, compare=False, repr=False)

    def to_event(self, stream: str | None) -> bytes:
        """Return the change as a server-sent event, of one stream or of all; all clients who get it share the bytes."""
        if stream not in self._events:
            data = orjson.dumps(self.to_json(stream))
            self._events[stream] = b"event: change\nid: %d\ndata: %s\n\n" % (self.number, data)
        return self._events[stream]

    def to_json(self, stream: str | None) -> dict[str, Any]:
        """Return the data of the event."""
        told = [
            {"stream": name, "window_start": format_iso(start_us)} | state._asdict()
            for (name, start_us), state in sorted(self.windows.items())
            if stream in (None, name)
        ]
        return {"read_through": format_iso(self.read_through_us) if self.read_through_us else None, "windows": told}


_window = tables.windows.c
_COLUMNS: Final = (_window.stream, _window.window_start_us, *(_window[name] for name in WindowState._fields))


def read_states(
    connection: Connection, rules: Mapping[str, StreamConfig], before_us: int | None = None
) -> tuple[int, dict[WindowKey, WindowState]]:
    """Query how far the transport was read, and the states of the windows that can still change.

    With ``before_us``, how far it was read at an earlier look, of those too that could still change by then.
    """
    through_us = instances.read_progress(connection).through_us
    since_us = through_us if before_us is None else min(through_us, before_us)
    found: dict[WindowKey, WindowState] = {}
    stored = pathway_versions.read_versions(connection)
    for stream, of_stream in rules.items():
        # A window that starts earlier is past its last judgement, by whichever version of the stream.
        versions = (of_stream, *(stored[stream].versions if stream in stored else ()))
        from_us = since_us - max(version.terms.judged_until_us(0) for version in versions)
        wanted = select(*_COLUMNS).where(_window.stream == stream, _window.window_start_us >= from_us)
        for name, start_us, *state in connection.execute(wanted.where(_window.stream != MONITOR_STREAM)):
            found[name, start_us] = WindowState(*state)
    return through_us, found


class ChangeFeed:
    """Feed of changes; one task looks for them while the app is served."""

    def __init__(self, store: ResultStore, rules: Mapping[str, StreamConfig], every_s: float = LOOK_EVERY_S) -> None:
        """Take the store, and the rules of its streams."""
        self._store, self._rules, self._every_s = store, rules, every_s
        self._state: StoreChange | None = None
        self._is_state_wanted = False
        self.last = StoreChange(0, 0)
        self._recent: deque[StoreChange] = deque(maxlen=MAX_RECENT)
        self._changed, self._looking = asyncio.Condition(), asyncio.Lock()
        self.waiting = 0

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Look for changes while the block runs."""
        looking = asyncio.create_task(self._look_again())
        try:
            yield
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking

    async def wait(self, number: int, timeout_s: float) -> StoreChange | None:
        """Return what has changed since the change of a number; None if nothing does in time.

        Several changes come as one, as to a client that was slow to take the one before.
        """
        async with self._changed:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._changed.wait_for(lambda: self.last.number > number)
            except TimeoutError:
                return None
            missed = [one for one in self._recent if one.number > number]
            is_whole = missed[0].number == number + 1
            if is_whole and len(missed) == 1:
                return missed[0]
            windows = {} if is_whole or self._state is None else dict(self._state.windows)
            for one in missed:
                windows |= one.windows
            return StoreChange(self.last.number, self.last.read_through_us, windows)

    async def read_state(self) -> StoreChange:
        """Return all windows that can still change, under the number of the last change.

        Raises:
            HttpProblem: the store is down.
        """
        self._is_state_wanted = True
        if self._state is None:
            async with self._looking:
                # Of many who come at once the first one looks.
                if self._state is None:
                    await self._find_changes()
        assert self._state is not None  # noqa: S101 - the look has found it, and nothing waits in between
        return self._state

    async def _look_again(self) -> None:
        while True:
            # Where nobody waits, the first one who does has the state as it is by then.
            if self.waiting:
                # While the store is down nothing changes.
                with suppress(HttpProblem):
                    await self._look()
            elif not self._is_state_wanted:
                # What changes while nobody waits is told to nobody. Who has just been given the state is about to wait.
                self._state = None
            self._is_state_wanted = False
            await asyncio.sleep(self._every_s)

    async def _look(self) -> None:
        async with self._looking:
            await self._find_changes()

    async def _find_changes(self) -> None:
        """Read the store, and tell those who wait what has changed; one look at a time."""
        # A monitor that catches up may end, at one go, windows that no look saw in between.
        before_us = None if self._state is None else self.last.read_through_us
        through_us, states = await to_thread.run_sync(
            self._store.read, lambda connection: read_states(connection, self._rules, before_us)
        )
        before = {} if self._state is None else self._state.windows
        changed = {key: state for key, state in states.items() if before.get(key) != state}
        if changed or through_us != self.last.read_through_us:
            async with self._changed:
                self.last = StoreChange(self.last.number + 1, through_us, changed)
                self._recent.append(self.last)
                self._changed.notify_all()
        self._state = StoreChange(self.last.number, through_us, states)
