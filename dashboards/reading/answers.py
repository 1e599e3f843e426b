"""Answers that are kept: one question at a time goes to the store, and what was known last stays when it is down.

However many people look, a question is asked once in ``FRESH_US``.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from sqlalchemy import Connection, Engine

from hopwatch.dashboards.reading.searches import Searches
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.settings import Settings
from hopwatch.monitor.store import dialect, schema

FRESH_US: Final = 4_000_000
"""How long an answer is as good as a new one: less than pages take to ask again."""
RECENT_US: Final = 2 * FRESH_US
"""How long an answer does for others while one of those who look asks for a new one."""
GONE: Final = "it is not there any more"
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
    answered_us: int = 0


class Answers:
    """The answers of one store. Safe to be asked from any thread."""

    def __init__(self, url: str, clock: Clock, settings: Settings | None = None) -> None:
        """Take the store's URL; it need not be there yet. The settings say where messages are searched for."""
        self.searches = Searches(settings, clock)
        self._url, self._clock = url, clock
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._kept: OrderedDict[Question[Any], _Kept] = OrderedDict()

    def ask(self, question: Question[Value]) -> Answer[Value]:
        """Return the answer: a new one, or one of a moment ago. Trouble with the store is told in it and not raised.

        While one asks the store, others get what was known before, if anything was lately.
        """
        kept = self._of(question)
        if not kept.lock.acquire(blocking=not self._is_recent(kept)):
            return cast("Answer[Value]", kept.answer)
        try:
            if kept.answer is None or self._age_us(kept) >= FRESH_US:
                kept.answer, kept.answered_us = self._asked(question, kept.answer), self._clock.now_us()
            return cast("Answer[Value]", kept.answer)
        finally:
            kept.lock.release()

    def _is_recent(self, kept: _Kept) -> bool:
        return kept.answer is not None and self._age_us(kept) < RECENT_US

    def _age_us(self, kept: _Kept) -> int:
        """Return how old an answer is; one from the future is no answer, and older than any."""
        age_us = self._clock.now_us() - kept.answered_us
        return age_us if age_us >= 0 else RECENT_US

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
            if not schema.has_store(self._url):
                gone = before is not None and before.value is not None
                return replace(before, trouble=GONE) if before and gone else Answer(None, now_us, has_store=False)
            with schema.open_snapshot(self._opened()) as connection:
                value = question.read(connection)
            # The same object as long as it says the same: what was made of it stays as good.
            is_same = before is not None and before.value == value
            return Answer(before.value if before is not None and is_same else value, now_us)
        except StoreError as error:
            last = before or Answer(None, now_us)
            return replace(last, trouble=str(error))

    def _opened(self) -> Engine:
        with self._lock:
            self._engine = self._engine or dialect.create_engine(self._url)
            return self._engine
