"""An entrance as a service would write it itself: FastAPI, a pydantic model, fastavro, and Kafka's client.

It answers when all replicas in sync have the events of the request. It knows no event again, stamps nothing, and has no
bounds of its own; its model says by hand what the schema says.
"""

from __future__ import annotations

import asyncio
import io
import signal
import threading
from collections.abc import Sequence
from typing import Any, Literal
from uuid import UUID

import fastavro
from confluent_kafka import KafkaError, Message, Producer
from fastapi import FastAPI, HTTPException
from granian.constants import HTTPModes, Interfaces
from granian.server.embed import Server
from pydantic import BaseModel

from bench.gate.orders import SCHEMA, STREAM
from hopwatch.gate.outlets.kafka import LINGER_MS


class Item(BaseModel):
    """A part of an order."""

    sku: str
    count: int


class PlainOrder(BaseModel):
    """The data of an event."""

    order: str
    customer: int
    price: float
    currency: Literal["EUR", "USD"]
    paid: bool
    items: list[Item]
    note: str | None = None


class PlainEvent(BaseModel):
    """An event of a batch."""

    id: UUID
    data: PlainOrder


class PlainOutlet:
    """Writes events to a topic."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        """Make the client, set as the gate's is."""
        settings = {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True}
        self._producer = Producer(settings | {"linger.ms": LINGER_MS, "compression.type": "lz4"})
        self._topic, self._schema = topic, fastavro.parse_schema(SCHEMA)
        threading.Thread(target=self._poll, daemon=True).start()

    async def send(self, events: Sequence[PlainEvent]) -> dict[str, int]:
        """Write events, and answer when all replicas in sync have them."""
        loop = asyncio.get_running_loop()
        answers: list[KafkaError | None] = []
        delivered: asyncio.Future[None] = loop.create_future()

        def heard(error: KafkaError | None, _: Message) -> None:
            answers.append(error)
            if len(answers) == len(events):
                loop.call_soon_threadsafe(delivered.set_result, None)

        for event in events:
            body = io.BytesIO()
            fastavro.schemaless_writer(body, self._schema, event.data.model_dump())
            self._producer.produce(self._topic, body.getvalue(), str(event.id), on_delivery=heard)
        await delivered
        if any(answers):
            raise HTTPException(503, "not all of it was written")
        return {"entered": len(events)}

    def _poll(self) -> None:
        while True:
            self._producer.poll(0.1)


def app(bootstrap: str, topic: str) -> FastAPI:
    """Return the app, which writes to a topic."""
    api, outlet = FastAPI(), PlainOutlet(bootstrap, topic)

    @api.post(f"/streams/{STREAM}/events", status_code=201)
    async def post_events(events: list[PlainEvent]) -> dict[str, int]:
        return await outlet.send(events)

    @api.put(f"/streams/{STREAM}/events/{{event_id}}", status_code=201)
    async def put_event(event_id: UUID, order: PlainOrder) -> dict[str, int]:
        return await outlet.send([PlainEvent(id=event_id, data=order)])

    @api.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    return api


def serve(host: str, port: int, bootstrap: str, topic: str) -> None:
    """Serve the app as the gate is served, until SIGINT."""
    asyncio.run(_serve(host, port, app(bootstrap, topic)))


async def _serve(host: str, port: int, api: FastAPI) -> None:
    settings: dict[str, Any] = {"interface": Interfaces.ASGI, "http": HTTPModes.http1, "websockets": False}
    server = Server(api, address=host, port=port, log_enabled=False, **settings)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, server.stop)
    await server.serve()
