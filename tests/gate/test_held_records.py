"""Tests of records that wait for their schema, over topics in memory, with the clock and the registry of the test."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate import held_records
from hopwatch.gate.codec import Codec
from hopwatch.gate.event_checks import EventPolicy
from hopwatch.gate.held_records import LOOK_EVERY_S, SETTLED_WITHIN_US, HeldRecords
from hopwatch.gate.record_checks import RecordChecker, UnknownSchemaPolicy
from hopwatch.gate.records import RejectedRecord, decode_rejected
from hopwatch.gate.registry.compatibility import CompatibilityLevel
from hopwatch.gate.registry.subjects import Registry
from hopwatch.gate.resolution_cache import ResolutionCache
from hopwatch.gate.retry_headers import TRIES_HEADER
from hopwatch.gate.stamper import GateStamper
from hopwatch.gate.transactions import OutputRecord, OutputTopics
from hopwatch.gate.validator import WAITS, Validator
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from hopwatch.probes.metrics import catalog
from hopwatch.probes.metrics.metric import Sample
from hopwatch.probes.taps.context import RunContext
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, Observation, observations
from tests.support.memory_topics import KilledError, MemorySource, MemoryTopics, MemoryWriter, StoredRecord
from tests.support.schema_store import MemoryShelf
from tests.support.schemas import FIRST, record, schema

OUTPUTS = OutputTopics("good", "bad", "waiting")
HOLD_S = 600
STEP_S = 0.2
KINDS = 4
SCHEMAS = [
    schema(record({"name": "a", "type": "int"}, {"name": f"x{kind}", "type": "int"}, namespace="com.example.orders.v1"))
    for kind in range(KINDS)
]
CODECS = [Codec(one) for one in SCHEMAS]
ENDS = st.sampled_from(["committed", "aborted", "unanswered", "killed before", "killed after"])
KIND = st.integers(0, KINDS - 1)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), KIND, st.integers(0, 3)),
        st.tuples(st.just("register"), KIND, st.just(0)),
        st.tuples(st.just("run"), st.integers(1, 60), st.just(0)),
    ),
    max_size=40,
)


class World:
    """Topics, a registry that knows the subject's one version, and a validator that is started again when killed."""

    def __init__(self) -> None:
        """Begin with nothing sent."""
        self.clock, self.shelf, self.sink = ManualClock(), MemoryShelf(), MemorySink()
        self.registry = Registry(self.shelf)
        self.registry.set_level(CompatibilityLevel.NONE)
        self.registry.register("orders", schema(FIRST))
        self.topics = MemoryTopics(self.clock)
        self.kinds: list[int] = []
        self.registered: set[int] = set()
        self.told: list[str] = []
        self.start()

    def start(self) -> None:
        """Start a validator, with no memory of an earlier one."""
        around = RunContext(self.told.append, self.clock)
        cache = ResolutionCache(self.registry, "orders", self.clock)
        checker = RecordChecker("orders", cache, EventPolicy(10**12), unknown=UnknownSchemaPolicy.HOLD)
        source, waiting = (cast("Any", MemorySource(self.topics, topic)) for topic in ("raw", "waiting"))
        self.held = HeldRecords(waiting, checker, HOLD_S * 1_000_000, around, name="waiting")
        self.writer = MemoryWriter(self.topics, OUTPUTS)
        self.stamper = GateStamper("orders", "gate", self.sink, self.clock)
        self.validator = Validator(
            source, checker, cast("Any", self.writer), stamping=self.stamper, around=around, held=self.held
        )

    def send(self, kind: int, key: int) -> None:
        """Send a record of a schema, whose id is the number of those before."""
        number = len(self.kinds)
        self.kinds.append(kind)
        headers: Any = [(ID_HEADER, str(number)), (TIME_HEADER, str(self.clock.us))]
        value = CODECS[kind].encode(b'{"a":%d,"x%d":1}' % (number, kind))
        self.topics.append(OutputRecord("raw", value, bytes([key]), headers))

    def register(self, kind: int) -> None:
        """Register a schema."""
        self.registry.register("others", SCHEMAS[kind])
        self.registered.add(kind)

    def run(self, seconds: float) -> None:
        """Let the validator take steps."""
        for _ in range(round(seconds / STEP_S)):
            self.clock.advance(STEP_S)
            try:
                self.validator.step()
            except KilledError:
                ends = self.writer.ends
                self.start()
                self.writer.ends = ends

    def ids(self, topic: str, *, is_left: bool = False) -> list[int]:
        """Return the ids of the records of a topic."""
        return [number_of(one) for one in self.topics.read(topic, is_left=is_left)]


