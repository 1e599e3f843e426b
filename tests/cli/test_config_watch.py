"""Tests of the watch of a configuration file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hopwatch.cli.config_watch import ConfigWatch


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file that is there."""
    path = tmp_path / "hopwatch.toml"
    path.write_text("one")
    return path


def rewrite(file: Path, text: str) -> None:
    """Write the file, with a time of change that no clock is too coarse for."""
    before_ns = file.stat().st_mtime_ns if file.exists() else 0
    file.write_text(text)
    os.utime(file, ns=(before_ns + 1_000, before_ns + 1_000))


def test_a_file_that_stays_as_it_is_has_not_changed(file: Path) -> None:
    """Nor has one that was only touched, or written with the same content."""
    watch = ConfigWatch(file)
    rewrite(file, "one")
    assert [watch.has_changed() for _ in range(4)] == [False] * 4


def test_a_change_is_told_once_two_looks_find_it_alike(file: Path) -> None:
    """A file that is still being written is not read."""
    watch = ConfigWatch(file)
    rewrite(file, "tw")
    assert not watch.has_changed()
    rewrite(file, "two")
    assert [watch.has_changed() for _ in range(4)] == [False, True, False, False]


def test_a_file_that_another_one_takes_the_place_of_has_changed(file: Path) -> None:
    """As with a symbolic link that is pointed elsewhere, or an editor that renames."""
    watch = ConfigWatch(file)
    other = file.with_suffix(".new")
    other.write_text("two")
    other.replace(file)
    assert [watch.has_changed() for _ in range(3)] == [False, True, False]


def test_a_file_that_goes_has_changed_and_has_again_when_it_is_back(file: Path) -> None:
    """A reader then says that it is not there."""
    watch = ConfigWatch(file)
    file.unlink()
    assert [watch.has_changed() for _ in range(3)] == [False, True, False]
    rewrite(file, "one")
    assert [watch.has_changed() for _ in range(3)] == [False, True, False]


def test_a_request_is_told_once_whatever_the_file_says(file: Path) -> None:
    """At once, and with a change that has not settled yet."""
    watch = ConfigWatch(file)
    watch.request()
    watch.request()
    assert [watch.has_changed() for _ in range(3)] == [True, False, False]
    rewrite(file, "two")
    assert not watch.has_changed()
    watch.request()
    assert [watch.has_changed() for _ in range(3)] == [True, False, False]
