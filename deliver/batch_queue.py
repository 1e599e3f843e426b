"""Queue of messages that wait for their request: batches by count, bytes and linger, in order by key if asked. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from hopwatch.deliver.message import DeliveryMessage
from hopwatch.deliver.policy import DeliveryPolicy, Order
from hopwatch.deliver.request_body import estimate_bytes
from hopwatch.deliver.settlement import Settlement


class MessageInHand:
    """Message in hand, with the requests that carried it; ``taken_s`` is of a clock that never goes back."""

    __slots__ = (
        *("first_sent_us", "has_key", "held_bytes", "local_tries", "message", "reason", "settlement", "size_bytes"),
        *("status", "taken_s", "tries"),
    )

    def __init__(self, message: DeliveryMessage, taken_s: float) -> None:
        """Begin without a request in hand."""
        self.message, self.taken_s = message, taken_s
        self.tries, self.first_sent_us, self.local_tries = message.tries, message.first_sent_us, 0
        self.size_bytes = estimate_bytes(message)
        """Bytes in a body."""
        self.held_bytes = self.size_bytes + len(message.key or b"") + _count_header_bytes(message)
        """Bytes in hand: those in a body, the key and the headers."""
        self.status, self.reason = 0, ""
        self.settlement: Settlement | None = None
        """Its settlement, once that was handed on."""
        self.has_key = False
        """Whether the next message of its key waits for it, as it has left the queue and is not settled."""

    def count_try(self, status: int, reason: str) -> None:
        """Count a request that carried the message, with the status and reason of its failure, if it failed."""
        self.tries += 1
        self.local_tries += 1
        self.status, self.reason = status, reason

    def build_message(self) -> DeliveryMessage:
        """Return the message with the requests that were made."""
        place, message_id, event_us, key, value, headers, _, _ = self.message
        return DeliveryMessage(place, message_id, event_us, key, value, headers, self.tries, self.first_sent_us)


def _count_header_bytes(message: DeliveryMessage) -> int:
    size_bytes = 0
    for name, value in message.headers:
        size_bytes += len(name) + len(value)
    return size_bytes


class BatchQueue:
    """Queue of messages; each call passes the time, in seconds of a clock that never goes back.

    In order by key at most one message of a key is ready or under way. The others wait behind it, in their order,
    until :meth:`release_key` says that it is settled.
    """

    def __init__(self, policy: DeliveryPolicy) -> None:
        """Begin empty."""
        self._policy = policy
        self._ready: deque[MessageInHand] = deque()
        self._ready_bytes = 0
        self._behind: dict[bytes, deque[MessageInHand]] = {}
        """Messages behind one of their key that is ready or under way."""

    def list_messages(self) -> Iterator[MessageInHand]:
        """Yield all messages, those that wait for their key last."""
        return chain(self._ready, *self._behind.values())

    def add_message(self, held: MessageInHand) -> None:
        """Add a message at the end."""
        key = held.message.key if self._policy.order is Order.KEY else None
        if key is None:
            self._make_ready(held)
        elif key in self._behind:
            self._behind[key].append(held)
        else:
            self._behind[key] = deque()
            self._make_ready(held)

    def remaining_s(self, now_s: float) -> float | None:
        """Return the seconds until a batch is due, 0 if one is; None if no message is ready."""
        if not self._ready:
            return None
        policy = self._policy
        if len(self._ready) >= policy.batch_max_events or self._ready_bytes >= policy.batch_max_bytes:
            return 0.0
        return max(self._ready[0].taken_s + policy.linger_s - now_s, 0.0)

    def take_batch(self) -> list[MessageInHand]:
        """Take the next batch, within the bounds of count and bytes; a larger message is a batch of its own."""
        batch: list[MessageInHand] = []
        left_bytes = self._policy.batch_max_bytes
        while self._ready and len(batch) < self._policy.batch_max_events:
            size_bytes = self._ready[0].size_bytes
            if batch and size_bytes > left_bytes:
                break
            left_bytes -= size_bytes
            self._ready_bytes -= size_bytes
            held = self._ready.popleft()
            held.has_key = self._policy.order is Order.KEY and held.message.key is not None
            batch.append(held)
        return batch

    def release_key(self, held: MessageInHand) -> None:
        """Make the next message of a key ready, as the one before it is settled; does nothing the second time."""
        key = held.message.key
        if not held.has_key or key is None:
            return
        held.has_key = False
        behind = self._behind[key]
        if behind:
            self._make_ready(behind.popleft())
        else:
            del self._behind[key]

    def list_behind(self, held: MessageInHand) -> list[MessageInHand]:
        """Return the messages that wait behind one that has left the queue, as they are of its key."""
        return list(self._behind.get(held.message.key or b"", ())) if held.has_key else []

    def remove_messages(self, is_removed: Callable[[MessageInHand], bool]) -> list[MessageInHand]:
        """Remove messages, and return them; those under way have left the queue already."""
        removed = [held for held in self.list_messages() if is_removed(held)]
        if not removed:
            return []
        left = [held for held in self.list_messages() if not is_removed(held)]
        ready_keys = {held.message.key for held in self._ready}
        # A key of which no message was ready is under way, and stays so.
        self._behind = {key: deque() for key in self._behind if key not in ready_keys}
        self._ready.clear()
        self._ready_bytes = 0
        self._add_all(left)
        return removed

    def _add_all(self, messages: Iterable[MessageInHand]) -> None:
        for held in messages:
            self.add_message(held)

    def _make_ready(self, held: MessageInHand) -> None:
        self._ready.append(held)
        self._ready_bytes += held.size_bytes
