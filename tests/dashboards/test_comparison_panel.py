"""Tests of the panel of nodes with several versions on the page of a stream."""

from __future__ import annotations

from pathlib import Path

from tests.support.dashboard_stores import build_windows, fill, open_page, plain, read_page, store_url
from tests.support.versions import build_row, write_minute, write_versions

OLD, LOSSY = (9_000, 0, 450), (1_000, 30, 50)
TITLE = "Version against version"


def read_stream(url: str) -> str:
    """Return the text of the page of a stream."""
    return plain(read_page(open_page(url, page="stream", stream="orders")))


def test_a_new_version_is_compared_with_the_others(tmp_path: Path) -> None:
    """With its interval and verdict, over the minutes in which it ran beside them."""
    url = store_url(tmp_path)
    fill(url, *build_windows())
    write_versions(url, 8, OLD, LOSSY)
    told = read_stream(url)
    assert "b: version 2 against all others, 8 windows" in told
    assert "lost worse +3.00%" in told
    assert "3.00% of 8,000 0% of 72,000" in told


def test_a_version_that_ran_beside_no_other_is_not_there(tmp_path: Path) -> None:
    """A deploy at once has no minute with both; the marker and the seam of the charts show it."""
    url = store_url(tmp_path)
    fill(url, *build_windows())
    assert TITLE not in read_stream(url)
    for minute in range(10):
        write_minute(url, minute, build_row("1" if minute < 5 else "2", OLD))
    assert TITLE not in read_stream(url)
