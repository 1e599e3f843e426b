"""Tests of order: examples that can be worked out by hand, of what is compared and what is not."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.journeys import RecordColumns
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.order import find_order
from hopwatch.monitor.pathway import Pathway
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import NO_REASON, NOT_STAMPED

HOP: Final = Pathway.parse("a -> b")
ANSWER: Final = {1: 10, 2: 20, 3: 30}
"""Three messages and when each left, or came, µs."""

Moments = dict[int, int]


def stamped(
    node: int, moments_us: Moments, instance: str = "one", outcome: Outcome = Outcome.PASSED, event_us: int = 0
) -> ObservedBatch:
    """Return a batch of messages whose arrival and departure at a node were both stamped at these moments."""
    at_us = np.array(list(moments_us.values()), np.int64)

    def read(rows: NDArray[Any]) -> RecordColumns:
        lag_us, count = at_us[rows] - event_us, len(rows)
        outcomes, reasons = np.full(count, outcome, np.uint8), np.full(count, NO_REASON, np.uint8)
        events_us, until_us = np.full(count, event_us), np.zeros(count, np.int64)
        return RecordColumns("p", events_us, lag_us, lag_us, outcomes, reasons, (), until_us)

    ids = masks.ids_from_bytes(b"".join(map(id_bytes, moments_us)))
    nothing = np.empty(0, np.int64)
    return ObservedBatch(node, instance, 0, ids, nothing, nothing, np.empty(0, np.uint8), record=read)


def _made_at(batch: ObservedBatch, event_us: int) -> ObservedBatch:
    """Return a batch with the same lags, of messages that were made at another moment."""
    read = batch.record
    assert read is not None
    return batch._replace(record=lambda rows: read(rows)._replace(event_time_us=np.full(len(rows), event_us)))


def figures(*batches: ObservedBatch, pathway: Pathway = HOP) -> list[tuple[int, int]]:
    """Return inversions and number of compared messages of each node."""
    found = find_order(pathway, batches)
    return list(zip(found.inversions.tolist(), (digest.count for digest in found.displacement), strict=True))


def test_a_message_that_jumps_ahead_overtakes_each_before_it() -> None:
    """The third of three comes first: two inversions, and each of the other two was overtaken by one."""
    found = find_order(HOP, [stamped(0, ANSWER), stamped(1, {1: 110, 2: 120, 3: 100})])
    assert found.inversions.tolist() == [0, 2]
    came = found.displacement[1]
    assert list(zip(came.means.tolist(), came.weights.tolist(), strict=True)) == [(0.0, 1), (1.0, 2)]


def test_what_falls_back_is_displaced_by_all_that_passed_it() -> None:
    """The first of three comes last: the same two inversions, and one message that two have overtaken."""
    found = find_order(HOP, [stamped(0, ANSWER), stamped(1, {1: 130, 2: 110, 3: 120})])
    assert (found.inversions[1], found.displacement[1].max) == (2, 2)


@pytest.mark.parametrize("came", [{1: 100, 2: 100, 3: 100}, {1: 100, 2: 110, 3: 110}], ids=str)
def test_arrivals_of_one_moment_are_in_order(came: Moments) -> None:
    """Nobody knows which of them was first."""
    assert figures(stamped(0, ANSWER), stamped(1, came))[1] == (0, 3)


def test_departures_of_one_moment_are_in_order() -> None:
    """Messages that left at once are in order, however they come."""
    assert figures(stamped(0, {1: 10, 2: 10, 3: 10}), stamped(1, {1: 120, 2: 110, 3: 100}))[1] == (0, 3)


@pytest.mark.parametrize("node", [0, 1])
def test_stamps_of_two_clocks_are_not_compared(node: int) -> None:
    """At either end a second instance, whose clock is an hour behind, overtakes nobody."""
    batches = [stamped(at, {1: 10, 3: 30} if at == node else ANSWER, "one") for at in (0, 1)] + [
        stamped(node, {2: 20 - 3_600_000_000}, "two")
    ]
    assert figures(*batches)[1] == (0, 3)


def test_instances_of_one_name_at_two_nodes_are_two() -> None:
    """The node is a part of who an instance is, and each lane is one at both of its nodes."""
    chain = Pathway.parse("a -> b -> c")
    batches = [stamped(0, ANSWER), stamped(1, {1: 130, 2: 120, 3: 110}), stamped(2, {1: 230, 2: 220, 3: 210})]
    assert figures(*batches, pathway=chain) == [(0, 0), (3, 3), (0, 3)]


@pytest.mark.parametrize("node", [0, 1])
def test_a_message_that_passes_twice_is_left_out(node: int) -> None:
    """A message with two stamps of a side has no one place in the order, whichever instances made them."""
    batches = [stamped(0, ANSWER), stamped(1, {1: 130, 2: 110, 3: 120}), stamped(node, {1: 500}, "two")]
    assert figures(*batches)[1] == (0, 2)


def test_what_did_not_pass_is_not_compared() -> None:
    """A message that is filtered has not left, and one that is deferred has not come; a rejected one has come."""
    came = {1: 130, 2: 110, 3: 120}
    kept = stamped(0, {2: 20, 3: 30})
    assert figures(kept, stamped(0, {1: 10}, outcome=Outcome.FILTERED), stamped(1, came))[1] == (0, 2)
    deferred = stamped(1, {1: 130}, outcome=Outcome.DEFERRED)
    assert figures(stamped(0, ANSWER), stamped(1, {2: 110, 3: 120}), deferred)[1] == (0, 2)
    rejected = stamped(1, {1: 130}, outcome=Outcome.REJECTED)
    assert figures(stamped(0, ANSWER), stamped(1, {2: 110, 3: 120}), rejected)[1] == (2, 3)


def test_a_stamp_that_was_not_made_is_not_compared() -> None:
    """Of a node that stamps one side only, that stamp counts for both."""
    missing = {1: NOT_STAMPED, 2: 110, 3: 120}
    assert figures(stamped(0, ANSWER), stamped(1, missing))[1] == (0, 2)
    assert figures(
        stamped(0, ANSWER), stamped(1, {1: 130, 2: 110, 3: 120}), pathway=Pathway.parse("a -> b", {"b": "in"})
    )[1] == (2, 3)


def test_event_time_moves_no_stamp() -> None:
    """A message made an hour before the others, with a lag as much greater, stands where it was stamped."""
    early = stamped(0, {1: 10}, event_us=-3_600_000_000)
    assert figures(early, stamped(0, {2: 20, 3: 30}), stamped(1, {1: 130, 2: 110, 3: 120}))[1] == (2, 3)


def test_lags_that_no_clock_tells_wrap_nothing() -> None:
    """A stamp at the end of 64 bits is after all others, one at their beginning before them."""
    latest, soonest = (stamped(1, {number: lag_us}) for number, lag_us in ((1, 2**63 - 1), (2, -(2**63) + 1)))
    far = [_made_at(latest, 10**15), _made_at(soonest, -(10**15)), stamped(1, {3: 0})]
    assert figures(stamped(0, ANSWER), *far)[1] == (2, 3)


def test_ways_that_meet_are_counted_at_the_node_where_they_do() -> None:
    """Each hop by itself, and the sum at the node."""
    pathway = Pathway.parse(["a -> c", "b -> c"])
    a, b, c = (pathway.nodes.index(node) for node in "abc")
    batches = [stamped(a, {1: 10, 2: 20}), stamped(b, {3: 10, 4: 20}), stamped(c, {1: 140, 2: 110, 3: 130, 4: 120})]
    assert figures(*batches, pathway=pathway)[c] == (2, 4)


@pytest.mark.parametrize("batches", [[], [stamped(0, ANSWER)], [stamped(1, ANSWER)]], ids=["none", "start", "end"])
def test_a_hop_without_two_ends_has_no_order(batches: list[ObservedBatch]) -> None:
    """Nothing is compared, which is not the same as nothing out of order."""
    assert figures(*batches) == [(0, 0), (0, 0)]


def test_a_record_that_cannot_be_read_again_is_left_out() -> None:
    """The stamps of such a batch are not known."""
    assert figures(stamped(0, ANSWER), stamped(1, ANSWER)._replace(record=None)) == [(0, 0), (0, 0)]
