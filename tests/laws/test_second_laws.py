"""Laws of counts by second: they add up to those of the node, and order, batching and sharding change nothing."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, replace
from typing import Final, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.bursts import find_bursts
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.seconds import tabulate_seconds
from hopwatch.monitor.kernel.tally import NEVER_US, Tally, build_tally, merge_tallies
from hopwatch.monitor.kernel.verdict import WindowStage, conclude_window
from hopwatch.monitor.payloads import pack_tally, unpack_tally
from hopwatch.monitor.results import SECONDS, SecondCounts, Status
from tests.laws.strategies import DrawnPathway, SeenMessage, as_model, message_id, pathways, seen_messages
from tests.model.seconds import count_by_second, find_seconds
from tests.model.seconds import find_bursts as find_model_bursts
from tests.support.batch_arrays import complete_books, make_batch

END_US: Final = 60


class Case(NamedTuple):
    """A pathway, what was seen on it, and its arrivals and event offsets, µs; the window ends at 60."""

    drawn: DrawnPathway
    observations: list[SeenMessage]
    said_us: list[tuple[int, int | None]]


@st.composite
def windows(draw: st.DrawFn) -> Case:
    """Draw a window; observations of a message may tell several event times of the window, or none."""
    drawn = draw(pathways())
    observations = draw(seen_messages(drawn.product))
    offsets_us = st.sampled_from([0, 999_999, 1_000_000, 31_500_000, 59_999_999, None])
    said_us = st.lists(st.tuples(st.sampled_from([1, 61, 75]), offsets_us), min_size=len(observations))
    return Case(drawn, observations, draw(said_us))


def _batch(observations: list[SeenMessage], arrival_us: int, offsets_us: list[int | None]) -> ObservedBatch:
    says = [one.says for one in observations]
    lags = [one.lag_in_us for one in says], [one.lag_out_us for one in says]
    ids = [message_id(one.message) for one in observations]
    batch = make_batch(observations[0].node, ids, *lags, [one.outcome for one in says], arrival_us)
    told = np.array([us for us in offsets_us if us is not None], np.uint32)
    return batch._replace(read_offsets=lambda: told)


def _one_by_one(case: Case) -> list[ObservedBatch]:
    pairs = zip(case.observations, case.said_us, strict=False)
    return [_batch([one], arrival_us, [offset_us]) for one, (arrival_us, offset_us) in pairs]


def _tally(case: Case, batches: list[ObservedBatch], *, is_shard: bool = False) -> Tally:
    return build_tally(case.drawn.product, batches, END_US, keeps_seconds=is_shard)


def _find_model_seconds(case: Case) -> dict[bytes, int]:
    pairs = zip(case.observations, case.said_us, strict=False)
    return find_seconds(
        ("", replace(one.says, message_id=message_id(one.message), event_offset_us=offset_us or 0,
                     tells_event_time=offset_us is not None))
        for one, (_, offset_us) in pairs
    )  # fmt: skip


@given(windows(), st.data())
def test_order_and_batching_change_nothing(case: Case, data: st.DataObject) -> None:
    """Observations of one node and arrival may share a batch or not, in any order: equal to the byte."""
    parts: dict[tuple[int, int, bool, int], list[int]] = defaultdict(list)
    for place in data.draw(st.permutations(range(len(case.observations)))):
        arrival_us, offset_us = case.said_us[place]
        parts[case.observations[place].node, arrival_us, offset_us is None, data.draw(st.integers(0, 2))].append(place)
    batches = [
        _batch([case.observations[at] for at in part], arrival_us, [case.said_us[at][1] for at in part])
        for (_, arrival_us, _, _), part in parts.items()
    ]
    packed = pack_tally(_tally(case, batches))
    assert packed == pack_tally(_tally(case, _one_by_one(case)))
    assert pack_tally(unpack_tally(packed)) == packed


@given(windows(), st.integers(1, 4), st.sampled_from([61, 62, NEVER_US]))
def test_shards_that_are_merged_are_the_whole(case: Case, shards: int, before_us: int) -> None:
    """Messages shared out by a hash of their ids give the same counts, in whatever order shards are merged."""
    batches, pathway = _one_by_one(case), case.drawn.product
    of_shard = [[one for one in batches if masks.shard_of(one.message_ids, shards)[0] == s] for s in range(shards)]
    parts = [_tally(case, part, is_shard=True) for part in of_shard]
    expected = tabulate_seconds(pathway, _tally(case, batches).seconds, before_us)
    assert tabulate_seconds(pathway, merge_tallies(parts).seconds, before_us) == expected
    assert tabulate_seconds(pathway, merge_tallies(parts[::-1]).seconds, before_us) == expected


@given(windows(), st.sampled_from([61, 62, NEVER_US]))
def test_seconds_split_the_messages_and_the_loss_of_a_node(case: Case, before_us: int) -> None:
    """All seconds of a node have its messages but those in flight, and its loss, as far as their seconds are told."""
    tally, pathway, second_of = _tally(case, _one_by_one(case)), case.drawn.product, _find_model_seconds(case)
    model, first_us = as_model(case.drawn, case.observations), dict[bytes, int]()
    for one, (arrival_us, _) in zip(case.observations, case.said_us, strict=False):
        first_us[message_id(one.message)] = min(arrival_us, first_us.get(message_id(one.message), arrival_us))
    waits = {one for one, sighted_us in first_us.items() if sighted_us >= max(before_us, END_US + 1)}
    for node, counts in zip(pathway.nodes, tabulate_seconds(pathway, tally.seconds, before_us), strict=True):
        lost = model.lost_at(node)
        messages = frozenset((model.expected(node) | model.seen(node)) - (lost & waits))
        expected = count_by_second(second_of, messages, frozenset(lost - waits))
        assert (None if counts is None else asdict(counts)) == expected


@given(windows())
def test_only_a_window_that_misses_messages_is_counted_by_second(case: Case) -> None:
    """Nothing is kept where all messages are where they are expected, so that a healthy window costs nothing."""
    tally, model = _tally(case, _one_by_one(case)), as_model(case.drawn, case.observations)
    assert (tally.seconds is None) == (not model.lost())
    stage = WindowStage("orders", 0, Status.FINAL, NEVER_US)
    nodes = conclude_window(
        case.drawn.product, stage, tally, complete_books(*"c" * len(case.drawn.product.nodes))
    ).nodes
    if all(offset_us is not None for _, offset_us in case.said_us):
        counts = tabulate_seconds(case.drawn.product, tally.seconds, NEVER_US)
        assert [sum(one.lost) if one else 0 for one in counts] == [node.loss for node in nodes]


@st.composite
def seconds(draw: st.DrawFn) -> SecondCounts:
    """Draw the counts of a node: quiet and busy seconds, some of which lose more than others."""
    messages = draw(st.lists(st.integers(0, 40), min_size=SECONDS, max_size=SECONDS))
    base, burst = draw(st.sampled_from([0.0, 0.02, 0.3])), draw(st.sampled_from([0.0, 0.1, 1.0]))
    start, length = draw(st.integers(0, SECONDS - 1)), draw(st.integers(1, SECONDS))
    ratios = [max(base, burst) if start <= second < start + length else base for second in range(SECONDS)]
    return SecondCounts(
        tuple(messages), tuple(round(count * ratio) for count, ratio in zip(messages, ratios, strict=True))
    )


@given(seconds())
def test_bursts_are_those_of_the_reference_model(counts: SecondCounts) -> None:
    """The model tries each run of seconds by itself; bursts do not overlap, and none begins or ends without a loss."""
    bursts = find_bursts(counts)
    assert [asdict(one) for one in bursts] == find_model_bursts({"messages": counts.messages, "lost": counts.lost})
    taken = [second for one in bursts for second in range(one.start_s, one.end_s)]
    assert len(taken) == len(set(taken))
    assert all(counts.lost[one.start_s] and counts.lost[one.end_s - 1] for one in bursts)


@given(st.lists(st.integers(0, 500), min_size=SECONDS, max_size=SECONDS), st.sampled_from([0, 1, 2]))
def test_a_loss_that_is_the_same_in_each_second_is_no_burst(messages: list[int], part: int) -> None:
    """None, half, or all of the messages of each second are missing: whenever they came, nothing stands out."""
    even = tuple(2 * count for count in messages)
    assert not find_bursts(SecondCounts(even, tuple(part * count // 2 for count in even)))


@given(st.integers(0, 59), st.integers(1, 30), st.integers(4, 50))
def test_an_outage_is_found_to_the_second(start: int, length: int, rate: int) -> None:
    """All messages of some seconds are missing, and none of the others: the burst begins and ends there."""
    end = min(SECONDS, start + length)
    lost = tuple(rate if start <= second < end else 0 for second in range(SECONDS))
    (found,) = find_bursts(SecondCounts((rate,) * SECONDS, lost))
    assert (found.start_s, found.end_s) == (start, end)
    assert (found.lost, found.other_lost) == (rate * (end - start), 0)
