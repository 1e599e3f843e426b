"""Schedule of batches that wait in hand for their next try. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count

from hopwatch.deliver.batch_queue import MessageInHand


class RetrySchedule:
    """Batches by the time of their next try, in seconds of a clock that never goes back."""

    def __init__(self) -> None:
        """Begin empty."""
        self._batches: list[tuple[float, int, list[MessageInHand]]] = []
        self._numbers = count()

    def add_batch(self, batch: list[MessageInHand], due_s: float) -> None:
        """Add a batch that is sent again as it is."""
        heapq.heappush(self._batches, (due_s, next(self._numbers), batch))

    def remaining_s(self, now_s: float) -> float | None:
        """Return the seconds until a batch is due, 0 if one is; None if none waits."""
        return max(self._batches[0][0] - now_s, 0.0) if self._batches else None

    def take_due(self, now_s: float) -> list[MessageInHand]:
        """Take the batch that is due for longest; an empty list if none is."""
        return heapq.heappop(self._batches)[2] if self.remaining_s(now_s) == 0.0 else []

    def list_messages(self) -> Iterator[MessageInHand]:
        """Yield all messages."""
        for _, _, batch in self._batches:
            yield from batch

    def remove_messages(self, is_removed: Callable[[MessageInHand], bool]) -> list[MessageInHand]:
        """Remove messages, and return them."""
        removed = [held for held in self.list_messages() if is_removed(held)]
        if removed:
            left = [(due, n, [held for held in batch if not is_removed(held)]) for due, n, batch in self._batches]
            self._batches = [one for one in left if one[2]]
            heapq.heapify(self._batches)
        return removed
