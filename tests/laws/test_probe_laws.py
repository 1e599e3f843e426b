"""Laws of probes: whatever a host calls and whatever a sink refuses, no stamp is lost unseen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from hopwatch import Probe
from hopwatch.probes.contract.batch import Batch, BatchKind, Outcome
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.probes.recorder import StampKind
from hopwatch.probes.testing import batch_observations
from hopwatch.testing import EPOCH_US, ManualClock, MemorySink, Observation, observations
from tests.support.drops import drops

MOST_STAMPS: Final = 5


class Stamped(NamedTuple):
    """A stamp that a host took, in the words of the test."""

    message: int
    event_us: int
    side: StampKind


class CountingSink(MemorySink):
    """Refuses as many records as it is told to, and keeps what it refused."""

    def __init__(self) -> None:
        """Start empty and willing."""
        super().__init__()
        self.turned_away: list[bytes] = []
        self.undelivered: list[bytes] = []
        self.to_refuse = 0

    def send(self, record: bytes) -> bool:
        """Keep the record on one side or the other."""
        is_taken = not self.to_refuse
        self.to_refuse -= not is_taken
        (self.records if is_taken else self.turned_away).append(record)
        return is_taken

    def lose(self) -> None:
        """Let the last record that was taken fail on its way."""
        if self.records:
            self.undelivered.append(self.records.pop())
            self.failing.append(self.undelivered[-1])


MESSAGES: Final = st.integers(0, 3)
EVENTS: Final = st.sampled_from([EPOCH_US - 1, EPOCH_US, EPOCH_US + WINDOW_US])
GOOD: Final = st.tuples(MESSAGES, EVENTS)
ARRAYS: Final = st.lists(GOOD, max_size=4)
CALLS: Final = st.one_of(
    st.tuples(st.sampled_from(["arrived", "departed", "filtered", "rejected", "passing", "broken"]), GOOD),
    st.tuples(st.sampled_from(["arrived", "departed", "filtered"]), st.tuples(st.sampled_from([None, -1]), EVENTS)),
    st.tuples(st.sampled_from(["arrived", "departed", "rejected"]), st.tuples(MESSAGES, st.sampled_from([None, -1]))),
    st.tuples(st.sampled_from(["arrived_many", "departed_many", "both_many"]), ARRAYS),
    st.tuples(st.just("flush"), st.none()),
    st.tuples(st.just("refuse"), st.integers(0, 4)),
    st.tuples(st.just("advance"), st.integers(0, 300_000)),
)
ON_A_BAD_ROAD: Final = CALLS | st.tuples(st.just("lose"), st.none())
"""Calls, and a transport that may lose what it has taken."""


class Host:
    """Plays calls on a probe, and writes down each stamp that it took and could be good."""

    def __init__(self) -> None:
        """Start a probe whose thread finds nothing due: the clock is set by hand, and the spans are long."""
        self.clock, self.sink = ManualClock(), CountingSink()
        self.stamps = 0
        self.good: Counter[Stamped] = Counter()
        self.probe = Probe(
            "orders", "router", self.sink, clock=self.clock, most_stamps=MOST_STAMPS,
            flush_every_s=1e6, heartbeat_every_s=1e6,
        )  # fmt: skip

    def play(self, calls: Sequence[tuple[str, object]]) -> None:
        """Make all calls, and close with a sink that takes what is left."""
        for name, given_with in calls:
            self.call(name, given_with)
        self.sink.to_refuse = 0
        self.probe.close()

    def call(self, name: str, given_with: object) -> None:
        """Make one call."""
        match name, given_with:
            case "flush", _:
                self.probe.flush()
            case "refuse", int(records):
                self.sink.to_refuse = records
            case "lose", _:
                self.sink.lose()
                self.probe._sender.tick()  # type: ignore[union-attr]  # a running probe has one
            case "advance", int(us):
                self.clock.advance(us / 1e6)
            case _, list(pairs):
                self.many(name.removesuffix("_many"), pairs)
            case _, (int() | None as message, int() | None as event_us):
                self.single(name, message, event_us)

    def many(self, name: str, pairs: list[tuple[int, int]]) -> None:
        """Stamp arrays, on one side or on both."""
        ids, events = [message for message, _ in pairs], [event_us for _, event_us in pairs]
        for side in (StampKind.ARRIVED, StampKind.DEPARTED):
            if name in ("both", side.name.lower()):
                method = self.probe.arrived_many if side is StampKind.ARRIVED else self.probe.departed_many
                method(ids, events)
                for message, event_us in pairs:
                    self.count(side, message, event_us)

    def single(self, name: str, message: int | None, event_us: int | None) -> None:
        """Stamp one message."""
        if name in ("passing", "broken"):
            try:
                with self.probe.passing(message, event_us):  # type: ignore[arg-type]  # a host may pass anything
                    assert name == "passing"
            except AssertionError:
                pass
            self.count(StampKind.ARRIVED, message, event_us)
            if name == "passing":
                self.count(StampKind.DEPARTED, message, event_us)
        else:
            getattr(self.probe, name)(message, event_us)
            self.count(StampKind[name.upper()], message, event_us)

    def count(self, side: StampKind, message: int | None, event_us: int | None) -> None:
        """Write a stamp down."""
        self.stamps += 1
        if message is not None and event_us is not None and message >= 0 <= event_us:
            self.good[Stamped(message, event_us, side)] += 1

    @property
    def batches(self) -> list[Batch]:
        """Return what was sent."""
        return [decode(record) for record in self.sink.records]


def stamps_in(rows: Sequence[Observation]) -> Counter[Stamped]:
    """Return the stamps that some observations tell."""
    ends = {
        Outcome.PASSED: StampKind.ARRIVED,
        Outcome.FILTERED: StampKind.FILTERED,
        Outcome.REJECTED: StampKind.REJECTED,
    }
    found: Counter[Stamped] = Counter()
    for row in rows:
        message = int.from_bytes(row.message_id)
        if row.in_us is not None:
            found[Stamped(message, row.event_us, ends[Outcome(row.outcome)])] += 1
        if row.out_us is not None:
            found[Stamped(message, row.event_us, StampKind.DEPARTED)] += 1
    return found


def _observations(records: Iterable[bytes]) -> list[Observation]:
    return [row for record in records for row in batch_observations(decode(record))]


@given(st.lists(ON_A_BAD_ROAD, max_size=30))
def test_every_stamp_is_told_once_or_counted_as_dropped(calls: list[tuple[str, object]]) -> None:
    """Sent, refused by the sink or behind it, or dropped before: these make up all stamps, and none is told twice."""
    host = Host()
    host.play(calls)
    of_sink = (host.sink.records, host.sink.turned_away, host.sink.undelivered)
    sent, refused, undelivered = (stamps_in(_observations(records)) for records in of_sink)
    lost = drops(host.sink.records)
    before_the_sink = sum(drop.count for drop in lost if drop.cause not in {"sink refused", "undelivered"})
    assert sent.total() + refused.total() + undelivered.total() + before_the_sink == host.stamps
    assert sent + refused + undelivered <= host.good
    assert sum(drop.count for drop in lost) == host.probe.dropped


@given(st.lists(ON_A_BAD_ROAD, max_size=30))
def test_every_refused_observation_is_told_under_its_window(calls: list[tuple[str, object]]) -> None:
    """Each observation that a sink refused, at once or later, is a drop of the window of its event time."""
    host = Host()
    host.play(calls)
    for cause, records in (("sink refused", host.sink.turned_away), ("undelivered", host.sink.undelivered)):
        refused: Counter[int] = Counter()
        for record in records:
            refused[decode(record).window_start_ms] += decode(record).count
        said_lost: Counter[int] = Counter()
        for drop in drops(host.sink.records):
            said_lost[drop.window_start_ms] += drop.count * (drop.cause == cause)
        assert +said_lost == +refused


@given(st.lists(CALLS, max_size=30))
def test_what_is_complete_is_never_added_to(calls: list[tuple[str, object]]) -> None:
    """Numbers run without a hole, moments never go back, each stamp lies behind the moment before it; a bye ends it."""
    host = Host()
    host.play(calls)
    assert [batch.seq for batch in host.batches] == list(range(len(host.batches)))
    assert [batch.kind for batch in host.batches].index(BatchKind.BYE) == len(host.batches) - 1
    through_us = EPOCH_US
    for batch in host.batches:
        moments = [
            moment for row in batch_observations(batch) for moment in (row.in_us, row.out_us) if moment is not None
        ]
        assert all(moment > through_us for moment in moments)
        assert batch.complete_through_us >= through_us
        through_us = batch.complete_through_us


@given(
    st.lists(st.tuples(st.sampled_from(["passing", "both_many"]), st.lists(GOOD, min_size=1, max_size=1)), max_size=30)
)
def test_messages_that_pass_between_two_flushes_are_one_observation_each(
    calls: list[tuple[str, list[tuple[int, int]]]],
) -> None:
    """Arrivals and departures find each other, singly and in arrays, whatever copies there are."""
    sink = MemorySink()
    with Probe("orders", "router", sink, clock=ManualClock()) as probe:
        for name, [(message, event_us)] in calls:
            if name == "passing":
                with probe.passing(message, event_us):
                    pass
            else:
                probe.arrived_many([message], [event_us])
                probe.departed_many([message], [event_us])
    rows = observations(sink)
    assert Counter(row[:2] for row in rows) == Counter((id_bytes(message), event) for _, [(message, event)] in calls)
    assert all(row.in_us is not None and row.out_us is not None for row in rows)
