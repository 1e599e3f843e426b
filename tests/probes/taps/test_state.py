"""Tests of the state of a tap: whole or not there, and of one file only."""

from __future__ import annotations

import errno
import fcntl
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.taps.errors import TapSourceError, TapUsageError
from hopwatch.probes.taps.marked_file import Position
from hopwatch.probes.taps.state import StateFile

POSITION = Position(1, 2, 3, b"one")
SOURCE = Path("/var/log/app.log")


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    """The last position, and none at first; nothing else is left in the folder."""
    state = StateFile(tmp_path / "state", SOURCE)
    assert state.load() is None
    for position in (Position(1, 2, 0, b""), POSITION):
        state.save(position)
    assert StateFile(tmp_path / "state", SOURCE).load() == POSITION
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_position_that_is_kept_is_not_written_again(tmp_path: Path) -> None:
    """A quiet source costs no disk."""
    state = StateFile(tmp_path / "state", SOURCE)
    state.save(POSITION)
    (tmp_path / "state").unlink()
    state.save(POSITION)
    assert list(tmp_path.iterdir()) == []


GOOD = {"version": 1, "file": str(SOURCE), "device": 1, "inode": 2, "offset": 3, "mark": "6f6e65"}


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        ("", "Expecting value"),
        ("7", "'int' object is not subscriptable"),
        ({"version": 2}, "version 2 of '/var/log/app.log'"),
        ({"file": "/other"}, "version 1 of '/other'"),
        ({"offset": -1}, "device 1, inode 2, offset -1"),
        ({"inode": "2"}, "device 1, inode '2', offset 3"),
        ({"mark": None}, "mark None"),
        ({"mark": "00" * 65}, "mark '0000"),
        ({"mark": "x"}, "non-hexadecimal number found"),
    ],
)
def test_what_is_no_state_of_this_file_is_refused(tmp_path: Path, kept: str | dict[str, object], told: str) -> None:
    """A file that is no state of this source is refused and not written over, and the message says what to do."""
    (tmp_path / "state").write_text(kept if isinstance(kept, str) else json.dumps(GOOD | kept))
    with pytest.raises(TapUsageError) as caught:
        StateFile(tmp_path / "state", SOURCE).load()
    assert str(caught.value).startswith(f"{tmp_path}/state is not the state of a tap of /var/log/app.log ({told}")
    assert str(caught.value).endswith("): name another file with --state, or delete it to begin anew")


def test_a_state_that_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    """With the file and the reason."""
    state = StateFile(tmp_path, SOURCE)
    with pytest.raises(TapSourceError, match=f"the state {tmp_path} cannot be read: Is a directory"):
        state.load()
    state = StateFile(tmp_path / "none" / "state", SOURCE)
    told = "cannot be written: No such file or directory: without it a restart stamps again"
    with pytest.raises(TapSourceError, match=told):
        state.save(POSITION)


def test_a_state_has_one_tap_at_a_time(tmp_path: Path) -> None:
    """A second one is refused as long as the first one lives, whatever is saved meanwhile; and not after it."""
    state = StateFile(tmp_path / "state", SOURCE)
    with state.lock():
        state.save(POSITION)
        told = f"another tap keeps its position in {tmp_path}/state: stop it, or name another file with --state"
        with pytest.raises(TapSourceError, match=f"^{told}$"), StateFile(tmp_path / "state", SOURCE).lock():
            pass
        with StateFile(tmp_path / "other", SOURCE).lock():
            pass
    with StateFile(tmp_path / "state", SOURCE).lock():
        pass


def test_the_folder_of_a_state_is_made(tmp_path: Path) -> None:
    """As that of a spool is: the first start of a tap needs no other command before it."""
    state = StateFile(tmp_path / "var" / "taps" / "state", SOURCE)
    with state.lock():
        state.save(POSITION)
    assert state.path.is_file()


def test_a_state_that_cannot_be_held_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where its folder should be, or a file system without locks: with the place and what to do."""
    (tmp_path / "none").touch()
    told = "state.lock of the state cannot be written: .*: name a place that this user can write"
    with pytest.raises(TapSourceError, match=told), StateFile(tmp_path / "none" / "in" / "state", SOURCE).lock():
        pass

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    told = "state.lock of the state cannot be had: No locks available: keep the state on a local disk"
    with pytest.raises(TapSourceError, match=told), StateFile(tmp_path / "state", SOURCE).lock():
        pass


@given(st.binary() | st.dictionaries(st.sampled_from(list(GOOD)), st.none() | st.integers() | st.text()).map(
    lambda kept: json.dumps(GOOD | kept).encode()))  # fmt: skip
def test_no_state_raises_anything_else(tmp_path_factory: pytest.TempPathFactory, kept: bytes) -> None:
    """Any content of a state file is loaded or refused with a TapUsageError."""
    path = tmp_path_factory.getbasetemp() / "any-state"
    path.write_bytes(kept)
    with suppress(TapUsageError):
        StateFile(path, SOURCE).load()
