"""Laws of the tally: order, batching and sharding change nothing, and each part of it is what was stamped."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel import masks, tdigest
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.slowest import MAX_SLOWEST_IDS
from hopwatch.monitor.kernel.tally import ALWAYS_US, Tally, build_tally, merge_tallies
from hopwatch.monitor.payloads import pack_tally
from tests.laws.strategies import DrawnPathway, SeenMessage, as_model, mask_of, message_id, pathways, seen_messages
from tests.support.batch_arrays import make_batch

END_US: Final = 60


class Case(NamedTuple):
    """A pathway, what was seen on it, and when each observation arrived, µs; the window ends at 60."""

    drawn: DrawnPathway
    observations: list[SeenMessage]
    arrivals_us: list[int]

    @property
    def first_sightings_us(self) -> dict[int, int]:
        """Return the time at which each message was first sighted."""
        found: dict[int, int] = {}
        for one, arrival_us in zip(self.observations, self.arrivals_us, strict=True):
            found[one.message] = min(arrival_us, found.get(one.message, arrival_us))
        return found


@st.composite
def windows(draw: st.DrawFn) -> Case:
    """Draw a window whose messages are first sighted within it or later."""
    drawn = draw(pathways())
    observations = draw(seen_messages(drawn.product))
    arrivals = st.sampled_from([1, 59, 60, 61, 75])
    return Case(drawn, observations, draw(st.lists(arrivals, min_size=len(observations), max_size=len(observations))))


def _batch(observations: list[SeenMessage], arrival_us: int) -> ObservedBatch:
    says = [one.says for one in observations]
    return make_batch(
        observations[0].node,
        [message_id(one.message) for one in observations],
        [one.lag_in_us for one in says],
        [one.lag_out_us for one in says],
        [one.outcome for one in says],
        arrival_us,
    )


def _one_by_one(case: Case) -> list[ObservedBatch]:
    return [_batch([one], arrival_us) for one, arrival_us in zip(case.observations, case.arrivals_us, strict=True)]


def _of(case: Case, batches: list[ObservedBatch]) -> Tally:
    return build_tally(case.drawn.product, batches, END_US)


@given(windows(), st.data())
def test_order_and_batching_change_nothing(case: Case, data: st.DataObject) -> None:
    """Observations of one node and arrival may share a batch or not, and come in any order: equal to the byte."""
    order = data.draw(st.permutations(range(len(case.observations))))
    parts: dict[tuple[int, int, int], list[SeenMessage]] = {}
    for place in order:
        one, arrival_us = case.observations[place], case.arrivals_us[place]
        parts.setdefault((one.node, arrival_us, data.draw(st.integers(0, 2))), []).append(one)
    batches = [_batch(part, arrival_us) for (_, arrival_us, _), part in parts.items()]
    assert pack_tally(_of(case, batches)) == pack_tally(_of(case, _one_by_one(case)))


@given(windows())
def test_rows_count_messages_by_mask_and_sighting(case: Case) -> None:
    """Each row is of one mask and one first sighting; those by the end of the window are told apart no further."""
    tally = _of(case, _one_by_one(case))
    first_us = case.first_sightings_us
    expected = Counter(
        (mask, first_us[message] if first_us[message] > END_US else ALWAYS_US)
        for message, mask in mask_of(case.drawn.product, case.observations).items()
    )
    rows = zip(tally.masks[:, 0].tolist(), tally.sighted_us.tolist(), tally.counts.tolist(), strict=True)
    assert sorted((mask, sighted_us, count) for mask, sighted_us, count in rows) == sorted(
        (*row, count) for row, count in expected.items()
    )
    assert tally.last_first_sighting_us == max((at_us for at_us in first_us.values() if at_us > END_US), default=0)
    assert tally.observations == len(case.observations)


@given(windows())
def test_stamps_and_lags_are_those_of_the_model(case: Case) -> None:
    """Numbers of stamps, numbers of negative lags, and digests of lags are those of the model at every node."""
    tally = _of(case, _one_by_one(case))
    model = as_model(case.drawn, case.observations)
    for place, node in enumerate(case.drawn.product.nodes):
        at = model.at[node]
        came_deferred = len(at.came - at.stamped_in)
        assert tally.stamps[place].tolist() == [len(at.lags_in_us) + came_deferred, len(at.lags_out_us)]
        assert tally.negative[place] == sum(lag < 0 for lag in at.lags_in_us + at.lags_out_us)
        digests = [getattr(tally.lags[place], name) for name in ("lag_in_us", "lag_out_us", "inside_us")]
        expected = [_digest(lags) for lags in (at.lags_in_us, at.lags_out_us, at.inside_us)]
        assert [tdigest.to_bytes(digest) for digest in digests] == expected


def _digest(lags_us: list[int]) -> bytes:
    return tdigest.to_bytes(tdigest.build(np.array(lags_us, np.int64)))


@given(windows(), st.sampled_from([0, 61, 62, 75, 76]))
def test_lost_ids_are_those_of_the_model(case: Case, before_us: int) -> None:
    """The ids behind each node's loss, in byte order, of the messages first sighted by then or within the window."""
    tally = _of(case, _one_by_one(case))
    model = as_model(case.drawn, case.observations)
    first_us = {message_id(message): moment_us for message, moment_us in case.first_sightings_us.items()}
    for place, node in enumerate(case.drawn.product.nodes):
        settled = [lost for lost in model.lost_at(node) if first_us[lost] <= END_US or first_us[lost] < before_us]
        assert tally.lost(place, before_us).message_ids.tobytes() == b"".join(sorted(settled))


