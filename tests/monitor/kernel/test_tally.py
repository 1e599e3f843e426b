"""Tests of the tally: examples worked out by hand, and what laws do not reach."""

from __future__ import annotations

import numpy as np
import pytest

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.tally import (
    NEVER_US,
    Tally,
    build_tally,
    empty_tally,
    merge_tallies,
)
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import MAX_LOST_IDS
from hopwatch.probes.contract.batch import Outcome, WireIdKind
from hopwatch.probes.contract.ids import id_bytes
from tests.support.batch_arrays import make_batch, passed_batch, stopped_batch

END_US = 60
CHAIN = Pathway.parse("a -> b")


def ids(*numbers: int) -> list[bytes]:
    """Return the ids of numbered messages."""
    return [id_bytes(number) for number in numbers]


def rows(tally: Tally) -> dict[int, int]:
    """Return how many messages have each mask, whenever they were sighted."""
    found: dict[int, int] = {}
    for mask, count in zip(tally.masks[:, 0].tolist(), tally.counts.tolist(), strict=True):
        found[mask] = found.get(mask, 0) + count
    return found


def lags(digest: tdigest.Digest) -> list[float]:
    """Return the lags of a digest of a few."""
    return np.repeat(digest.means, digest.weights).tolist()


def lost(tally: Tally, node: int, before_us: int = NEVER_US) -> bytes:
    """Return the packed ids of a node's loss."""
    return tally.lost(node, before_us).message_ids.tobytes()


def test_the_worked_example() -> None:
    """Ten messages at four nodes are four masks; each node's lost ids are those of the messages it lacks."""
    pathway = Pathway.parse("node1 -> node2 -> node3 -> node4")
    came = [range(1, 11), [1, 2, *range(4, 11)], [1, 2, *range(4, 9)], [1, 2, 4, 5, 6]]
    tally = build_tally(pathway, [passed_batch(node, ids(*numbers)) for node, numbers in enumerate(came)], END_US)
    assert rows(tally) == {0x0003: 1, 0x0033: 2, 0x0333: 2, 0x3333: 5}
    assert tally.stamps.tolist() == [[10, 10], [9, 9], [7, 7], [5, 5]]
    assert [lost(tally, node) for node in range(4)] == [b"", *map(b"".join, (ids(3), ids(9, 10), ids(7, 8)))]
    assert tally.observations == 31


def test_nothing_observed_is_an_empty_tally() -> None:
    """An empty tally has no rows, lags or lost ids, and merges like any other."""
    for nodes in (2, 20):
        tally = empty_tally(Pathway.parse(" -> ".join(f"n{number}" for number in range(nodes))))
        for one in (tally, merge_tallies([tally, tally])):
            assert (len(one.masks), one.counts.tolist(), one.sighted_us.tolist()) == (0, [], [])
            assert (one.last_first_sighting_us, one.observations) == (0, 0)
            assert {digest.inside_us.count for digest in one.lags} == {0}
            assert {len(lost.message_ids) for lost in one.lost_ids} == {0}


CODES = {
    "passed": (passed_batch(0, ids(1)), 0b0011),
    "arrived": (make_batch(0, ids(1), [5]), 0b0001),
    "departed": (make_batch(0, ids(1), [], [5]), 0b0010),
    "filtered": (stopped_batch(0, ids(1), Outcome.FILTERED), 0b0101),
    "rejected": (stopped_batch(0, ids(1), Outcome.REJECTED), 0b1001),
    "filtered without a stamp": (make_batch(0, ids(1), outcomes=[Outcome.FILTERED]), 0b0100),
    "filtered with both stamps": (make_batch(0, ids(1), [5], [6], [Outcome.FILTERED]), 0b0101),
}


@pytest.mark.parametrize(("observed", "mask"), CODES.values(), ids=CODES)
def test_what_an_observation_is_in_the_mask(observed: ObservedBatch, mask: int) -> None:
    """The out stamp of what did not pass is none."""
    assert rows(build_tally(CHAIN, [observed], END_US)) == {mask: 1}


