"""Checks of folders: the spool and its clock, and the work folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from hopwatch.cli.checks.finding import Finding, Level
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.errors import TransportError
from hopwatch.monitor.spark.sources import spool

LOW_SPACE_BYTES: Final = 1024**3
MIN_SPACE_BYTES: Final = 64 * 1024**2
MAX_CLOCK_OFFSET_US: Final = 1_000_000
TRIAL_PREFIX: Final = ".hopwatch-doctor-"
"""Prefix of the temporary files of a check."""


def check_configuration(path: Path | None, streams: Collection[str]) -> Finding:
    """Report the configuration that the other checks use; the environment may declare streams without a file."""
    if path is None:
        of_streams = "the streams of the environment" if streams else "no streams"
        told = f"no hopwatch.toml in this folder: the defaults, and {of_streams}, are checked"
        return Finding("config", Level.NOTE, told, "hopwatch init writes one; --config names another file")
    if not streams:
        advice = 'add a table [streams.NAME] with path = "a -> b -> c"'
        return Finding("config", Level.NOTE, f"as {path} says, which declares no stream", advice)
    return Finding("config", Level.OK, f"as {path} says")


def check_spool(folder: Path) -> Finding:
    """Check that the spool can be read and written, or created, and has free space."""
    if not folder.exists():
        return _check_probe(_check_folder("transport", f"the spool {folder}", folder), folder)
    try:
        spool.check_folder(folder, is_written=True)
    except TransportError as error:
        what, _, advice = str(error).rpartition(": ")
        return Finding("transport", Level.FAIL, what, advice)
    return _check_probe(check_space("transport", f"the spool {folder} can be read and written", folder), folder)


def check_clocks(folder: Path, clock: Clock) -> Finding:
    """Check that the clock of the spool's file system agrees with this machine: file times are arrival times."""
    before_us = clock.now_us()
    try:
        # Readers of a spool skip files that end in .open.
        with NamedTemporaryFile(dir=folder, prefix=TRIAL_PREFIX, suffix=".open") as file:
            file.write(b"?")
            file.flush()
            stamp_us = os.fstat(file.fileno()).st_mtime_ns // 1_000
    except OSError as error:
        return unwritable_finding("clocks", folder, error)
    ahead_us = max(stamp_us - clock.now_us(), 0) - max(before_us - stamp_us, 0)
    if abs(ahead_us) <= MAX_CLOCK_OFFSET_US:
        return Finding("clocks", Level.OK, "the spool's file system and this machine agree on the time to a second")
    side = "ahead of" if ahead_us > 0 else "behind"
    told = f"the spool's file system is {abs(ahead_us) / 1e6:.1f} s {side} this machine"
    advice = "let one time server set the clocks of this machine and of the file server"
    return Finding("clocks", Level.WARN, told, advice)


def check_workdir(folder: Path) -> Finding:
    """Check that the work folder can be written, or created, and has free space."""
    return _check_folder("workdir", f"the work folder {folder}", folder)


def _check_folder(check: str, name: str, folder: Path) -> Finding:
    """Check that a folder can be written, or created, and has free space; ``name`` is for the message."""
    nearest = find_nearest_folder(folder)
    try:
        with NamedTemporaryFile(dir=nearest, prefix=TRIAL_PREFIX):
            pass
    except OSError as error:
        return unwritable_finding(check, nearest, error)
    told = "can be written" if nearest == folder else "is not there yet, and can be made"
    return check_space(check, f"{name} {told}", nearest)


def _check_probe(finding: Finding, folder: Path) -> Finding:
    """Turn a good finding about a spool into a note if no probe has written to it."""
    if finding.level is not Level.OK or spool.has_probe(folder):
        return finding
    told = f"{finding.message}; no probe has written to it, and nothing can be seen before one does"
    return replace(finding, level=Level.NOTE, message=told, advice=f"start one with the sink spool:{folder}")


def check_space(check: str, message: str, folder: Path) -> Finding:
    """Check the free space on the disk of a folder."""
    free_bytes = shutil.disk_usage(folder).free
    told = f"{message}; {free_bytes / 1024**3:.1f} GiB free"
    if free_bytes >= LOW_SPACE_BYTES:
        return Finding(check, Level.OK, told)
    level = Level.WARN if free_bytes >= MIN_SPACE_BYTES else Level.FAIL
    return Finding(
        check, level, told, f"free some space on the disk of {folder}: a probe may spool 256 MiB, and more on its way"
    )


def unwritable_finding(check: str, folder: Path, error: OSError) -> Finding:
    """Return the finding for a folder that cannot be written."""
    advice = f"make {folder} a folder that this user can write, or name another in the configuration"
    return Finding(check, Level.FAIL, f"{folder} cannot be written: {error.strerror}", advice)


def find_nearest_folder(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())
