"""Tests of what is said of the running pipeline."""

from __future__ import annotations

from pathlib import Path

from hopwatch.demo.entrance.outlets import build_spool_outlets
from hopwatch.demo.layout import create_layout
from hopwatch.demo.progress import Progress
from hopwatch.demo.truth import NodeAction, TruthLog
from tests.demo.hand_clock import HandClock
from tests.demo.simulation import message_id


def test_the_rate_is_that_since_the_last_look(tmp_path: Path) -> None:
    """Messages through connector by the time between two looks, and what whole segments there are in the spool."""
    layout, clock = create_layout(tmp_path / "run"), HandClock()
    log = TruthLog(layout.truth_log("connector"))
    log.write(NodeAction.HANDED_ON, 0, message_id(0))
    progress = Progress(layout, clock)
    log.write(NodeAction.HANDED_ON, 0, *(message_id(number) for number in range(3000)))
    clock.s = 1.5
    (layout.spool / "probe").mkdir()
    (layout.spool / "probe" / "0000000000.seg").write_bytes(bytes(2_500_000))
    (layout.spool / "probe" / "0000000001.open").write_bytes(bytes(9_000_000))
    assert progress.status() == "pipeline: 2,000 msg/s through connector, spool 2.5 MB"
    clock.s = 2.5
    assert progress.status() == "pipeline: 0 msg/s through connector, spool 2.5 MB"


def test_behind_a_gate_the_rate_is_that_of_several_looks(tmp_path: Path) -> None:
    """Messages come in bursts there."""
    layout, clock = create_layout(tmp_path / "run", gate=build_spool_outlets(tmp_path / "run")), HandClock()
    log = TruthLog(layout.truth_log("connector"))
    progress = Progress(layout, clock)
    log.write(NodeAction.HANDED_ON, 0, *(message_id(number) for number in range(2000)))
    rates = []
    for clock.s in (1.0, 2.0, 5.0, 6.0, 7.0, 8.0):
        rates.append(progress.status().split()[1])
    assert rates == ["2,000", "1,000", "400", "333", "286", "0"]


def test_through_kafka_there_is_no_spool(tmp_path: Path) -> None:
    """Through Kafka the status has no figures of a spool."""
    layout = create_layout(tmp_path / "run", "kafka://h:1/t")
    assert Progress(layout, HandClock()).status() == "pipeline: 0 msg/s through connector"


def test_a_segment_that_the_monitor_removes_meanwhile_is_not_missed(tmp_path: Path) -> None:
    """A link to nothing stands for a file that is gone between listing and looking."""
    layout = create_layout(tmp_path / "run")
    (layout.spool / "0000000000.seg").symlink_to(tmp_path / "gone")
    assert Progress(layout, HandClock()).status().endswith("spool 0.0 MB")
