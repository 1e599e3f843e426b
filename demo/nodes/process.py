"""What the four node processes have in common: they start, loop until told to stop, drain, and say goodbye."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

from hopwatch.demo.config import Layout
from hopwatch.demo.faults import Dice
from hopwatch.demo.links import LinkError, Outlet
from hopwatch.demo.nodes.settings import NodeSettings
from hopwatch.demo.nodes.step import Hop, Step
from hopwatch.demo.probing import opened_probe
from hopwatch.demo.records import Flight, Message, pack, unpack
from hopwatch.demo.truth import TruthLog

TICK_S: Final = 0.2


class NextNode:
    """The hop to the next node."""

    def __init__(self, outlet: Outlet) -> None:
        """Take the link that leads there."""
        self._outlet = outlet

    def hand_on(self, message: Message, then: Callable[[], None]) -> None:
        """Send a message; ``then`` is called once it has left."""
        self._outlet.send(pack(message), then)

    def settle(self) -> None:
        """Wait until all that was sent has left."""
        self._outlet.settle()

    def close(self) -> None:
        """Hang up."""
        self._outlet.close()


def own_settings() -> NodeSettings:
    """Return what the parent wrote into this process's only argument."""
    return NodeSettings.from_json(sys.argv[1])


def told_to_stop() -> bool:
    """Return whether the parent has closed this process's standard input, or is dead, which closes it too."""
    return bool(select.select([sys.stdin], [], [], 0)[0])


@contextmanager
def at_work(settings: NodeSettings, work: Callable[[Flight], Flight], hop: Hop) -> Iterator[Step]:
    """Open the node's truth log and its probe; on the way out hand on what is held, then close all.

    A link that fails ends the process with the exit code of a dependency that is down.
    """
    try:
        with closing(hop), _step(settings, work, hop) as step:
            yield step
    except LinkError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


@contextmanager
def _step(settings: NodeSettings, work: Callable[[Flight], Flight], hop: Hop) -> Iterator[Step]:
    layout = Layout(settings.path)
    with closing(TruthLog(layout.truth_log(settings.node))) as truth, opened_probe(settings, layout) as probe:
        dice = Dice(settings.seed, settings.node, settings.faults)
        step = Step(probe=probe, truth=truth, dice=dice, delay_s=settings.faults.delay_s, work=work, hop=hop)
        yield step
        step.release()
        while (wait_s := step.wait_s) is not None:
            time.sleep(wait_s)
            step.release()


def relay(
    settings: NodeSettings,
    step: Step,
    stop: Callable[[], bool] = told_to_stop,
    read: Callable[[bytes], Message] = unpack,
) -> None:
    """Give the step every message that comes, until told to stop, the node before has ended, and all is handed on."""
    with closing(settings.ends.inlet()) as inlet:
        while True:
            wait_s = step.wait_s
            payloads = inlet.receive(TICK_S if wait_s is None else min(wait_s, TICK_S))
            for payload in payloads:
                step.take(read(payload))
            step.release()
            inlet.done(step.done_count)
            if not payloads and step.wait_s is None and stop() and inlet.has_ended():
                return
