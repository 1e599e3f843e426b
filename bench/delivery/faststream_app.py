"""Delivery as an application of FastStream, over its confluent-kafka broker, that posts each batch with aiohttp.

A program by itself, which knows nothing of Hopwatch: BROKERS TOPIC GROUP URL BATCH. One request at a time: FastStream
runs handlers in parallel only where it commits before they have ended, by which a kill loses messages.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Annotated, Final, cast

import aiohttp
from confluent_kafka import Message
from faststream import Context, FastStream
from faststream.confluent import KafkaBroker
from faststream.confluent.message import KafkaMessage
from faststream.middlewares import AckPolicy

LINGER_S: Final = 0.05
"""Maximum wait for a batch to fill, as that of a delivery."""


def build_application(brokers: str, topic: str, group: str, url: str, batch: int) -> FastStream:
    """Build the application."""
    broker = KafkaBroker(brokers, logger=None)
    application = FastStream(broker, logger=None)
    sessions: list[aiohttp.ClientSession] = []

    @application.on_startup
    async def open_session() -> None:
        sessions.append(aiohttp.ClientSession())

    @broker.subscriber(
        topic,
        group_id=group,
        auto_offset_reset="earliest",
        batch=True,
        max_records=batch,
        polling_interval=LINGER_S,
        ack_policy=AckPolicy.NACK_ON_ERROR,
    )
    async def post_batch(message: Annotated[KafkaMessage, Context()]) -> None:
        events = [
            {
                "id": headers["hopwatch-id"].decode(),
                "time": int(headers["hopwatch-time"]),
                "data": json.loads(one.value() or b""),
            }
            for one in cast("tuple[Message, ...]", message.raw_message)
            for headers in [dict(one.headers() or [])]
        ]
        async with sessions[0].post(url, json=events) as answer:
            answer.raise_for_status()

    return application


if __name__ == "__main__":
    _, brokers, topic, group, url, batch = sys.argv
    asyncio.run(build_application(brokers, topic, group, url, int(batch)).run())
