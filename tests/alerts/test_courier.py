"""Tests of the courier."""

from __future__ import annotations
from sqlalchemy import Engine
from alerts.channels.channel import Taken
from alerts.courier import Courier
from alerts.outbox import Delivery
from alerts.ways import Ways
from tests.alerts.test_outbox import put, states
from tests.alerts.told import notification
from tests.monitor.manual_clock import ManualClock
from tests.alerts.windows import at


class Double:
    def __init__(self):
        self.got = []

    def send(self, delivery, now_us):
        self.got.append(delivery)
        return Taken()

    def close(self): ...


def test_thin(engine: Engine) -> None:
    put(engine, notification())
    d = Double()
    c = Courier(engine, Ways({"pager": d}), ManualClock(at(5)))
    (r,) = c.step()
    assert states(engine) == {("pager", "sent"): 1}
    assert c.step() == []
    print(c.figures())