def test_lags_are_those_of_the_stamps_that_count() -> None:
    """An in stamp always counts, an out stamp if it passed, the time inside if both do and it passed."""
    outcomes = [Outcome.PASSED, Outcome.PASSED, Outcome.PASSED, Outcome.FILTERED]
    tally = build_tally(CHAIN, [make_batch(0, ids(1, 2, 3, 4), [5, None, -7, 9], [25, 30, None, 40], outcomes)], END_US)
    assert lags(tally.lags[0].lag_in_us) == [-7, 5, 9]
    assert lags(tally.lags[0].lag_out_us) == [25, 30]
    assert lags(tally.lags[0].inside_us) == [20]
    assert (tally.stamps[0].tolist(), tally.negative[0]) == ([3, 2], 1)


FARTHEST = 2**63 - 1
TIMES_INSIDE = {
    "as long as can be": (-FARTHEST, 0, FARTHEST),
    "a little longer": (-FARTHEST, 1, FARTHEST),
    "from end to end": (-FARTHEST, FARTHEST, FARTHEST),
    "as far back as can be": (FARTHEST, -1, -FARTHEST - 1),
    "a little farther back": (FARTHEST, -2, -FARTHEST - 1),
    "back from end to end": (FARTHEST, -FARTHEST, -FARTHEST - 1),
}


@pytest.mark.parametrize(("lag_in_us", "lag_out_us", "inside_us"), TIMES_INSIDE.values(), ids=TIMES_INSIDE)
def test_a_time_inside_beyond_64_bits_is_the_farthest_they_hold(
    lag_in_us: int, lag_out_us: int, inside_us: int
) -> None:
    """A time inside beyond 64 bits is the largest of 64 bits, and other times stay as they are."""
    inside = build_tally(CHAIN, [make_batch(0, ids(1, 2), [lag_in_us, 5], [lag_out_us, 25])], END_US).lags[0].inside_us
    assert (inside.count, {inside.min, inside.max}) == (2, {20, inside_us})


def test_what_came_twice_counts_twice_in_stamps_and_lags() -> None:
    """A message observed twice is one message with two stamps and two lags."""
    tally = build_tally(CHAIN, [passed_batch(0, ids(1, 1)), passed_batch(0, ids(1))], END_US)
    assert (rows(tally), tally.stamps[0].tolist(), tally.lags[0].lag_in_us.count) == ({0b0011: 1}, [3, 3], 3)


ONE_SIDED = {
    "in alone": (make_batch(0, ids(1), [5]), [5], [5]),
    "out alone": (make_batch(0, ids(1), [], [6]), [6], [6]),
    "both": (make_batch(0, ids(1), [5], [6]), [5], [6]),
    "a column with holes": (make_batch(0, ids(1, 2), [5, None], [None, 6]), [5, 6], [5, 6]),
    "filtered": (make_batch(0, ids(1), [5], outcomes=[Outcome.FILTERED]), [5], []),
    "filtered without a stamp": (make_batch(0, ids(1), outcomes=[Outcome.FILTERED]), [], []),
}


@pytest.mark.parametrize("side", ["in", "out"])
@pytest.mark.parametrize(("observed", "lags_in_us", "lags_out_us"), ONE_SIDED.values(), ids=ONE_SIDED)
def test_at_a_one_sided_node_any_stamp_counts_for_both(
    observed: ObservedBatch, lags_in_us: list[int], lags_out_us: list[int], side: str
) -> None:
    """In sets, duplicates and lag; it has no time inside."""
    tally = build_tally(Pathway.parse("a -> b", {"a": side}), [observed], END_US)
    assert lags(tally.lags[0].lag_in_us) == lags_in_us
    assert lags(tally.lags[0].lag_out_us) == lags_out_us
    assert tally.lags[0].inside_us.count == 0
    assert tally.stamps[0].tolist() == [len(lags_in_us), len(lags_out_us)]


def test_a_message_is_first_sighted_when_the_first_of_its_observations_arrives() -> None:
    """Two were sighted by the end of the window, one at 70 and one at 80; all are lost on the way to b."""
    batches = [
        passed_batch(0, ids(4), arrival_us=80),
        passed_batch(0, ids(1, 3), arrival_us=70),
        passed_batch(0, ids(1), arrival_us=50),
        passed_batch(0, ids(2), arrival_us=60),
    ]
    tally = build_tally(CHAIN, batches, END_US)
    assert tally.last_first_sighting_us == 80
    assert [int(tally.settled(before_us).sum()) for before_us in (0, 70, 71, 80, 81)] == [2, 2, 3, 3, 4]
    assert lost(tally, 1, before_us=70) == b"".join(ids(1, 2))
    assert lost(tally, 1, before_us=81) == b"".join(ids(1, 2, 3, 4))


