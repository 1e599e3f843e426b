"""Tests of files of series: what is read, what is refused with its place, and what is written."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor import csv_series
from hopwatch.monitor.errors import ConfigurationError, SeriesError
from hopwatch.monitor.outliers import detector, state

HEAD = "timestamp,value\n"


def wrote(folder: Path, text: str | bytes) -> Path:
    """Write a file of a series, and return its path."""
    path = folder / "a.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_file_is_read(tmp_path: Path) -> None:
    """In order; no value is a gap, an empty line nothing; other columns and a byte order mark do not matter."""
    text = (
        "\ufeffvalue,label,timestamp\n1.5,x,2026-01-05 00:00:00\n,y,2026-01-05 00:01:00\n\nNaN,,2026-01-05T00:02:00Z\n"
    )
    one = csv_series.read_series(wrote(tmp_path, text))
    assert one.timestamps == ["2026-01-05 00:00:00", "2026-01-05 00:01:00", "2026-01-05T00:02:00Z"]
    assert one.texts == ["1.5", "", "NaN"]
    assert (np.diff(one.moments_us) == 60_000_000).all()
    assert one.values.tolist() == pytest.approx([1.5, np.nan, np.nan], nan_ok=True)


@pytest.mark.parametrize(
    "number", ["1767571200", "1767571200.0", "1767571200000", "1767571200000000", "1767571200000000000"]
)
def test_numbers_are_moments_too(number: str, tmp_path: Path) -> None:
    """Seconds, milliseconds, microseconds and nanoseconds since 1970, told by their size."""
    assert csv_series.read_series(wrote(tmp_path, f"{HEAD}{number},1\n")).moments_us.tolist() == [1_767_571_200_000_000]


def test_a_clock_on_the_wall_may_be_put_back(tmp_path: Path) -> None:
    """By an hour, as it is once a year; equal times are taken as well."""
    hours = ["02:59:00", "02:00:00", "02:00:00", "02:01:00"]
    one = csv_series.read_series(wrote(tmp_path, HEAD + "".join(f"2025-10-26 {hour},1\n" for hour in hours)))
    assert len(one.values) == 4


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ":1: the first line names the columns timestamp,value; got ''"),
        ("time,value\n", ":1: the first line names the columns timestamp,value; got 'time,value'"),
        (
            HEAD + "yesterday,1\n",
            ":2: timestamp: a timestamp is a time such as 2026-11-21 06:40:00, or seconds since 1970; got 'yesterday'",
        ),
        (HEAD + "1e300,1\n", ":2: timestamp: no moment that can be counted from 1970: '1e300'"),
        (HEAD + "1,1\n2,many\n", ":3: value: a value is a number up to 1e+30, or empty for a gap; got 'many'"),
        (HEAD + "1,inf\n", ":2: value: a value is a number up to 1e+30, or empty for a gap; got 'inf'"),
        (HEAD + "1,-2e30\n", ":2: value: a value is a number up to 1e+30, or empty for a gap; got '-2e30'"),
        (
            HEAD + "2026-01-02,1\n2026-01-01,1\n",
            ":3: timestamp: 2026-01-01 stands below 2026-01-02, which is later: sort the lines by timestamp",
        ),
        (HEAD.encode() + b"1,\xff\n", ": no UTF-8 text: byte 18 is 0xff"),
        (HEAD + "1," + "9" * 200_000, ": no CSV: field larger than field limit (131072)"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str | bytes, told: str, tmp_path: Path) -> None:
    """File, line and column, what was got, and what is expected."""
    path = wrote(tmp_path, text)
    with pytest.raises(SeriesError) as refused:
        csv_series.read_series(path)
    assert str(refused.value) == f"{path}{told}"


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    """With the words of the system."""
    with pytest.raises(SeriesError, match=re.escape(f"{tmp_path}/a.csv: cannot be read: No such file or directory")):
        csv_series.read_series(tmp_path / "a.csv")


def test_folders_without_series_are_told(tmp_path: Path) -> None:
    """One that is not there, and one without a CSV file."""
    with pytest.raises(ConfigurationError, match="no is no folder: name one that holds CSV files of timestamp,value"):
        csv_series.list_files(tmp_path / "no")
    with pytest.raises(ConfigurationError, match=r"no CSV file in .* or below: a series is a file NAME\.csv"):
        csv_series.list_files(tmp_path)


def test_files_are_found_at_any_depth_in_order(tmp_path: Path) -> None:
    """Files with the suffix in any case are found at any depth, in order."""
    for name in ("b/c/one.CSV", "a.csv", "b/two.csv", "b/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [path.as_posix() for path in csv_series.list_files(tmp_path)] == ["a.csv", "b/c/one.CSV", "b/two.csv"]


@given(st.lists(st.none() | st.floats(-1e30, 1e30), max_size=50))
def test_what_is_written_is_what_was_read_and_scores(values: list[float | None]) -> None:
    """Timestamps and values to the letter, a score a row, 0 for a gap; and it can be read again."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - hypothesis takes no fixture of a function

    with TemporaryDirectory() as folder:
        lines = [f"{60 * place},{'' if value is None else value}\n" for place, value in enumerate(values)]
        path = wrote(Path(folder), HEAD + "".join(lines))
        one = csv_series.read_series(path)
        rows = np.zeros(len(one.values), np.int64)
        _, scores = detector.score_values(state.new_states(1), rows, one.moments_us, one.values)
        csv_series.write_scores(Path(folder) / "deep" / "a.csv", one, scores)
        written = (Path(folder) / "deep" / "a.csv").read_text("utf-8").splitlines(keepends=True)
        assert written[0] == "timestamp,value,score,notice,outlier\n"
        assert [line.rsplit(",", 3)[0] + "\n" for line in written[1:]] == lines
        assert [line.rsplit(",", 3)[1] for line, value in zip(written[1:], values, strict=True) if value is None] == [
            "0"
        ] * values.count(None)
        assert csv_series.read_series(Path(folder) / "deep" / "a.csv").texts == one.texts


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """With the file and the words of the system."""
    one = csv_series.read_series(wrote(tmp_path, HEAD + "1,1\n"))
    _, scores = detector.score_values(state.new_states(1), np.zeros(1, np.int64), one.moments_us, one.values)
    with pytest.raises(ConfigurationError, match=r"a\.csv/b\.csv cannot be written: "):
        csv_series.write_scores(tmp_path / "a.csv" / "b.csv", one, scores)
