"""Bounded map that drops its oldest entries."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class RecentMap(Generic[K, V]):
    """Bounded map that keeps at least the ``least`` most recent entries, and at most twice as many.

    It has two generations: when the young one is full, the old one is dropped as a whole, at no cost per entry.
    """

    def __init__(self, least: int) -> None:
        """Begin empty."""
        self._min_entries = least
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Return the value of a key, if it is still kept."""
        found = self._young.get(key)
        return self._old.get(key) if found is None else found

    def put(self, key: K, value: V) -> None:
        """Store a value."""
        if len(self._young) >= self._min_entries:
            self._old, self._young = self._young, {}
        self._young[key] = value

    def forget(self, key: K) -> None:
        """Remove a key."""
        self._young.pop(key, None)
        self._old.pop(key, None)

    def __len__(self) -> int:
        """Return how many entries are kept."""
        return len(self._young) + len(self._old)
