"""Recovery of a spool after a gate was killed: publish its segments that were synced but are not visible to readers."""

from __future__ import annotations

import fcntl
import os
from itertools import takewhile
from pathlib import Path
from typing import Final

from hopwatch.probes.contract.segment import MAGIC, OPEN_SUFFIX, SEGMENT_SUFFIX, read_frames
from hopwatch.probes.sinks.spool import sync_folder

LOCK_NAME: Final = "gate.lock"
"""Is locked in each folder for as long as the gate that writes there lives; the kernel lets go of it after a kill."""


def lock_folder(folder: Path) -> int:
    """Lock a folder, and return the file that holds the lock.

    Raises:
        BlockingIOError: somebody else holds it.
        OSError: it cannot be.
    """
    while True:
        lock = os.open(folder / LOCK_NAME, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_current_lock(folder, lock):
                return lock
        except OSError:
            os.close(lock)
            raise
        os.close(lock)  # who held it has let go of it, and deleted it, between the two calls


def _is_current_lock(folder: Path, lock: int) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), (folder / LOCK_NAME).stat())
    except FileNotFoundError:
        return False


def release_folder(folder: Path, lock: int) -> None:
    """Let go of a folder; while something is left there its lock stays, so that the next gate looks for it."""
    if not list(folder.glob(f"*{OPEN_SUFFIX}")):
        (folder / LOCK_NAME).unlink(missing_ok=True)
    os.close(lock)


def recover_segments(root: Path) -> None:
    """Publish what is whole in the open segments of gates that live no more.

    Raises:
        OSError: a segment cannot be read, written or renamed.
    """
    for lock in sorted(root.glob(f"*/{LOCK_NAME}")):
        try:
            handle = lock_folder(lock.parent)
        except BlockingIOError:
            continue
        try:
            for segment in sorted(lock.parent.glob(f"*{OPEN_SUFFIX}")):
                publish_segment(segment)
        except OSError:
            os.close(handle)
            raise
        release_folder(lock.parent, handle)


def publish_segment(segment: Path) -> None:
    """Cut a segment behind its last whole record, sync it, and let readers see it; one without any goes.

    Raises:
        OSError: one of these cannot be done; the segment is as it was, or cut.
    """
    # A power cut may leave zeros, which would be records of no bytes.
    whole_ones = takewhile(lambda frame: not frame.fault and frame.end > frame.start, read_frames(segment.read_bytes()))
    whole = max((frame.end for frame in whole_ones), default=0)
    if whole <= len(MAGIC):
        segment.unlink()
        return
    with segment.open("r+b") as file:
        file.truncate(whole)
        os.fsync(file.fileno())
    segment.rename(segment.with_suffix(SEGMENT_SUFFIX))
    sync_folder(segment.parent)
