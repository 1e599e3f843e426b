"""Tests of instrumented clients of aiokafka, on clients that reach no broker."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, Self

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from hopwatch.integrations.aiokafka import instrument
from hopwatch.probes import Probe, message_headers
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, Observation
from tests.probes.integrations.sent_stamps import causes, said

MARKED = (("hopwatch-id", b"order 7"), ("hopwatch-time", b"%d" % EPOCH_US))
ARRIVED = Observation(id_bytes("order 7"), EPOCH_US, EPOCH_US + 500_000, None)
BATCH = SimpleNamespace(record_count=lambda: 3)
LEFT = ARRIVED._replace(in_us=None, out_us=EPOCH_US + 500_000)


class Sender(AIOKafkaProducer):  # type: ignore[misc]  # aiokafka has no types
    """Producer that keeps what it is sent, and delivers when a test says so."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._closed = True
        self.sent: list[dict[str, Any]] = []
        self.futures: list[asyncio.Future[Any]] = []
        self.is_open = False

    async def send(
        self, topic: str, value: object = None, key: object = None, partition: object = None,
        timestamp_ms: object = None, headers: object = None,
    ) -> asyncio.Future[Any]:  # fmt: skip
        """Take a message."""
        del timestamp_ms
        self.sent.append({"topic": topic, "value": value, "key": key, "partition": partition, "headers": headers})
        self.futures.append(asyncio.get_running_loop().create_future())
        return self.futures[-1]

    async def send_batch(self, batch: Any, topic: str, *, partition: int) -> Any:  # noqa: ANN401 - as the client has it
        """Take a batch."""
        return await self.send(topic, batch, None, partition)

    async def __aenter__(self) -> Self:
        """Open."""
        self.is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        self.is_open = False


class Receiver(AIOKafkaConsumer):  # type: ignore[misc]  # as above
    """Consumer of messages that a test has made."""

    def __init__(self, *headers: object) -> None:
        """Take the headers of each message."""
        self._closed = True
        self.messages = [SimpleNamespace(headers=one, topic="orders", partition=3) for one in headers]

    async def getone(self, *_: object) -> Any:  # noqa: ANN401 - a message
        """Return the next message."""
        return self.messages.pop(0)

    async def getmany(self, *_: object, timeout_ms: int = 0, max_records: int | None = None) -> Any:  # noqa: ANN401
        """Return all messages."""
        del timeout_ms, max_records
        found, self.messages = self.messages, []
        return {"orders-3": found}

    def __aiter__(self) -> Self:
        """Return the messages one by one."""
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - a message
        """Return the next message."""
        if not self.messages:
            raise StopAsyncIteration
        return self.messages.pop(0)


def labels(sink: MemorySink) -> set[tuple[tuple[str, str], ...]]:
    """Return the labels of all batches that have any."""
    return {tuple(sorted(dict(one.labels).items())) for one in map(decode, sink.records) if one.labels}


def test_a_message_is_marked_where_it_is_made(probe: Probe, sink: MemorySink, clock: ManualClock) -> None:
    """Id and event time are set, what the host sent stays, and the delivery is stamped when it is told."""

    async def send() -> None:
        sender = Sender()
        producer = instrument(sender, probe=probe, clock=clock)
        sent = await producer.send("orders", b"value", b"key", headers=iter([("own", b"1")]))
        (message,) = sender.sent
        assert message["headers"][0] == ("own", b"1")
        assert message | {"headers": None} == {
            "topic": "orders", "value": b"value", "key": b"key", "partition": None, "headers": None,
        }  # fmt: skip
        made = message_headers.parse_headers(message["headers"])
        assert made is not None
        assert (made.event_us, said(probe, sink)) == (EPOCH_US, [])
        clock.advance(0.5)
        sender.futures[0].set_result(SimpleNamespace(partition=3))
        await asyncio.sleep(0)
        assert sent.result().partition == 3
        assert said(probe, sink) == [LEFT._replace(message_id=made.message_id)]
        assert labels(sink) == {(("out_partition", "3"),)}

    asyncio.run(send())


@pytest.mark.parametrize("is_waited_for", [False, True])
def test_marks_that_are_there_are_forwarded(
    is_waited_for: bool,  # noqa: FBT001 - one of the two calls
    probe: Probe,
    sink: MemorySink,
    clock: ManualClock,
) -> None:
    """The headers of a message that was received stay as they are, by either call."""

    async def send() -> None:
        sender = Sender()
        producer = instrument(sender, probe=probe, clock=clock)
        call = producer.send_and_wait if is_waited_for else producer.send
        sending = asyncio.ensure_future(call("orders", b"x", None, None, None, MARKED))
        await asyncio.sleep(0)
        clock.advance(0.5)
        # Without acknowledgements the client does not say where it went.
        sender.futures[0].set_result(None)
        await sending
        await asyncio.sleep(0)
        assert sender.sent[0]["headers"] == list(MARKED)
        assert said(probe, sink) == [LEFT]

    asyncio.run(send())


