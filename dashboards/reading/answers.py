"""Answers that are kept: one question at a time goes to the store, and what was known last stays when it is down.

However many people look, a question is asked once in ``FRESH_US``.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from sqlalchemy import Connection, Engine

from monitor.clock import Clock
from monitor.errors import StoreError
from monitor.store import dialect, schema

FRESH_US: Final = 4_000_000
"""How long an answer is as good as a new one: less than pages take to ask again."""
MOST_KEPT: Final = 256

Value_co = TypeVar("Value_co", covariant=True)
Value = TypeVar("Value")


class Question(Protocol[Value_co]):
    """A value that can be asked of a store; equal questions have one answer."""

    def read(self, connection: Connection) -> Value_co:
        """Return the answer as the store stands."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[Value]):
    """What is known: the value if there ever was one, when it was read, and why it is no newer if something is wrong.

    ``has_store`` is False where no store was made yet.
    """

    value: Value | None
    read_us: int
    trouble: str = ""
    has_store: bool = True


@dataclass
class _Kept:
    lock: threading.Lock = field(default_factory=threading.Lock)
    answer: Answer[Any] | None = None
    asked_us: int = 0


class Answers:
    """The answers of one store. Safe to be asked from any thread."""

    def __init__(self, url: str, clock: Clock) -> None:
        """Take the store's URL; it need not be there yet."""
        self._url, self._clock = url, clock
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._kept: OrderedDict[Question[Any], _Kept] = OrderedDict()

    def ask(self, question: Question[Value]) -> Answer[Value]:
        """Return the answer: a new one, or one of a moment ago. Trouble with the store is told in it and not raised."""
        kept = self._of(question)
        with kept.lock:
            if kept.answer is None or not 0 <= self._clock.now_us() - kept.asked_us < FRESH_US:
                kept.asked_us = self._clock.now_us()
                kept.answer = self._asked(question, kept.answer)
            return cast("Answer[Value]", kept.answer)

    def _of(self, question: Question[Any]) -> _Kept:
        with self._lock:
            kept = self._kept.setdefault(question, _Kept())
            self._kept.move_to_end(question)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return kept

    def _asked(self, question: Question[Any], before: Answer[Any] | None) -> Answer[Any]:
        now_us = self._clock.now_us()
        try:
            if not schema.is_there(self._url):
                return Answer(None, now_us, has_store=False)
            with schema.reading(self._opened()) as connection:
                value = question.read(connection)
            # The same object as long as it says the same: what was made of it stays as good.
            is_same = before is not None and before.value == value
            return Answer(before.value if before is not None and is_same else value, now_us)
        except StoreError as error:
            last = before or Answer(None, now_us)
            return replace(last, trouble=str(error))

    def _opened(self) -> Engine:
        with self._lock:
            self._engine = self._engine or dialect.engine(self._url)
            return self._engine
