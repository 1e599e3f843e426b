"""Bodies that were turned away for now: whoever sent one has been asked to send it again.

Until he does, nothing is vouched for; if he does not within a time, what was in it counts as refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from hopwatch.probes.taps.http.refusals import RefusedObservations

RESEND_WAIT_S: Final = 20.0
"""How long a client may take to come again; he was told to wait for a second."""
MAX_PENDING: Final = 1_024
"""So many bodies are waited for at most."""
MAX_WINDOWS: Final = 100_000
"""Of so many minutes, added up over all of them."""


class PendingResend(NamedTuple):
    """What was in a body, why it was turned away, and when: first in µs since 1970, last in monotonic seconds."""

    refused: RefusedObservations
    cause: str
    since_us: int
    last_s: float


class PendingResends:
    """The bodies that are waited for, by a digest of each, the oldest first; not safe for threads by itself."""

    def __init__(self) -> None:
        """Start with none."""
        self._pending: dict[bytes, PendingResend] = {}
        self._windows = 0

    def __len__(self) -> int:
        """Return how many are waited for."""
        return len(self._pending)

    def add(self, digest: bytes, debt: PendingResend) -> bool:
        """Wait for a body, from when it came first; False if too many are waited for."""
        before = self._pending.get(digest)
        if before is None:
            windows = self._windows + len(debt.refused.windows)
            if len(self._pending) >= MAX_PENDING or windows > MAX_WINDOWS:
                return False
            self._windows = windows
        self._pending[digest] = debt if before is None else before._replace(last_s=debt.last_s)
        return True

    def remove(self, digest: bytes) -> None:
        """Wait no longer for a body that has come, or was never waited for."""
        debt = self._pending.pop(digest, None)
        self._windows -= len(debt.refused.windows) if debt else 0

    def take_overdue(self, now_s: float = float("inf")) -> Iterator[PendingResend]:
        """Take out and yield what was waited for in vain; at the end all of it."""
        late = [digest for digest, debt in self._pending.items() if now_s - debt.last_s >= RESEND_WAIT_S]
        for digest in late:
            yield self._pending[digest]
            self.remove(digest)

    @property
    def since_us(self) -> int | None:
        """Return when the oldest was turned away first, µs since 1970."""
        return next(iter(self._pending.values())).since_us if self._pending else None
