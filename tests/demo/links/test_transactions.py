"""Tests of the transactional link: with whatever kill, each message leaves once, and a failure ends the process."""

from __future__ import annotations

import tempfile
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.demo.faults import Dice, NodeFaults
from hopwatch.demo.link import RESTART_EXIT_CODE, LinkError, LinkInterruptedError
from hopwatch.demo.links.ends import TransactionalEnds
from hopwatch.demo.links.transactions import TransactionalLink
from hopwatch.demo.nodes.step import NodeStep
from hopwatch.demo.records import FlightMessage, create_message, dump_flight
from hopwatch.demo.service.node import choose_next, relay_transactions
from hopwatch.demo.truth import NodeAction, Truth, TruthLog, split_ids

ENDS = TransactionalEnds("h:1", "in", {"mainline": "to-mainline", "others": "to-others"})
Headers = list[tuple[str, str | bytes]]


class KilledError(BaseException):
    """The process of a client is gone; nothing catches that."""


class Record(NamedTuple):
    """Record as a consumer gets it."""

    payload: bytes
    marks: Headers | None
    at: int
    failure: KafkaError | None = None

    def error(self) -> KafkaError | None:
        """Return what is wrong."""
        return self.failure

    def partition(self) -> int:
        """Return the only partition."""
        return 0

    def offset(self) -> int:
        """Return the place in it."""
        return self.at

    def headers(self) -> Headers | None:
        """Return the marks."""
        return self.marks

    def value(self) -> bytes:
        """Return the payload."""
        return self.payload


class PaperTransactions:
    """A topic, its consumer and a producer in one; ``calls_left`` counts down to the kill of whoever calls then."""

    def __init__(self, messages: list[FlightMessage]) -> None:
        """Put messages into the topic."""
        self.records = [Record(dump_flight(one), _mark(one), at) for at, one in enumerate(messages)]
        self.committed, self.position = 0, 0
        self.written: list[tuple[str, bytes]] = []
        self.open: list[tuple[str, bytes]] = []
        self.open_offset: int | None = None
        self.calls_left = -1
        self.refusal: KafkaError | None = None

    def call(self) -> None:
        """Count a call."""
        self.calls_left -= 1
        if self.calls_left == 0:
            raise KilledError
        if self.refusal is not None:
            raise KafkaException(self.refusal)

    def init_transactions(self, _: float) -> None:
        """Take back what was left open."""
        self.call()
        self.open, self.open_offset, self.position = [], None, self.committed

    def subscribe(self, *_: object, on_lost: Callable[..., None], **__: object) -> None:
        """Join."""
        self.call()
        self.on_lost = on_lost

    def lose(self) -> None:
        """Have the group take the partition away, and give it back at what is committed."""
        self.on_lost(self, self.assignment())
        self.position = self.committed

    def poll(self, _: float) -> Record | None:
        """Return the next record, the end of the partition, or nothing."""
        self.call()
        if self.position < len(self.records):
            self.position += 1
            return self.records[self.position - 1]
        return Record(b"", None, self.position, KafkaError(KafkaError._PARTITION_EOF))

    def consume(self, most: int, _: float) -> list[Record]:
        """Return two more at most."""
        self.call()
        found = self.records[self.position : self.position + min(most, 2)]
        self.position += len(found)
        return found

    def assignment(self) -> list[TopicPartition]:
        """Return the partition."""
        return [TopicPartition("in", 0)]

    def get_watermark_offsets(self, *_: object) -> tuple[int, int]:
        """Return the ends of the partition."""
        self.call()
        return 0, len(self.records)

    def consumer_group_metadata(self) -> object:
        """Return something."""
        return self

    def begin_transaction(self) -> None:
        """Begin."""
        self.call()

    def produce(self, topic: str, value: bytes, key: bytes, headers: Headers) -> None:
        """Write into the transaction."""
        self.call()
        assert dict(headers).keys() == {"hopwatch-id", "hopwatch-time"}
        assert value
        self.open.append((topic, key))

    def send_offsets_to_transaction(self, offsets: list[TopicPartition], *_: object) -> None:
        """Add offsets to the transaction."""
        self.call()
        self.open_offset = offsets[0].offset

    def commit_transaction(self, _: float) -> None:
        """Make it visible."""
        self.call()
        self.written += self.open
        self.committed = self.committed if self.open_offset is None else self.open_offset
        self.open, self.open_offset = [], None

    def close(self) -> None:
        """Leave."""

    def link(self) -> TransactionalLink:
        """Return a link over all of this."""
        clients = cast("Any", self)
        return TransactionalLink(ENDS, clients, clients, lambda message: choose_next("norm", message))


class SilentProbe:
    """Probe that tells nobody."""

    def arrived(self, *_: object, **__: object) -> None:
        """Stamp nothing."""

    departed = filtered = rejected = arrived


