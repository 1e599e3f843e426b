"""What the four node processes have in common: they start, loop until told to stop, drain, and say goodbye."""

from __future__ import annotations

import select
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

from demo.config import Layout
from demo.faults import Dice
from demo.link import Inlet, Outlet
from demo.nodes.settings import NodeSettings
from demo.nodes.step import Step
from demo.probing import opened_probe
from demo.records import Flight, Message, pack, unpack
from demo.truth import TruthLog

TICK_S: Final = 0.2
LOOPBACK: Final = "127.0.0.1"


def own_settings() -> NodeSettings:
    """Return what the parent wrote into this process's only argument."""
    return NodeSettings.from_json(sys.argv[1])


def told_to_stop() -> bool:
    """Return whether the parent has closed this process's standard input, or is dead, which closes it too."""
    return bool(select.select([sys.stdin], [], [], 0)[0])


@contextmanager
def at_work(
    settings: NodeSettings, work: Callable[[Flight], Flight], hand_on: Callable[[Message], None]
) -> Iterator[Step]:
    """Open the node's truth log and its probe; on the way out hand on what is held, then close both."""
    layout = Layout(settings.path)
    with closing(TruthLog(layout.truth_log(settings.node))) as truth, opened_probe(settings, layout) as probe:
        dice = Dice(settings.seed, settings.node, settings.faults)
        step = Step(probe=probe, truth=truth, dice=dice, delay_s=settings.faults.delay_s, work=work, hand_on=hand_on)
        yield step
        while (wait_s := step.wait_s) is not None:
            time.sleep(wait_s)
            step.release()


@contextmanager
def next_node(settings: NodeSettings) -> Iterator[Callable[[Message], None]]:
    """Yield what hands a message to the next node; on the way out wait until all it was given is acknowledged."""
    outlet = Outlet((LOOPBACK, settings.next_port))
    yield lambda message: outlet.send(pack(message))
    outlet.close()


def relay(settings: NodeSettings, step: Step, stop: Callable[[], bool] = told_to_stop) -> None:
    """Give the step every message that comes, until told to stop and the node before has hung up."""
    with socket.socket(fileno=settings.listen_fd) as listener, closing(Inlet(listener)) as inlet:
        while True:
            wait_s = step.wait_s
            payloads = inlet.receive(TICK_S if wait_s is None else min(wait_s, TICK_S))
            for payload in payloads:
                step.take(unpack(payload))
            step.release()
            if not payloads and not inlet.connected and stop():
                return
