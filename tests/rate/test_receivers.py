"""Tests of the receivers' logs, and of the receiver by HTTP on a real socket."""

from __future__ import annotations

import asyncio
import re
import time

import numpy as np
import pytest

from hopwatch.deliver.answers import Answer
from hopwatch.deliver.http_client import HttpReceiver
from hopwatch.probes.contract.addresses import ListenAddress
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.rate.arrival_log import ArrivalLog
from hopwatch.rate.http_receiver import HttpArrivals
from hopwatch.rate.message_ids import build_body, build_ids, format_ids
from hopwatch.rate.receiver import ReceiverError
from hopwatch.rate.topic_receiver import TopicReceiver
from servers.process import free_ports
from tests.support.raw_producer import raw_cluster

RUN = 99
DUE_US = np.full(5, 1_700_000_000_000_000)


def places(*numbers: int) -> np.ndarray:
    """Return places as an array."""
    return np.array(numbers, np.int64)


def test_the_first_arrival_counts() -> None:
    """Repeats and messages of earlier steps are counted apart; a new step begins empty."""
    log = ArrivalLog()
    log.note(places(1, 2), 0.0)
    assert (log.strays, log.count_arrived()) == (2, 0)
    log.begin_step(10, 3)
    log.note(places(11, 11, 9), 5.0)
    log.note(places(11, 12), 6.0)
    assert log.copy_arrivals().tolist() == [np.inf, 5.0, 6.0]
    assert (log.repeats, log.strays, log.count_arrived()) == (2, 1, 2)
    log.begin_step(13, 1)
    assert (log.repeats, log.strays, log.count_arrived()) == (0, 0, 0)


def test_what_is_delivered_by_http_is_noted() -> None:
    """Lists of events, and single messages whose id is in a header; what is of others is left out."""
    (port,) = free_ports(1)
    log, ids = ArrivalLog(), build_ids(RUN, 0, DUE_US)
    texts = [row.tobytes().decode() for row in format_ids(ids)]
    log.begin_step(0, 5)

    async def run() -> list[object]:
        async with HttpArrivals(ListenAddress("127.0.0.1", port), RUN, log) as receiver:
            receiver.check()
            async with HttpReceiver(f"http://127.0.0.1:{port}/any/path", 5, 2) as sender:
                return [
                    await sender.post(body, headers)
                    for body, headers in (
                        (build_body(ids[:2], DUE_US[:2], b"{}"), {}),
                        (b"raw", {"webhook-id": texts[2]}),
                        (b"raw", {"hopwatch-id": texts[3]}),
                        (b'[1, {}, {"id": 5}, {"id": "' + b"x" * 36 + b'"}]', {}),
                        (b"[no json", {"webhook-id": "other"}),
                        (build_body(build_ids(RUN + 1, 4, DUE_US[:1]), DUE_US[:1], b"{}"), {}),
                    )
                ]

    before_s = time.monotonic()
    answers = asyncio.run(run())
    assert [one.status for one in answers if isinstance(one, Answer)] == [204] * 6
    arrived_s = log.copy_arrivals()
    assert ((before_s <= arrived_s[:4]) & (arrived_s[:4] <= time.monotonic())).all()
    assert np.isinf(arrived_s[4])


def test_receivers_that_cannot_receive_say_why() -> None:
    """An address that is taken, and brokers that do not answer."""
    (port, nobody) = free_ports(2)

    async def take_twice() -> None:
        listen = ListenAddress("127.0.0.1", port)
        async with HttpArrivals(listen, RUN, ArrivalLog()), HttpArrivals(listen, RUN, ArrivalLog()):
            pass

    async def read_nobody() -> None:
        async with TopicReceiver(KafkaPlace(f"127.0.0.1:{nobody}", "x"), KafkaAccess(), RUN, ArrivalLog()):
            pass

    with pytest.raises(ReceiverError, match=f"--receiver 127.0.0.1:{port} cannot be had: "):
        asyncio.run(take_twice())
    with pytest.raises(ReceiverError, match=re.escape("the topic x cannot be read: none answers")):
        asyncio.run(read_nobody())


def test_a_record_of_a_stranger_whose_headers_cannot_be_read_is_left_out() -> None:
    """The receiver goes on, and the run with it."""
    ids = build_ids(RUN, 0, DUE_US)
    text = format_ids(ids)[0].tobytes()
    log = ArrivalLog()
    log.begin_step(0, 5)
    with raw_cluster() as cluster:
        receiver = TopicReceiver(KafkaPlace(cluster.brokers, "t"), KafkaAccess(), RUN, log)
        stranger = cluster.read_back(b"x", [(b"hopwatch-id", text), (b"\xff", b"")], "t0")
        own = cluster.read_back(b"x", [(b"hopwatch-id", text)], "t1")
    receiver._note([stranger, own], 5.0)
    assert log.copy_arrivals()[0] == 5.0
    assert (log.repeats, log.strays) == (0, 0)
