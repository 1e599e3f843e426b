"""Tests of the ledger: which windows there are, when they are judged anew, and what a new judgement changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hopwatch.monitor.accounting.ledger import Conclusion, Ledger, LiveWindow
from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.books import IMPLAUSIBLE, BatchFact, DropFact
from hopwatch.monitor.kernel.journeys import RecordColumns
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.tally import NEVER_US, Tally, build_tally, instance_name
from hopwatch.monitor.kernel.window import STRAGGLING_US
from hopwatch.monitor.payloads import FactSheet
from hopwatch.monitor.results import Status, Verdict, WindowResult
from hopwatch.probes.contract.batch import Batch, BatchKind, Drop, Outcome
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.spool import (
    START_US,
    STREAM_CONFIGS,
    WINDOW_POLICY,
    at_us,
    make_batch,
    observation_batch,
    pack_lags,
    window_ms,
)

FINAL_US = WINDOW_POLICY.final_at_us(START_US)
OVER_US = WINDOW_POLICY.amendable_until_us(START_US) + STRAGGLING_US
LATER_US = FINAL_US + 600_000_000
"""Late enough for all that a test brings to have settled."""


@dataclass
class Remembered:
    """A past in memory: what was observed so far, and what was concluded last."""

    observed: defaultdict[tuple[str, int], list[ObservedBatch]] = field(default_factory=lambda: defaultdict(list))
    concluded: dict[tuple[str, int], Conclusion] = field(default_factory=dict)

    def tallies(self, stream: str, start_us: int) -> Sequence[Tally]:
        """Return the tally of all that was observed of a window."""
        batches = self.observed.get((stream, start_us))
        if not batches:
            return []
        rules = STREAM_CONFIGS[stream]
        return [build_tally(rules.pathway, batches, start_us + WINDOW_US, rules.terms)]

    def result(self, stream: str, start_us: int) -> WindowResult | None:
        """Return the window as it was last concluded."""
        known = self.concluded.get((stream, start_us))
        return known.result if known else None

    def lost_ids(self, stream: str, start_us: int) -> set[bytes]:
        """Return the ids that were last concluded to be lost."""
        return {bytes(lost) for of in self.concluded[stream, start_us].lost for lost in of.message_ids}


@dataclass
class Monitor:
    """A ledger and its past: batches go in with their arrival, conclusions come out at a watermark."""

    ledger: Ledger = field(default_factory=lambda: Ledger(STREAM_CONFIGS))
    past: Remembered = field(default_factory=Remembered)
    tallied: set[tuple[str, int]] = field(default_factory=set)

    def take_in(self, *batches: Batch, arrival_us: int) -> set[tuple[str, str, str, int]]:
        """Take in batches that arrived together."""
        keys = self.ledger.absorb([sheet_of(batch, arrival_us) for batch in batches])
        for batch in batches:
            if batch.kind == BatchKind.OBSERVATIONS and not WINDOW_POLICY.standing(batch.window_start_ms, arrival_us):
                key = batch.stream, batch.window_start_ms * 1_000
                self.past.observed[key].append(_arrays(batch, arrival_us))
                (tally,) = self.past.tallies(*key)
                self.ledger.sight(*key, tally.last_first_sighting_us)
                self.tallied.add(key)
        return keys

    def conclude(self, watermark_us: int) -> dict[int, Conclusion]:
        """Return what is judged at a watermark, by the number of the minute."""
        concluded = list(self.ledger.conclude(self.tallied, watermark_us, self.past))
        self.tallied.clear()
        for conclusion in concluded:
            self.past.concluded[conclusion.result.stream, conclusion.result.window_start_us] = conclusion
        return {(each.result.window_start_us - START_US) // WINDOW_US: each for each in concluded}

    def judged(self, watermark_us: int) -> Conclusion:
        """Return the conclusion on the first window, which is to be judged."""
        return self.conclude(watermark_us)[0]


def sheet_of(batch: Batch, arrival_us: int) -> FactSheet:
    """Return the facts of one batch, as the decoder would write them down."""
    standing = WINDOW_POLICY.standing(batch.window_start_ms, arrival_us)
    through_us = min(batch.complete_through_us, arrival_us)
    fact = BatchFact(
        batch.seq,
        arrival_us,
        through_us,
        batch.sent_at_us,
        batch.window_start_ms,
        arrival_us if standing == IMPLAUSIBLE else 0,
        batch.count,
        batch.kind,
        standing,
    )
    drops = tuple(DropFact(0, drop.window_start_ms, drop.count, drop.cause) for drop in batch.drops)
    return FactSheet("s.seg", batch.stream, batch.node, batch.probe, batch.epoch_us, batch.labels, [fact], drops)


def _arrays(batch: Batch, arrival_us: int) -> ObservedBatch:
    return ObservedBatch(
        STREAM_CONFIGS[batch.stream].pathway.nodes.index(batch.node),
        instance_name(batch.node, batch.probe, batch.epoch_us),
        arrival_us,
        masks.ids_from_bytes(batch.message_ids),
        np.frombuffer(batch.lag_in_us, "<i8"),
        np.frombuffer(batch.lag_out_us, "<i8"),
        np.frombuffer(batch.outcome, "u1"),
        record=lambda rows: _recorded(batch, rows),
    )


def _recorded(batch: Batch, rows: NDArray[np.int64]) -> RecordColumns:
    zeros = np.zeros(len(rows), np.int64)
    until_us = np.frombuffer(batch.until_us, "<i8")[rows] if batch.until_us else zeros
    few = zeros.astype(np.uint8)
    return RecordColumns(batch.probe, zeros, zeros, zeros, few, few, (), until_us)


@pytest.fixture
def monitor() -> Monitor:
    """Return a monitor that knows nothing yet."""
    return Monitor()


@pytest.fixture
def lossy() -> Monitor:
    """Return a monitor that has judged: of messages 1, 2, 3 the last was lost behind a, both probes told all."""
    monitor = Monitor()
    monitor.take_in(observation_batch([1, 2, 3]), observation_batch([1, 2], "b"), arrival_us=at_us(60))
    monitor.take_in(*all_told(seq=1), arrival_us=at_us(400))
    assert monitor.judged(FINAL_US).result.lost_lower == 1
    return monitor


def all_told(seq: int) -> list[Batch]:
    """Return the last words of both probes."""
    return [make_batch(BatchKind.BYE, node, seq=seq, complete_through_us=at_us(400)) for node in "ab"]


# The windows that there are


LISTED = {
    "one": ([(0, BatchKind.OBSERVATIONS)], {0}),
    "a gap": ([(0, BatchKind.OBSERVATIONS), (3, BatchKind.OBSERVATIONS)], {0, 1, 2, 3}),
    "heartbeats too": ([(0, BatchKind.HEARTBEAT), (1, BatchKind.OBSERVATIONS), (2, BatchKind.BYE)], {0, 1, 2}),
    "backwards": ([(2, BatchKind.OBSERVATIONS), (0, BatchKind.HEARTBEAT)], {0, 1, 2}),
    "a clock five minutes ahead": ([(0, BatchKind.OBSERVATIONS), (6, BatchKind.HEARTBEAT)], {0, 1, 2, 3, 4, 5, 6}),
    "a clock further ahead": ([(0, BatchKind.OBSERVATIONS), (7, BatchKind.HEARTBEAT)], {0}),
    "a clock of 1970": ([(0, BatchKind.OBSERVATIONS), (-29_453_760, BatchKind.HEARTBEAT)], {0}),
    "an event of 2099": ([(0, BatchKind.HEARTBEAT), (38_404_800, BatchKind.OBSERVATIONS)], {0}),
    "nothing plausible": ([(-29_453_760, BatchKind.BYE)], set()),
}


@pytest.mark.parametrize(("spoken", "listed"), LISTED.values(), ids=LISTED)
def test_the_windows_listed_are_all_from_the_first_to_the_last_plausible_batch(
    spoken: list[tuple[int, BatchKind]], listed: set[int], monitor: Monitor
) -> None:
    """Gaps included, heartbeats and byes too; a clock that is wrong lists nothing. All arrived in the second minute."""
    for seq, (number, kind) in enumerate(spoken):
        make = observation_batch([1], seq=seq) if kind == BatchKind.OBSERVATIONS else make_batch(kind, seq=seq)
        monitor.take_in(replace(make, window_start_ms=window_ms(number)), arrival_us=at_us(60))
    assert set(monitor.conclude(NEVER_US)) == listed


def test_windows_that_were_forgotten_are_not_listed_again(monitor: Monitor) -> None:
    """The range only ever widens: what lies inside it was listed once."""
    monitor.take_in(make_batch(BatchKind.HEARTBEAT), arrival_us=at_us(60))
    monitor.conclude(OVER_US + 1)
    monitor.ledger.forget(OVER_US + 1)
    monitor.take_in(make_batch(BatchKind.HEARTBEAT, seq=1, window_start_ms=window_ms(2)), arrival_us=at_us(170))
    assert set(monitor.conclude(OVER_US + 1)) == {1, 2}


def test_the_pulse_of_the_monitor_has_books_and_no_windows(monitor: Monitor) -> None:
    """Nothing is ever concluded of _hopwatch."""
    keys = monitor.take_in(make_batch(BatchKind.HEARTBEAT, "monitor", stream="_hopwatch"), arrival_us=at_us(60))
    assert keys == {("_hopwatch", "monitor", "probe-of-monitor", at_us(-10))}
    assert monitor.conclude(NEVER_US) == {}


def test_a_listed_window_without_observations_is_judged_by_the_books(monitor: Monitor) -> None:
    """IDLE where the origin's probe told that nothing came, SILENT where nobody was there."""
    monitor.take_in(*all_told(seq=0), arrival_us=at_us(400))
    monitor.take_in(
        make_batch(BatchKind.HEARTBEAT, "b", probe="late", epoch_us=at_us(1_200), window_start_ms=window_ms(20)),
        arrival_us=at_us(1_210),
    )
    verdicts = {number: each.result.verdict for number, each in monitor.conclude(NEVER_US).items()}
    assert (verdicts[0], verdicts[15]) == (Verdict.IDLE, Verdict.SILENT)


