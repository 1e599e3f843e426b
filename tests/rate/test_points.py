"""Tests of what the rating reads of the stream's own observations, of processes, and of whose machine it is."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from hopwatch import Probe
from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.rate import observation_reader
from hopwatch.rate.message_ids import build_ids
from hopwatch.rate.observation_reader import ObservationsError
from hopwatch.rate.ownership import find_strangers
from hopwatch.rate.point_log import MAX_KEPT, PointLog
from hopwatch.rate.processors import ProcessorMeter, find_probe_processes
from hopwatch.rate.saturation import Side
from hopwatch.testing import MemorySink
from servers.process import free_ports, until

RUN = 4_711


def test_lags_of_a_node_are_read_of_its_spool(tmp_path: Path) -> None:
    """Those of the run's messages, by step, without the warm-up and what others sent; its process is known."""
    log = PointLog("orders", RUN)
    begun_us = time.time_ns() // 1_000 - 1_000_000
    assert log.begin_step(10, begun_us, 5, 20) == 0
    assert log.begin_step(35, begun_us, 0, 5) == 1
    due_us = begun_us + np.arange(30) * 1_000
    ids = np.concatenate([build_ids(RUN, 10, due_us), build_ids(RUN + 1, 10, due_us)])
    with observation_reader.open_spool(tmp_path, log):
        with Probe("orders", "router", f"spool:{tmp_path}") as probe:
            probe.arrived_many(ids, np.concatenate([due_us, due_us]))
        until(lambda: bool(log.get_points(1, ["router"])), "the observations")
    (point,) = log.get_points(0, ["gate", "router"])
    assert (point.node, point.side, point.due_s.size) == ("router", Side.IN, 20)
    assert sorted(point.due_s) == pytest.approx(np.arange(5, 25) / 1e3)
    assert ((point.lags_s > 0.9) & (point.lags_s < 60)).all()
    assert log.get_points(1, ["router"])[0].due_s.size == 5
    assert find_probe_processes(log.probes, socket.gethostname()) == {"router": {os.getpid()}}
    assert find_probe_processes({"a": {"elsewhere-5", "x"}}, socket.gethostname()) == {}


def test_each_segment_is_taken_once(tmp_path: Path) -> None:
    """Those that are new since the last look, in order; what is no segment, or gone, is left alone."""
    new_segments = observation_reader.NewSegments(tmp_path / "spool")
    assert new_segments.list_new() == []
    folders = [tmp_path / "spool" / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir(parents=True)
        for name in ("0000000002.seg", "0000000001.seg", "0000000003.open"):
            (folder / name).touch()
    (tmp_path / "spool" / "README").touch()
    assert new_segments.list_new() == [
        folder / name for folder in folders for name in ("0000000001.seg", "0000000002.seg")
    ]
    assert new_segments.list_new() == []
    (folders[0] / "0000000001.seg").unlink()
    (folders[1] / "0000000003.open").rename(folders[1] / "0000000003.seg")
    assert new_segments.list_new() == [folders[1] / "0000000003.seg"]


def test_a_large_step_is_sampled() -> None:
    """At most so many messages of a step are kept, evenly chosen."""
    log, sink = PointLog("orders", RUN), MemorySink()
    count = 4 * MAX_KEPT
    begun_us = time.time_ns() // 1_000
    log.begin_step(0, begun_us, 0, count)
    due_us = np.full(count, begun_us)
    with Probe("orders", "router", sink) as probe:
        probe.arrived_many(build_ids(RUN, 0, due_us), due_us)
    for record in sink.records:
        log.note(record, envelope.read_record(record))
    (point,) = log.get_points(0, ["router"])
    assert point.lags_s.size == MAX_KEPT


def test_observations_that_cannot_be_read_say_why() -> None:
    """No broker answers."""
    (port,) = free_ports(1)
    with pytest.raises(ObservationsError, match="the topic observations cannot be read: none answers"):
        observation_reader.open_topic(
            KafkaPlace(f"127.0.0.1:{port}", "observations"), KafkaAccess(), PointLog("orders", RUN)
        )


def test_the_processor_use_of_a_process_is_measured() -> None:
    """A process that computes uses a processor or waits for one; one that has ended is left out."""
    meter = ProcessorMeter(lambda: {"own": {os.getpid()}, "gone": {2**22 + 1}})
    meter.begin()
    until_s = time.thread_time() + 0.3
    while time.thread_time() < until_s:
        pass
    shares = meter.end()
    assert set(shares.by_name) == {"own"}
    use = shares.by_name["own"]
    assert use.used > 0.02
    assert use.used + use.waited > 0.5
    assert shares.machine is not None
    assert 0 < shares.machine <= 1


def test_without_proc_nothing_is_known(tmp_path: Path) -> None:
    """As on a machine that is no Linux."""
    meter = ProcessorMeter(lambda: {"own": {os.getpid()}}, tmp_path)
    meter.begin()
    assert meter.end() == ({}, None)


def test_addresses_of_others_are_strangers() -> None:
    """Loopback and this machine's own addresses are not; names without an address are."""
    assert find_strangers(["127.0.0.1", "::1", "localhost", "0.0.0.0"]) == []  # noqa: S104 - of this machine
    assert find_strangers(["192.0.2.1", "127.0.0.1", "192.0.2.1", "no-such-host.invalid"]) == [
        "192.0.2.1",
        "no-such-host.invalid",
    ]