def number_of(one: StoredRecord) -> int:
    """Return the id of a record."""
    return int(dict(one.headers)[ID_HEADER])


def reason_of(one: StoredRecord) -> str:
    """Return why a record was rejected."""
    found = decode_rejected(one.value)
    assert isinstance(found, RejectedRecord)
    return found.reasons[0].detail


@given(ACTIONS, st.lists(ENDS, max_size=20))
def test_each_record_ends_once_and_waits_no_longer_than_its_schema(
    actions: list[tuple[str, int, int]], ends: list[str]
) -> None:
    """Kills and aborts change nothing: each record is in one topic, in order by key, after one look or expired."""
    world = World()
    world.writer.ends = list(ends)
    for action, first, second in actions:
        match action:
            case "send":
                world.send(first, second)
            case "register":
                world.register(first)
            case _:
                world.run(first * STEP_S)
    world.writer.ends = []
    world.run(2 * LOOK_EVERY_S)
    sent = Counter(range(len(world.kinds)))
    known = {number for number in sent if world.kinds[number] in world.registered}
    assert Counter(world.ids("good")) == Counter(known)
    assert Counter(world.ids("waiting", is_left=True)) == sent - Counter(known)
    assert world.held.count_by_schema() == Counter(
        SCHEMAS[kind].fingerprint.hex() for kind in world.kinds if kind not in world.registered
    )
    held = {number for number, count in Counter(world.ids("waiting")).items() if count == 1}
    for key in range(4):
        entered = [one for one in world.topics.read("good") if one.key == bytes([key]) and number_of(one) in held]
        for kind in range(KINDS):
            numbers = [number for one in entered if world.kinds[number := number_of(one)] == kind]
            assert numbers == sorted(numbers)
    for _ in range(70):
        world.clock.advance(10)
        world.run(1)
    world.run(LOOK_EVERY_S)
    assert Counter(world.ids("good") + world.ids("bad")) == sent
    assert world.ids("waiting", is_left=True) == []
    assert {reason_of(one)[:31] for one in world.topics.read("bad")} <= {"unknown_schema: expired: there "}


def test_what_waited_enters_as_it_came() -> None:
    """Key, time and headers of a record stay; it is stamped as deferred while it waits, and as gone when it enters."""
    world = World()
    world.send(0, 3)
    world.clock.advance(1)
    came = world.topics.read("raw")[0]
    world.run(1)
    (waiting,) = world.topics.read("waiting")
    assert (waiting.value, waiting.key, waiting.headers[:2]) == (came.value, came.key, came.headers)
    assert dict(waiting.headers)[TRIES_HEADER] == b"1"
    deferred_us = EPOCH_US + 1_200_000
    world.stamper.sender.flush()
    world.register(0)
    world.run(LOOK_EVERY_S + 1)
    (entered,) = world.topics.read("good")
    assert (entered.key, entered.headers[:-1], entered.written_ms) == (came.key, came.headers, came.written_ms)
    world.stamper.sender.flush()
    until_us = deferred_us + HOLD_S * 1_000_000 + SETTLED_WITHIN_US
    arrived, deferred, left = sorted(observations(world.sink), key=lambda one: (one.in_us is None, one.outcome))
    assert arrived == Observation(id_bytes("0"), EPOCH_US, deferred_us, None)
    assert deferred == Observation(id_bytes("0"), EPOCH_US, deferred_us, None, 3, WAITS, until_us)
    assert (left.in_us, left.outcome) == (None, 0)
    assert left.out_us is not None
    counts = world.validator.counts
    assert (counts.read, counts.validated, counts.held, counts.released) == (1, 1, 1, 1)
    assert str(counts) == "1 read, 1 validated, 0 rejected, 1 held, 1 released"
    name = SCHEMAS[0].fingerprint.hex()
    assert world.told == [
        f"the schema {name} is not registered: its records wait in waiting until it is, 600 s at most",
        f"the schema {name} is registered now: 1 records of it go on",
    ]


def test_what_has_expired_is_rejected_with_its_reason() -> None:
    """Within two minutes after its time; its stamp says so, behind its arrival."""
    world = World()
    world.send(1, 0)
    world.run(1)
    world.clock.advance(HOLD_S - LOOK_EVERY_S)
    world.run(1)
    assert world.ids("bad") == []
    world.clock.advance(SETTLED_WITHIN_US / 1e6)
    world.run(LOOK_EVERY_S + 1)
    (found,) = world.topics.read("bad")
    name = SCHEMAS[1].fingerprint.hex()
    assert reason_of(found) == f"unknown_schema: expired: there is no schema {name}, and it has waited for 600 s"
    world.stamper.sender.flush()
    (rejected,) = [one for one in observations(world.sink) if one.outcome == 2]
    assert (rejected.event_us, rejected.in_us) == (EPOCH_US, None)


