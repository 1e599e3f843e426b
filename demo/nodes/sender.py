"""sender: makes what ingest makes where there is no gate, and sends it to the gate, one in a hundred broken."""

from __future__ import annotations

import sys
from contextlib import closing

from hopwatch.client import GateClient
from hopwatch.demo.entrance.event_sender import POLICY, EventSender
from hopwatch.demo.entrance.registration import HOST, register_schema
from hopwatch.demo.entrance.rejections import Rejections
from hopwatch.demo.entrance.settings import SenderSettings
from hopwatch.demo.faults import Dice
from hopwatch.demo.layout import Layout
from hopwatch.demo.link import LinkError
from hopwatch.demo.nodes.ingest import create_count, create_messages, parse_flight
from hopwatch.demo.stream import GATE, STREAM
from hopwatch.demo.truth import TruthLog


def run_sender(settings: SenderSettings) -> None:
    """Send messages until a stop is requested, or so many are sent; return when all have been answered.

    Raises:
        LinkError: the gate does not answer, or refuses what it is sent.
    """
    layout, rejections = Layout(settings.path), Rejections()
    dice = Dice(settings.seed, GATE, settings.faults)
    register_schema(settings.port, settings.patience_s)
    with closing(TruthLog(layout.truth_log(GATE))) as truth:
        sender = EventSender(
            connect=lambda tell: GateClient(f"http://{HOST}:{settings.port}", STREAM, on_outcome=tell, policy=POLICY),
            truth=truth,
            dice=dice,
            seed=settings.seed,
            rejections=rejections,
            patience_s=settings.patience_s,
        )
        with closing(sender):
            for messages in create_count(settings.count) if settings.count else create_messages(settings, 0):
                sender.send([message._replace(flight=parse_flight(message.flight)) for message in messages])
            sender.finish()
    rejections.write(layout.rejections)


if __name__ == "__main__":
    try:
        run_sender(SenderSettings.from_json(sys.argv[1]))
    except LinkError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
