"""Brokers that die under a monitor and its probes: what was acknowledged is there, what was dropped is counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.sinks.kafka import KafkaSink
from servers.kafka import Kafka
from tests.real.monitor_process import Monitor, Report, lost_at, minute_of, windows_of
from tests.real.program_folder import Workplace
from tests.real.traffic import NODES, STREAMS, Traffic

LITTLE_BYTES = 30_000
"""So little waits for the brokers in the test of drops that an outage surely fills it."""
OUTAGE_S = 12


def nodes_of(report: Report, node: str) -> Iterator[Report]:
    """Yield what each window says of a node."""
    return (one for window in windows_of(report) for one in window["nodes"] if one["node"] == node)


def test_brokers_that_die_lose_nothing_that_was_acknowledged(
    three_brokers: Kafka, tmp_path: Path, times: Callable[[int, int], int]
) -> None:
    """One of three for good, another for 12 s: what was taken is there, what was dropped is counted, no false loss.

    In a soak each of the three before that, by turns.
    """
    three_brokers.create_topic("killed", 6)
    place = KafkaPlace.parse(three_brokers.url("killed"))
    sinks = {node: KafkaSink(place, f"orders.{node}") for node in NODES}
    # One of the nodes has so little room that it has to drop.
    sinks["b"] = KafkaSink(place, "orders.b", most_bytes=LITTLE_BYTES)
    traffic = Traffic(lambda node: sinks[node], a_second=200).start()
    monitor = Monitor(Workplace(tmp_path, three_brokers.url("killed"), streams=STREAMS)).start()
    # A monitor that starts while brokers are away ends, and says so.
    monitor.until(lambda: bool(windows_of(monitor.work.reported())), "the first window")
    for number in range(times(0, 3)):
        three_brokers.kill(number)
        time.sleep(4)
        three_brokers.restart(number)
    three_brokers.kill(0)
    # The two that are left take the place of its leaders, and acknowledge.
    time.sleep(4)
    three_brokers.kill(1)
    time.sleep(OUTAGE_S)
    # Two of three acknowledge again; the first one stays dead.
    three_brokers.restart(1)
    time.sleep(10)
    traffic.end()
    last = minute_of(time.time())
    report = monitor.until_judged(last)
    monitor.stop()
    dropped = traffic.dropped
    assert dropped["b"] > 0
    assert (dropped["a"], dropped["c"]) == (0, 0)
    assert sum(window["known"] for window in windows_of(report)) == traffic.sent
    for node in NODES:
        assert sum(one["dropped"] for one in nodes_of(report, node)) == dropped[node]
    for window in windows_of(report):
        for one in window["nodes"]:
            # What b dropped may look lost there; what surely was lost is never more than what was.
            assert one["loss_lower"] <= traffic.lost_at[one["node"], window["window_start"]]
            assert one["dropped"] == 0 or one["coverage"] < 1
    assert lost_at(report, "c") <= traffic.lost["c"]
