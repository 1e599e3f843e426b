"""What becomes of probes when their process ends or forks: closed at the end, made anew in the child of a fork.

A bye says that nothing is stamped any more. At the end of a process it is sent only where that is sure: while another
thread is alive, which may go on handling messages, the probes end in silence, and what comes after is unknown.
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
    """A thing that lives as long as its process, unless it is closed before."""

    def end(self, *, bye: bool = True) -> None:
        """Begin to close, and wait for nothing; never raises."""

    def close(self) -> None:
        """Let go of everything; never raises."""

    def start_anew(self) -> None:
        """Become another instance at the next stamp: in the child of a fork, or after the end; never raises."""


class ProbeThread(threading.Thread):
    """A thread of ours: it stamps nothing of its own accord, and so keeps no bye from being said."""

    def __init__(self, *, target: Callable[..., object], args: tuple[object, ...] = (), name: str) -> None:
        """Take what it does; the process does not wait for it."""
        super().__init__(target=target, args=args, name=name, daemon=True)


_MAX_NAMES_CHARS: Final = 200
_log = logging.getLogger("hopwatch.probe")
_alive: set[Closable] = set()
"""Held strongly: what was stamped with a probe that its host has forgotten is sent all the same."""


def register(thing: Closable) -> None:
    """Have a thing closed when the process ends, and made anew when it forks."""
    _alive.add(thing)
    if parent_process() is not None:
        _close_with_worker()


def unregister(thing: Closable) -> None:
    """Do nothing more for a thing, if anything was done."""
    _alive.discard(thing)


def check_interpreter() -> None:
    """Raise where a thread that is started would never run, and whoever starts it would wait for ever.

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
    """Close all that lives, with a bye where no other thread may stamp; waits for the slowest, some seconds at most."""
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
            # Whoever registered with atexit before us runs after us, and may stamp: as an instance without a bye.
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
