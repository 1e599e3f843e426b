"""What is made of an answer is made once for all who look at it: fifty viewers of a page cost what one costs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

MOST_KEPT: Final = 256

Made = TypeVar("Made")


@dataclass
class _Making:
    subject: object
    lock: threading.Lock = field(default_factory=threading.Lock)
    made: list[Any] = field(default_factory=list)


class Once:
    """Things made of subjects, the latest used ones; safe from any thread. A subject is the object, not its like."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        """Keep so many."""
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Making] = OrderedDict()

    def of(self, subject: object, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what was made of a subject under this key, or make it; others that want the same wait for it."""
        making = self._making(subject, (id(subject), key))
        with making.lock:
            if not making.made:
                making.made.append(make())
            return cast("Made", making.made[0])

    def _making(self, subject: object, key: Hashable) -> _Making:
        with self._lock:
            # It holds its subject, so that no other object gets its id meanwhile.
            making = self._kept.setdefault(key, _Making(subject))
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return making
