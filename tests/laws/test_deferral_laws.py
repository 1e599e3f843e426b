"""Laws of deferrals: a message that waits is in flight, and no order of what comes changes when it is judged."""

from __future__ import annotations

from collections import defaultdict
from typing import Final, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.deferrals import find_waits
from hopwatch.monitor.kernel.journeys import RecordColumns
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.sets import classify
from hopwatch.monitor.kernel.tally import ALWAYS_US, NEVER_US, Tally, build_tally, merge_tallies
from hopwatch.monitor.kernel.verdict import WindowStage, conclude_window
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.payloads import pack_tally, unpack_tally
from hopwatch.monitor.results import Status, WindowResult
from tests.laws.strategies import DrawnPathway, SeenMessage, as_model, message_id, pathways, seen_messages
from tests.model.record import DEFERRED
from tests.support.batch_arrays import complete_books, make_batch

SECOND_US: Final = 1_000_000
START_US: Final = 600 * SECOND_US
END_US: Final = START_US + 60 * SECOND_US
TERMS: Final = WindowPolicy(150 * SECOND_US, 30 * SECOND_US, 3_600 * SECOND_US, 86_400 * SECOND_US)
BEYOND_US: Final = END_US + (150 + 3_600) * SECOND_US
MOMENTS_US: Final = st.sampled_from(
    [-(2**63), 0, END_US, END_US + 151 * SECOND_US, END_US + 999_500_000, BEYOND_US, BEYOND_US + 1, 2**63 - 1]
) | st.integers(END_US, BEYOND_US)


