"""Consumer whose work is to wait: 50 ms a message, as for an answer from elsewhere; hardly any processor time.

A program by itself, which knows nothing of Hopwatch: BROKERS TOPIC GROUP FOLDER. Of each message it writes a line into
a file of its own, the value and the moment in ns, before it commits. SIGTERM ends it after the message in hand.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from threading import Event
from typing import Final

from confluent_kafka import Consumer

WAIT_S: Final = 0.05
POLL_S: Final = 0.2


def consume(brokers: str, topic: str, group: str, folder: Path) -> None:
    """Consume as one of the group until SIGTERM."""
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 10_000,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    with (folder / f"{os.getpid()}.{time.time_ns()}").open("w", buffering=1, encoding="utf-8") as file:
        while not stop.is_set():
            message = consumer.poll(POLL_S)
            if message is None or message.error() is not None:
                continue
            time.sleep(WAIT_S)
            file.write(f"{(message.value() or b'').decode()} {time.time_ns()}\n")
            consumer.commit(message, asynchronous=False)
    consumer.close()


if __name__ == "__main__":
    consume(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
