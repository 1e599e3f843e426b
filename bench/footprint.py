"""How much memory a process and all below it take, and how much disk a folder: sampled while they work, peaks kept."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_FIELD: Final = re.compile(r"^(Pss|Pss_File):\s+(\d+) kB$", re.MULTILINE)


@dataclass(slots=True)
class Peak:
    """The most that was seen. ``memory_bytes`` shares pages out among the processes that use them (PSS).

    ``mapped_bytes`` is the part of it, at the same moment, that are pages of files: the system drops them when it must.
    """

    memory_bytes: int = 0
    mapped_bytes: int = 0
    disk_bytes: int = 0

    def look(self, process: int, folder: Path) -> None:
        """Take a sample of a process, all below it, and a folder."""
        sizes = [_sizes(_PROC / str(number)) for number in family(process)]
        memory, mapped = (sum(column) for column in zip(*sizes, strict=True)) if sizes else (0, 0)
        if memory > self.memory_bytes:
            self.memory_bytes, self.mapped_bytes = memory, mapped
        self.disk_bytes = max(self.disk_bytes, folder_bytes(folder))


def family(process: int) -> Iterator[int]:
    """Yield a process and all below it that are still there."""
    yield process
    for children in _PROC.glob(f"{process}/task/*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text("ascii").split():
                yield from family(int(child))


def folder_bytes(folder: Path) -> int:
    """Return what the files below a folder take on the disk.

    One that goes meanwhile counts as nothing, and so does one with another name: it is not the folder's own.
    """
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                found = (Path(parent) / name).stat()
                total += found.st_blocks * 512 * (found.st_nlink == 1)
    return total


def _sizes(process: Path) -> tuple[int, int]:
    """Return (PSS, file pages of it) of one process, bytes; nothing of one that is gone."""
    try:
        told = dict(_FIELD.findall((process / "smaps_rollup").read_text("ascii")))
    except OSError:
        return 0, 0
    return int(told.get("Pss", 0)) * 1024, int(told.get("Pss_File", 0)) * 1024