@given(windows())
def test_slowest_messages_are_those_of_the_model(case: Case) -> None:
    """The slowest messages of each node have the greatest lags at departure, in any order of sighting."""
    model = as_model(case.drawn, case.observations)
    expected = [
        sorted(((-lag_us, message_id) for message_id, lag_us in model.at[node].slowest_us.items()))[:MAX_SLOWEST_IDS]
        for node in case.drawn.product.nodes
    ]
    assert _slow(_of(case, _one_by_one(case))) == expected


def _slow(tally: Tally) -> list[list[tuple[int, bytes]]]:
    assert tally.slowest is not None
    return [
        [(-lag_us, one.tobytes()) for one, lag_us in zip(ids, lags_us.tolist(), strict=True)]
        for ids, lags_us, _ in tally.slowest
    ]


@given(windows(), st.sampled_from([0, 61, 62, 75, 76]))
def test_what_is_settled_was_sighted_before(case: Case, before_us: int) -> None:
    """Of each row either all messages count or none."""
    tally = _of(case, _one_by_one(case))
    settled = [moment_us <= END_US or moment_us < before_us for moment_us in case.first_sightings_us.values()]
    assert tally.settled(before_us).sum() == sum(settled)
    assert set((tally.settled(before_us) / tally.counts).tolist()) <= {0, 1}


def _shards(case: Case, shards: int) -> list[Tally]:
    batches = _one_by_one(case)
    of_shard = [[one for one in batches if masks.shard_of(one.message_ids, shards)[0] == s] for s in range(shards)]
    return [_of(case, part) for part in of_shard]


@given(windows(), st.integers(1, 4))
def test_shards_that_are_merged_are_the_whole(case: Case, shards: int) -> None:
    """Messages shared out by a hash of their ids: all but the inside of the digests is as it was without shards."""
    merged, whole = merge_tallies(_shards(case, shards)), _of(case, _one_by_one(case))
    exact = ("masks", "counts", "sighted_us", "stamps", "negative")
    assert [getattr(merged, name).tolist() for name in exact] == [getattr(whole, name).tolist() for name in exact]
    assert _deferred(merged) == _deferred(whole)
    assert _lost(merged) == _lost(whole)
    assert _slow(merged) == _slow(whole)
    assert (merged.last_first_sighting_us, merged.observations) == (whole.last_first_sighting_us, whole.observations)
    assert _ends(merged) == _ends(whole)


def _deferred(tally: Tally) -> list[int] | None:
    return None if tally.deferred is None else tally.deferred.tolist()


def _lost(tally: Tally) -> list[tuple[bytes, list[int]]]:
    return [(lost.message_ids.tobytes(), lost.sighted_us.tolist()) for lost in tally.lost_ids]


def _ends(tally: Tally) -> list[tuple[int, int, int]]:
    digests = [digest for lags in tally.lags for digest in (lags.lag_in_us, lags.lag_out_us, lags.inside_us)]
    return [(digest.count, digest.min, digest.max) for digest in digests]


@given(windows(), st.permutations(range(3)))
def test_shards_merge_in_any_order(case: Case, order: list[int]) -> None:
    """Shards merged in any order give the same bytes."""
    parts = _shards(case, 3)
    assert pack_tally(merge_tallies([parts[place] for place in order])) == pack_tally(merge_tallies(parts))
