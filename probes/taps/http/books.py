"""Books of the HTTP tap: a sender for each node, and the drops of each for refused observations."""

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
"""Nodes of one tap, at most; each has a thread of its own."""
IDLE_S: Final = 60.0
"""Idle time after which a node may be replaced by another, if there is no free place."""
MAX_FORWARDED_NODES: Final = 64
"""Nodes that are remembered because records of their own probes are forwarded here."""
CLOSE_S: Final = 2.0


class Books:
    """Books of all nodes; thread-safe."""

    def __init__(
        self,
        url: str,
        name: str,
        around: RunContext,
        allowed: Collection[NodeName] | None = None,
        *,
        follows: bool = False,
    ) -> None:
        """Start without senders; all will send to ``url``. Only ``allowed`` nodes are accepted; None allows any.

        With ``follows`` a sender completes only what its owner has caught up with, and begins with a hole: what was
        there before its first stamp is not known.
        """
        self._url, self._name, self._context, self._follows = url, name, around, follows
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
        """Return the sender of a node; open it at first use.

        Raises:
            RefusalProblem: the node is not allowed, there are too many, or its sink cannot be opened.
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

    def find(self, name: NodeName) -> Sender | None:
        """Return the sender of a node; None without one."""
        return self._senders.get(name)

    def check_allowed(self, name: NodeName) -> None:
        """Check that a node is allowed.

        Raises:
            RefusalProblem: it is not.
        """
        if not self._is_allowed(name):
            which = f"{name.node!r} of {name.stream!r}"
            told = f"this tap stamps for {len(self._allowed or ())} nodes that it was told of, of which {which} is none"
            raise RefusalProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "unknown-node", told)

    def _is_allowed(self, name: NodeName) -> bool:
        return self._allowed is None or name in self._allowed

    def _close_idle(self) -> bool:
        """Close the sender that was idle longest, without a bye; False if none is idle."""
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
        opened = Sender(who, sink, self._context.clock)
        if self._follows:
            opened.follow()
        opened.start()
        if self._follows:
            opened.leave_hole()
        return opened

    def note_forwarded(self, name: NodeName) -> None:
        """Remember that records of a node's own probes are forwarded here."""
        with self._lock:
            self._forwarded[name] = None
            self._forwarded.move_to_end(name)
            if len(self._forwarded) > MAX_FORWARDED_NODES:
                self._forwarded.popitem(last=False)

    def refuse(self, refused: RefusedObservations, cause: str) -> None:
        """Count observations that were refused for good."""
        with self._lock:
            self._count(refused, cause, self._context.wall_us())

    def await_resend(self, digest: bytes, refused: RefusedObservations, cause: str) -> None:
        """Hold completion until a temporarily refused body is sent again, for a limited time."""
        now_us = self._context.wall_us()
        with self._lock:
            if self._pending.add(digest, PendingResend(refused, cause, now_us, self._context.monotonic_s())):
                self._hold_senders()
            else:
                self._count(refused, cause, now_us)

    def mark_answered(self, digest: bytes) -> None:
        """Stop waiting for a body, as it has its final answer."""
        with self._lock:
            if len(self._pending):
                self._pending.remove(digest)
                self._hold_senders()

    def tick(self, now_s: float | None = None) -> None:
        """Give up overdue bodies, and count them as refused; without a time, all of them."""
        with self._lock:
            for debt in self._pending.take_overdue(*(() if now_s is None else (now_s,))):
                self._count(debt.refused, debt.cause, debt.since_us)
            self._hold_senders()

    def send_unstamped(self, sink: Sink) -> None:
        """Report the drops of nodes without a sender to a sink that only this thread uses."""
        with self._lock:
            self._unstamped.send(sink.send, self._context.wall_us())

    def close(self, *, bye: bool) -> None:
        """Send what is left, and close all senders."""
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
            # A node that is not allowed may be a misspelt allowed one: count for all.
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