class Case(NamedTuple):
    """A pathway and what was seen on it: when each observation arrived, and until when it defers, if it does, µs."""

    drawn: DrawnPathway
    observations: list[SeenMessage]
    arrivals_us: list[int]
    until_us: list[int]

    def batches(self) -> list[ObservedBatch]:
        """Return a batch for each observation."""
        return [self._batch(place) for place in range(len(self.observations))]

    def _batch(self, place: int) -> ObservedBatch:
        one, until_us = self.observations[place], self.until_us[place]

        def read(rows: NDArray[np.int64]) -> RecordColumns:
            zeros = np.zeros(len(rows), np.int64)
            told_us = np.full(len(rows), until_us, np.int64)
            return RecordColumns("p", zeros, zeros, zeros, zeros.astype(np.uint8), zeros.astype(np.uint8), (), told_us)

        says = one.says
        lags = [says.lag_in_us], [says.lag_out_us]
        batch = make_batch(one.node, [message_id(one.message)], *lags, [says.outcome], self.arrivals_us[place])
        return batch._replace(record=read)

    def sightings_us(self) -> dict[bytes, int]:
        """Return the sighting of each message by the words of SEMANTICS.md; NEVER_US where it waits for too long."""
        found: dict[bytes, int] = {}
        for message in {one.message for one in self.observations}:
            of_it = [place for place, one in enumerate(self.observations) if one.message == message]
            until_us = [self.until_us[place] for place in of_it if self._defers(place)]
            first_us = min(self.arrivals_us[place] for place in of_it)
            if until_us:
                latest_us = -(-max(0, *until_us, 0) // SECOND_US) * SECOND_US
                others_us = [self.arrivals_us[place] for place in of_it if not self._defers(place)]
                first_us = max(first_us, latest_us - TERMS.transit_us, *others_us)
                first_us = NEVER_US if latest_us > BEYOND_US else first_us
            found[message_id(message)] = first_us
        return found

    def _defers(self, place: int) -> bool:
        return self.observations[place].says.outcome == DEFERRED


@st.composite
def windows(draw: st.DrawFn) -> Case:
    """Draw a window in which some messages are deferred."""
    drawn = draw(pathways())
    observations = draw(seen_messages(drawn.product))
    count = len(observations)
    arrivals = st.sampled_from([START_US, END_US, END_US + 1, END_US + 500 * SECOND_US])
    return Case(drawn, observations, draw(_one_each(arrivals, count)), draw(_one_each(MOMENTS_US, count)))


def _one_each(values: st.SearchStrategy[int], count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(values, min_size=count, max_size=count)


def _tally(case: Case, batches: list[ObservedBatch]) -> Tally:
    return build_tally(case.drawn.product, batches, END_US, TERMS)


def _judged(case: Case, watermark_us: int) -> WindowResult:
    stage = WindowStage("s", START_US, Status.FINAL, TERMS.settled_before_us(watermark_us))
    tally = _tally(case, case.batches())
    return conclude_window(case.drawn.product, stage, tally, complete_books(*"c" * len(case.drawn.product.nodes)))


@given(windows(), st.data())
def test_order_and_shards_change_nothing(case: Case, data: st.DataObject) -> None:
    """Observations in any order are one tally, to the byte; in shards, the same rows and counts."""
    batches = case.batches()
    whole = _tally(case, batches)
    shuffled = data.draw(st.permutations(batches))
    assert pack_tally(_tally(case, shuffled)) == pack_tally(whole)
    parts = [[one for one in shuffled if masks.shard_of(one.message_ids, 3)[0] == shard] for shard in range(3)]
    merged = merge_tallies([_tally(case, part) for part in parts])
    for name in ("masks", "counts", "sighted_us", "stamps"):
        assert getattr(merged, name).tolist() == getattr(whole, name).tolist()
    assert (merged.deferred is None) == (whole.deferred is None)
    assert merged.deferred is None or merged.deferred.tolist() == whole.deferred.tolist()  # type: ignore[union-attr]
    kept = unpack_tally(pack_tally(whole)).deferred
    assert (None if kept is None else kept.tolist()) == (None if whole.deferred is None else whole.deferred.tolist())


@given(windows())
def test_deferred_messages_are_those_of_the_model(case: Case) -> None:
    """Deferred messages are counted at each node and once end to end, as a part of what is lost inside it."""
    model = as_model(case.drawn, case.observations)
    result = _judged(case, NEVER_US)
    at_nodes = [model.deferred(node) for node in case.drawn.product.nodes]
    assert [node.deferred for node in result.nodes] == [len(ids) for ids in at_nodes]
    assert result.deferred == len(frozenset[bytes]().union(*at_nodes))
    for node, ids in zip(case.drawn.product.nodes, at_nodes, strict=True):
        assert ids <= model.lost_inside(node)
        at = model.at[node]
        (shown,) = [one for one in result.nodes if one.node == node]
        assert shown.duplicates_in == len(at.lags_in_us) - len(at.stamped_in)


@given(windows(), st.integers(END_US, BEYOND_US + 3_600 * SECOND_US) | st.just(NEVER_US))
def test_what_waits_is_in_flight_and_never_lost(case: Case, watermark_us: int) -> None:
    """A missing message is lost once transit and settle have passed since its sighting, and in flight until then."""
    lost = as_model(case.drawn, case.observations).lost()
    before_us = TERMS.settled_before_us(watermark_us)
    sighted_us = case.sightings_us()
    settled = {one for one in lost if sighted_us[one] <= END_US or sighted_us[one] < before_us}
    endless = {one for one in lost if sighted_us[one] == NEVER_US}
    result = _judged(case, watermark_us)
    assert (result.lost, result.in_flight) == (len(settled), len(lost) - len(settled))
    assert result.lost_lower <= len(settled)
    assert not endless or (result.lost_upper is None and result.verdict in {"UNKNOWN", "LOSSY"})
    assert bool(endless) == any("deferred beyond amend_for; raise it" in reason for reason in result.reasons)


@given(windows(), st.integers(END_US, BEYOND_US + 3_600 * SECOND_US))
def test_the_moments_to_judge_at_are_those_of_missing_messages(case: Case, watermark_us: int) -> None:
    """Only missing messages move the horizon and the moment at which the window is due."""
    tally = _tally(case, case.batches())
    missing = as_model(case.drawn, case.observations).lost()
    first_us: dict[bytes, int] = defaultdict(lambda: NEVER_US)
    for one, arrival_us in zip(case.observations, case.arrivals_us, strict=True):
        first_us[message_id(one.message)] = min(arrival_us, first_us[message_id(one.message)])
    last_us = max([0, *(moment_us for moment_us in first_us.values() if moment_us > END_US)])
    before_us = TERMS.settled_before_us(watermark_us)
    moved_us = {one: at_us for one, at_us in case.sightings_us().items() if last_us < at_us < NEVER_US}
    moved_us = {one: at_us for one, at_us in moved_us.items() if at_us > END_US and one in missing}
    is_missing = classify(case.drawn.product, tally.masks).lost
    waits = find_waits(tally.sighted_us, is_missing, tally.last_first_sighting_us, before_us)
    assert tally.last_first_sighting_us == last_us
    assert waits.passed_us == max([0, *(at_us for at_us in moved_us.values() if at_us < before_us)])
    assert waits.next_us == min([NEVER_US, *(at_us for at_us in moved_us.values() if at_us >= before_us)])
    assert ALWAYS_US not in waits
