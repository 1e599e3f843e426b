"""Bodies that were turned away for now: whoever sent one has been asked to send it again.

Until he does, nothing is vouched for; if he does not within a time, what was in it counts as refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from hopwatch.probes.taps.http.refused import Refused

PATIENCE_S: Final = 20.0
"""How long a client may take to come again; he was told to wait for a second."""
MOST: Final = 1_024
"""So many bodies are waited for at most."""
MOST_WINDOWS: Final = 100_000
"""Of so many minutes, added up over all of them."""


class Debt(NamedTuple):
    """What was in a body, why it was turned away, and when: first in µs since 1970, last in monotonic seconds."""

    refused: Refused
    cause: str
    since_us: int
    last_s: float


class Owed:
    """The bodies that are waited for, by a digest of each, the oldest first; not safe for threads by itself."""

    def __init__(self) -> None:
        """Start with none."""
        self._debts: dict[bytes, Debt] = {}
        self._windows = 0

    def __len__(self) -> int:
        """Return how many are waited for."""
        return len(self._debts)

    def put(self, digest: bytes, debt: Debt) -> bool:
        """Wait for a body, from when it came first; False if too many are waited for."""
        before = self._debts.get(digest)
        if before is None:
            windows = self._windows + len(debt.refused.windows)
            if len(self._debts) >= MOST or windows > MOST_WINDOWS:
                return False
            self._windows = windows
        self._debts[digest] = debt if before is None else before._replace(last_s=debt.last_s)
        return True

    def came(self, digest: bytes) -> None:
        """Wait no longer for a body that has come, or was never waited for."""
        debt = self._debts.pop(digest, None)
        self._windows -= len(debt.refused.windows) if debt else 0

    def due(self, now_s: float = float("inf")) -> Iterator[Debt]:
        """Take out and yield what was waited for in vain; at the end all of it."""
        late = [digest for digest, debt in self._debts.items() if now_s - debt.last_s >= PATIENCE_S]
        for digest in late:
            yield self._debts[digest]
            self.came(digest)

    @property
    def since_us(self) -> int | None:
        """Return when the oldest was turned away first, µs since 1970."""
        return next(iter(self._debts.values())).since_us if self._debts else None
