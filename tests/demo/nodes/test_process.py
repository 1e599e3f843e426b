"""Tests of what all node processes do when they end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hopwatch.demo.config import Layout, lay_out
from hopwatch.demo.faults import NodeFaults
from hopwatch.demo.links import LinkError
from hopwatch.demo.links.ends import SocketEnds
from hopwatch.demo.nodes.process import at_work
from hopwatch.demo.nodes.settings import NodeSettings
from hopwatch.demo.records import Message
from hopwatch.demo.truth import Deed, deed_count
from tests.demo.paper import NOON_US, message_id
from tests.demo.test_probing import read_spool


class LateHop:
    """Lets messages go when it has to settle, or never."""

    def __init__(self, *, works: bool) -> None:
        """Say whether it works."""
        self._works = works
        self._kept: list[Callable[[], None]] = []

    def hand_on(self, message: Message, then: Callable[[], None]) -> None:
        """Keep a message."""
        assert message.id
        self._kept.append(then)

    def settle(self) -> None:
        """Let all go."""
        if not self._works:
            raise LinkError("the topic norm is gone")
        while self._kept:
            self._kept.pop()()

    def close(self) -> None:
        """Settle."""
        self.settle()


def settings_in(folder: Path) -> NodeSettings:
    """Return the settings of a norm whose files are in a folder."""
    layout = lay_out(folder / "run")
    return NodeSettings("norm", str(layout.folder), SocketEnds(0, 0), layout.sink_url, 1.0, 0, NodeFaults())


def test_a_probe_says_goodbye_behind_the_last_message(tmp_path: Path) -> None:
    """What leaves while the process ends is stamped out and written down."""
    settings = settings_in(tmp_path)
    with at_work(settings, dict, LateHop(works=True)) as step:
        step.take(Message(message_id(0), 0, time.time_ns() // 1_000, {}))
    layout = Layout(settings.path)
    assert deed_count(layout.truth_log("norm"), Deed.HANDED_ON) == 1
    _, observed, bye = read_spool(layout)
    assert (len(observed.lag_out_us), bye.count) == (8, 0)


def test_a_link_that_fails_ends_the_process_with_its_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and the exit code of a dependency that is down."""
    with pytest.raises(SystemExit) as ended, at_work(settings_in(tmp_path), dict, LateHop(works=False)) as step:
        step.take(Message(message_id(0), 0, NOON_US, {}))
    assert ended.value.code == 3
    assert capsys.readouterr().err == "the topic norm is gone\n"
