"""Tests of a run from beginning to end, with a pipeline, a monitor and a clock of paper."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, Self

import pytest
from rich.console import Console

from hopwatch.demo.configuration import SETTLE_S, TRANSIT_S
from hopwatch.demo.entrance.outlets import GateOutlets
from hopwatch.demo.faults import Faults, Kill, NodeFaults
from hopwatch.demo.interrupts import Interrupts
from hopwatch.demo.links.ends import SocketEnds
from hopwatch.demo.measurements import Json, Measurements, parse_start_us
from hopwatch.demo.options import RunOptions
from hopwatch.demo.run import OVERDUE_S, DemoRun, open_links, write_comparison
from hopwatch.demo.screen import Screen
from hopwatch.demo.stream import NODES
from hopwatch.monitor.errors import HopwatchError
from tests.demo.hand_clock import HandClock
from tests.demo.simulation import NOON_US, PaperDemo, honest_report

DROPS = Faults(1, {"router": NodeFaults(drop_ratio=0.1)})


class PaperRun:
    """Plays pipeline, monitor and store for one ``Demo``, on one clock."""

    def __init__(self, folder: Path, faults: Faults = DROPS, run_s: float | None = 90.0) -> None:
        """Send a message a second for 90 s on paper, and make a demo of it."""
        self.paper = PaperDemo(folder / "run", faults)
        self.paper.send(range(90))
        self.clock = HandClock()
        self.out = StringIO()
        self.interrupts = Interrupts()
        self.to_drain = list(NODES)
        self.finished_at_s = math.inf
        self.ended: Exception | None = None
        self.at_s: dict[float, Callable[[], None]] = {}
        self.report_is_there = True
        self.change: Callable[[Json], None] = self.final_when_due
        self.demo = DemoRun(
            wishes=RunOptions(folder / "run", faults, run_s=run_s),
            layout=self.paper.layout,
            pipeline=self,
            monitor=self,
            results=self,
            screen=Screen(Console(file=self.out, width=200), now_s=self.clock),
            interrupts=self.interrupts,
            now_s=self.clock,
            wall_s=lambda: NOON_US / 1e6 + self.clock.s,
            sleep=self.sleep,
        )

    def sleep(self, seconds: float) -> None:
        """Let time pass, and do what is to happen meanwhile."""
        self.clock.s += seconds
        for at_s in [at_s for at_s in self.at_s if at_s <= self.clock.s]:
            self.at_s.pop(at_s)()

    def press_ctrl_c(self) -> None:
        """Press Ctrl-C."""
        self.interrupts.count += 1

    @property
    def has_finished(self) -> bool:
        """Play the pipeline: it has finished once enough messages were sent."""
        return self.clock.s >= self.finished_at_s

    def watch(self) -> list[str]:
        """Play the pipeline: say something in the 40th second."""
        return ["norm is killed (SIGKILL)"] if self.clock.s == 40.0 else []

    def drain(self) -> str | None:
        """Play the pipeline: end one node at each call."""
        return self.to_drain.pop(0) if self.to_drain else None

    def check(self) -> None:
        """Play the monitor."""
        if self.ended:
            raise self.ended

    def stop(self) -> None:
        """Play the monitor."""

    def final_when_due(self, report: Json) -> None:
        """Make windows final when their time has come, and not before."""
        for window in report["streams"][0]["windows"]:
            if self.demo.wall_s() < parse_start_us(window) / 1e6 + 60 + TRANSIT_S + SETTLE_S:
                window.update(status="PROVISIONAL", verdict=None)

    def report(self) -> Json | None:
        """Play the store."""
        if not self.report_is_there:
            return None
        report, _ = honest_report(self.paper.probes)
        self.change(report)
        return report

    def measured(self) -> Measurements | None:
        """Play the store."""
        return self.paper.measured() if self.report_is_there else None

    @property
    def lines(self) -> list[str]:
        """Return what was written."""
        return self.out.getvalue().splitlines()


def test_it_runs_for_its_time_and_says_what_happens(tmp_path: Path) -> None:
    """Until the time is over the pipeline's state is told, and kills are."""
    run = PaperRun(tmp_path)
    run.demo.produce()
    assert run.clock.s == 90.0
    assert run.lines[0].startswith("pipeline: 0 msg/s through connector, spool 0.0 MB")
    assert "norm is killed (SIGKILL)" in run.lines


