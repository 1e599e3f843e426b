"""Pending resends: bodies that were refused for now, and that clients were asked to send again.

Until a body comes again, no later moment is completed; if it does not come in time, its observations count as refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from hopwatch.probes.taps.http.refusals import RefusedObservations

RESEND_WAIT_S: Final = 20.0
"""Time in which a client has to send a body again; Retry-After asks for one second."""
MAX_PENDING: Final = 1_024
"""Pending bodies, at most."""
MAX_WINDOWS: Final = 100_000
"""Windows of all pending bodies together, at most."""


class PendingResend(NamedTuple):
    """Refused body: observations, cause, and times of the first (µs since 1970) and last (monotonic s) refusal."""

    refused: RefusedObservations
    cause: str
    since_us: int
    last_s: float


class PendingResends:
    """Pending bodies by digest, the oldest first; not thread-safe."""

    def __init__(self) -> None:
        """Start with none."""
        self._pending: dict[bytes, PendingResend] = {}
        self._windows = 0

    def __len__(self) -> int:
        """Return the number of pending bodies."""
        return len(self._pending)

    def add(self, digest: bytes, debt: PendingResend) -> bool:
        """Add a body, or renew its last time; False if too many are pending."""
        before = self._pending.get(digest)
        if before is None:
            windows = self._windows + len(debt.refused.windows)
            if len(self._pending) >= MAX_PENDING or windows > MAX_WINDOWS:
                return False
            self._windows = windows
        self._pending[digest] = debt if before is None else before._replace(last_s=debt.last_s)
        return True

    def remove(self, digest: bytes) -> None:
        """Remove a body, if it is pending."""
        debt = self._pending.pop(digest, None)
        self._windows -= len(debt.refused.windows) if debt else 0

    def take_overdue(self, now_s: float = float("inf")) -> Iterator[PendingResend]:
        """Remove and yield the overdue bodies; all of them by default."""
        late = [digest for digest, debt in self._pending.items() if now_s - debt.last_s >= RESEND_WAIT_S]
        for digest in late:
            yield self._pending[digest]
            self.remove(digest)

    @property
    def since_us(self) -> int | None:
        """Return the first refusal of the oldest body, µs since 1970."""
        return next(iter(self._pending.values())).since_us if self._pending else None
