"""What a tap vouches for: a sender for each node, and nothing that was refused of it goes unsaid."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection
from http import HTTPStatus
from typing import Final

from hopwatch.probes.instance import ProbeInstance
from hopwatch.probes.sender import Sender
from hopwatch.probes.sinks import Sink
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.http.pending_resends import PendingResend, PendingResends
from hopwatch.probes.taps.http.refusals import NodeName, RefusalProblem, RefusedObservations
from hopwatch.probes.taps.http.unstamped_nodes import UnstampedNodes
from hopwatch.probes.taps.startup import open_checked_sink

MAX_NODES: Final = 64
"""For so many nodes one tap stamps at most; each has a thread of its own."""
IDLE_S: Final = 60.0
"""A node that nothing was posted of for so long gives its place to another one, where there is no other place."""
MAX_FORWARDED_NODES: Final = 64
"""Of so many nodes it is known that records of their own probes come here."""
CLOSE_S: Final = 2.0
FLUSH_EVERY_S: Final = 2.0
HEARTBEAT_EVERY_S: Final = 10.0


class Books:
    """The accounts of all nodes; safe for threads."""

    def __init__(self, url: str, name: str, around: RunContext, allowed: Collection[NodeName] | None = None) -> None:
        """Open none yet; all will send to ``url``. Nothing is taken of nodes that are not allowed; None allows any."""
        self._url, self._name, self._context = url, name, around
        self._allowed = None if allowed is None else frozenset(allowed)
        self._senders: dict[NodeName, Sender] = {}
        self._used_s: dict[NodeName, float] = {}
        self._opening = threading.Lock()
        self._unstamped, self._pending = UnstampedNodes(name), PendingResends()
        self._forwarded: OrderedDict[NodeName, None] = OrderedDict()
        # Held for as long as a few small records need to be sent, at most.
        self._lock = threading.Lock()
        self.refused_requests = 0
        """Requests that were refused, whole or in part."""

    def sender(self, name: NodeName) -> Sender:
        """Return the sender of a node, which is opened at first.

        Raises:
            Refusal: it is none that is allowed, there are too many, or its sink cannot be opened.
        """
        self.check_allowed(name)
        with self._opening:
            found = self._senders.get(name)
            if found is not None:
                self._used_s[name] = self._context.monotonic_s()
                return found
            if len(self._senders) >= MAX_NODES and not self._close_idle():
                which = f"{name.node!r} of {name.stream!r}"
                told = f"this tap stamps for {MAX_NODES} nodes already, of which {which} is none"
                raise RefusalProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "too-many-nodes", told)
            try:
                opened = self._open_sender(name)
            except TapSourceError as error:
                raise RefusalProblem(HTTPStatus.SERVICE_UNAVAILABLE, "sink-down", str(error)) from None
            with self._lock:
                self._senders = {**self._senders, name: opened}
                opened.hold(self._pending.since_us)
            self._used_s[name] = self._context.monotonic_s()
            return opened

    def check_allowed(self, name: NodeName) -> None:
        """Check that a node is one that this tap is to stamp for.

        Raises:
            Refusal: it is not.
        """
        if not self._is_allowed(name):
            which = f"{name.node!r} of {name.stream!r}"
            told = f"this tap stamps for {len(self._allowed or ())} nodes that it was told of, of which {which} is none"
            raise RefusalProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "unknown-node", told)

    def _is_allowed(self, name: NodeName) -> bool:
        return self._allowed is None or name in self._allowed

    def _close_idle(self) -> bool:
        """Let go of the node that was posted of longest ago, without a bye; False if none is idle."""
        name = min(self._senders, key=self._used_s.__getitem__)
        if self._context.monotonic_s() - self._used_s[name] < IDLE_S:
            return False
        with self._lock:
            idle = self._senders[name]
            self._senders = {one: sender for one, sender in self._senders.items() if one != name}
        del self._used_s[name]
        idle.close(CLOSE_S, bye=False)
        return True

    def _open_sender(self, name: NodeName) -> Sender:
        who = ProbeInstance(name.stream, name.node, self._name, self._context.wall_us())
        sink = open_checked_sink(self._url, who.name, self._context.clock)
        opened = Sender(
            who, sink, self._context.clock, flush_every_s=FLUSH_EVERY_S, heartbeat_every_s=HEARTBEAT_EVERY_S
        )
        opened.start()
        return opened

    def note_forwarded(self, name: NodeName) -> None:
        """Note that records of a node's own probes come here."""
        with self._lock:
            self._forwarded[name] = None
            self._forwarded.move_to_end(name)
            if len(self._forwarded) > MAX_FORWARDED_NODES:
                self._forwarded.popitem(last=False)

    def refuse(self, refused: RefusedObservations, cause: str) -> None:
        """Count what was refused for good."""
        with self._lock:
            self._count(refused, cause, self._context.wall_us())

    def await_resend(self, digest: bytes, refused: RefusedObservations, cause: str) -> None:
        """Vouch for nothing until what was refused for now comes again; for a while."""
        now_us = self._context.wall_us()
        with self._lock:
            if self._pending.add(digest, PendingResend(refused, cause, now_us, self._context.monotonic_s())):
                self._hold_senders()
            else:
                self._count(refused, cause, now_us)

    def mark_answered(self, digest: bytes) -> None:
        """Note that a body was answered for good, which may have been awaited."""
        with self._lock:
            if len(self._pending):
                self._pending.remove(digest)
                self._hold_senders()

    def tick(self, now_s: float | None = None) -> None:
        """Give up what was awaited for too long; all of it without a time."""
        with self._lock:
            for debt in self._pending.take_overdue(*(() if now_s is None else (now_s,))):
                self._count(debt.refused, debt.cause, debt.since_us)
            self._hold_senders()

    def send_unstamped(self, sink: Sink) -> None:
        """Tell of nodes that nothing is stamped for, by a sink that is in the hands of this thread."""
        with self._lock:
            self._unstamped.send(sink.send, self._context.wall_us())

    def close(self, *, bye: bool) -> None:
        """Send what is left, and let go of all senders."""
        self.tick()
        for sender in self._senders.values():
            sender.end(CLOSE_S, bye=bye)
        for sender in self._senders.values():
            sender.wait()

    def _count(self, refused: RefusedObservations, cause: str, now_us: int) -> None:
        drops = refused.to_drops(cause, now_us)
        self.refused_requests += 1
        if refused.node is not None and self._is_allowed(refused.node):
            names = [refused.node]
        else:
            # A node that is not allowed may be any that is: somebody may have misspelt its name.
            names = [*self._senders, *(self._forwarded if refused.is_record else ())]
        for name in dict.fromkeys(names):
            sender = self._senders.get(name)
            if sender is None:
                self._unstamped.drop(name, drops, now_us)
                continue
            sender.drop(drops)
            if refused.untimed is None:
                sender.leave_hole()

    def _hold_senders(self) -> None:
        since_us = self._pending.since_us
        for sender in self._senders.values():
            sender.hold(since_us)
