"""Prefetch of a file's parts: a thread reads the next ones while this one is worked on."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, Final, TypeVar

from hopwatch.probes.files.errors import CutError, MappingError, UnreadableFileError
from hopwatch.probes.files.source import describe_error

MAX_WAITING: Final = 2
"""Parts that are read ahead, at most: so many more are in memory."""
_END: Final = object()

_Item = TypeVar("_Item")


def prefetch(items: Iterator[_Item]) -> Generator[_Item]:
    """Yield items that a thread reads ahead; its error is raised behind the last of them.

    Raises:
        UnreadableFileError: the thread ended by an error that nobody foresaw.
    """
    queue: Queue[Any] = Queue(MAX_WAITING)
    is_over = Event()

    def put(item: Any) -> bool:  # noqa: ANN401 - an item, an error, or the end
        while not is_over.is_set():
            try:
                queue.put(item, timeout=0.1)
            except Full:
                continue
            return True
        return False

    def read() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(_END)
        except BaseException as error:  # noqa: BLE001 - it is raised where the items are used
            put(_to_fault(error))

    thread = Thread(target=read, name="hopwatch-import", daemon=True)
    thread.start()
    try:
        while (item := queue.get()) is not _END:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        is_over.set()
        thread.join()


def _to_fault(error: BaseException) -> BaseException:
    """Return an error that nobody foresaw as the fault of the file: one of them ends no import of others."""
    if isinstance(error, CutError | MappingError | UnreadableFileError) or not isinstance(error, Exception):
        return error
    return UnreadableFileError(f"its rows cannot be read ({type(error).__name__} {describe_error(error)})")
