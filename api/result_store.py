"""Store behind the API: each question is one read transaction, and a store that is down is a problem with 503."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeVar

from anyio import CapacityLimiter, to_thread
from sqlalchemy import Connection, Engine

from hopwatch.monitor.errors import ConfigurationError, StoreError
from hopwatch.monitor.store import dialect, schema
from hopwatch.probes.http.problems import HttpProblem

RETRY_AFTER_S: Final = 5
"""Value of Retry-After while the store is down."""

MAX_SLOW: Final = 4
"""Questions that read very much, answered at once: all others go on beside them."""

Value = TypeVar("Value")


class ResultStore:
    """Results of one store; safe from any thread."""

    def __init__(self, url: str) -> None:
        """Take the store's URL; it need not be there yet."""
        self._url = url
        self._file = dialect.database_file(url)
        self._engine = dialect.create_engine(url)
        self._read_file: tuple[int, int] | None = None
        self._slow = CapacityLimiter(MAX_SLOW)

    def read(self, question: Callable[[Connection], Value]) -> Value:
        """Return the answer to a question, as the store stands.

        Raises:
            HttpProblem: the store is down, or of another version.
        """

        def ask(engine: Engine) -> Value:
            with schema.open_snapshot(engine) as connection:
                return question(connection)

        return self.ask(ask)

    def ask(self, question: Callable[[Engine], Value]) -> Value:
        """Return the answer to a question that opens its own transactions.

        Raises:
            HttpProblem: the store is down or of another version, or what was asked for cannot be.
        """
        try:
            if self._file is not None:
                self._follow_file(self._file)
            return question(self._engine)
        except StoreError as error:
            more = {"retry-after": str(RETRY_AFTER_S)}
            raise HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, "store-down", str(error), extra_headers=more) from None
        except ConfigurationError as error:
            raise HttpProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-request", str(error)) from None

    async def ask_slowly(self, question: Callable[[Engine], Value]) -> Value:
        """Return the answer to a question that reads very much, of which few are read at once.

        Raises:
            HttpProblem: as of any other.
        """
        return await to_thread.run_sync(self.ask, question, limiter=self._slow)

    def _follow_file(self, file: Path) -> None:
        """Leave a file that was put aside: connections that are open read it for ever, and call it the store."""
        try:
            status = file.stat()
        except OSError:
            # SQLite would make one.
            schema.require_store(self._url)
            return
        found = status.st_dev, status.st_ino
        before, self._read_file = self._read_file, found
        if before not in (None, found):
            self._engine.dispose()

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()