# When a window is judged anew


@pytest.mark.parametrize(
    ("watermark_us", "status"),
    [
        (0, Status.OPEN),
        (at_us(60) - 1, Status.OPEN),
        (at_us(60), Status.PROVISIONAL),
        (FINAL_US - 1, Status.PROVISIONAL),
        (FINAL_US, Status.FINAL),
        (NEVER_US, Status.FINAL),
    ],
)
def test_the_watermark_says_where_a_window_stands(watermark_us: int, status: Status, monitor: Monitor) -> None:
    """Open until its end, provisional until transit and settle have passed, then final."""
    monitor.take_in(observation_batch([1]), arrival_us=at_us(60))
    assert monitor.judged(watermark_us).result.status is status


def test_until_it_is_final_nothing_is_lost(monitor: Monitor) -> None:
    """Missing messages of a window that is not final are in flight, and it has no verdict."""
    monitor.take_in(observation_batch([1, 2]), observation_batch([1], "b"), arrival_us=at_us(60))
    result = monitor.judged(FINAL_US - 1).result
    assert (result.lost, result.in_flight, result.verdict, result.reasons) == (0, 1, None, ())


def test_a_window_is_judged_when_its_status_changes_and_not_in_between(monitor: Monitor) -> None:
    """A watermark that moves within a status costs nothing."""
    monitor.take_in(observation_batch([1]), arrival_us=at_us(1))
    marks = [at_us(1), at_us(2), at_us(60), at_us(61), FINAL_US, FINAL_US + 1]
    assert [0 in monitor.conclude(mark) for mark in marks] == [True, False, True, False, True, False]


