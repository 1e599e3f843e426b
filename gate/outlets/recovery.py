"""Recovery of a spool after a gate was killed: publish its segments that were synced but are not visible to readers."""

from __future__ import annotations

import os
from itertools import takewhile
from pathlib import Path
from typing import Final

from hopwatch.probes import folder_lock
from hopwatch.probes.contract.segment import MAGIC, OPEN_SUFFIX, SEGMENT_SUFFIX, read_frames
from hopwatch.probes.folder_sync import sync_folder

LOCK_NAME: Final = "gate.lock"
"""Lock file in the folder of each running gate; the kernel releases the lock after a kill."""


def lock_folder(folder: Path) -> int:
    """Lock the folder of a gate; see :func:`hopwatch.probes.folder_lock.lock_folder`."""
    return folder_lock.lock_folder(folder, LOCK_NAME)


def release_folder(folder: Path, lock: int) -> None:
    """Release a folder; its lock file stays while open segments are left, so that the next gate recovers them."""
    if list(folder.glob(f"*{OPEN_SUFFIX}")):
        os.close(lock)
    else:
        folder_lock.unlock_folder(folder, LOCK_NAME, lock)


def recover_segments(root: Path) -> None:
    """Publish the complete records in open segments of gates that no longer run.

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
    """Truncate a segment after its last complete record, sync it and make it visible; delete it if it has no record.

    Raises:
        OSError: one of these steps failed; the segment is unchanged or truncated.
    """
    # A power failure may leave zeros, which would parse as empty records.
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