def test_its_time_begins_with_the_first_message(tmp_path: Path) -> None:
    """Processes that are slow to start take nothing of it."""
    run = PaperRun(tmp_path)
    log = run.paper.layout.truth_log(NODES[0])
    later = log.rename(log.with_suffix(".later"))
    run.at_s[20.0] = partial(os.replace, later, log)
    run.demo.produce()
    assert run.clock.s == 110.0


def test_a_pipeline_that_has_finished_ends_the_run(tmp_path: Path) -> None:
    """Once so many messages were sent; its own words say how far it is."""
    run = PaperRun(tmp_path, run_s=None)
    run.finished_at_s = 33.0
    run.demo.describe_progress = lambda: "service: 7 of 9"
    run.demo.produce()
    assert run.clock.s == 33.0
    assert run.lines[0].startswith("service: 7 of 9")


def test_what_is_new_beside_the_pipeline_is_said(tmp_path: Path) -> None:
    """Once, when it is new."""
    run = PaperRun(tmp_path)
    news = [["the dashboard is at http://127.0.0.1:8501/"]]
    run.demo.news = lambda: news.pop() if news and run.clock.s >= 2 else []
    run.demo.produce()
    assert run.lines.count("the dashboard is at http://127.0.0.1:8501/") == 1


def test_without_a_time_it_runs_until_ctrl_c(tmp_path: Path) -> None:
    """Ctrl-C ends the run, and draining and waiting go on as ever."""
    run = PaperRun(tmp_path, run_s=None)
    run.at_s[123.0] = run.press_ctrl_c
    run.demo.produce()
    assert run.clock.s == 123.0
    assert run.demo.drain()
    assert run.to_drain == []
    assert run.demo.await_final(run.paper.truth().last_window_us)


def test_it_waits_until_the_last_window_is_final(tmp_path: Path) -> None:
    """The wait ends when the last minute with messages is over, and 35 s more, and says how long that is."""
    run = PaperRun(tmp_path)
    run.demo.produce()
    assert run.demo.drain()
    assert run.demo.await_final(run.paper.truth().last_window_us)
    assert 0 <= run.clock.s - (120 + TRANSIT_S + SETTLE_S) <= 2.5
    assert any(re.match(r"waiting: the last window, 22:15, is due in \d+ s ", line) for line in run.lines)
    assert [line.split()[:3] for line in run.lines if "FINAL" in line] == [
        ["22:14", "FINAL", "LOSSY"],
        ["22:15", "FINAL", "LOSSY"],
    ]


def test_a_second_ctrl_c_skips_the_wait(tmp_path: Path) -> None:
    """A second Ctrl-C ends the wait at once, and the run is not finished."""
    run = PaperRun(tmp_path, run_s=None)
    run.at_s = {10.0: run.press_ctrl_c, 20.0: run.press_ctrl_c}
    run.demo.produce()
    assert run.demo.drain()
    assert not run.demo.await_final(run.paper.truth().last_window_us)
    assert run.clock.s == 20.0


def test_two_ctrl_c_skip_the_draining(tmp_path: Path) -> None:
    """A pipeline that will not drain does not hold anybody up."""
    run = PaperRun(tmp_path)
    run.interrupts.count = 2
    assert not run.demo.drain()


@pytest.mark.parametrize("in_flight", [0, 1])
def test_a_window_that_never_becomes_final_is_given_up(tmp_path: Path, in_flight: int) -> None:
    """A monitor that hangs, or keeps messages in flight for ever, does not hang the demo."""

    def never(report: dict[str, Any]) -> None:
        report["streams"][0]["windows"][0].update(status="FINAL" if in_flight else "OPEN", in_flight=in_flight)

    run = PaperRun(tmp_path)
    run.change = never
    assert not run.demo.await_final(run.paper.truth().last_window_us)
    assert run.clock.s == pytest.approx(120 + TRANSIT_S + SETTLE_S + OVERDUE_S, abs=1)


