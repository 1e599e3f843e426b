"""Tests of a file that is followed: what others do to it costs no line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.followed_file import LINGER_S, MAX_LINGER_S, FollowedFile
from hopwatch.probes.taps.marked_file import Position
from tests.support.tap_bench import Place

LONG = b"a line that is longer than what is kept of it to know the file again, by far\n"


@pytest.fixture
def place() -> Place:
    """Return a place to test in."""
    return Place()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the name of a log."""
    return tmp_path / "app.log"


def append(path: Path, text: bytes) -> None:
    """Write behind what is there."""
    with path.open("ab") as file:
        file.write(text)


def everything(file: FollowedFile, place: Place) -> bytes:
    """Read until nothing comes, however long one waits."""
    read = b""
    for _ in range(100):
        read += file.read(10)
        place.clock.advance(LINGER_S / 2)
    return read


def test_a_file_is_read_from_its_end_or_from_its_start(place: Place, log: Path) -> None:
    """From the end means the lines that come whole from now on, the one that is being written among them."""
    log.write_bytes(b"old\nhalf")
    at_end, at_start = FollowedFile(log, place.around), FollowedFile(log, place.around, from_start=True)
    append(log, b" and half\nnew\n")
    assert at_end.read(100) == b"half and half\nnew\n"
    assert at_start.read(100) == b"old\nhalf and half\nnew\n"


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 200_000])
def test_the_end_is_found_in_a_line_of_any_length(place: Place, log: Path, size: int) -> None:
    """A file without a newline is read from its start, whatever its size."""
    log.write_bytes(b"x" * size)
    assert len(FollowedFile(log, place.around).read(1_000_000)) == size
    log.write_bytes(b"y\n" + b"x" * size)
    assert len(FollowedFile(log, place.around).read(1_000_000)) == size


def test_a_file_may_come_later(place: Place, log: Path) -> None:
    """And is read from its start then, for all of it is new."""
    file = FollowedFile(log, place.around)
    assert (file.read(10), file.position(0), file.is_behind) == (b"", None, False)
    log.write_bytes(b"one\n")
    assert file.read(10) == b"one\n"


def test_a_file_that_cannot_be_read_is_told_at_once(place: Place, tmp_path: Path) -> None:
    """A tap of a folder cannot start."""
    with pytest.raises(TapSourceError, match="cannot be read: Not a directory: let the tap's user read it"):
        FollowedFile(tmp_path / "file" / "log" if (tmp_path / "file").write_text("x") else tmp_path, place.around)


def test_a_file_that_fails_on_the_way_is_tried_on(place: Place, tmp_path: Path) -> None:
    """A file that cannot be read is tried again; the log says so once, and it counts as behind."""
    folder = tmp_path / "log"
    folder.mkdir()
    file = FollowedFile(folder, place.around, from_start=True)
    assert [file.read(10), file.read(10)] == [b"", b""]
    assert file.is_behind
    assert place.heard == [f"{folder} cannot be read: Is a directory: trying on"]


def test_a_renamed_file_is_read_to_its_end_first(place: Place, log: Path) -> None:
    """A renamed file is read to its end and left once it was quiet; then the new one is read from its start."""
    log.write_bytes(b"one\n")
    file = FollowedFile(log, place.around, from_start=True)
    assert file.read(10) == b"one\n"
    log.rename(log.with_name("app.log.1"))
    assert (file.read(10), file.is_behind) == (b"", False)
    log.write_bytes(b"three\n")
    assert (file.read(10), file.is_behind) == (b"", True)
    place.clock.advance(LINGER_S - 0.1)
    append(log.with_name("app.log.1"), b"two\n")
    assert file.read(10) == b"two\n"
    place.clock.advance(LINGER_S - 0.1)
    assert (file.read(10), file.has_ended) == (b"", False)
    place.clock.advance(0.1)
    assert (file.read(10), file.has_ended, file.is_behind) == (b"", True, True)
    assert (file.read(10), file.is_behind) == (b"three\n", False)