def _mark(message: FlightMessage) -> Headers:
    return [
        ("hopwatch-id", str(uuid.UUID(bytes=message.id)).encode()),
        ("hopwatch-time", str(message.event_time_us).encode()),
    ]


def _messages(count: int) -> list[FlightMessage]:
    markets = ("mainline", "regional")
    return [create_message(number, 1_000 + number, {"market": markets[number % 2]}) for number in range(count)]


def _run(broker: PaperTransactions, log: Path, faults: NodeFaults, stop: Callable[[], bool] = lambda: True) -> None:
    """Run one process of the node, to its end or its kill."""
    link = broker.link()
    with closing(TruthLog(log)) as truth:
        dice = Dice(3, "norm", faults)
        step = NodeStep(probe=SilentProbe(), truth=truth, dice=dice, delay_s=faults.delay_s, work=dict, hop=link)
        relay_transactions(link, step, stop)


@given(
    kills=st.lists(st.integers(1, 40), max_size=4),
    count=st.integers(0, 20),
    faults=st.builds(NodeFaults, drop_ratio=st.sampled_from([0.0, 0.3]), delay_s=st.sampled_from([0.0, 0.001])),
)
@settings(deadline=None)
def test_whatever_kill_each_message_leaves_once(kills: list[int], count: int, faults: NodeFaults) -> None:
    """A node that is killed at any calls writes all but what it drops, once, each to its receiver's topic."""
    messages = _messages(count)
    broker = PaperTransactions(messages)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "norm.truth"
        for calls in (*kills, -1):
            broker.calls_left = calls
            with suppress(KilledError):
                _run(broker, log, faults)
        dropped = split_ids(Truth({"norm": [log]}).ids("norm", NodeAction.DROPPED))
    left = [one for one in messages if one.id not in dropped]
    assert broker.committed == count
    topics = {"mainline": "to-mainline", "regional": "to-others"}
    assert Counter(broker.written) == Counter((topics[one.flight["market"]], one.id) for one in left)


def test_a_message_has_left_once_its_transaction_is_committed() -> None:
    """Not before: what was called back is what is visible."""
    broker, gone = PaperTransactions(_messages(2)), list[int]()
    link = broker.link()
    messages = link.receive(0.1)
    for message in messages:
        link.hand_on(message, lambda: gone.append(len(broker.written)))
    link.settle()
    assert (gone, link.waiting_count) == ([], 2)
    link.commit(2)
    assert (gone, link.waiting_count, broker.committed) == ([2, 2], 0, 2)
    link.commit(2)


def test_brokers_that_refuse_interrupt_the_process() -> None:
    """The exit code asks for a new start, and the reason is said."""
    broker = PaperTransactions(_messages(1))
    link = broker.link()
    link.receive(0.1)
    broker.refusal = KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(LinkInterruptedError, match=r"^the transaction has failed: .*; the process ends, to be started"):
        link.commit(1)
    with pytest.raises(LinkInterruptedError, match=r"^no transaction can begin: ") as raised:
        broker.link()
    assert raised.value.exit_code == RESTART_EXIT_CODE
    assert not link.has_ended()


def test_a_partition_that_is_taken_away_interrupts_the_process_if_messages_are_in_hand() -> None:
    """Messages in hand come again, and would be handed on twice; a process with nothing in hand goes on."""
    broker = PaperTransactions(_messages(5))
    link = broker.link()
    broker.lose()
    assert len(link.receive(0.1)) == 3
    link.commit(3)
    broker.lose()
    assert len(link.receive(0.1)) == 2
    broker.lose()
    with pytest.raises(LinkInterruptedError, match=r"^partitions of in were taken away with messages in hand, which"):
        link.receive(0.1)


@pytest.mark.parametrize(
    ("marks", "text"),
    [
        (None, "a message of in carries no marks"),
        ([("hopwatch-id", b"x")], "a message of in has marks that cannot be read: a message is marked by hopwatch-id"),
    ],
)
def test_a_message_without_marks_ends_the_node(marks: Headers | None, text: str) -> None:
    """To skip one that cannot be passed on would be a loss."""
    broker = PaperTransactions([])
    broker.records = [Record(b"{}", marks, 0)]
    with pytest.raises(LinkError, match=f"^{text}"):
        broker.link().receive(0.1)


@pytest.mark.parametrize("fatal", [KafkaError(KafkaError._FENCED, fatal=True), KafkaError(KafkaError._FATAL)])
def test_a_fatal_error_of_the_reader_interrupts_the_process(fatal: KafkaError) -> None:
    """Others the client mends by itself; of a reader that was replaced the client does not mark it as fatal."""
    broker = PaperTransactions([])
    link = broker.link()
    broker.records = [Record(b"", None, 0, KafkaError(KafkaError._TRANSPORT))]
    assert link.receive(0.1) == []
    broker.records = [Record(b"", None, 0, fatal)]
    broker.position = 0
    with pytest.raises(LinkInterruptedError, match=r"^the topic in cannot be read: "):
        link.receive(0.1)
