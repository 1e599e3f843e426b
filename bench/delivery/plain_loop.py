"""Consumer loop that people write: poll a batch, post it with ``requests``, commit, go on.

A program by itself, which knows nothing of Hopwatch: BROKERS TOPIC GROUP URL BATCH. One request at a time; a request
that fails ends it, so that it is sent again when somebody starts the loop anew.
"""

from __future__ import annotations

import json
import sys
from typing import Final

import requests
from confluent_kafka import Consumer

LINGER_S: Final = 0.05
"""Maximum wait for a batch to fill, as that of a delivery."""
TIMEOUT_S: Final = 10.0


def deliver(brokers: str, topic: str, group: str, url: str, batch: int) -> None:
    """Deliver for ever."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    session = requests.Session()
    while True:
        messages = [one for one in consumer.consume(batch, LINGER_S) if one.error() is None]
        if not messages:
            continue
        events = []
        for message in messages:
            headers = dict(message.headers() or [])
            events.append(
                {
                    "id": headers["hopwatch-id"].decode(),
                    "time": int(headers["hopwatch-time"]),
                    "data": json.loads(message.value() or b""),
                }
            )
        session.post(url, json=events, timeout=TIMEOUT_S).raise_for_status()
        consumer.commit(asynchronous=False)


if __name__ == "__main__":
    _, brokers, topic, group, url, batch = sys.argv
    deliver(brokers, topic, group, url, int(batch))
