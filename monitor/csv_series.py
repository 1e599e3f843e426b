"""CSV files of ``timestamp,value``: read with the line of every fault, and written with scores."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.errors import ConfigurationError, Problem, SeriesError
from hopwatch.monitor.outliers.detector import Scores

SUFFIX: Final = ".csv"
COLUMNS: Final = ("timestamp", "value")
SCORE_COLUMNS: Final = (*COLUMNS, "score", "notice", "outlier")
MAX_VALUE: Final = 1e30
"""The largest size of a value."""
MAX_STEP_BACK_US: Final = 3_600_000_000
"""By how much a timestamp may lie before the one above it: clocks on the wall are put back once a year."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_GAPS: Final = frozenset({"", "nan", "null", "none", "na"})
# Numbers for timestamps are seconds, milliseconds, microseconds or nanoseconds since 1970, told by their size.
_UNITS_US: Final = ((1e11, 1e6), (1e14, 1e3), (1e17, 1.0), (math.inf, 1e-3))
_MAX_MOMENT_US: Final = 2**62


@dataclass(frozen=True, slots=True)
class CsvSeries:
    """One file: its timestamps and values as they stand there, and as numbers; a gap is NaN."""

    timestamps: list[str]
    texts: list[str]
    moments_us: NDArray[np.int64]
    values: NDArray[np.float64]


def list_files(folder: Path) -> list[Path]:
    """Return the CSV files at any depth below the folder, as paths relative to it, in order of name.

    Raises:
        ConfigurationError: the folder is not there, cannot be read, or holds none.
    """
    if not folder.is_dir():
        raise ConfigurationError(f"{folder} is no folder: name one that holds CSV files of timestamp,value")
    found = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.suffix.lower() == SUFFIX)
    if not found:
        raise ConfigurationError(f"no CSV file in {folder} or below: a series is a file NAME.csv of timestamp,value")
    return found


def read_series(path: Path) -> CsvSeries:
    """Return the series of a file; columns besides ``timestamp`` and ``value`` are not looked at.

    Raises:
        SeriesError: the file cannot be read, is no such file, or has a line that makes no sense.
    """
    try:
        # With a mark of its byte order at its head or without.
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _parse_series(path, csv.reader(file))
    except UnicodeDecodeError as error:
        raise _series_error(
            path, None, f"no UTF-8 text: byte {error.start:,} is {error.object[error.start]:#04x}"
        ) from None
    except csv.Error as error:
        raise _series_error(path, None, f"no CSV: {error}") from None
    except OSError as error:
        raise _series_error(path, None, f"cannot be read: {error.strerror}") from None


def write_scores(path: Path, series: CsvSeries, scores: Scores) -> None:
    """Write the series with its scores, whole or not at all; the score of a gap is 0.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    part = path.with_name(path.name + ".part")
    marks = zip(scores.score.tolist(), scores.notice.tolist(), scores.outlier.tolist(), strict=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(SCORE_COLUMNS)
            for timestamp, text, (score, notice, outlier) in zip(series.timestamps, series.texts, marks, strict=True):
                shown = "0" if math.isnan(score) else f"{score:.4f}"
                writer.writerow((timestamp, text, shown, int(notice), int(outlier)))
        part.replace(path)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error


def _parse_series(path: Path, rows: Iterator[list[str]]) -> CsvSeries:
    """Return what the rows say, the first of which names the columns."""
    header = [name.strip() for name in next(rows, [])]
    if not set(COLUMNS) <= set(header):
        raise _series_error(path, 1, f"the first line names the columns timestamp,value; got {','.join(header)!r:.60}")
    places = [header.index(name) for name in COLUMNS]
    timestamps: list[str] = []
    texts: list[str] = []
    moments_us: list[int] = []
    values: list[float] = []
    for line, row in enumerate(rows, 2):
        if not row:
            continue
        timestamp, text = (row[place].strip() if place < len(row) else "" for place in places)
        moment_us = _parse_moment_us(path, line, timestamp)
        if moments_us and moment_us < moments_us[-1] - MAX_STEP_BACK_US:
            what = f"{timestamp} stands below {timestamps[-1]}, which is later: sort the lines by timestamp"
            raise _series_error(path, line, what, "timestamp")
        timestamps.append(timestamp)
        texts.append(text)
        moments_us.append(moment_us)
        values.append(_parse_value(path, line, text))
    return CsvSeries(timestamps, texts, np.array(moments_us, np.int64), np.array(values, np.float64))


def _parse_moment_us(path: Path, line: int, text: str) -> int:
    """Return a timestamp as µs since 1970: ISO 8601, in UTC where it names no zone, or a number since 1970."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        number = _parse_number(text)
        if number is None:
            what = f"a timestamp is a time such as 2026-11-21 06:40:00, or seconds since 1970; got {text!r:.60}"
            raise _series_error(path, line, what, "timestamp") from None
        moment_us = number * next(unit for least, unit in _UNITS_US if abs(number) < least)
        if abs(moment_us) > _MAX_MOMENT_US:
            raise _series_error(
                path, line, f"no moment that can be counted from 1970: {text!r:.60}", "timestamp"
            ) from None
        return round(moment_us)
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _parse_value(path: Path, line: int, text: str) -> float:
    """Return a value; one that is missing is a gap."""
    if text.lower() in _GAPS:
        return math.nan
    number = _parse_number(text)
    if number is None or abs(number) > MAX_VALUE:
        what = f"a value is a number up to {MAX_VALUE:g}, or empty for a gap; got {text!r:.60}"
        raise _series_error(path, line, what, "value")
    return number


def _parse_number(text: str) -> float | None:
    """Return the number that the text is, None for any other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _series_error(path: Path, line: int | None, what: str, column: str = "") -> SeriesError:
    return SeriesError([Problem(what, column, str(path), line)])


def join_errors(errors: Sequence[SeriesError]) -> SeriesError:
    """Return one error that tells the problems of all."""
    return SeriesError([problem for error in errors for problem in error.problems])
