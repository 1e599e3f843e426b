"""Shared cache of values that are derived from query results, built once for all viewers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

MAX_ENTRIES: Final = 256

Built = TypeVar("Built")


@dataclass
class _Entry:
    subject: object
    lock: threading.Lock = field(default_factory=threading.Lock)
    values: list[Any] = field(default_factory=list)


class SharedCache:
    """LRU cache of values derived from objects, compared by identity; safe from any thread."""

    def __init__(self, most: int = MAX_ENTRIES) -> None:
        """Keep so many."""
        self._max_entries = most
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()

    def get_or_build(self, subject: object, key: Hashable, make: Callable[[], Built]) -> Built:
        """Return what was made of a subject under this key, or make it; others that want the same wait for it."""
        making = self._get_entry(subject, (id(subject), key))
        with making.lock:
            if not making.values:
                making.values.append(make())
            return cast("Built", making.values[0])

    def _get_entry(self, subject: object, key: Hashable) -> _Entry:
        with self._lock:
            # It holds its subject, so that no other object gets its id meanwhile.
            making = self._entries.setdefault(key, _Entry(subject))
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)
            return making