def test_a_window_is_judged_whenever_it_was_tallied(monitor: Monitor) -> None:
    """So that the counts of an open window are alive."""
    for seq in range(3):
        monitor.take_in(observation_batch([seq], seq=seq), arrival_us=at_us(1))
        assert monitor.judged(at_us(2)).result.known == seq + 1


def test_books_alone_do_not_judge_an_open_window(monitor: Monitor) -> None:
    """A change of books alone judges no open window."""
    monitor.take_in(observation_batch([1]), arrival_us=at_us(1))
    monitor.conclude(at_us(2))
    monitor.take_in(make_batch(BatchKind.HEARTBEAT, seq=1), arrival_us=at_us(3))
    assert monitor.conclude(at_us(3)) == {}


def test_a_final_window_is_judged_again_when_its_books_change(monitor: Monitor) -> None:
    """An account that comes late turns UNKNOWN into CLEAN: an amendment like any other."""
    monitor.take_in(observation_batch([1]), observation_batch([1], "b"), arrival_us=at_us(60))
    assert monitor.judged(FINAL_US).result.verdict is Verdict.UNKNOWN
    monitor.take_in(*all_told(seq=1), arrival_us=at_us(400))
    again = monitor.judged(FINAL_US + 1)
    assert (again.result.status, again.result.revision) == (Status.AMENDED, 1)
    assert again.changed is not None
    assert again.changed["verdict"] == [Verdict.UNKNOWN, Verdict.CLEAN]
    assert again.changed["b.coverage"] == [0.0, 1.0]