def _left_a(first: int, count: int, max_lost_ids: int = MAX_LOST_IDS) -> Tally:
    turned = [number.to_bytes(16, "little") for number in range(first, first + count)]
    return build_tally(CHAIN, [passed_batch(0, turned)], END_US, max_lost_ids=max_lost_ids)


def test_lost_ids_are_kept_up_to_ten_thousand() -> None:
    """The first in byte order are, of one shard and of several; and all are counted."""
    whole = _left_a(0, 12_000)
    first = b"".join(sorted(number.to_bytes(16, "little") for number in range(12_000))[:MAX_LOST_IDS])
    assert (MAX_LOST_IDS, int(whole.counts.sum())) == (10_000, 12_000)
    assert lost(whole, 1) == first
    assert lost(merge_tallies([_left_a(6_000, 6_000), _left_a(0, 6_000)]), 1) == first


def test_a_stream_may_keep_more_lost_ids() -> None:
    """Of one shard and of several; shards that kept fewer before are taken as they are."""
    most, every = 11_000, b"".join(sorted(number.to_bytes(16, "little") for number in range(12_000)))
    shards = [_left_a(6_000, 6_000, most), _left_a(0, 6_000, most)]
    assert lost(_left_a(0, 12_000, most), 1) == lost(merge_tallies(shards, most), 1) == every[: most * 16]
    assert lost(merge_tallies([_left_a(0, 12_000)], most), 1) == every[: MAX_LOST_IDS * 16]


def test_the_slowest_messages_are_named_as_the_first_node_names_them() -> None:
    """The lag is that of the node; of a message that the node says nothing of, the others tell the kind."""
    said = passed_batch(0, ids(1, 2))._replace(id_kind=WireIdKind.INT)
    at_a, at_b = (
        build_tally(CHAIN, [make_batch(1, ids(1, 2, 2, 3), [5] * 4, [25, 60, 50, 7]), said], END_US).slowest or ()
    )
    assert [one.tobytes() for one in at_b.message_ids] == ids(2, 1, 3)
    assert (at_b.lag_us.tolist(), at_b.names.kinds.tolist()) == (
        [60, 25, 7],
        [WireIdKind.INT, WireIdKind.INT, WireIdKind.UNKNOWN],
    )
    assert ([one.tobytes() for one in at_a.message_ids], at_a.lag_us.tolist()) == (ids(1, 2), [30, 30])


def test_a_tally_alone_is_merged_already() -> None:
    """Of one shard nothing is copied."""
    tally = _left_a(0, 3)
    assert merge_tallies([tally]) is tally


def test_twenty_nodes_are_tallied_in_two_words() -> None:
    """Of two shards, three messages: through all nodes, up to the 18th, and lost inside the first."""
    pathway = Pathway.parse(" -> ".join(f"n{number}" for number in range(20)))
    through = [passed_batch(node, ids(1, 2) if node < 18 else ids(1)) for node in range(20)]
    tally = merge_tallies(
        [build_tally(pathway, through, END_US), build_tally(pathway, [make_batch(0, ids(3), [5])], END_US)]
    )
    assert tally.masks.tolist() == [[1, 0], [0x3333_3333_3333_3333, 0x33], [0x3333_3333_3333_3333, 0x3333]]
    assert tally.counts.tolist() == [1, 1, 1]
    assert {node: lost(tally, node) for node in range(20) if lost(tally, node)} == {0: ids(3)[0], 18: ids(2)[0]}


def test_many_arrivals_are_told_apart() -> None:
    """More than 65,536 different arrivals rank as well as a few."""
    count = (1 << 16) + 1
    batches = [passed_batch(0, [id_bytes(number % 2)], arrival_us=count - number) for number in range(count)]
    tally = build_tally(CHAIN, batches, 0)
    assert tally.sighted_us.tolist() == [1, 2]
    assert tally.last_first_sighting_us == 2
