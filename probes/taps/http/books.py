"""What a tap vouches for: a sender for each node, and nothing that was refused of it goes unsaid."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection
from http import HTTPStatus
from typing import Final

from hopwatch.probes.instance import Instance
from hopwatch.probes.sender import Sender
from hopwatch.probes.sinks import Sink
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.http.owed import Debt, Owed
from hopwatch.probes.taps.http.refused import NodeName, Refusal, Refused
from hopwatch.probes.taps.http.unheard import Unheard
from hopwatch.probes.taps.opening import checked_sink
from hopwatch.probes.taps.surroundings import Surroundings

MOST_NODES: Final = 64
"""For so many nodes one tap stamps at most; each has a thread of its own."""
IDLE_S: Final = 60.0
"""A node that nothing was posted of for so long gives its place to another one, where there is no other place."""
MOST_PASSED: Final = 64
"""Of so many nodes it is known that records of their own probes come here."""
CLOSE_S: Final = 2.0
FLUSH_EVERY_S: Final = 2.0
HEARTBEAT_EVERY_S: Final = 10.0


class Books:
    """The accounts of all nodes; safe for threads."""

    def __init__(self, url: str, name: str, around: Surroundings, allowed: Collection[NodeName] | None = None) -> None:
        """Open none yet; all will send to ``url``. Nothing is taken of nodes that are not allowed; None allows any."""
        self._url, self._name, self._around = url, name, around
        self._allowed = None if allowed is None else frozenset(allowed)
        self._senders: dict[NodeName, Sender] = {}
        self._used_s: dict[NodeName, float] = {}
        self._opening = threading.Lock()
        self._unheard, self._owed = Unheard(name), Owed()
        self._passed: OrderedDict[NodeName, None] = OrderedDict()
        # Held for as long as a few small records need to be sent, at most.
        self._counting = threading.Lock()
        self.refused = 0
        """Requests that were refused, whole or in part."""

    def sender(self, name: NodeName) -> Sender:
        """Return the sender of a node, which is opened at first.

        Raises:
            Refusal: it is none that is allowed, there are too many, or its sink cannot be opened.
        """
        self.check(name)
        with self._opening:
            found = self._senders.get(name)
            if found is not None:
                self._used_s[name] = self._around.monotonic_s()
                return found
            if len(self._senders) >= MOST_NODES and not self._let_idle_go():
                which = f"{name.node!r} of {name.stream!r}"
                told = f"this tap stamps for {MOST_NODES} nodes already, of which {which} is none"
                raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "too-many-nodes", told)
            try:
                opened = self._opened(name)
            except TapSourceError as error:
                raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "sink-down", str(error)) from None
            with self._counting:
                self._senders = {**self._senders, name: opened}
                opened.hold(self._owed.since_us)
            self._used_s[name] = self._around.monotonic_s()
            return opened

    def check(self, name: NodeName) -> None:
        """Check that a node is one that this tap is to stamp for.

        Raises:
            Refusal: it is not.
        """
        if not self._is_allowed(name):
            which = f"{name.node!r} of {name.stream!r}"
            told = f"this tap stamps for {len(self._allowed or ())} nodes that it was told of, of which {which} is none"
            raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "unknown-node", told)

    def _is_allowed(self, name: NodeName) -> bool:
        return self._allowed is None or name in self._allowed

    def _let_idle_go(self) -> bool:
        """Let go of the node that was posted of longest ago, without a bye; False if none is idle."""
        name = min(self._senders, key=self._used_s.__getitem__)
        if self._around.monotonic_s() - self._used_s[name] < IDLE_S:
            return False
        with self._counting:
            idle = self._senders[name]
            self._senders = {one: sender for one, sender in self._senders.items() if one != name}
        del self._used_s[name]
        idle.close(CLOSE_S, bye=False)
        return True

    def _opened(self, name: NodeName) -> Sender:
        who = Instance(name.stream, name.node, self._name, self._around.wall_us())
        sink = checked_sink(self._url, who.name, self._around.clock)
        opened = Sender(who, sink, self._around.clock, flush_every_s=FLUSH_EVERY_S, heartbeat_every_s=HEARTBEAT_EVERY_S)
        opened.start()
        return opened

    def passed(self, name: NodeName) -> None:
        """Note that records of a node's own probes come here."""
        with self._counting:
            self._passed[name] = None
            self._passed.move_to_end(name)
            if len(self._passed) > MOST_PASSED:
                self._passed.popitem(last=False)

    def refuse(self, refused: Refused, cause: str) -> None:
        """Count what was refused for good."""
        with self._counting:
            self._count(refused, cause, self._around.wall_us())

    def await_again(self, digest: bytes, refused: Refused, cause: str) -> None:
        """Vouch for nothing until what was refused for now comes again; for a while."""
        now_us = self._around.wall_us()
        with self._counting:
            if self._owed.put(digest, Debt(refused, cause, now_us, self._around.monotonic_s())):
                self._hold()
            else:
                self._count(refused, cause, now_us)

    def came(self, digest: bytes) -> None:
        """Note that a body was answered for good, which may have been awaited."""
        with self._counting:
            if len(self._owed):
                self._owed.came(digest)
                self._hold()

    def tick(self, now_s: float | None = None) -> None:
        """Give up what was awaited for too long; all of it without a time."""
        with self._counting:
            for debt in self._owed.due(*(() if now_s is None else (now_s,))):
                self._count(debt.refused, debt.cause, debt.since_us)
            self._hold()

    def tell(self, sink: Sink) -> None:
        """Tell of nodes that nothing is stamped for, by a sink that is in the hands of this thread."""
        with self._counting:
            self._unheard.send(sink.send, self._around.wall_us())

    def close(self, *, bye: bool) -> None:
        """Send what is left, and let go of all senders."""
        self.tick()
        for sender in self._senders.values():
            sender.end(CLOSE_S, bye=bye)
        for sender in self._senders.values():
            sender.wait()

    def _count(self, refused: Refused, cause: str, now_us: int) -> None:
        drops = refused.drops(cause, now_us)
        self.refused += 1
        if refused.node is not None and self._is_allowed(refused.node):
            names = [refused.node]
        else:
            # A node that is not allowed may be any that is: somebody may have misspelt its name.
            names = [*self._senders, *(self._passed if refused.is_record else ())]
        for name in dict.fromkeys(names):
            sender = self._senders.get(name)
            if sender is None:
                self._unheard.drop(name, drops, now_us)
                continue
            sender.drop(drops)
            if refused.untimed is None:
                sender.leave_hole()

    def _hold(self) -> None:
        since_us = self._owed.since_us
        for sender in self._senders.values():
            sender.hold(since_us)
