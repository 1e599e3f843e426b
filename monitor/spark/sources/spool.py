"""A spool of segments as Spark sees it: paths only, the worker opens each file itself."""

from __future__ import annotations

import os
import pwd
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from hopwatch.monitor.accounting.unheard_instances import SpoolFolder, is_instance_folder
from hopwatch.monitor.errors import TransportError
from hopwatch.probes.contract.limits import MONITOR_STREAM
from hopwatch.probes.contract.segment import SEGMENT_SUFFIX, folder_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

SCHEME: Final = "spool:"
SCHEMA: Final = "path string, modificationTime timestamp, length long, content binary"
_OPTIONS: Final = {"pathGlobFilter": f"*{SEGMENT_SUFFIX}", "recursiveFileLookup": "true"}
_GLOB: Final = re.compile(r"[\\*?\[\]{}]")


def root_folder(url: str) -> Path:
    """Return the folder of a ``spool:`` URL."""
    return Path(url.removeprefix(SCHEME))


def make_folder(folder: Path) -> None:
    """Make the spool where there is nothing, with the rights that the umask leaves, as a probe makes it.

    Raises:
        TransportError: it cannot be made.
    """
    if folder.exists():
        return
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        advice = "make it a folder that this user can write, or correct [transport] url"
        raise TransportError(
            f"the spool {folder} is not there and cannot be made: {error.strerror}: {advice}"
        ) from None


def describe_rights(folder: Path) -> str:
    """Return who owns a folder that is there and its mode, and what others need to write to it."""
    status = folder.stat()
    try:
        user = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        user = f"user {status.st_uid}"
    return f"it is of {user}, mode {stat.S_IMODE(status.st_mode):04o}: probes of other users need the right to write"


def has_probe(folder: Path) -> bool:
    """Return whether a probe other than the monitor's own pulse has made its folder in the spool."""
    pulse = folder_name(f"{MONITOR_STREAM}.")[: len(MONITOR_STREAM) + 1]
    return any(is_instance_folder(one.name) and not one.name.startswith(pulse) for one in list_folders(folder))


def check_folder(folder: Path, *, is_written: bool = False) -> None:
    """Check that the spool can be read, and written where the monitor's own pulse is to go through it.

    Raises:
        TransportError: it is not there, is no folder, cannot be read or written, or hides segments from a stream.
    """
    if not folder.is_dir():
        got = "a file" if folder.exists() else "nothing"
        advice = "start a probe with this sink, or correct [transport] url"
        raise TransportError(f"the spool {folder} is a folder that probes write to, got {got}: {advice}")
    if not os.access(folder, os.R_OK | os.X_OK):
        advice = "grant read and execute on it and its folders"
        raise TransportError(f"the spool {folder} cannot be read by this user: {advice}")
    if is_written and not os.access(folder, os.W_OK):
        what = "cannot be written by this user, so the monitor's pulse cannot go through it"
        raise TransportError(f"the spool {folder} {what}: grant write on it")
    hidden = _find_hidden_folder(folder) if is_written else None
    if hidden:
        what = "which a stream never looks into, because its name starts with _ or a dot"
        raise TransportError(f"the spool {folder} has segments in {hidden.name!r}, {what}: rename it")


def _find_hidden_folder(folder: Path) -> Path | None:
    """Return a folder with segments in it that Spark's listing, and so a stream, looks past."""
    above = (parent for path in list_segments(folder) for parent in path.relative_to(folder).parents)
    return next((folder / parent for parent in above if parent.name.startswith(("_", "."))), None)


def list_segments(folder: Path) -> list[Path]:
    """Return all that bears a segment's name now, in order; a folder is looked into, whatever it is called."""
    found = folder.rglob(f"*{SEGMENT_SUFFIX}")
    return sorted(path for path in found if not os.path.isdir(path))  # noqa: PTH112 - the other raises where none may enter


def list_folders(folder: Path) -> Iterator[SpoolFolder]:
    """Yield every folder in a spool, with the time of its last change: it may be of an instance without a segment."""
    for path, changed_us in _walk_folders(folder):
        yield SpoolFolder(path.name, changed_us, changed_us)


def remove_empty_folders(folder: Path, before_us: int) -> None:
    """Remove the folders of probe instances that are empty and were last changed before a moment.

    A probe that was silent for so long and goes on makes its folder anew.
    """
    for path, changed_us in _walk_folders(folder):
        if is_instance_folder(path.name) and changed_us < before_us:
            # Most have a segment, which somebody may want to look into.
            with suppress(OSError):
                path.rmdir()


def _walk_folders(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield every folder below one, and the time of its last change, µs."""
    waiting = [folder]
    # Links may lead around in circles.
    looked_into: set[tuple[int, int]] = set()
    while waiting:
        for entry in _list_entries(waiting.pop()):
            try:
                if not entry.is_dir():
                    continue
                status = entry.stat()
            except OSError:
                # It is gone; the others are still there.
                continue
            yield Path(entry.path), status.st_mtime_ns // 1_000
            where = status.st_dev, status.st_ino
            if not is_instance_folder(entry.name) and where not in looked_into:
                looked_into.add(where)
                waiting.append(Path(entry.path))


def _list_entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder; empty if it is gone or cannot be read: its segments, if any, show that."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def read_batch(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the paths of all segments that are there now, dealt out so that all tasks have about as much to read.

    They are listed here: Spark by itself would look into no folder whose name starts with ``_`` or a dot.
    """
    largest_first = sorted(list_segments(folder), key=_size_bytes, reverse=True)
    tasks = spark.sparkContext.defaultParallelism
    # Spark's paths are UTF-8, in a stream too: a file of another name is set aside, under the name that is told.
    names = [os.fsencode(path).decode("utf-8", "backslashreplace") for path in largest_first]
    paths = [name for task in range(tasks) for name in names[task::tasks]]
    return spark.createDataFrame(pa.table({"path": pa.array(paths, pa.string())}))


def _size_bytes(path: Path) -> int:
    """Return the size of a file; 0 if it is gone or cannot be read."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def read_stream(spark: SparkSession, folder: Path, bytes_a_trigger: int) -> DataFrame:
    """Return the paths of segments as they come, in order of arrival, at most so many bytes of them a trigger."""
    reader = spark.readStream.format("binaryFile").schema(SCHEMA).options(**_OPTIONS)
    # Segments older than this against the newest would be skipped in silence; a decade is longer than any backlog.
    reader = reader.option("maxFileAge", "3650d").option("maxBytesPerTrigger", str(bytes_a_trigger))
    # Spark reads the folder's name as a pattern.
    return reader.load(_GLOB.sub(r"\\\g<0>", str(folder))).select("path")


def local_path(path: str) -> str:
    """Return the file behind what Spark calls a path: a scheme in front or none, nothing of it escaped."""
    return path.removeprefix("file://").removeprefix("file:")
