"""``hopwatch validate kafka`` while its brokers are away: it waits and loses nothing, or ends in order."""

from __future__ import annotations

import signal
import time
from pathlib import Path as Folder

import pytest

from servers.kafka import Kafka
from servers.process import until
from tests.real.validated_traffic import Traffic, check_all
from tests.real.validators import Place

AWAY, BACK = "the calls to the brokers fail", "the brokers answer again"


@pytest.mark.soak  # the next one and test_gate_faults.py stop brokers by default
def test_brokers_that_are_away_are_waited_for(three_brokers: Kafka, tmp_path: Folder) -> None:
    """All of them, for longer than a transaction may take: it says so, goes on, and loses nothing."""
    place = Place(three_brokers, "away", tmp_path)

    def said(what: str) -> int:
        return place.said().count(what)

    with Traffic(place) as traffic, place.running() as process:
        until(lambda: bool(place.read("away.good", 1, 1.0)), "it validates")
        for number in range(3):
            three_brokers.kill(number)
        time.sleep(25)
        # Told once an outage; one after the other they may be away, answer, and be away for good.
        until(lambda: said(AWAY) == said(BACK) + 1, "it says that they are away")
        assert process.poll() is None, place.said()
        for number in range(3):
            three_brokers.launch(number)
        three_brokers.wait()
        time.sleep(2)
        count = traffic.end()
        check_all(place, count)
        place.stop(process)
    # On a machine with much to do they may seem to be away another time.
    assert said(AWAY) == said(BACK) >= 1


def test_it_ends_in_order_while_brokers_are_away(own_broker: Kafka, tmp_path: Folder) -> None:
    """With 0, and within a minute."""
    place = Place(own_broker, "gone", tmp_path)
    with Traffic(place), place.running() as process:
        until(lambda: bool(place.read("gone.good", 1, 1.0)), "it validates")
        own_broker.kill(0)
        time.sleep(3)
        process.send_signal(signal.SIGTERM)
        assert place.ended(process) == 0, place.said()
    place.producer.purge()