def test_books_that_say_the_same_judge_nothing_again(lossy: Monitor) -> None:
    """A bye that comes twice changes the tallies of the book, no window."""
    lossy.take_in(*all_told(seq=1), arrival_us=at_us(401))
    assert lossy.conclude(FINAL_US + 1) == {}


def test_streams_are_apart() -> None:
    """Records of one stream list and judge no window of another."""
    monitor = Monitor(Ledger({"orders": STREAM_CONFIGS["orders"], "trades": STREAM_CONFIGS["orders"]}))
    monitor.take_in(
        make_batch(BatchKind.HEARTBEAT, stream="trades", window_start_ms=window_ms(3)), arrival_us=at_us(190)
    )
    monitor.take_in(make_batch(BatchKind.HEARTBEAT), arrival_us=at_us(190))
    concluded = monitor.ledger.conclude(set(), NEVER_US, monitor.past)
    listed = [(each.result.stream, each.result.window_start_us) for each in concluded]
    assert listed == [("orders", START_US), ("trades", window_ms(3) * 1_000)]


# What a new judgement changes


def test_what_turns_up_after_the_judgement_amends_it(lossy: Monitor) -> None:
    """Its revision goes up by one, the id counts as recovered, and what changed is told: before and after."""
    lossy.take_in(observation_batch([3], "b", seq=2), arrival_us=LATER_US)
    amended = lossy.judged(LATER_US)
    result = amended.result
    assert (result.status, result.revision, result.recovered, result.lost) == (Status.AMENDED, 1, 1, 0)
    assert amended.changed is not None
    told = {name: amended.changed.get(name) for name in ("lost", "b.lost_in_transit", "b.seen", "a.seen")}
    assert told == {"lost": [1, 0], "b.lost_in_transit": [1, 0], "b.seen": [2, 3], "a.seen": None}


def test_each_amendment_is_a_revision(lossy: Monitor) -> None:
    """Recovered ids add up over them."""
    lossy.take_in(observation_batch([4, 5], seq=2), arrival_us=LATER_US)
    lossy.conclude(LATER_US + 200_000_000)
    lossy.take_in(observation_batch([3, 4], "b", seq=2), arrival_us=LATER_US)
    lossy.conclude(LATER_US + 200_000_000)
    lossy.take_in(observation_batch([5], "b", seq=3), arrival_us=LATER_US)
    result = lossy.judged(LATER_US + 200_000_000).result
    assert (result.revision, result.recovered, result.lost) == (3, 3, 0)


def test_an_id_that_is_lost_elsewhere_is_not_recovered(lossy: Monitor) -> None:
    """A message that turns out to have reached b, and was lost inside it, is still lost."""
    lossy.take_in(observation_batch([3], "b", seq=2, lag_out_us=b""), arrival_us=LATER_US)
    result = lossy.judged(LATER_US).result
    assert (result.lost, result.recovered, result.nodes[1].lost_inside) == (1, 0, 1)


