"""Process of router or norm in the service: it does the same work there, between topics and in transactions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from hopwatch.demo.link import LinkInterruptedError
from hopwatch.demo.links.transactions import TransactionalLink
from hopwatch.demo.nodes.norm import normalise_flight
from hopwatch.demo.nodes.process import TICK_S, is_stop_requested, open_step
from hopwatch.demo.nodes.router import route_flight
from hopwatch.demo.nodes.step import NodeStep
from hopwatch.demo.records import Flight, FlightMessage
from hopwatch.demo.service.settings import TransactionalSettings
from hopwatch.demo.stream import RECEIVERS

MAINLINE, OTHERS = RECEIVERS
WORK: Final[dict[str, Callable[[Flight], Flight]]] = {"router": route_flight, "norm": normalise_flight}


def choose_next(node: str, message: FlightMessage) -> str:
    """Return the node that a message goes to: behind norm the receiver of its market."""
    if node != "norm":
        return "norm"
    return MAINLINE if message.flight["market"] == MAINLINE else OTHERS


def relay_transactions(link: TransactionalLink, step: NodeStep, stop: Callable[[], bool] = is_stop_requested) -> None:
    """Give the step every message, a transaction a turn, until a stop is requested and all is handed on."""
    while True:
        wait_s = step.wait_s
        messages = link.receive(TICK_S if wait_s is None else min(wait_s, TICK_S))
        for message in messages:
            step.receive_message(message)
        step.release()
        link.commit(step.count_done(link.waiting_count))
        if not messages and step.wait_s is None and stop() and link.has_ended():
            return


def run_node(settings: TransactionalSettings) -> None:
    """Relay messages until a stop is requested; a link that fails ends the process with its exit code."""
    node = settings.node
    try:
        link = TransactionalLink.open(settings.ends, lambda message: choose_next(node, message))
    except LinkInterruptedError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
    with open_step(settings, WORK[node], link) as step:
        relay_transactions(link, step)


if __name__ == "__main__":
    run_node(TransactionalSettings.from_json(sys.argv[1]))
