"""Once per cause: a failure is logged when it begins, not each time that it happens again."""

from __future__ import annotations

import logging
from typing import Final

MAX_CAUSES: Final = 1_000
"""Causes that are logged; one line says that further ones are not, as whoever makes up so many would fill the log."""
BEYOND: Final = "%d different causes of a failure were logged; further ones are not logged"

_log = logging.getLogger("hopwatch")


class OncePerCause:
    """Causes that were logged already; thread-safe without a lock, and so after a fork too."""

    def __init__(self, max_causes: int = MAX_CAUSES) -> None:
        """Begin with none."""
        self._max_causes = max_causes
        self._seen: dict[str | None, object] = {}

    def is_new(self, cause: str = "") -> bool:
        """Return True the first time that a cause is given, and the first time after each :meth:`rearm`."""
        if cause in self._seen:
            return False
        if len(self._seen) >= self._max_causes:
            if self._is_first(None):
                _log.warning(BEYOND, self._max_causes)
            return False
        return self._is_first(cause)

    def _is_first(self, cause: str | None) -> bool:
        # One atomic step: of threads that come at once with one cause, one alone is told that it is new.
        token = object()
        return self._seen.setdefault(cause, token) is token

    def rearm(self) -> bool:
        """Forget all causes, as what failed works again; return whether there were any."""
        had_any = bool(self._seen)
        self._seen.clear()
        return had_any
