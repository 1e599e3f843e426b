"""Common life cycle of the four node processes: start, loop until a stop is requested, drain, close the probe."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

from hopwatch.demo.faults import Dice
from hopwatch.demo.layout import Layout
from hopwatch.demo.link import LinkError, LinkInterruptedError, LinkOutlet
from hopwatch.demo.nodes.node_probe import open_probe
from hopwatch.demo.nodes.settings import NodeSettings, StepSettings
from hopwatch.demo.nodes.step import Hop, NodeStep
from hopwatch.demo.records import Flight, FlightMessage, pack_message, unpack_message
from hopwatch.demo.truth import TruthLog

TICK_S: Final = 0.2


class NextNode:
    """The hop to the next node."""

    def __init__(self, outlet: LinkOutlet) -> None:
        """Take the link that leads there."""
        self._outlet = outlet

    def hand_on(self, message: FlightMessage, then: Callable[[], None]) -> None:
        """Send a message; ``then`` is called once it has left."""
        self._outlet.send(pack_message(message), then)

    def settle(self) -> None:
        """Wait until all that was sent has left."""
        self._outlet.settle()

    def close(self) -> None:
        """Hang up."""
        self._outlet.close()


def read_settings() -> NodeSettings:
    """Return the settings that the parent passed as this process's only argument."""
    return NodeSettings.from_json(sys.argv[1])


def is_stop_requested() -> bool:
    """Return whether the parent has closed this process's standard input, or is dead, which closes it too."""
    return bool(select.select([sys.stdin], [], [], 0)[0])


@contextmanager
def open_step(settings: StepSettings, work: Callable[[Flight], Flight], hop: Hop) -> Iterator[NodeStep]:
    """Open the node's truth log and its probe; on the way out hand on what is held, then close all.

    A link that fails ends the process with the exit code of a dependency that is down.
    """
    try:
        with closing(hop), _open_step(settings, work, hop) as step:
            yield step
    except (LinkError, LinkInterruptedError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


@contextmanager
def _open_step(settings: StepSettings, work: Callable[[Flight], Flight], hop: Hop) -> Iterator[NodeStep]:
    layout = Layout(settings.path)
    with closing(TruthLog(layout.truth_log(settings.node))) as truth, open_probe(settings, layout) as probe:
        dice = Dice(settings.seed, settings.node, settings.faults)
        step = NodeStep(probe=probe, truth=truth, dice=dice, delay_s=settings.faults.delay_s, work=work, hop=hop)
        yield step
        step.release()
        while (wait_s := step.wait_s) is not None:
            time.sleep(wait_s)
            step.release()


def relay_messages(
    settings: NodeSettings,
    step: NodeStep,
    stop: Callable[[], bool] = is_stop_requested,
    read: Callable[[bytes], FlightMessage] = unpack_message,
) -> None:
    """Give the step every message, until a stop is requested, the node before has ended, and all is handed on."""
    with closing(settings.ends.inlet()) as inlet:
        while True:
            wait_s = step.wait_s
            payloads = inlet.receive(TICK_S if wait_s is None else min(wait_s, TICK_S))
            for payload in payloads:
                step.receive_message(read(payload))
            step.release()
            inlet.done(step.done_count)
            if not payloads and step.wait_s is None and stop() and inlet.has_ended():
                return
