"""Bounded cache of values that are built once for all threads; the least recently used ones go first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from cachetools import LRUCache

Value = TypeVar("Value")


@dataclass(slots=True)
class _Slot:
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_built: bool = False
    value: Any = None


class Memo:
    """LRU cache, safe from any thread; a key stands for values of one type."""

    def __init__(self, max_entries: int) -> None:
        """Keep at most so many values."""
        self._lock = threading.Lock()
        self._slots: LRUCache[Hashable, _Slot] = LRUCache(max_entries)
        # What is being built takes no place of a value, as it may fail.
        self._unbuilt: dict[Hashable, _Slot] = {}

    def get_or_build(self, key: Hashable, build: Callable[[], Value]) -> Value:
        """Return the value of a key, or build it; other threads that want the same wait for it.

        A build that raises leaves nothing behind: the next caller builds again.
        """
        with self._lock:
            slot = self._slots.get(key) or self._unbuilt.setdefault(key, _Slot())
        with slot.lock:
            if not slot.is_built:
                try:
                    slot.value, slot.is_built = build(), True
                finally:
                    self._keep(key, slot)
            return cast("Value", slot.value)

    def _keep(self, key: Hashable, slot: _Slot) -> None:
        """Give a value its place once it is built, unless another one was put there meanwhile."""
        with self._lock:
            if self._unbuilt.get(key) is slot:
                del self._unbuilt[key]
            if slot.is_built and key not in self._slots:
                self._slots[key] = slot

    def get(self, key: Hashable) -> Any:  # noqa: ANN401 - values of any type
        """Return the value of a key; None if there is none yet."""
        with self._lock:
            slot = self._slots.get(key)
            return slot.value if slot else None

    def put(self, key: Hashable, value: object) -> None:
        """Keep a value in place of the one before."""
        with self._lock:
            self._slots[key] = _Slot(is_built=True, value=value)


class Identity:
    """Key that is equal to itself alone: of an object, by identity, which lives as long as the key."""

    __slots__ = ("_subject",)

    def __init__(self, subject: object) -> None:
        """Hold the object, so that no other gets its id meanwhile."""
        self._subject = subject

    def __hash__(self) -> int:
        """Return the hash of its id."""
        return hash(id(self._subject))

    def __eq__(self, other: object) -> bool:
        """Return whether both are keys of one object."""
        return isinstance(other, Identity) and self._subject is other._subject