def test_without_messages_there_is_nothing_to_wait_for(tmp_path: Path) -> None:
    """A run that created nothing is finished at once."""
    assert PaperRun(tmp_path).demo.await_final(None)


def test_before_the_monitor_has_a_store_the_demo_goes_on(tmp_path: Path) -> None:
    """The first seconds have no windows to show."""
    run = PaperRun(tmp_path)
    run.report_is_there = False
    run.demo.produce()
    assert not any("FINAL" in line for line in run.lines)


def test_a_monitor_that_ends_ends_the_demo(tmp_path: Path) -> None:
    """The error with which the monitor ended is raised."""
    run = PaperRun(tmp_path)
    run.ended = HopwatchError("the monitor ended by itself")
    with pytest.raises(HopwatchError, match=r"^the monitor ended by itself$"):
        run.demo.produce()


class PaperLinks:
    """Links that are only talked about."""

    words = "topics of this run: many"
    observations_url = ""
    left_behind = ""
    gate: GateOutlets | None = None

    def check(self) -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        """Do nothing."""
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Leave something behind."""
        self.left_behind = "the topics are left behind: no broker answers"

    def ends(self, node: str) -> SocketEnds:
        """Return none."""
        raise AssertionError(node)

    def descriptors(self, node: str) -> tuple[int, ...]:
        """Return none."""
        raise AssertionError(node)


def test_what_links_leave_behind_is_told(tmp_path: Path) -> None:
    """The demo prints which topics it leaves behind, also after an error."""
    run = PaperRun(tmp_path)
    with pytest.raises(HopwatchError), open_links(PaperLinks(), run.demo.screen):
        raise HopwatchError
    assert run.lines == ["topics of this run: many", "the topics are left behind: no broker answers"]


def test_agreement_is_exit_code_0(tmp_path: Path) -> None:
    """The last line is the one that everybody wants to read."""
    run = PaperRun(tmp_path)
    assert write_comparison(RunOptions(tmp_path, DROPS), run.paper.truth(), run, run.demo.screen) == 0
    assert run.lines[-1] == "injected = measured"


def test_after_a_kill_agreement_says_how_far_it_goes(tmp_path: Path) -> None:
    """After a kill the last line says how far the agreement goes."""
    faults = Faults(1, DROPS.nodes, (Kill("norm", 40.0),))
    run = PaperRun(tmp_path, faults)
    assert write_comparison(RunOptions(tmp_path, faults), run.paper.truth(), run, run.demo.screen) == 0
    assert run.lines[-1] == (
        "injected = measured, as far as the probes could tell; of norm nothing is claimed beyond the truth"
    )


def test_a_difference_is_exit_code_1(tmp_path: Path) -> None:
    """Every line that differs says so, and the last one counts them."""
    run = PaperRun(tmp_path)
    other = PaperDemo(tmp_path / "other", Faults(2, DROPS.nodes))
    other.send(range(90))
    assert write_comparison(RunOptions(tmp_path, DROPS), other.truth(), run, run.demo.screen) == 1
    differing = [line for line in run.lines if line.rstrip().endswith("DIFFERS")]
    assert differing
    assert run.lines[-1].startswith(f"injected and measured differ in {len(differing)} of ")


@pytest.mark.parametrize("report_is_there", [True, False])
def test_what_is_not_final_is_not_compared(tmp_path: Path, *, report_is_there: bool) -> None:
    """Nobody can call it equal, so it is no success."""
    run = PaperRun(tmp_path)
    run.report_is_there = report_is_there
    assert write_comparison(RunOptions(tmp_path, DROPS), None, run, run.demo.screen) == 1
    assert run.lines[-1] == "not compared: not every window is final"
    assert any("LOSSY" in line for line in run.lines) == report_is_there
