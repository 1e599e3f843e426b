"""Tests of what all node processes do when they end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hopwatch.demo.faults import NodeFaults
from hopwatch.demo.layout import Layout, create_layout
from hopwatch.demo.link import LinkError
from hopwatch.demo.links.ends import SocketEnds
from hopwatch.demo.nodes.process import open_step
from hopwatch.demo.nodes.settings import NodeSettings
from hopwatch.demo.records import FlightMessage
from hopwatch.demo.truth import NodeAction, count_actions
from tests.demo.simulation import NOON_US, message_id
from tests.demo.spool_reader import read_spool


class LateHop:
    """Lets messages go when it has to settle, or never."""

    def __init__(self, *, works: bool) -> None:
        """Say whether it works."""
        self._works = works
        self._kept: list[Callable[[], None]] = []

    def hand_on(self, message: FlightMessage, then: Callable[[], None]) -> None:
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
    layout = create_layout(folder / "run")
    return NodeSettings("norm", str(layout.folder), SocketEnds(0, 0), layout.sink_url, 1.0, 0, NodeFaults())


def test_a_probe_says_goodbye_behind_the_last_message(tmp_path: Path) -> None:
    """Messages that leave while the process ends are stamped before the bye."""
    settings = settings_in(tmp_path)
    with open_step(settings, dict, LateHop(works=True)) as step:
        step.receive_message(FlightMessage(message_id(0), 0, time.time_ns() // 1_000, {}))
    layout = Layout(settings.path)
    assert count_actions(layout.truth_log("norm"), NodeAction.HANDED_ON) == 1
    _, observed, bye = read_spool(layout)
    assert (len(observed.lag_out_us), bye.count) == (8, 0)


def test_a_link_that_fails_ends_the_process_with_its_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and the exit code of a dependency that is down."""
    with pytest.raises(SystemExit) as ended, open_step(settings_in(tmp_path), dict, LateHop(works=False)) as step:
        step.receive_message(FlightMessage(message_id(0), 0, NOON_US, {}))
    assert ended.value.code == 3
    assert capsys.readouterr().err == "the topic norm is gone\n"