def test_a_judgement_that_comes_out_the_same_is_no_revision(lossy: Monitor) -> None:
    """A window that is tallied again without news stays FINAL, or AMENDED with the revision that it had."""
    lossy.tallied.add(("orders", START_US))
    same = lossy.judged(LATER_US)
    assert (same.result.status, same.result.revision, same.changed) == (Status.FINAL, 0, None)
    lossy.take_in(observation_batch([3], "b", seq=2), arrival_us=LATER_US)
    lossy.conclude(LATER_US)
    lossy.tallied.add(("orders", START_US))
    same = lossy.judged(LATER_US)
    assert (same.result.status, same.result.revision, same.result.recovered) == (Status.AMENDED, 1, 1)
    assert same.changed is None


def test_what_was_sighted_late_is_in_flight_in_a_final_window(monitor: Monitor) -> None:
    """Messages sighted late are judged after transit and settle, which completes the judgement without a revision."""
    sighted_us = FINAL_US - 10_000_000
    monitor.take_in(*all_told(seq=1), arrival_us=at_us(400))
    monitor.take_in(observation_batch([1, 2]), observation_batch([1], "b"), arrival_us=sighted_us)
    first = monitor.judged(FINAL_US)
    assert (first.result.status, first.result.in_flight, first.result.lost, first.is_settled) == ("FINAL", 1, 0, False)
    due_us = WINDOW_POLICY.settled_at_us(START_US, sighted_us)
    assert monitor.conclude(due_us - 1) == {}
    then = monitor.judged(due_us)
    assert (then.result.status, then.result.in_flight, then.result.lost, then.is_settled) == ("FINAL", 0, 1, True)
    assert (then.result.revision, then.changed) == (0, None)


# Messages that wait


def deferred_batch(number: int, until_us: int, **fields: int) -> Batch:
    """Return a batch in which b keeps one message for a later try."""
    waits = {"outcome": bytes([Outcome.DEFERRED]), "until_us": pack_lags(until_us), "lag_out_us": b""}
    return observation_batch([number], "b", **(waits | fields))


def told_through(seq: int, seconds: float) -> list[Batch]:
    """Return heartbeats of both probes that complete a moment."""
    return [
        make_batch(BatchKind.HEARTBEAT, node, seq=number, complete_through_us=at_us(seconds), sent_at_us=at_us(seconds))
        for node, number in (("a", seq), ("b", seq + 1))
    ]


def waiting(until_us: int) -> Monitor:
    """Return a monitor of messages 1, 2, 3: the first went through, b defers the second, the third is lost on the way.

    It has judged the window for the first time.
    """
    monitor = Monitor()
    monitor.take_in(observation_batch([1, 2, 3]), observation_batch([1], "b"), arrival_us=at_us(60))
    monitor.take_in(deferred_batch(2, until_us, seq=1), arrival_us=at_us(61))
    monitor.take_in(*told_through(1, 235), arrival_us=at_us(236))
    monitor.judged(FINAL_US)
    return monitor


def counts(conclusion: Conclusion) -> tuple[int, int, int, int]:
    """Return what is lost, surely lost, in flight and deferred, end to end."""
    result = conclusion.result
    return result.lost, result.lost_lower, result.in_flight, result.deferred


def test_a_message_that_waits_is_in_flight_and_hides_no_loss() -> None:
    """A deferred message is in flight until its time and settle have passed, and other losses are sure meanwhile."""
    monitor = waiting(at_us(1_000))
    first = monitor.past.concluded["orders", START_US]
    assert (counts(first), first.result.verdict, first.is_settled) == ((1, 1, 1, 1), "LOSSY", False)
    assert [node.deferred for node in first.result.nodes] == [0, 1]
    monitor.take_in(*told_through(2, 1_000), arrival_us=at_us(1_001))
    assert monitor.conclude(at_us(1_030) - 1) == {}
    then = monitor.judged(at_us(1_030))
    assert (counts(then), then.result.verdict, then.is_settled) == ((2, 2, 0, 1), "LOSSY", True)
    assert (then.result.status, then.result.revision, then.changed) == (Status.FINAL, 0, None)
    assert [node.lost_inside for node in then.result.nodes] == [0, 1]
    assert monitor.conclude(at_us(1_100)) == {}


