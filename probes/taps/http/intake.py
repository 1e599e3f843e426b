"""Where observations and records go that were posted: a sender for each node, and one sink for records of others."""

from __future__ import annotations

import os
import socket
import threading
from http import HTTPStatus
from typing import Final

import numpy as np

from probes import named
from probes.contract import envelope
from probes.contract.batch import Outcome as WireOutcome
from probes.contract.limits import MONITOR_STREAM, NOT_STAMPED
from probes.http.problems import Problem
from probes.packing import NO_TEXT, Columns, Packed, batches
from probes.sender import Instance, Sender
from probes.sinks import Sink
from probes.taps import opening
from probes.taps.errors import TapSourceError
from probes.taps.http.bodies import Body, Observation, Stamped
from probes.taps.opening import checked_sink
from probes.taps.surroundings import Surroundings

MOST_NODES: Final = 64
"""For so many nodes one tap stamps at most; each has a thread of its own."""
TICK_S: Final = 0.5
CLOSE_S: Final = 2.0
FLUSH_EVERY_S: Final = 2.0
HEARTBEAT_EVERY_S: Final = 10.0
REFUSED_S: Final = 2.0
"""How long a sink that took nothing counts as one that cannot be written."""
RECORDS: Final = "http-records"
"""The instance that records of others are passed on as, to the sink; they keep the names of their own probes."""


class Intake:
    """Takes observations and records; both may come from many threads at once."""

    def __init__(self, sink: str, around: Surroundings, *, id_text: bool = True) -> None:
        """Open the sink.

        Raises:
            TapUsageError: the URL cannot be.
            TapSourceError: nothing can be written there.
        """
        self._url, self._around, self._id_text = sink, around, id_text
        self._name = f"{socket.gethostname()}-{os.getpid()}"
        self._records: Sink = checked_sink(sink, f"{RECORDS}.{self._name}.{around.wall_us()}", around.clock)
        self._refused_s = float("-inf")
        self._sending = threading.Lock()
        self._senders: dict[tuple[str, str], Sender] = {}
        self._opening = threading.Lock()
        self.observations = self.records = 0

    def observe(self, body: Body) -> int:
        """Send the observations of a body, and return how many they are.

        Raises:
            Problem: the sink does not take them, or there are too many nodes.
        """
        sender = self._sender(body.stream, body.node)
        if not sender.offer(lambda now_us: packed(body.observations, now_us, id_text=self._id_text)):
            raise self._full("send them again: what of them was taken before will count twice")
        self.observations += len(body.observations)
        return len(body.observations)

    def pass_on(self, record: bytes) -> int:
        """Send a record of another probe as it is, and return how many observations are in it.

        Raises:
            Problem: it is no record, or the sink does not take it.
        """
        try:
            view = envelope.read(record)
            envelope.check(record, view)
        except envelope.RecordError as error:
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"record-{error.reason}", str(error)) from None
        if view.stream == MONITOR_STREAM:
            told = f"{MONITOR_STREAM} is the monitor's own stream"
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "record-bad_name", told)
        with self._sending:
            is_taken = self._records.send(record)
        if not is_taken:
            raise self._full("send it again")
        self.records += 1
        return view.count

    def check(self) -> None:
        """Look whether the sink can be written.

        Raises:
            TapSourceError: it cannot.
        """
        if self._around.monotonic_s() - self._refused_s < REFUSED_S:
            raise TapSourceError(f"the sink {self._url} took nothing just now: it is full, or cannot be written")
        try:
            opening.check(self._records)
        except OSError as error:
            raise TapSourceError(f"the sink {self._url} cannot be written: {error}") from None

    def tick(self) -> None:
        """Let the sink of the records do what time alone makes due."""
        with self._sending:
            self._records.tick()
            failed = len(self._records.failed())
        if failed:
            self._around.tell(f"{failed} records that were passed on did not reach {self._url}: their probes miss them")

    def close(self, *, bye: bool) -> None:
        """Send what is left, and let go of everything."""
        for sender in self._senders.values():
            sender.end(CLOSE_S, bye=bye)
        for sender in self._senders.values():
            sender.wait()
        with self._sending:
            self._records.close(CLOSE_S)

    def _full(self, advice: str) -> Problem:
        self._refused_s = self._around.monotonic_s()
        return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "sink-full", f"the sink takes nothing now: {advice}")

    def _sender(self, stream: str, node: str) -> Sender:
        with self._opening:
            found = self._senders.get((stream, node))
            if found is not None:
                return found
            if len(self._senders) >= MOST_NODES:
                told = f"this tap stamps for {MOST_NODES} nodes already, of which {node!r} of {stream!r} is none"
                raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "too-many-nodes", told)
            who = Instance(stream, node, self._name, self._around.wall_us())
            sink = checked_sink(self._url, who.name, self._around.clock)
            opened = Sender(
                who, sink, self._around.clock, flush_every_s=FLUSH_EVERY_S, heartbeat_every_s=HEARTBEAT_EVERY_S
            )
            opened.start()
            self._senders[stream, node] = opened
            return opened


def packed(observations: list[Observation], now_us: int, *, id_text: bool = True) -> list[Packed]:
    """Return observations as batches; what says no moment is stamped now. Texts of ids go along if they are to."""
    rows = [(*_moments(one, now_us), WireOutcome[one.outcome.name], one) for one in observations]
    texts = list(dict.fromkeys(one.reason for one in observations if one.reason is not None))
    place = {text: at for at, text in enumerate(texts)}
    ids = named.of([one.id for one in observations])
    names = [text or b"" for text in ids.texts] if id_text else []
    columns = Columns(
        ids.ids,
        np.array([one.event_time for one in observations], np.int64),
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.uint8),
        np.array([NO_TEXT if one.reason is None else place[one.reason] for one in observations], np.int64),
        ids.kinds,
        np.array([NO_TEXT if text is None else at for at, text in enumerate(ids.texts)], np.int64),
    )
    return list(batches(columns, texts, names))


def _moments(one: Observation, now_us: int) -> tuple[int, int]:
    at_us = now_us if one.at is None else one.at
    out_us = at_us if one.out_at is None else one.out_at
    return (
        NOT_STAMPED if one.stamp is Stamped.OUT else at_us,
        NOT_STAMPED if one.stamp is Stamped.IN else out_us,
    )
