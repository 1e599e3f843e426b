"""Tests of segments as files of strangers: whatever bears the name of one, reading it neither hangs nor raises."""

from __future__ import annotations

import errno
import os
import resource
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from hopwatch.monitor import segment_file
from hopwatch.monitor.lookup import segment_records
from hopwatch.monitor.segment_file import MAX_BYTES
from hopwatch.probes.contract.segment import MAGIC
from tests.support.file_permissions import without_root
from tests.support.spool import at_us, observation_batch, write_file, write_segment

GIB = 1024**3


def _of_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def _sparse(path: Path, start: bytes) -> None:
    with path.open("wb") as file:
        file.write(start)
        file.truncate(3 * GIB)


ODD: dict[str, tuple[Callable[[Path], object], str, str, int]] = {
    "nothing": (lambda _: None, "unreadable_file", "the file cannot be read: No such file or directory", 0),
    "a link into nowhere": (
        lambda path: path.symlink_to("gone"),
        "unreadable_file",
        "the file cannot be read: No such file or directory",
        0,
    ),
    "a link to itself": (
        lambda path: path.symlink_to(path.name),
        "unreadable_file",
        "the file cannot be read: Too many levels of symbolic links",
        0,
    ),
    "a named pipe": (os.mkfifo, "foreign_file", "a segment is a regular file, got another kind", 0),
    "a folder": (Path.mkdir, "foreign_file", "a segment is a regular file, got another kind", 0),
    "a socket": (_of_socket, "unreadable_file", "the file cannot be read: No such device or address", 0),
    "a device": (
        lambda path: path.symlink_to("/dev/zero"),
        "foreign_file",
        "a segment is a regular file, got another kind",
        0,
    ),
    "3 GiB of others": (
        lambda path: _sparse(path, b"\0"),
        "foreign_file",
        r"a segment starts with b'HWSP1\n', got b'\x00\x00\x00\x00\x00\x00'",
        3 * GIB,
    ),
    "3 GiB that begin as a segment": (
        lambda path: _sparse(path, MAGIC),
        "oversized",
        f"a segment has at most {MAX_BYTES} bytes, got {3 * GIB}",
        3 * GIB,
    ),
}


@pytest.mark.parametrize(("make", "fault", "message", "size"), ODD.values(), ids=ODD)
def test_what_is_no_segment_is_a_fault(
    make: Callable[[Path], object],
    fault: str,
    message: str,
    size: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of it is in memory, nobody waits for it, and it has an arrival; find passes over it."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.seg"
    make(path)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = segment_file.read_segment_file(str(path))
    assert (found.data, found.size, found.fault, found.message) == (b"", size, fault, message)
    assert abs(found.arrival_us - tmp_path.stat().st_mtime_ns // 1_000) < 60_000_000 or make.__name__ == "<lambda>"
    if size == 0 or fault == "foreign_file":
        assert segment_records.read_segment(path) == b""
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 256 * 1024


def test_a_segment_is_read_whole_with_its_arrival(tmp_path: Path) -> None:
    """The last change of the file is when it arrived."""
    path = write_segment(tmp_path / "x.seg", observation_batch([1]), arrival_us=at_us(70))
    assert segment_file.read_segment_file(str(path)) == (path.read_bytes(), path.stat().st_size, at_us(70), "", "")


def test_a_segment_that_may_not_be_read_is_a_fault(open_folder: Path) -> None:
    """Its arrival is still known."""
    path = write_segment(open_folder / "x.seg", observation_batch([1]), arrival_us=at_us(70))
    path.chmod(0)
    with without_root():
        found = segment_file.read_segment_file(str(path))
    assert found == (b"", 0, at_us(70), "unreadable_file", "the file cannot be read: Permission denied")


def test_a_file_whose_folder_is_gone_arrived_when_that_went(tmp_path: Path) -> None:
    """The folder above it was changed then."""
    changed_us = tmp_path.stat().st_mtime_ns // 1_000
    assert segment_file.read_segment_file(str(tmp_path / "gone" / "too" / "x.seg")).arrival_us == changed_us


def test_of_a_segment_no_more_is_read_than_the_bound(tmp_path: Path) -> None:
    """One at the bound is still read."""
    path = write_file(tmp_path / "x.seg", MAGIC + b"1234")
    assert segment_file.read_segment_file(str(path), most_bytes=10).data == MAGIC + b"1234"
    assert segment_file.read_segment_file(str(path), most_bytes=9).fault == "oversized"


def test_a_small_segment_takes_little_memory_whatever_the_bound(tmp_path: Path) -> None:
    """Reading a small segment takes little memory, whatever the bound on its size is."""
    path = write_file(tmp_path / "x.seg", MAGIC + b"1234")
    tracemalloc.start()
    try:
        assert segment_records.read_segment(path) == MAGIC + b"1234"
        assert segment_file.read_segment_file(str(path)).data == MAGIC + b"1234"
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("what", [errno.EMFILE, errno.ENOMEM])
def test_what_this_process_lacks_is_no_fault_of_the_file(what: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A good segment must not be set aside because too many files are open."""

    def refuse(*_: object) -> int:
        raise OSError(what, os.strerror(what))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OSError, match=os.strerror(what)):
        segment_file.read_segment_file("x.seg")


def test_a_disk_that_fails_while_reading_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is there, and its bytes are not."""
    path = write_segment(tmp_path / "x.seg", observation_batch([1]), arrival_us=at_us(70))

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "pread", fail)
    found = segment_file.read_segment_file(str(path))
    assert (found.fault, found.arrival_us) == ("unreadable_file", at_us(70))
    assert found.message == "the file cannot be read: Input/output error"