def test_no_wait_is_surely_over_before_the_probes_told_so() -> None:
    """The horizon of the window is the moment until which the message waited."""
    monitor = waiting(at_us(1_000))
    monitor.take_in(*told_through(2, 999), arrival_us=at_us(1_001))
    then = monitor.judged(at_us(1_030))
    assert (counts(then), then.result.verdict) == ((2, 0, 0, 1), Verdict.UNKNOWN)
    monitor.take_in(*told_through(3, 1_000), arrival_us=at_us(1_031))
    later = monitor.judged(at_us(1_032))
    assert (counts(later), later.result.status) == ((2, 2, 0, 1), Status.AMENDED)


def test_a_message_that_was_delivered_at_last_waits_no_more() -> None:
    """The window is judged when the departure comes, an hour after its end, and not again."""
    monitor = waiting(at_us(3_600))
    monitor.take_in(*told_through(2, 3_600), arrival_us=at_us(3_601))
    departed = observation_batch([2], "b", seq=4, complete_through_us=at_us(3_601))
    monitor.take_in(departed, arrival_us=at_us(3_602))
    then = monitor.judged(at_us(3_602))
    assert (counts(then), then.is_settled, then.result.nodes[1].duplicates_in) == ((1, 1, 0, 0), True, 0)
    assert monitor.conclude(at_us(3_700)) == {}


def test_of_several_deferrals_the_latest_counts() -> None:
    """Each puts the judgement off; a message that waits less long is judged in its own time."""
    monitor = waiting(at_us(1_000))
    monitor.take_in(
        deferred_batch(2, at_us(2_000), seq=3), deferred_batch(3, at_us(1_500), seq=4), arrival_us=at_us(990)
    )
    assert counts(monitor.judged(at_us(1_030))) == (0, 0, 2, 2)
    assert monitor.conclude(at_us(1_530) - 1) == {}
    assert counts(monitor.judged(at_us(1_530)))[::2] == (1, 1)
    assert counts(monitor.judged(at_us(2_030)))[::2] == (2, 0)


def test_a_message_that_waits_beyond_the_amendments_is_never_judged() -> None:
    """Nobody will see its end: it is no loss, the window is not bounded, and the reason says what to raise."""
    last_us = OVER_US - STRAGGLING_US - WINDOW_POLICY.settle_us
    judged = waiting(last_us).past.concluded["orders", START_US].result
    beyond = waiting(last_us + 1).past.concluded["orders", START_US].result
    assert (judged.reasons, judged.lost_upper) == ((), 1)
    assert (beyond.lost, beyond.in_flight, beyond.lost_upper, beyond.nodes[1].loss_upper) == (1, 1, None, None)
    why = "b: 1 messages that are missing here are deferred beyond amend_for; raise it above the longest time that"
    assert beyond.reasons == (f"{why} a node keeps messages for",)
    waiting_on = waiting(last_us + 1)
    assert waiting_on.past.concluded["orders", START_US].is_settled
    assert waiting_on.conclude(OVER_US) == {}


def test_a_window_is_kept_while_something_of_it_waits() -> None:
    """A message that waits to the last moment that counts is judged, and then the window may go."""
    monitor = waiting(OVER_US - STRAGGLING_US - WINDOW_POLICY.settle_us)
    assert monitor.ledger.forget(OVER_US + 1) == []
    assert counts(monitor.judged(OVER_US + 1))[::2] == (2, 0)
    assert monitor.ledger.forget(OVER_US + 1) == [("orders", START_US)]


def test_drops_that_are_told_late_amend(lossy: Monitor) -> None:
    """The upper bound of a final window rises with them."""
    drops = (Drop(window_ms(0), 5, "queue full"),)
    lossy.take_in(
        make_batch(BatchKind.HEARTBEAT, seq=2, complete_through_us=at_us(400), drops=drops), arrival_us=at_us(401)
    )
    result = lossy.judged(LATER_US).result
    assert (result.revision, result.nodes[0].dropped, result.lost_upper) == (1, 5, 6)


