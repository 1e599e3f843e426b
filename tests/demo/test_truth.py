"""Tests of the truth: what a node did stays written, whatever happens to the node."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.demo.stream import NODES
from hopwatch.demo.truth import (
    ENTRY_BYTES,
    CreatedMessage,
    NodeAction,
    Truth,
    TruthLog,
    count_actions,
    count_entries,
    read_unfinished,
    split_ids,
)

MINUTE_US = 60_000_000

WRITER = """
import os, sys
from pathlib import Path
from hopwatch.demo.truth import NodeAction, TruthLog
log = TruthLog(Path(sys.argv[1]))
for number in range(1000):
    log.write(NodeAction.CREATED, number, number.to_bytes(16, "big"))
print("written", flush=True)
sys.stdin.read()
"""


def some_id(number: int) -> bytes:
    """Return an id that ends in zeros, as ids may."""
    return number.to_bytes(4, "big") + bytes(12)


@pytest.fixture
def truth_of(tmp_path: Path) -> Callable[..., Truth]:
    """Return what makes a truth of (deed, moment, number of the message), node by node."""

    def make(**deeds: list[tuple[NodeAction, int, int]]) -> Truth:
        for node, done in deeds.items():
            log = TruthLog(tmp_path / node)
            for deed, at_us, number in done:
                log.write(deed, at_us, some_id(number))
            log.close()
        return Truth({node: [tmp_path / node] for node in NODES})

    return make


def test_what_was_created_and_nothing_else_is_unfinished(tmp_path: Path) -> None:
    """In order, with the number that it was given, id and event time; without a log nothing is."""
    log = TruthLog(tmp_path / "ingest")
    for number in range(6):
        log.write(NodeAction.CREATED, 1000 + number, some_id(number))
    for number, deed in enumerate((NodeAction.HANDED_ON, NodeAction.DROPPED, NodeAction.FILTERED, NodeAction.REJECTED)):
        log.write(deed, 0, some_id(number))
    log.close()
    births = [CreatedMessage(4, some_id(4), 1004), CreatedMessage(5, some_id(5), 1005)]
    assert read_unfinished(tmp_path / "ingest") == births
    assert read_unfinished(tmp_path / "nothing") == []


def test_truth_survives_kill_9(tmp_path: Path) -> None:
    """Every entry that a process wrote before it was killed is there, and a torn one is cut off by the next process."""
    path = tmp_path / "norm.truth"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path.cwd()
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"written\n"
        writer.send_signal(signal.SIGKILL)
    assert writer.returncode == -signal.SIGKILL
    assert count_actions(path, NodeAction.CREATED) == count_entries(path) == 1000
    with path.open("ab") as torn:
        torn.write(b"half an entry")
    assert count_actions(path, NodeAction.CREATED) == 1000
    log = TruthLog(path)
    log.write(NodeAction.DROPPED, 0, some_id(1))
    log.close()
    assert path.stat().st_size == 1001 * ENTRY_BYTES
    assert count_actions(path, NodeAction.DROPPED) == 1


def test_no_log_yet_is_an_empty_one(tmp_path: Path) -> None:
    """Before a node has written anything there is nothing to count."""
    assert count_entries(tmp_path / "none") == count_actions(tmp_path / "none", NodeAction.CREATED) == 0
    truth = Truth({node: [tmp_path / node] for node in NODES})
    assert truth.last_window_us is None
    assert len(truth.lost) == 0


def test_an_entry_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits in a buffer, and several messages go in one call."""
    written: list[bytes] = []
    monkeypatch.setattr(os, "write", lambda _, data: written.append(data))
    log = TruthLog(tmp_path / "log")
    log.write(NodeAction.UNTOLD, 0, some_id(1), some_id(2))
    log.close()
    assert [len(data) for data in written] == [2 * ENTRY_BYTES]


def test_lost_is_what_was_created_and_neither_delivered_nor_stopped(truth_of: Callable[..., Truth]) -> None:
    """Of six messages one is delivered, one delivered twice, one filtered, one rejected, one dropped, one vanished."""
    truth = truth_of(
        ingest=[(NodeAction.CREATED, number, number) for number in range(6)],
        router=[(NodeAction.FILTERED, 9, 2), (NodeAction.DROPPED, 9, 4)],
        norm=[(NodeAction.REJECTED, 9, 3)],
        connector=[(NodeAction.HANDED_ON, 9, 0), (NodeAction.HANDED_ON, 9, 1), (NodeAction.REPEATED, 9, 1)],
    )
    assert split_ids(truth.delivered) == {some_id(0), some_id(1)}
    assert split_ids(truth.lost) == {some_id(4), some_id(5)}
    assert split_ids(truth.ids("router", NodeAction.DROPPED)) == {some_id(4)}
    assert split_ids(truth.anywhere(NodeAction.FILTERED, NodeAction.REJECTED)) == {some_id(2), some_id(3)}
    assert truth.count("connector", NodeAction.HANDED_ON, NodeAction.REPEATED) == 3


def test_messages_have_the_window_and_the_lag_of_their_event_time(truth_of: Callable[..., Truth]) -> None:
    """The window is the minute of creation; a lag counts from it, once for every time that a deed was done."""
    truth = truth_of(
        ingest=[(NodeAction.CREATED, 5 * MINUTE_US + 7, 8), (NodeAction.CREATED, 6 * MINUTE_US, 3)],
        norm=[(NodeAction.HANDED_ON, 5 * MINUTE_US + 10, 8), (NodeAction.REPEATED, 5 * MINUTE_US + 12, 8)],
    )
    assert truth.windows_us(truth.created).tolist() == [6 * MINUTE_US, 5 * MINUTE_US]
    assert truth.last_window_us == 6 * MINUTE_US
    assert truth.lags_us("norm", NodeAction.HANDED_ON, NodeAction.REPEATED).tolist() == [3, 5]


@given(st.sets(st.binary(min_size=16, max_size=16)))
def test_ids_keep_their_zeros(ids: set[bytes]) -> None:
    """Sixteen bytes stay sixteen, whatever they end in."""
    assert split_ids(np.unique(np.frombuffer(b"".join(ids), "S16"))) == ids
