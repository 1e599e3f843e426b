"""Tests of the state of a redrive: what was sent, what may have been, and what a kill leaves behind."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from hopwatch.deliver.redrive.messages import RedriveKey
from hopwatch.deliver.redrive.state import RedriveState
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError

PLAN = {"stream": "orders", "node": "b", "to": ""}
KEYS = [RedriveKey(60_000_000 * number, bytes([number]) * 16) for number in range(4)]


def test_a_message_that_was_not_acknowledged_is_in_doubt(tmp_path: Path) -> None:
    """After a restart, too: it is sent again and reported; an acknowledged one is not."""
    for _ in range(2):
        state = RedriveState(tmp_path / "state", PLAN)
        with state.lock():
            state.note_sending(KEYS[:3])
            state.note_sent(KEYS[:2])
            state.note_sent([])
            assert (state.sent, state.in_doubt) == (set(KEYS[:2]), {KEYS[2], *KEYS[:2]} - set(KEYS[:2]))
    again = RedriveState(tmp_path / "state", PLAN)
    with again.lock():
        assert (again.sent, again.in_doubt) == (set(KEYS[:2]), {KEYS[2]})


def test_what_was_sent_twice_is_known_until_a_run_ends(tmp_path: Path) -> None:
    """Over as many kills as there are; what the brokers had acknowledged is not in doubt, and so no repeat."""
    state = tmp_path / "of" / "a" / "folder" / "state"
    for keys in (KEYS[:2], KEYS[1:3], KEYS[2:]):
        # Each time but the first, one message is in doubt.
        killed = RedriveState(state, PLAN)
        with killed.lock():
            killed.note_sending(keys)
            killed.note_sent(keys[:1])
    again = RedriveState(state, PLAN)
    with again.lock():
        assert again.repeated == set(KEYS[1:3])
        again.note_run({"ended": "now"})
    last = RedriveState(state, PLAN)
    with last.lock():
        assert last.repeated == set()


def test_half_a_line_of_a_kill_is_left_out(tmp_path: Path) -> None:
    """Its messages are in doubt still, and the next line is whole; a head that is cut off is written anew."""
    file = tmp_path / "state"
    state = RedriveState(file, PLAN)
    with state.lock():
        state.note_sending(KEYS[:1])
        state.note_sent(KEYS[:1])
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])
    with state.lock():
        state.note_run({"who": "größe"})
    again = RedriveState(file, PLAN)
    with again.lock():
        assert (again.sent, again.in_doubt) == (set(), {KEYS[0]})
    assert [list(json.loads(line)) for line in file.read_text().splitlines()] == [
        ["version", "plan"],
        ["sending"],
        ["run"],
    ]
    file.write_bytes(whole[:7])
    with again.lock():
        assert json.loads(file.read_text())["plan"] == PLAN


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"version": 1, "plan": {"node": "c"}}\n', r"\(it is of {'node': 'c'}\)"),
        ("hello\nworld\n", r"\(Expecting value"),
        ("[]\n", r"\(list indices"),
        (
            '{"version": 1, "plan": {"stream": "orders", "node": "b", "to": ""}}\n{"sent": ["x"]}\n',
            r"\(invalid literal",
        ),
    ],
)
def test_another_file_is_no_state(text: str, why: str, tmp_path: Path) -> None:
    """Of another node, or no state at all: it is left as it is."""
    file = tmp_path / "state"
    file.write_text(text)
    with (
        pytest.raises(
            TapUsageError, match=rf"is not the state of this redrive {why}.*: name another file with --state"
        ),
        RedriveState(file, PLAN).lock(),
    ):
        raise AssertionError
    assert file.read_text() == text


def test_a_state_has_one_run_at_a_time(tmp_path: Path) -> None:
    """The second one is told to wait."""
    file = tmp_path / "state"
    told = f"another redrive keeps its state in {file}: wait for it, or name another file with --state"
    with RedriveState(file, PLAN).lock(), pytest.raises(TapSourceError, match=told), RedriveState(file, PLAN).lock():
        raise AssertionError


def test_a_state_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is sent: a folder in its place, or a full disk."""
    told = "cannot be written: Is a directory: name a place that this user can write with --state"
    with pytest.raises(TapSourceError, match=told), RedriveState(tmp_path, PLAN).lock():
        raise AssertionError

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with (
        pytest.raises(TapSourceError, match="state cannot be written: No space left on device"),
        RedriveState(tmp_path / "state", PLAN).lock(),
    ):
        raise AssertionError