# What is forgotten


def test_a_window_is_forgotten_when_nothing_can_change_it(lossy: Monitor) -> None:
    """At the end of amendments, and a minute later for what is read out of order; what it was is returned."""
    assert lossy.ledger.forget(OVER_US) == []
    assert lossy.ledger.forget(OVER_US + 1) == [("orders", START_US)]
    assert lossy.ledger.live == {"orders": {}}
    assert lossy.conclude(NEVER_US) == {}


def test_a_window_is_not_forgotten_while_messages_are_in_flight(lossy: Monitor) -> None:
    """A window is kept until the last of its messages in flight is judged."""
    last_us = WINDOW_POLICY.amendable_until_us(START_US)
    lossy.take_in(observation_batch([9], seq=2), arrival_us=last_us)
    assert lossy.judged(last_us).result.in_flight == 1
    due_us = WINDOW_POLICY.settled_at_us(START_US, last_us)
    assert due_us > OVER_US + 1
    assert lossy.ledger.forget(due_us) == []
    assert lossy.judged(due_us).result.in_flight == 0
    assert lossy.ledger.forget(due_us + 1) == [("orders", START_US)]


def test_books_forget_the_windows_that_are_gone(lossy: Monitor) -> None:
    """Numbers and tallies stay: a batch that comes once more is still a duplicate."""
    later = observation_batch(
        [7], seq=2, window_start_ms=window_ms(90), drops=(Drop(window_ms(0), 1, "x"), Drop(window_ms(90), 2, "y"))
    )
    lossy.take_in(later, arrival_us=window_ms(91) * 1_000)
    lossy.conclude(window_ms(91) * 1_000)
    lossy.ledger.forget(window_ms(91) * 1_000)
    book = lossy.ledger.books["orders", "a", "probe-of-a", at_us(-10)]
    assert (dict(book.sent), dict(book.drops)) == ({window_ms(90): False}, {(window_ms(90), "y"): 2})
    assert (book.tallies.batches, book.runs[0].last) == (3, 2)


@pytest.mark.parametrize(
    ("batch", "until_us"),
    [
        (observation_batch([1]), OVER_US),
        (observation_batch([1], window_start_ms=window_ms(-1)), OVER_US - WINDOW_US),
        (make_batch(BatchKind.HEARTBEAT), 0),
        (observation_batch([1], window_start_ms=window_ms(20_000)), 0),
        (observation_batch([1], window_start_ms=window_ms(-70)), 0),
        (make_batch(BatchKind.HEARTBEAT, stream="_hopwatch"), 0),
    ],
    ids=["observations", "older ones", "a heartbeat", "implausible", "too late", "the pulse"],
)
def test_a_segment_is_needed_as_long_as_a_window_points_into_it(batch: Batch, until_us: int, monitor: Monitor) -> None:
    """Up to the end of the latest window whose observations it holds; without any, it may go at once."""
    assert monitor.ledger.needed_until_us(sheet_of(batch, at_us(70))) == until_us


def test_a_segment_with_several_windows_is_needed_for_the_latest(monitor: Monitor) -> None:
    """The one that can be amended longest."""
    batches = [observation_batch([1], window_start_ms=window_ms(number)) for number in (2, 0, 1)]
    facts = [fact for batch in batches for fact in sheet_of(batch, at_us(200)).facts]
    sheet = replace(sheet_of(observation_batch([1]), at_us(200)), facts=facts)
    assert monitor.ledger.needed_until_us(sheet) == OVER_US + 2 * WINDOW_US


def test_a_sighting_never_moves_back(monitor: Monitor) -> None:
    """The horizon of a window is that of its latest first sighting, whichever shard is tallied last."""
    monitor.ledger.sight("orders", START_US, at_us(90))
    monitor.ledger.sight("orders", START_US, at_us(80))
    assert monitor.ledger.live["orders"][START_US] == LiveWindow(last_first_sighting_us=at_us(90))
