"""End offsets of a topic: a tap has caught up with a moment once it has read all messages that existed then."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from typing import Any, Final, Generic, TypeVar

ASK_EVERY_S: Final = 1.0

Partition = TypeVar("Partition", bound=Hashable)
"""Number of a partition, or its topic and number."""
RequestOffsets = Callable[[list[Partition]], Mapping[Partition, Future[Any]]]
"""Function that requests the current end offsets of partitions; each answer has an ``offset``."""


class EndOffsets(Generic[Partition]):
    """Tracker that requests the end offsets once a second, and finds the moments with which a tap has caught up."""

    def __init__(self, ask: RequestOffsets[Partition]) -> None:
        """Set the function that requests the offsets."""
        self._ask = ask
        self._asked_s = float("-inf")
        self._asked_us = 0
        self._answers: Mapping[Partition, Future[Any]] = {}
        self._ends: dict[Partition, int] | None = None

    def reset(self) -> None:
        """Start again after an assignment of other partitions."""
        self._answers, self._ends = {}, None
        self._asked_s = float("-inf")

    def find_caught_up_us(self, progress: Mapping[Partition, int], now_s: float, now_us: int) -> int | None:
        """Return a moment with which the tap has caught up, in µs, if there is a new one.

        ``progress`` is the next offset of every assigned partition, -1 where it is unknown. Without partitions the tap
        has caught up with now.
        """
        if self._ends is None and self._answers and all(answer.done() for answer in self._answers.values()):
            self._ends = self._read_answers()
        if self._ends is not None and all(progress.get(number, -1) >= end for number, end in self._ends.items()):
            caught_up_us, self._ends, self._answers = self._asked_us, None, {}
            return caught_up_us
        if not self._answers and now_s - self._asked_s >= ASK_EVERY_S:
            self._asked_s, self._asked_us = now_s, now_us
            self._answers = self._ask(list(progress)) if progress else {}
            if not progress:
                return now_us
        return None

    def _read_answers(self) -> dict[Partition, int] | None:
        """Return the end offsets; None, to request them again, after an error."""
        if any(answer.exception() is not None for answer in self._answers.values()):
            self._answers = {}
            return None
        return {number: int(answer.result().offset) for number, answer in self._answers.items()}
