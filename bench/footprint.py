"""Footprint of a process, sampled while it runs: memory of it and its children, processor time, disk of a folder."""

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
class Footprint:
    """The most that was seen. ``memory_bytes`` shares pages out among the processes that use them (PSS).

    ``mapped_bytes`` is the part of it, at the same moment, that are pages of files: the system drops them when it must.
    """

    memory_bytes: int = 0
    mapped_bytes: int = 0
    disk_bytes: int = 0

    def record_peak(self, process: int, folder: Path) -> None:
        """Take a sample of a process, all below it, and a folder."""
        sizes = [sizes_of(number) for number in family(process)]
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


def memory_bytes(what: str, process: int | str = "self") -> int:
    """Return what Linux says of a process's memory: ``VmRSS``, now, or ``VmHWM``, at most."""
    found = re.search(rf"^{what}:\s+(\d+) kB$", (_PROC / f"{process}" / "status").read_text("ascii"), re.MULTILINE)
    return int(found[1]) * 1_024 if found else 0


def forget_peak(process: int | str = "self") -> None:
    """Let ``VmHWM`` begin again at what is taken now; see proc(5), clear_refs."""
    (_PROC / f"{process}" / "clear_refs").write_text("5", "ascii")


def cpu_s(process: int | str = "self") -> float:
    """Return how long a process and its threads were on a processor so far, s."""
    # The name, in brackets, may hold whatever it likes.
    fields = (_PROC / f"{process}" / "stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sizes_of(process: int) -> tuple[int, int]:
    """Return (PSS, file pages of it) of one process, bytes; nothing of one that is gone."""
    try:
        told = dict(_FIELD.findall((_PROC / str(process) / "smaps_rollup").read_text("ascii")))
    except OSError:
        return 0, 0
    return int(told.get("Pss", 0)) * 1024, int(told.get("Pss_File", 0)) * 1024
