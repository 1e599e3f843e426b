"""A map that forgets what is old, so that it never grows beyond its bound."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class RecentMap(Generic[K, V]):
    """Keeps at least the last ``least`` entries that were put into it, and at most twice as many.

    In two generations: when the young one is full, the old one goes as a whole, which costs nothing an entry.
    """

    def __init__(self, least: int) -> None:
        """Begin empty."""
        self._min_entries = least
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Return what was put in under a key, if it is kept still."""
        found = self._young.get(key)
        return self._old.get(key) if found is None else found

    def put(self, key: K, value: V) -> None:
        """Keep a value."""
        if len(self._young) >= self._min_entries:
            self._old, self._young = self._young, {}
        self._young[key] = value

    def forget(self, key: K) -> None:
        """Let go of a key at once."""
        self._young.pop(key, None)
        self._old.pop(key, None)

    def __len__(self) -> int:
        """Return how many entries are kept."""
        return len(self._young) + len(self._old)
