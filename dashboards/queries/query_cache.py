"""Cache of query results: one query at a time reads the store, and the last result stays while it is down.

However many people look, a question is asked once in ``FRESH_FOR_US``, and anew after a change by one of them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from sqlalchemy import Connection, Engine

from hopwatch.dashboards.queries.consumer_lags import ConsumerLags
from hopwatch.dashboards.queries.message_search import MessageSearch
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.errors import ConfigurationError, StoreError
from hopwatch.monitor.memo import Memo
from hopwatch.monitor.settings import Settings
from hopwatch.monitor.store import dialect, schema

FRESH_FOR_US: Final = 4_000_000
"""Age up to which an answer is as good as a new one: less than the interval at which pages ask again."""
STALE_AFTER_FRESH: Final = 2
"""Times that age, up to which an answer serves other viewers while one of them asks for a new one."""
STORE_GONE: Final = "it is not there any more"
MAX_ENTRIES: Final = 256

Change = Callable[[Engine], object]
"""Change of the store: it raises a ConfigurationError where it is refused, and a StoreError of the store."""

Value_co = TypeVar("Value_co", covariant=True)
Value = TypeVar("Value")


class Query(Protocol[Value_co]):
    """Query of the store; equal queries share one result."""

    def __hash__(self) -> int:
        """Return the hash, by which its result is found."""

    def run(self, connection: Connection) -> Value_co:
        """Return the answer as the store stands."""


@dataclass(frozen=True, slots=True)
class QueryResult(Generic[Value]):
    """Result of a query: the value if there ever was one, when it was read, and the error of a failed refresh.

    ``has_store`` is False where no store was made yet.
    """

    value: Value | None
    read_us: int
    error: str = ""
    has_store: bool = True


@dataclass
class _Entry:
    lock: threading.Lock = field(default_factory=threading.Lock)
    result: QueryResult[Any] | None = None
    read_us: int = 0
    changes: int = 0
    """Changes of the store that were made here before it was read."""


def find_fresh_us(question: Query[Any]) -> int:
    """Return the age up to which an answer is as good as a new one; a question that costs more may say a longer one."""
    return int(getattr(question, "fresh_for_us", FRESH_FOR_US))


class QueryCache:
    """Query results of one store, shared by all viewers; safe from any thread."""

    def __init__(self, url: str, clock: Clock, settings: Settings | None = None) -> None:
        """Take the store's URL; it need not be there yet. The settings say what is searched."""
        self.message_search, self.settings = MessageSearch(settings, clock), settings
        self.consumer_lags = ConsumerLags(settings, clock)
        self._url, self._clock = url, clock
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._entries, self._changes = Memo(MAX_ENTRIES), 0

    def fetch(self, question: Query[Value]) -> QueryResult[Value]:
        """Return the answer: a new one, or one of a moment ago. It holds an error of the store instead of raising it.

        While one asks the store, others get what was known before, if anything was lately.
        """
        kept = self._entries.get_or_build(question, _Entry)
        fresh_us = find_fresh_us(question)
        if not kept.lock.acquire(blocking=not self._is_recent(kept, fresh_us)):
            return cast("QueryResult[Value]", kept.result)
        try:
            if kept.result is None or self._age_us(kept) >= fresh_us:
                changes = self._changes
                kept.result, kept.read_us = self._run(question, kept.result), self._clock.now_us()
                kept.changes = changes
            return cast("QueryResult[Value]", kept.result)
        finally:
            kept.lock.release()

    def apply(self, change: Change) -> str:
        """Change the store, after which every question is asked anew; return the error of a change that was refused."""
        try:
            change(self._open_engine())
        except (ConfigurationError, StoreError) as error:
            return str(error)
        finally:
            self._changes += 1
        return ""

    def _is_recent(self, kept: _Entry, fresh_us: int) -> bool:
        return kept.result is not None and self._age_us(kept) < STALE_AFTER_FRESH * fresh_us

    def _age_us(self, kept: _Entry) -> int:
        """Return how old an answer is; one from the future, or from before a change, is older than any."""
        age_us = self._clock.now_us() - kept.read_us
        return age_us if age_us >= 0 and kept.changes == self._changes else sys.maxsize

    def _run(self, question: Query[Any], before: QueryResult[Any] | None) -> QueryResult[Any]:
        now_us = self._clock.now_us()
        try:
            if not schema.has_store(self._url):
                gone = before is not None and before.value is not None
                return (
                    replace(before, error=STORE_GONE) if before and gone else QueryResult(None, now_us, has_store=False)
                )
            with schema.open_snapshot(self._open_engine()) as connection:
                value = question.run(connection)
            # The same object as long as it says the same: what was made of it stays as good.
            is_same = before is not None and before.value == value
            return QueryResult(before.value if before is not None and is_same else value, now_us)
        except StoreError as error:
            last = before or QueryResult(None, now_us)
            return replace(last, error=str(error))

    def _open_engine(self) -> Engine:
        with self._lock:
            self._engine = self._engine or dialect.create_engine(self._url)
            return self._engine
