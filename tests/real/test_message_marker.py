"""Clients that no integration knows: the programs of the page on taps, on real servers."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import aio_pika
import nats
import pika
import pytest
import redis

from hopwatch import Probe
from hopwatch.integrations.message_marker import MessageMarker
from hopwatch.testing import MemorySink, Observation, observations
from servers.nats import Nats
from servers.process import Process, until
from servers.rabbitmq import RabbitMq
from servers.redis import Redis
from tests.support import page_blocks
from tests.support.probe_host import rows, spooled

PAGE: Final = page_blocks.page("docs/TAPS.md")
MESSAGES: Final = 20
QUEUES: Final = ("orders", "routed")


class RedisQueues:
    """Streams of Redis."""

    program: Final = "client.xreadgroup"
    address: Final = "redis.Redis()"

    def __init__(self, folder: Path, held: ExitStack) -> None:
        """Start a server with a group of consumers."""
        server = Redis(folder)
        server.start()
        held.callback(server.stop)
        self.new_address = f"redis.Redis(port={server.port})"
        self._client: Any = redis.Redis(port=server.port)  # its types allow answers that this server has not
        self._client.xgroup_create("orders", "routers", mkstream=True)

    def send(self, marker: MessageMarker) -> None:
        """Send messages as the page shows it."""
        (block,) = [text for text in page_blocks.of(PAGE, "python") if "marker.sending" in text]
        for _ in range(MESSAGES):
            exec(block, {"marker": marker, "client": self._client})  # noqa: S102 - what the page shows

    def count_routed(self) -> int:
        """Return how many messages the router has sent."""
        return int(self._client.xlen("routed"))


class RabbitMqQueues:
    """Queues of RabbitMQ, read by pika."""

    program = "pika.BlockingConnection"
    address: Final = "localhost:5672"

    def __init__(self, folder: Path, held: ExitStack) -> None:
        """Start a server with both queues."""
        server = RabbitMq(folder)
        held.callback(server.stop)
        server.start()
        self.new_address = f"localhost:{server.port}"
        self._channel = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", server.port)).channel()
        self._channel.confirm_delivery()
        for name in QUEUES:
            self._channel.queue_declare(name)

    def send(self, marker: MessageMarker) -> None:
        """Send messages, of which the server has confirmed each."""
        for _ in range(MESSAGES):
            with marker.sending({"own": 1}) as headers:
                self._channel.basic_publish("", "orders", b"", pika.BasicProperties(headers=headers), mandatory=True)

    def count_routed(self) -> int:
        """Return how many messages the router has sent."""
        return int(self._channel.queue_declare("routed", passive=True).method.message_count)


class AsyncRabbitMqQueues(RabbitMqQueues):
    """Queues of RabbitMQ, read by aio-pika."""

    program = "aio_pika.connect_robust"

    def send(self, marker: MessageMarker) -> None:
        """Send messages by aio-pika, too."""

        async def send_all() -> None:
            async with await aio_pika.connect(f"amqp://{self.new_address}") as connection:
                exchange = (await connection.channel()).default_exchange
                for _ in range(MESSAGES):
                    with marker.sending() as headers:
                        await exchange.publish(aio_pika.Message(b"", headers=headers), "orders")

        asyncio.run(send_all())


class NatsQueues:
    """Streams of NATS."""

    program: Final = "nats.connect"
    address: Final = "nats://localhost:4222"

    def __init__(self, folder: Path, held: ExitStack) -> None:
        """Start a server with both streams."""
        server = Nats(folder)
        server.start()
        held.callback(server.stop)
        self.new_address = f"nats://localhost:{server.port}"
        for name in QUEUES:
            self._call(partial(self._add_stream, name))

    def send(self, marker: MessageMarker) -> None:
        """Send messages, of which the server has acknowledged each."""

        async def send_all(streams: Any) -> None:  # noqa: ANN401 - a class that the library does not export
            for _ in range(MESSAGES):
                with marker.sending() as headers:
                    await streams.publish("orders", b"", headers=headers)

        self._call(send_all)

    def count_routed(self) -> int:
        """Return how many messages the router has sent."""
        return int(self._call(lambda streams: streams.stream_info("routed")).state.messages)

    @staticmethod
    async def _add_stream(name: str, streams: Any) -> None:  # noqa: ANN401 - as above
        await streams.add_stream(name=name, subjects=[name])

    def _call(self, call: Callable[[Any], Awaitable[Any]]) -> Any:  # noqa: ANN401 - what the library answers
        async def connect_and_call() -> Any:  # noqa: ANN401
            client = await nats.connect(self.new_address)
            try:
                return await call(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(connect_and_call())


Queues = RedisQueues | RabbitMqQueues | NatsQueues


@contextmanager
def started_router(queues: Queues, folder: Path) -> Iterator[None]:
    """Run the router of the page with these queues; it has told nothing when it has ended."""
    (text,) = [text for text in page_blocks.of(PAGE, "python") if queues.program in text]
    path = folder / "router.py"
    assert queues.address in text
    path.write_text(text.replace(queues.address, queues.new_address))
    log = folder / "router.log"
    process = Process([sys.executable, str(path)], log, {**os.environ, "PYTHONPATH": ""}, folder)
    try:
        yield
        process.stop()
    finally:
        process.kill()
    assert log.read_text() == ""


def stamps(folder: Path) -> list[Observation]:
    """Return what the router has stamped so far."""
    return [row for batches in spooled(folder / "var" / "spool").values() for row in rows(batches)]


@pytest.mark.parametrize("kind", [RedisQueues, RabbitMqQueues, AsyncRabbitMqQueues, NatsQueues])
def test_the_router_of_the_page_stamps_each_message(kind: type[Queues], tmp_path: Path) -> None:
    """Each message that a service has sent is passed on with its id, and is stamped at both."""
    sink = MemorySink()
    shop = MessageMarker(Probe("orders", "shop", sink), "test")
    (tmp_path / "server").mkdir()
    with ExitStack() as held:
        queues = kind(tmp_path / "server", held)
        queues.send(shop)
        shop.probe.close()
        with started_router(queues, tmp_path):
            until(lambda: sum(one.out_us is not None for one in stamps(tmp_path)) == MESSAGES, "each message is out")
        assert queues.count_routed() == MESSAGES
    sent, routed = observations(sink), stamps(tmp_path)
    assert len(sent) == MESSAGES
    for side in ("in_us", "out_us"):
        # The two stamps of a message may be sent one behind the other.
        stamped = [(one.message_id, one.event_us) for one in routed if getattr(one, side) is not None]
        assert sorted(stamped) == sorted((one.message_id, one.event_us) for one in sent)
