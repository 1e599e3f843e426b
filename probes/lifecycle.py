"""Process lifecycle of probes: close them at exit, restart them in the child of a fork.

A bye states that nothing more will be stamped. At the end of a process it is sent only where that is certain: while
another thread is alive, which may still handle messages, the probes end without a bye, and later messages are unknown.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections.abc import Callable
from multiprocessing import parent_process, util
from typing import Final, Protocol


class Closable(Protocol):
    """Resource that lives until its process ends, unless it is closed before."""

    def end(self, *, bye: bool = True) -> None:
        """Begin to close, without waiting; never raise."""

    def close(self) -> None:
        """Close, and release all resources; never raise."""

    def start_anew(self) -> None:
        """Become a new instance at the next stamp, in the child of a fork or after the end; never raise."""


class ProbeThread(threading.Thread):
    """Thread of a probe: it stamps nothing by itself, so a bye may be sent while it is alive."""

    def __init__(self, *, target: Callable[..., object], args: tuple[object, ...] = (), name: str) -> None:
        """Set its target; the process does not wait for the thread."""
        super().__init__(target=target, args=args, name=name, daemon=True)


_MAX_NAMES_CHARS: Final = 200
_log = logging.getLogger("hopwatch.probe")
_alive: set[Closable] = set()
"""Strong references: stamps of a probe that its host no longer references are still sent."""


def register(thing: Closable) -> None:
    """Close a resource when the process ends, and restart it in the child of a fork."""
    _alive.add(thing)
    if parent_process() is not None:
        _close_with_worker()


def unregister(thing: Closable) -> None:
    """Remove a resource, if it is registered."""
    _alive.discard(thing)


def check_interpreter() -> None:
    """Check that a new thread would run: at interpreter shutdown it would not, and its starter would wait for ever.

    Raises:
        RuntimeError: the interpreter is being torn down.
    """
    if sys.is_finalizing():
        raise RuntimeError("the interpreter ends")


def list_other_threads() -> list[str]:
    """Return the names of the threads that may stamp beside the main one and this one."""
    ours = threading.main_thread(), threading.current_thread()
    return [one.name for one in threading.enumerate() if one not in ours and not isinstance(one, ProbeThread)]


def close_all() -> None:
    """Close all resources, with a bye if no other thread may stamp; wait for the slowest, some seconds at most."""
    things, going_on = list(_alive), list_other_threads()
    if things and going_on:
        told = "probes end without a bye, as threads are alive that may stamp (%s): close them after the last message"
        _log.warning(told, ", ".join(going_on)[:_MAX_NAMES_CHARS])
    # All of them first, so that the process waits for the slowest one alone.
    for thing in things:
        thing.end(bye=not going_on)
    for thing in things:
        thing.close()
        if not going_on:
            # Handlers registered with atexit before ours run after ours, and may stamp: as an instance without a bye.
            thing.start_anew()


def _close_with_worker(_: object = None) -> None:
    # A worker of multiprocessing ends by os._exit, which runs no atexit; its own finalizers are all it runs.
    util.Finalize(None, close_all, exitpriority=0)


def _start_all_anew() -> None:
    for thing in list(_alive):
        thing.start_anew()


atexit.register(close_all)
os.register_at_fork(after_in_child=_start_all_anew)
# A forked worker first forgets the finalizers of its parent, and then runs this.
util.register_after_fork(_close_with_worker, _close_with_worker)