def test_a_renamed_file_that_is_never_quiet_is_left_in_the_end(place: Place, log: Path) -> None:
    """One of many writers may have missed the rotation."""
    log.write_bytes(b"")
    file = FollowedFile(log, place.around)
    log.rename(log.with_name("app.log.1"))
    log.write_bytes(b"new\n")
    for _ in range(int(MAX_LINGER_S)):
        append(log.with_name("app.log.1"), b"x")
        assert file.read(10) == b"x"
        assert file.read(10) == b""
        place.clock.advance(1.01)
    assert [file.read(10), file.read(10)] == [b"", b"new\n"]


@pytest.mark.parametrize("names", [("app.log.3", "app.log.2", "app.log.1"), ("app.log-20261119", "app.log-20261120")])
def test_files_that_were_rotated_meanwhile_are_read_in_their_order(
    place: Place, log: Path, names: tuple[str, ...]
) -> None:
    """Numbers count down and dates up; what is compressed or called otherwise is no part of it."""
    log.write_bytes(b"0\n")
    file = FollowedFile(log, place.around, from_start=True)
    log.rename(log.with_name(names[0]))
    for number, name in enumerate(names[1:], 1):
        log.with_name(name).write_bytes(b"%d\n" % number)
    for name in ("app.log.4", "app.log.2.gz", "app.log.old", "app.log.state", "other.log.1"):
        log.with_name(name).write_bytes(b"no\n")
    log.write_bytes(b"last\n")
    if names[0] == "app.log-20261119":
        log.with_name("app.log.4").unlink()
    assert everything(file, place) == b"".join(b"%d\n" % number for number in range(len(names))) + b"last\n"


def test_a_file_that_is_gone_is_left_for_the_next(place: Place, log: Path) -> None:
    """A deleted file that is open is read to its end, and then the one written after it."""
    log.write_bytes(b"one\n")
    file = FollowedFile(log, place.around, from_start=True)
    log.unlink()
    log.write_bytes(b"two\n")
    assert everything(file, place) == b"one\ntwo\n"


def test_a_truncated_file_is_read_from_its_start(place: Place, log: Path) -> None:
    """Even when it is longer than before by the next look: what stood before the place tells."""
    log.write_bytes(LONG)
    file = FollowedFile(log, place.around, from_start=True)
    assert file.read(1_000) == LONG
    log.write_bytes(b"x" * 2 * len(LONG))
    assert (file.read(1_000), file.has_ended) == (b"", True)
    assert file.read(1_000) == b"x" * 2 * len(LONG)
    assert place.heard == [f"{log} is not what was read up to byte {len(LONG)}: reading it from its start"]


def test_what_was_copied_before_a_truncation_is_read_in_the_copy(place: Place, log: Path) -> None:
    """As logrotate's copytruncate does: lines that were not read yet are not lost."""
    log.write_bytes(LONG)
    file = FollowedFile(log, place.around, from_start=True)
    assert file.read(1_000) == LONG
    append(log, b"unread\n")
    shutil.copy(log, log.with_name("app.log.1"))
    log.write_bytes(b"new\n")
    assert everything(file, place) == b"unread\nnew\n"
    assert place.heard == []


@pytest.mark.parametrize("names", [[], ["app.log.1"], ["app.log.1", "app.log.2"]])
def test_a_position_is_found_again_under_any_name(place: Place, log: Path, names: list[str]) -> None:
    """A restart goes on where the tap had come to, though the file was renamed meanwhile."""
    log.write_bytes(b"one\ntwo\n")
    file = FollowedFile(log, place.around, from_start=True)
    assert file.read(6) == b"one\ntw"
    position = file.position(2)
    file.close()
    for name in names:
        if log.with_name("app.log.1").exists():
            log.with_name("app.log.1").rename(log.with_name("app.log.2"))
        log.rename(log.with_name("app.log.1"))
        log.write_bytes(f"after {name}\n".encode())
    again = FollowedFile(log, place.around, position=position)
    expected = [b"two\n", *(f"after {name}\n".encode() for name in names)]
    assert everything(again, place) == b"".join(expected)


def test_a_position_in_a_file_that_is_gone_is_told(place: Place, log: Path) -> None:
    """With the position of a deleted file the present one is read from its start, even if both have one inode."""
    log.write_bytes(b"other\n")
    found = log.stat()
    position = Position(found.st_dev, found.st_ino, 4, b"one\n")
    file = FollowedFile(log, place.around, position=position)
    assert file.read(10) == b"other\n"
    assert place.heard == [f"{log} is not what was read up to byte 4: reading it from its start"]