def test_what_is_not_delivered_is_not_stamped(probe: Probe, sink: MemorySink, caplog: pytest.LogCaptureFixture) -> None:
    """An error, or a future that the host has given up; an error that the host forgot is still told by asyncio."""

    async def send() -> None:
        sender = Sender()
        producer = instrument(sender, probe=probe)
        for _ in range(2):
            await producer.send("orders", b"x")
        sender.futures[0].set_exception(OSError("away"))
        sender.futures[1].cancel()
        await asyncio.sleep(0)
        sender.futures.clear()

    asyncio.run(send())
    assert said(probe, sink) == []
    assert [one.getMessage().partition("\n")[0] for one in caplog.records] == ["Future exception was never retrieved"]


def test_what_is_received_is_stamped(probe: Probe, sink: MemorySink, clock: ManualClock) -> None:
    """One by one, many at once, or in a loop; with the partition as a label."""

    async def receive() -> None:
        clock.advance(0.5)
        assert (await instrument(Receiver(MARKED), probe=probe).getone()).headers == MARKED
        found = await instrument(Receiver(MARKED, MARKED), probe=probe).getmany(timeout_ms=1)
        assert len(found["orders-3"]) == 2
        assert [one.partition async for one in instrument(Receiver(MARKED), probe=probe)] == [3]

    asyncio.run(receive())
    assert said(probe, sink) == [ARRIVED] * 4
    assert labels(sink) == {(("partition", "3"),)}


def test_a_node_that_consumes_makes_no_messages(probe: Probe, sink: MemorySink) -> None:
    """A message that it sends without headers counts as one that was missed."""

    async def send() -> None:
        instrument(Receiver(), probe=probe)
        sender = Sender()
        await instrument(sender, probe=probe).send("orders", b"x")
        assert sender.sent[0]["headers"] is None
        await instrument(sender, probe=probe, origin=True).send("orders", b"x")
        assert message_headers.parse_headers(sender.sent[1]["headers"]) is not None

    asyncio.run(send())
    assert causes(probe, sink) == [("unmarked message", 1)]


def test_messages_that_cannot_be_read_are_missed(probe: Probe, sink: MemorySink) -> None:
    """Without headers, unless they are of others, and with bad ones."""

    async def receive() -> None:
        for headers in ((), MARKED[:1], 7):
            await instrument(Receiver(headers), probe=probe).getone()
        await instrument(Receiver(()), probe=probe, ignore_unmarked=True).getone()
        sender = Sender()
        await instrument(sender, probe=probe).send("orders", headers=list(MARKED[:1]))
        assert sender.sent[0]["headers"] == list(MARKED[:1])

    asyncio.run(receive())
    assert causes(probe, sink) == [("bad marks", 3), ("unmarked message", 1)]


def test_a_batch_is_missed(probe: Probe, sink: MemorySink) -> None:
    """The host builds it, so that its messages have no marks."""

    async def send() -> None:
        await instrument(Sender(), probe=probe).send_batch(BATCH, "orders", partition=0)

    asyncio.run(send())
    assert causes(probe, sink) == [("unmarked message", 3)]


def test_mistakes_of_the_host_raise_what_they_raised(probe: Probe) -> None:
    """Too many arguments, one twice, and headers that are none."""

    async def send() -> None:
        producer: Any = instrument(Sender(), probe=probe)
        for args, kwargs in (((1, 2, 3, 4, 5, 6, 7), {}), (("orders", 1), {"value": 2})):
            with pytest.raises(TypeError, match=r"Sender.send\(\)"):
                await producer.send(*args, **kwargs)
        await producer.send("orders", headers=7)

    asyncio.run(send())


def test_all_else_is_the_client_s(probe: Probe) -> None:
    """Class, attributes, text, and the block that opens and closes it."""

    async def look() -> None:
        sender = Sender()
        producer = instrument(sender, probe=probe)
        assert isinstance(producer, AIOKafkaProducer)
        assert (producer.sent is sender.sent, repr(producer), producer.hopwatch_probe) == (True, repr(sender), probe)
        async with producer as opened:
            assert (opened is producer, sender.is_open) == (True, True)
        assert not sender.is_open

    asyncio.run(look())


def test_a_probe_is_made_of_the_names(sink: MemorySink) -> None:
    """Without one that exists."""
    client: Any = instrument(Receiver(), stream="orders", node="router", sink=sink)
    assert (client.hopwatch_probe.stream, client.hopwatch_probe.node) == ("orders", "router")
    client.hopwatch_probe.close()
