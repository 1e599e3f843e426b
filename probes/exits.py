"""What becomes of probes when their process ends or forks: closed at the end, made anew in the child of a fork."""

from __future__ import annotations

import atexit
import os
from multiprocessing import parent_process, util
from typing import Protocol


class Lasting(Protocol):
    """A thing that lives as long as its process, unless it is closed before."""

    def end(self) -> None:
        """Begin to close, and wait for nothing; never raises."""

    def close(self) -> None:
        """Let go of everything; never raises."""

    def start_anew(self) -> None:
        """Become another instance, in the child of a fork; never raises."""


_alive: set[Lasting] = set()
"""Held strongly: what was stamped with a probe that its host has forgotten is sent all the same."""


def watch(thing: Lasting) -> None:
    """Have a thing closed when the process ends, and made anew when it forks."""
    _alive.add(thing)
    if parent_process() is not None:
        _close_with_worker()


def forget(thing: Lasting) -> None:
    """Do nothing more for a thing, if anything was done."""
    _alive.discard(thing)


def _close_all() -> None:
    things = list(_alive)
    # All of them first, so that the process waits for the slowest one alone.
    for thing in things:
        thing.end()
    for thing in things:
        thing.close()


def _close_with_worker(_: object = None) -> None:
    # A worker of multiprocessing ends by os._exit, which runs no atexit; its own finalizers are all it runs.
    util.Finalize(None, _close_all, exitpriority=0)


def _start_all_anew() -> None:
    for thing in list(_alive):
        thing.start_anew()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_start_all_anew)
# A forked worker first forgets the finalizers of its parent, and then runs this.
util.register_after_fork(_close_with_worker, _close_with_worker)
