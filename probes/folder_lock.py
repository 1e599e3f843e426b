"""Lock of a folder: one process at a time writes there; the kernel releases the lock after a kill."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def lock_folder(folder: Path, name: str) -> int:
    """Lock a folder by a file of this name in it, and return the file descriptor that holds the lock.

    Raises:
        BlockingIOError: another process holds the lock.
        OSError: the lock file cannot be opened or locked.
    """
    # No link is followed, and no pipe waited for.
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        lock = os.open(folder / name, flags, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_current_lock(folder / name, lock):
                return lock
        except OSError:
            os.close(lock)
            raise
        os.close(lock)  # its holder has released and deleted it between the two calls


def unlock_folder(folder: Path, name: str, lock: int) -> None:
    """Release a folder, and delete the lock file."""
    (folder / name).unlink(missing_ok=True)
    os.close(lock)


def _is_current_lock(path: Path, lock: int) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False
