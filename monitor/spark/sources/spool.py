"""A spool of segments as Spark sees it: paths only, the worker opens each file itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlparse

from monitor.errors import TransportError
from probes.contract.segment import SEGMENT_SUFFIX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEME: Final = "spool:"
SCHEMA: Final = "path string, modificationTime timestamp, length long, content binary"
_OPTIONS: Final = {"pathGlobFilter": f"*{SEGMENT_SUFFIX}", "recursiveFileLookup": "true"}


def root(url: str) -> Path:
    """Return the folder of a ``spool:`` URL."""
    return Path(url.removeprefix(SCHEME))


def check(folder: Path, *, is_written: bool = False) -> None:
    """Check that the spool can be read, and written where the monitor's own pulse is to go through it.

    Raises:
        TransportError: it is not there, is no folder, cannot be read or cannot be written.
    """
    if not folder.is_dir():
        got = "a file" if folder.exists() else "nothing"
        msg = f"the spool {folder} is a folder that probes write to, got {got}: start a probe with this sink, or correct [transport] url"
        raise TransportError(msg)
    if not os.access(folder, os.R_OK | os.X_OK):
        msg = f"the spool {folder} cannot be read by this user: grant read and execute on it and its folders"
        raise TransportError(msg)
    if is_written and not os.access(folder, os.W_OK):
        msg = f"the spool {folder} cannot be written by this user, so the monitor's pulse cannot go through it: grant write on it"
        raise TransportError(msg)


def segments(folder: Path) -> list[Path]:
    """Return all segments that are there now, in order of their names."""
    return sorted(folder.rglob(f"*{SEGMENT_SUFFIX}"))


def batch(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the paths of all segments that are there now."""
    return spark.read.format("binaryFile").schema(SCHEMA).options(**_OPTIONS).load(str(folder)).select("path")


def stream(spark: SparkSession, folder: Path, bytes_a_trigger: int) -> DataFrame:
    """Return the paths of segments as they come, in order of arrival, at most so many bytes of them a trigger."""
    reader = spark.readStream.format("binaryFile").schema(SCHEMA).options(**_OPTIONS)
    # Segments older than this against the newest would be skipped in silence; a decade is longer than any backlog.
    reader = reader.option("maxFileAge", "3650d").option("maxBytesPerTrigger", str(bytes_a_trigger))
    return reader.load(str(folder)).select("path")


def local_path(uri: str) -> str:
    """Return the file behind the URI that Spark calls a path."""
    return unquote(urlparse(uri).path) if uri.startswith("file:") else uri
