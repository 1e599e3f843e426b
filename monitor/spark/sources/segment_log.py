"""Spark's log of the segments of a spool: a line for each that was ever read, by which none is read twice.

It lies in ``sources/0`` of the checkpoint: a file for each batch of segments, and every tenth, ``N.compact``, repeats
all lines before it. Spark copies them into the next one and keeps them in memory, and forgets none. Here those are
forgotten whose segments are gone: they cannot be listed again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import structlog

from hopwatch.monitor.spark.sources import spool
from hopwatch.probes.folder_sync import sync_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION: Final = "v1"
COMPACT: Final = ".compact"
DRAFT: Final = ".forgetting"
"""Spark passes over what is not named by a number."""
_LOCAL: Final = "file:/"
_UNREADABLE: Final = "\ufffd"
"""Java's replacement for each byte of a name outside its encoding: such a name leads to no file."""

_log = structlog.get_logger("hopwatch")


def log_size_bytes(checkpoint: Path) -> int:
    """Return the size of the log, without the few lines that came behind its newest compacted file."""
    newest = _find_newest_compacted(checkpoint)
    return newest.stat().st_size if newest else 0


def forget_gone(checkpoint: Path, needed: Collection[str], note: Callable[[str], object] | None = None) -> None:
    """Take segments that are gone out of the log, while no stream writes to it: before it starts, or in a micro-batch.

    Lines stay that Spark may want again: of batches behind the oldest offset that the checkpoint has. Where the log is
    not of the form that is known here, or one of the segments that are ``needed`` is not there, nothing is changed, and
    the monitor's log has a line. A crash leaves the log of before or of after. ``note`` hears of each that goes.
    """
    log = _find_newest_compacted(checkpoint)
    if log is None:
        return
    draft = log.with_name(DRAFT)

    def is_forgotten(path: str) -> bool:
        is_gone = _is_gone(path)
        if is_gone and note:
            note(path)
        return is_gone

    try:
        _require_segments(needed)
        _rewrite_log(log, draft, _read_replayed_from(checkpoint / "offsets"), is_forgotten)
    except (OSError, ValueError) as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        said = "segments that are gone stay in Spark's log, which grows: nothing is lost"
        _log.warning(said, log=str(log), why=str(error))


def forget_in_memory(spark: SparkSession, query_id: str, paths: Collection[str]) -> None:
    """Take segments out of the memory of a running stream, by the names that Spark has for them, within a micro-batch.

    Then nothing else looks at it: its thread waits for the batch. The way there is not one that Spark offers; where it
    is closed, the monitor's log has a line, and the memory grows until the next start.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415 - it comes with Spark

    if not paths:
        return
    util = spark._jvm.java.util  # type: ignore[union-attr] # noqa: SLF001 - no other way leads to Java
    # One call for all of them.
    gone = util.HashSet(util.Collections.list(util.StringTokenizer("\n".join(paths), "\n")))
    try:
        stream = spark._jsparkSession.streams().get(query_id)  # noqa: SLF001
        files = stream.streamingQuery().sources().head().seenFiles()
        field = files.getClass().getDeclaredField("map")
        field.setAccessible(True)
        field.get(files).keySet().removeAll(gone)
    except (Py4JError, AttributeError) as error:
        said = "segments that are gone stay in Spark's memory until the next start: nothing is lost"
        _log.warning(said, why=str(error).partition("\n")[0])


def remaining_lines(lines: Iterable[str], replayed_from: int, is_gone: Callable[[str], bool]) -> Iterator[str]:
    """Yield the lines of batches from one on, and of segments that are not gone, by the name that Spark has for them.

    Raises:
        ValueError: a line is not one of the log.
    """
    for line in lines:
        path, batch_id = _parse_line(line)
        if batch_id >= replayed_from or not is_gone(path):
            yield line


def _parse_line(line: str) -> tuple[str, int]:
    """Return the path and the batch of a line."""
    try:
        match json.loads(line):
            case {"path": str(path), "batchId": int(batch_id)}:
                return path, batch_id
    except ValueError:
        pass
    raise ValueError(f"a line of it has path and batchId, got {line!r:.80}")


def _is_gone(path: str) -> bool:
    """Return whether a segment, by the name that Spark has for it, is certainly not there."""
    file = spool.local_path(unquote(path))
    if not path.startswith(_LOCAL) or _UNREADABLE in file:
        return False
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _require_segments(needed: Collection[str]) -> None:
    """Raise where a segment is missing that should be there: the spool may be on a disk that is not mounted."""
    missing = min((path for path in needed if not os.path.lexists(path)), default=None)
    if missing is not None:
        raise ValueError(f"the segment {missing} is needed and not there: look whether all of the spool is")


def _find_newest_compacted(checkpoint: Path) -> Path | None:
    """Return the newest compacted file: Spark reads it and what came behind it, and nothing older."""
    files = (checkpoint / "sources" / "0").glob(f"*{COMPACT}")
    numbered = {int(file.stem): file for file in files if file.stem.isdecimal()}
    return numbered[max(numbered)] if numbered else None


def _read_replayed_from(offsets: Path) -> int:
    """Return the first batch of the log that Spark may read again: it goes on from one of the offsets that it has."""
    numbered = {int(file.name): file for file in offsets.iterdir() if file.name.isdecimal()}
    oldest = min(numbered, default=0)
    if oldest == 0:
        return 0
    lines = numbered[oldest].read_text("utf-8").splitlines()
    with suppress(ValueError, IndexError):
        match json.loads(lines[2]):
            case {"logOffset": int(last)} if lines[0] == VERSION:
                return last + 1
    raise ValueError(f"{numbered[oldest]} tells no logOffset in its third line")


def _rewrite_log(log: Path, draft: Path, replayed_from: int, is_gone: Callable[[str], bool]) -> None:
    with log.open(encoding="utf-8", newline="\n") as old, draft.open("w", encoding="utf-8", newline="\n") as new:
        lines = (line.removesuffix("\n") for line in old)
        version = next(lines, "")
        if version != VERSION:
            raise ValueError(f"its first line is {VERSION}, got {version!r:.80}")
        new.write(VERSION)
        new.writelines(f"\n{line}" for line in remaining_lines(lines, replayed_from, is_gone))
        new.flush()
        os.fsync(new.fileno())
    if draft.stat().st_size == log.stat().st_size:
        draft.unlink()
        return
    # Hadoop holds a file against its checksum where there is one: it has to be gone before the file is another.
    log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
    sync_folder(log.parent)
    draft.replace(log)
    sync_folder(log.parent)
