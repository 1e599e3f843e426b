"""Experiment: a receiver refuses everything for a while, beside a delivery that its incident pauses and one that not.

Both have a live monitor, which finds the incident in final windows; its figures are in docs/PERFORMANCE.md.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path as Folder
from typing import Final

import pytest

from hopwatch import Probe
from hopwatch.cli.main import main
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from servers.kafka import Kafka
from servers.process import until
from tests.real.deliveries import DeliveryPlace
from tests.real.receivers import HttpSink
from tests.support.probe_host import ROOT
from tests.support.program import Program

RATE_PER_S: Final = 20
LOOK_S: Final = 10
CALM_S: Final = 60
BAD_S: Final = 420
AFTER_S: Final = 240
ACTION: Final = """
[alerts.channels.stop]
kind = "pause"
delivery = "with"
rules = ["rejected"]
most = 20
"""
RULE: Final = """
[[alerts.rules]]
kind = "rejected"
for = "1m"
keep_firing_for = "1m"
"""


@dataclass
class Side:
    """One of both deliveries: its place and receiver, and when it was seen paused, s since the receiver went bad."""

    place: DeliveryPlace
    receiver: HttpSink
    paused_s: list[float] = field(default_factory=list)


@contextmanager
def monitor(place: DeliveryPlace) -> Iterator[Program]:
    """Run the monitor of a place, and print what it told in the end."""
    with (place.folder / "monitor").open("ab") as said:
        running = Program(
            ["hopwatch", "run", "--config", str(place.config)], folder=ROOT, environ=dict(os.environ), err=said
        )
    try:
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait()
        main(["alerts", "history", "--config", str(place.config)])


@pytest.mark.soak
@pytest.mark.timeout(2_400)
def test_a_pause_keeps_what_a_receiver_would_refuse(kafka: Kafka, tmp_path: Folder) -> None:
    """Less is rejected, and all that was not is delivered once it is over; without the pause nothing is held."""
    is_bad = False
    sides: dict[str, Side] = {}
    with ExitStack() as stack:
        for name in ("without", "with"):
            receiver = stack.enter_context(HttpSink(lambda *_: 422 if is_bad else 200).serving())
            folder = tmp_path / name
            folder.mkdir()
            place = DeliveryPlace(kafka, f"pause-experiment-{name}", folder, receiver.url, name=name)
            place.config.write_text(place.config.read_text() + RULE + (ACTION if name == "with" else ""))
            place.create_topics()
            stack.enter_context(monitor(place))
            stack.enter_context(place.running())
            sides[name] = Side(place, receiver)
        probes = [
            stack.enter_context(Probe("orders", "router", sink=f"spool:{side.place.spool}")) for side in sides.values()
        ]
        begin_s, number = time.monotonic(), 0
        while (passed_s := time.monotonic() - begin_s) < CALM_S + BAD_S + AFTER_S:
            is_bad = CALM_S <= passed_s < CALM_S + BAD_S
            ids = [f"p{one}" for one in range(number, number + RATE_PER_S)]
            number += RATE_PER_S
            now_us = time.time_ns() // 1_000
            for probe, side in zip(probes, sides.values(), strict=True):
                probe.arrived_many(ids, [now_us] * len(ids))
                for one in ids:
                    side.place.send([one], headers=[(ID_HEADER, one), (TIME_HEADER, str(now_us))])
                probe.departed_many(ids, [now_us] * len(ids))
            if number % (LOOK_S * RATE_PER_S) == 0 and sides["with"].place.listed()["paused_by"]:
                sides["with"].paused_s.append(passed_s - CALM_S)
            time.sleep(max(0.0, begin_s + number / RATE_PER_S - time.monotonic()))
        until(lambda: sides["with"].place.listed()["paused_by"] == [], "it is resumed")
        resumed_s = time.monotonic() - begin_s - CALM_S
        for side in sides.values():
            side.place.await_drained()
    rejected = {name: len(side.place.rejected()) for name, side in sides.items()}
    paused = f"paused at {compress(sides['with'].paused_s)}, resumed at {resumed_s:.0f} s at most"
    print(f"sent {number}, rejected {rejected}, {paused}")  # noqa: T201 - figures
    for name, side in sides.items():
        assert len(side.receiver.acknowledged) + rejected[name] == number
    assert rejected["with"] < rejected["without"]


def compress(moments_s: list[float]) -> list[tuple[float, float]]:
    """Return spans of moments that are of looks in a row."""
    spans: list[tuple[float, float]] = []
    for at_s in moments_s:
        if spans and at_s - spans[-1][1] < 2 * LOOK_S:
            spans[-1] = (spans[-1][0], round(at_s, 1))
        else:
            spans.append((round(at_s, 1), round(at_s, 1)))
    return spans