def test_looks_at_what_waits_write_nothing() -> None:
    """A record is written anew only when another schema was registered, however often is looked."""
    world = World()
    for kind in (0, 1, 0):
        world.send(kind, 0)
    world.run(10 * LOOK_EVERY_S)
    assert world.ids("waiting") == [0, 1, 2]
    assert list(world.held.build_samples("orders")) == [
        Sample(catalog.VALIDATOR_WAITING, ("orders", SCHEMAS[kind].fingerprint.hex()), count)
        for kind, count in ((0, 2), (1, 1))
    ]
    world.register(1)
    world.run(10 * LOOK_EVERY_S)
    assert (world.ids("good"), world.ids("waiting"), world.ids("waiting", is_left=True)) == (
        [1], [0, 1, 2, 0, 2], [0, 2],
    )  # fmt: skip
    assert dict(world.topics.read("waiting")[-1].headers)[TRIES_HEADER] == b"2"


def test_what_expires_leaves_younger_ones_where_they_are() -> None:
    """The older one behind a younger, as after a crash, is found, too: then all are written anew, once."""
    world, younger = World(), [1, 2, 3, 4, 5]
    world.send(0, 0)
    world.run(1)
    world.clock.advance(120)
    for _ in younger:
        world.send(0, 0)
    world.run(1)
    log = world.topics.logs["waiting", 0]
    world.clock.advance(HOLD_S - 60)
    world.run(2 * LOOK_EVERY_S)
    assert world.ids("bad") == [0]
    assert (world.ids("waiting"), world.ids("waiting", is_left=True)) == ([0, *younger], younger)
    log.append(log[0])
    world.start()
    world.run(LOOK_EVERY_S + 1)
    assert world.ids("bad") == [0, 0]
    assert (world.ids("waiting"), world.ids("waiting", is_left=True)) == ([0, *younger, 0, *younger], younger)


def test_an_expiry_whose_transaction_is_aborted_is_counted_anew() -> None:
    """A record whose rejection was not written waits still, and a younger record expires in its time."""
    world = World()
    world.send(0, 0)
    world.run(1)
    world.clock.advance(120)
    world.send(0, 0)
    world.run(1)
    world.clock.advance(HOLD_S - 60)
    world.writer.ends = ["aborted"]
    world.run(2 * LOOK_EVERY_S)
    assert (world.writer.ends, world.ids("bad")) == ([], [0])
    assert world.held.count_by_schema() == Counter([SCHEMAS[0].fingerprint.hex()])
    world.clock.advance(120)
    world.run(2 * LOOK_EVERY_S)
    assert (world.ids("bad"), world.held.count_by_schema()) == ([0, 1], Counter())


def test_a_registry_that_is_down_holds_up_nothing_else() -> None:
    """A registry that is down is told once, and asked again."""
    world = World()
    world.send(0, 0)
    world.run(1)
    world.shelf.down = "the store is down"
    world.run(3 * LOOK_EVERY_S)
    assert world.told[1:] == ["the store is down: what needs a schema of it waits, nothing is lost"]
    world.shelf.down = ""
    world.register(0)
    world.run(LOOK_EVERY_S + 1)
    assert world.ids("good") == [0]


def test_records_of_too_many_schemas_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of more schemas than are waited for, at once: whatever is sent, memory is bounded."""
    monkeypatch.setattr(held_records, "MAX_AWAITED", 2)
    world = World()
    for kind in (0, 1, 2, 0):
        world.send(kind, 0)
    world.run(1)
    assert (world.ids("waiting"), world.ids("bad")) == ([0, 1, 3], [2])
    told = "unknown_schema: it cannot wait, as 1,024 other schemas are waited for"
    assert [reason_of(one) for one in world.topics.read("bad")] == [told]


@pytest.mark.parametrize("value", [b"{}", b"\x00", b""])
def test_what_a_stranger_put_there_is_rejected(value: bytes) -> None:
    """A record that no validator wrote has no time of an event, and holds up nothing."""
    world = World()
    world.topics.append(OutputRecord("waiting", value, None, []))
    world.run(2 * LOOK_EVERY_S)
    (found,) = world.topics.read("bad")
    rejected = decode_rejected(found.value)
    assert isinstance(rejected, RejectedRecord)
    assert rejected.producer == "waiting/0/0"
    assert world.topics.read("waiting", is_left=True) == []
