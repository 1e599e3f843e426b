"""What a gate that was killed has left in a spool: segments that were synced, and that no reader sees yet."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from probes.contract.segment import MAGIC, OPEN_SUFFIX, SEGMENT_SUFFIX, walk

LOCK: Final = "gate.lock"
"""Is locked in each folder for as long as the gate that writes there lives; the kernel lets go of it after a kill."""


def held(folder: Path) -> int:
    """Lock a folder, and return the file that holds the lock.

    Raises:
        OSError: it cannot be.
    """
    lock = os.open(folder / LOCK, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock


def release(folder: Path, lock: int) -> None:
    """Let go of a folder in which nothing is left, and of a lock in it."""
    with suppress(OSError):  # it is looked for again at the next start, and nothing is left there
        (folder / LOCK).unlink()
    os.close(lock)


def recover(root: Path) -> None:
    """Publish what is whole in the open segments of gates that live no more.

    Raises:
        OSError: a segment cannot be read, written or renamed.
    """
    for lock in sorted(root.glob(f"*/{LOCK}")):
        try:
            handle = held(lock.parent)
        except BlockingIOError:
            continue
        try:
            for segment in sorted(lock.parent.glob(f"*{OPEN_SUFFIX}")):
                _publish(segment)
        except OSError:
            os.close(handle)
            raise
        release(lock.parent, handle)


def _publish(segment: Path) -> None:
    """Cut a segment behind its last whole record, sync it, and let readers see it; one without any goes."""
    whole = max((frame.end for frame in walk(segment.read_bytes()) if not frame.fault), default=0)
    if whole <= len(MAGIC):
        segment.unlink()
        return
    with segment.open("r+b") as file:
        file.truncate(whole)
        os.fsync(file.fileno())
    segment.rename(segment.with_suffix(SEGMENT_SUFFIX))
