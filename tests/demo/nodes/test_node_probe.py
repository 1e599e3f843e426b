"""Tests of the faults of a node's probe: a wrong clock, a transport that refuses."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from hopwatch.demo.faults import NodeFaults
from hopwatch.demo.layout import create_layout
from hopwatch.demo.links.ends import SocketEnds
from hopwatch.demo.nodes.node_probe import LossySink, SkewedClock, open_probe
from hopwatch.demo.nodes.settings import NodeSettings
from hopwatch.demo.stream import STREAM
from hopwatch.demo.truth import NodeAction, TruthLog, count_actions, count_entries
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.envelope import encode
from hopwatch.testing import MemorySink
from tests.demo.simulation import NOON_US, message_id
from tests.demo.spool_reader import read_spool


def settings_with(faults: NodeFaults, folder: Path = Path("run")) -> NodeSettings:
    """Return the settings of a norm with these faults."""
    return NodeSettings("norm", str(folder), SocketEnds(0, 0), f"spool:{folder}/spool", 2000.0, 0, faults)


def record(number: int, kind: BatchKind = BatchKind.OBSERVATIONS) -> bytes:
    """Return a record, with two observations if it holds any."""
    ids = message_id(2 * number) + message_id(2 * number + 1) if kind is BatchKind.OBSERVATIONS else b""
    lags = bytes(8 * (len(ids) // 16))
    batch = Batch("p", NOON_US, number, kind, STREAM, "norm", NOON_US // 1000, NOON_US, NOON_US, len(ids) // 16, ids)
    return encode(Batch(**{**{name: getattr(batch, name) for name in batch.__slots__}, "lag_in_us": lags}))


def test_a_skewed_clock_is_wrong_by_that_much() -> None:
    """The time of day is ahead, or behind; spans are right."""
    for skew_s in (-5.0, 7.0):
        clock = SkewedClock(skew_s)
        assert abs(clock.wall_ns() - time.time_ns() - skew_s * 1e9) < 1e9
        assert abs(clock.monotonic_ns() - time.monotonic_ns()) < 1e9


def test_a_bad_sink_refuses_some_and_writes_down_what(tmp_path: Path) -> None:
    """Every record is taken or refused; of the refused ones each observation is in the truth."""
    taken, path = MemorySink(), tmp_path / "untold"
    sink = LossySink(taken, TruthLog(path), settings_with(NodeFaults(probe_drop_ratio=0.3)))
    answers = [sink.send(record(number)) for number in range(200)]
    assert taken.records == [record(number) for number, answer in enumerate(answers) if answer]
    assert count_actions(path, NodeAction.UNTOLD) == count_entries(path) == 2 * answers.count(False)
    assert 30 < answers.count(False) < 90


def test_a_bad_sink_refuses_no_heartbeat_and_no_bye(tmp_path: Path) -> None:
    """Only observations are refused: an account without its bye would be another fault."""
    sink = LossySink(MemorySink(), TruthLog(tmp_path / "untold"), settings_with(NodeFaults(probe_drop_ratio=1.0)))
    assert sink.send(record(0, BatchKind.HEARTBEAT))
    assert sink.send(record(1, BatchKind.BYE))
    assert not sink.send(record(2))


def test_a_healthy_node_has_a_plain_probe(tmp_path: Path) -> None:
    """A healthy node's stamps are in the spool once its probe is closed, with a bye."""
    layout = create_layout(tmp_path / "run")
    with open_probe(settings_with(NodeFaults(), layout.folder), layout) as probe:
        probe.arrived(message_id(1), time.time_ns() // 1_000)
    hello, observed, bye = read_spool(layout)
    assert (hello.seq, hello.kind, hello.count) == (0, BatchKind.HEARTBEAT, 0)
    assert (observed.stream, observed.node, observed.message_ids) == (STREAM, "norm", message_id(1))
    assert bye.kind is BatchKind.BYE


def test_refused_observations_are_told_as_drops(tmp_path: Path) -> None:
    """With everything refused the spool holds the bye alone, and it tells how many observations are missing."""
    layout = create_layout(tmp_path / "run")
    with open_probe(settings_with(NodeFaults(probe_drop_ratio=1.0, skew_s=-30.0), layout.folder), layout) as probe:
        for number in range(5):
            probe.arrived(message_id(number), time.time_ns() // 1_000)
    batches = read_spool(layout)
    assert {batch.count for batch in batches} == {0}
    assert sum(drop.count for batch in batches for drop in batch.drops) == 5
    assert count_actions(layout.untold_log("norm"), NodeAction.UNTOLD) == 5
    assert -31e6 < batches[-1].sent_at_us - time.time_ns() / 1e3 < -29e6


def test_the_probe_of_a_bad_sink_is_closed_with_its_log(tmp_path: Path) -> None:
    """A second probe on the same log goes on behind the first."""
    layout = create_layout(tmp_path / "run")
    for _ in range(2):
        with open_probe(settings_with(NodeFaults(probe_drop_ratio=1.0), layout.folder), layout) as probe:
            probe.arrived(message_id(1), time.time_ns() // 1_000)
    with closing(TruthLog(layout.untold_log("norm"))):
        assert count_actions(layout.untold_log("norm"), NodeAction.UNTOLD) == 2
