"""sender: makes what ingest makes where there is no gate, and posts it to the gate as JSON, one in a hundred broken."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import Final

from hopwatch.demo.entrance.client import EntranceClient
from hopwatch.demo.entrance.event_sender import EventSender
from hopwatch.demo.entrance.rejections import Rejections
from hopwatch.demo.entrance.settings import SenderSettings
from hopwatch.demo.faults import Dice
from hopwatch.demo.layout import Layout
from hopwatch.demo.link import LinkError
from hopwatch.demo.nodes.ingest import create_count, create_messages, parse_flight
from hopwatch.demo.stream import GATE
from hopwatch.demo.truth import TruthLog

POST_EVERY_S: Final = 0.1
"""Time for which messages are collected into a batch: the gate syncs its disk for every batch."""


def run_sender(settings: SenderSettings) -> None:
    """Send messages until a stop is requested, or so many are sent; return when all have been answered.

    Raises:
        LinkError: the gate takes nothing any more.
    """
    layout, rejections = Layout(settings.path), Rejections()
    dice = Dice(settings.seed, GATE, settings.faults)
    with closing(EntranceClient(settings.port)) as client, closing(TruthLog(layout.truth_log(GATE))) as truth:
        sender = EventSender(
            client=client,
            truth=truth,
            dice=dice,
            seed=settings.seed,
            rejections=rejections,
            patience_s=settings.patience_s,
        )
        sender.register()
        batches = create_count(settings.count) if settings.count else create_messages(settings, 0, tick_s=POST_EVERY_S)
        for messages in batches:
            sender.send([message._replace(flight=parse_flight(message.flight)) for message in messages])
    rejections.write(layout.rejections)


if __name__ == "__main__":
    try:
        run_sender(SenderSettings.from_json(sys.argv[1]))
    except LinkError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
