"""One process of a pipeline: takes messages from a pipe, stamps them, hands them on, and comes to its end."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final

from hopwatch import Probe
from hopwatch.probes.sinks.spool import SpoolSink
from tests.e2e.ending.cases import DAMAGED, NODES, STREAM, Case, End
from tests.e2e.ending.truth import CAME, WENT, Log

FRAME: Final = Struct("<qq")
RUN_S: Final = 3.2
"""How long messages are made."""
DRAIN_S: Final = 0.4
"""How much longer each next node waits for them."""
EVERY_S: Final = 0.01
LOSES_EACH: Final = 25
"""Of so many messages node b loses one, and one more is lost behind it."""
LOST_BEHIND: Final = 12
FULL_BYTES: Final = 5_000
SHORT_S: Final = 0.4
"""How long one lives whose only segment is damaged."""
PATIENCE_S: Final = 30.0


class Odd(str):
    """An id that cannot be packed."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        """Raise what a host's own class may raise."""
        raise RuntimeError(f"{encoding} {errors}")


@dataclass(slots=True)
class Place:
    """Place of a process: its node, its replica, its pipes, and the start of the pipeline."""

    folder: Path
    case: Case
    node: str
    replica: int
    replicas: int
    source: int | None
    outlet: int | None
    start_s: float

    @property
    def end(self) -> End:
        """Return the end that this one comes to; only one of two comes to any."""
        return self.case.end if self.replica == 1 else End.NONE


class Process:
    """A process with a probe."""

    def __init__(self, place: Place) -> None:
        """Open the probe."""
        self._place = place
        self._probe = _probe(place)
        self._born_s = time.monotonic()
        truth = place.folder / "truth" / place.node
        truth.mkdir(parents=True, exist_ok=True)
        self._log = Log(truth / str(place.replica))
        self._odd_are_left = int(place.end is End.PACKING)

    def live(self) -> None:
        """Handle messages until the end, whatever that is."""
        end = self._place.end
        if end is End.DAEMON:
            threading.Thread(target=self._handle_all, daemon=True).start()
            self._wait()
            sys.exit(0)
        if end is End.FORK:
            child = os.fork()
            if not child:
                self._handle_until_the_end()
                os._exit(0)
            os.waitpid(child, 0)
        elif end is End.WORKER:
            worker = multiprocessing.get_context("fork").Process(target=self._handle_all)
            worker.start()
            self._wait()
            worker.terminate()
            worker.join()
        elif end in (End.KILL, End.TERM, End.EXIT, End.EXEC):
            self._handle_until_the_end()
            _end(end)
        elif end in DAMAGED and not self._place.case.moment_s:
            self._handle_until_the_end(SHORT_S)
        else:
            self._handle_all()
        if self._place.case.end is End.NONE:
            # A disk that is busy for longer than a probe waits makes windows unknown, which here they must not be.
            self._probe.flush(PATIENCE_S)
        self._probe.close()
        sys.exit(0)

    def _wait(self) -> None:
        time.sleep(max(0.0, self._born_s + self._place.case.moment_s - time.monotonic()))

    def _handle_until_the_end(self, least_s: float = 0.0) -> None:
        """Handle one message at least."""
        for number, event_us in self._messages():
            self._handle(number, event_us)
            if time.monotonic() - self._born_s >= max(least_s, self._place.case.moment_s):
                return

    def _handle_all(self) -> None:
        for number, event_us in self._messages():
            self._handle(number, event_us)

    def _handle(self, number: int, event_us: int) -> None:
        place = self._place
        message_id, stamped_us = self._id(number), event_us // (1_000 if place.end is End.TIME else 1)
        self._log.write(CAME, number, event_us)
        self._probe.arrived(message_id, stamped_us)
        if place.node == "b" and number % LOSES_EACH == 0:
            return
        self._log.write(WENT, number, event_us)
        self._probe.departed(message_id, stamped_us)
        if place.outlet is not None and not (place.node == "b" and number % LOSES_EACH == LOST_BEHIND):
            os.write(place.outlet, FRAME.pack(number, event_us))

    def _id(self, number: int) -> int | str:
        if self._odd_are_left and time.monotonic() - self._born_s >= self._place.case.moment_s:
            self._odd_are_left -= 1
            return Odd(number)
        return str(number) if self._place.end is End.ID else number

    def _messages(self) -> Iterator[tuple[int, int]]:
        place = self._place
        until_s = place.start_s + RUN_S + DRAIN_S * NODES.index(place.node)
        if place.source is None:
            for number in range(place.replica, int(RUN_S / EVERY_S), place.replicas):
                time.sleep(max(0.0, place.start_s + number * EVERY_S - time.monotonic()))
                yield number, time.time_ns() // 1_000
                if time.monotonic() > until_s:
                    return
            return
        while (left_s := until_s - time.monotonic()) > 0:
            if select.select([place.source], [], [], left_s)[0]:
                try:
                    yield FRAME.unpack(os.read(place.source, FRAME.size))
                except BlockingIOError:
                    continue  # the other replica was faster


def _probe(place: Place) -> Probe:
    name = f"{place.node}-{place.replica}"
    node = place.node * 2 if place.end is End.NAME else place.node
    spool = place.folder / "spool"
    if place.end is not End.FULL:
        return Probe(STREAM, node, f"spool:{spool}", probe=name)
    instance = f"{STREAM}.{node}.{name}.{time.time_ns() // 1_000}"
    return Probe(STREAM, node, SpoolSink(spool, instance, most_bytes=FULL_BYTES), probe=name)


def _end(end: End) -> None:
    if end is End.EXIT:
        os._exit(0)
    if end is End.EXEC:
        os.execv("/bin/true", ["true"])  # noqa: S606 - another program, without a shell
    os.kill(os.getpid(), signal.SIGKILL if end is End.KILL else signal.SIGTERM)
    time.sleep(60)
