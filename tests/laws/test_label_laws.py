"""Laws of counts by label: they split the sets of the page, and order, batching and sharding change nothing."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.label_table import tabulate_labels
from hopwatch.monitor.kernel.labels import Labels
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.tally import NEVER_US, Tally, build_tally, merge_tallies
from hopwatch.monitor.kernel.verdict import WindowStage, conclude_window
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.payloads import pack_tally, unpack_tally
from hopwatch.monitor.results import LabelCounts, LabelValueKind, NodeResult, Status
from tests.laws.strategies import DrawnPathway, SeenMessage, message_id, pathways, seen_messages
from tests.model.sets import AtNode
from tests.support.batch_arrays import complete_books, make_batch, passed_batch

END_US: Final = 60
LABELS: Final = st.sampled_from(
    [(), (("host", "a"),), (("host", "b"),), (("host", "b"), ("zone", "\0")), (("host", "a"), ("zone", "<b>"))]
)


class Case(NamedTuple):
    """A pathway, what was seen on it, with which labels, and when it arrived, µs; the window ends at 60."""

    drawn: DrawnPathway
    observations: list[SeenMessage]
    said: list[tuple[Labels, int]]


@st.composite
def windows(draw: st.DrawFn) -> Case:
    """Draw a window some of whose batches have labels."""
    drawn = draw(pathways())
    observations = draw(seen_messages(drawn.product))
    said = st.lists(st.tuples(LABELS, st.sampled_from([1, 61, 75])), min_size=len(observations))
    return Case(drawn, observations, draw(said))


def _batch(observations: list[SeenMessage], labels: Labels, arrival_us: int) -> ObservedBatch:
    says = [one.says for one in observations]
    lags = [one.lag_in_us for one in says], [one.lag_out_us for one in says]
    ids = [message_id(one.message) for one in observations]
    batch = make_batch(observations[0].node, ids, *lags, [one.outcome for one in says], arrival_us)
    return batch._replace(labels=labels)


def _one_by_one(case: Case) -> list[ObservedBatch]:
    return [_batch([one], *said) for one, said in zip(case.observations, case.said, strict=False)]


def _tally(case: Case, batches: list[ObservedBatch]) -> Tally:
    return build_tally(case.drawn.product, batches, END_US)


def _judge(case: Case, tally: Tally, before_us: int = NEVER_US) -> list[tuple[NodeResult, tuple[LabelCounts, ...]]]:
    pathway = case.drawn.product
    stage = WindowStage("orders", 0, Status.FINAL, before_us)
    nodes = conclude_window(pathway, stage, tally, complete_books(*"c" * len(pathway.nodes))).nodes
    tables = tabulate_labels(pathway, tally, nodes, before_us, is_final=True)
    return list(zip(nodes, tables, strict=True))


def _leave_out_slow(
    told: list[tuple[NodeResult, tuple[LabelCounts, ...]]],
) -> list[tuple[NodeResult, list[LabelCounts]]]:
    return [
        (node, [replace(row, departures=None, slow=None, slow_dispersion=None) for row in rows]) for node, rows in told
    ]


@given(windows(), st.data())
def test_order_and_batching_change_nothing(case: Case, data: st.DataObject) -> None:
    """Observations of one node, arrival and labels may share a batch or not, in any order: equal to the byte."""
    parts: dict[tuple[int, Labels, int, int], list[SeenMessage]] = defaultdict(list)
    for place in data.draw(st.permutations(range(len(case.observations)))):
        one = case.observations[place]
        parts[one.node, *case.said[place], data.draw(st.integers(0, 2))].append(one)
    batches = [_batch(part, labels, arrival_us) for (_, labels, arrival_us, _), part in parts.items()]
    packed = pack_tally(_tally(case, batches))
    assert packed == pack_tally(_tally(case, _one_by_one(case)))
    assert pack_tally(unpack_tally(packed)) == packed


@given(windows(), st.integers(1, 4), st.sampled_from([61, 62, NEVER_US]))
def test_shards_that_are_merged_are_the_whole(case: Case, shards: int, before_us: int) -> None:
    """Messages shared out by a hash of their ids give the same rows, in whatever order shards are merged.

    But for what is slow, which goes by the p95 of each shard.
    """
    batches = _one_by_one(case)
    of_shard = [[one for one in batches if masks.shard_of(one.message_ids, shards)[0] == s] for s in range(shards)]
    parts = [_tally(case, part) for part in of_shard]
    expected = _judge(case, _tally(case, batches), before_us)
    merged = _judge(case, merge_tallies(parts), before_us)
    assert _leave_out_slow(merged) == _leave_out_slow(expected)
    assert _judge(case, merge_tallies(parts[::-1]), before_us) == merged


@given(windows())
def test_departures_by_value_add_up(case: Case) -> None:
    """Rows of a label that a node says have each departure once, and the slow ones are those of at least the p95."""
    batches = _one_by_one(case)
    for node, (result, rows) in enumerate(_judge(case, _tally(case, batches))):
        lags = result.lag_out_us
        own = [batch for batch in batches if batch.node == node]
        departed_us: dict[tuple[str, str], list[int]] = defaultdict(list)
        for one, (labels, _) in zip(case.observations, case.said, strict=False):
            if one.node == node:
                at = AtNode()
                at.add(one.says, one_sided=result.node in case.drawn.model.one_sided)
                for pair in labels:
                    departed_us[pair] += at.lags_out_us
        for label in {row.label for row in rows if row.said_at == result.node}:
            of_label = [row for row in rows if (row.label, row.said_at) == (label, result.node)]
            counts = [row.departures for row in of_label if row.departures is not None]
            slow = [row.slow for row in of_label if row.slow is not None]
            assert len(counts) == len(slow) == len(of_label)
            with_value = sum(label in dict(batch.labels) for batch in own)
            assert sum(counts) <= (lags.count if lags else 0)
            assert sum(count for row, count in zip(of_label, counts, strict=True) if row.value) <= with_value
            assert (sum(slow) > 0) <= (lags is not None)
            for row in (row for row in of_label if row.kind is LabelValueKind.VALUE):
                departed = departed_us[label, row.value]
                assert row.departures == len(departed)
                assert row.slow == sum(lags is not None and lag_us >= lags.p95 for lag_us in departed)
        assert all(row.slow is None and row.departures is None for row in rows if row.said_at != result.node)


@given(windows(), st.sampled_from([61, 62, NEVER_US]))
def test_rows_split_the_node_and_no_more(case: Case, before_us: int) -> None:
    """No row has more than its node, and each message that a node saw is in a row of each label that it says there.

    The messages of a row are those of its node and what is in flight there.

    Surely lost is no more in a row than at the node, and where all that is missing is surely lost, all of a row is.
    """
    for node, rows in _judge(case, _tally(case, _one_by_one(case)), before_us):
        for row in rows:
            assert row.expected_or_seen <= node.expected_or_seen + node.in_flight
            assert row.filtered <= node.filtered
            assert row.rejected <= node.rejected
            assert row.loss <= node.loss
            assert row.in_flight <= node.in_flight
            assert node.loss_lower - (node.loss - row.loss) <= row.loss_lower <= min(row.loss, node.loss_lower)
            assert row.loss < node.loss or row.loss_lower == node.loss_lower
        for label in {row.label for row in rows if row.said_at == node.node}:
            own = [row for row in rows if (row.said_at, row.label) == (node.node, label)]
            assert sum(row.expected_or_seen for row in own) >= node.seen
            assert sum(row.filtered for row in own) >= node.filtered
            assert sum(row.rejected for row in own) >= node.rejected


@given(windows())
def test_rows_add_up_where_each_message_has_one_value(case: Case) -> None:
    """If all batches of a node have the same labels, its rows add up to what it saw."""
    same: Labels = (("host", "a"),)
    said = [(same, arrival_us) for _, arrival_us in case.said]
    for node, rows in _judge(case, _tally(case, _one_by_one(case._replace(said=said)))):
        own = [row for row in rows if row.said_at == node.node]
        assert [row.kind for row in own] == [LabelValueKind.VALUE] * (node.seen > 0)
        assert sum(row.expected_or_seen for row in own) == node.seen
        assert sum(row.filtered + row.rejected for row in own) == node.filtered + node.rejected


@given(windows())
def test_without_labels_there_is_nothing(case: Case) -> None:
    """No batch with a label: no table, and the tally is as it would be without any of this."""
    tally = _tally(case, _one_by_one(case._replace(said=[((), 1)] * len(case.observations))))
    assert tally.labels is None
    assert all(not rows for _, rows in _judge(case, tally))


@given(st.lists(st.tuples(LABELS, st.integers(0, 3)), min_size=1, max_size=9), st.data())
def test_a_message_that_comes_again_with_its_labels_changes_nothing(
    said: list[tuple[Labels, int]], data: st.DataObject
) -> None:
    """One node, and messages that all came once: the same counts as if some of them had come again."""
    numbers = iter(range(27))
    batches = [
        passed_batch(0, [message_id(next(numbers)) for _ in range(count)])._replace(labels=labels)
        for labels, count in said
    ]
    again = data.draw(st.lists(st.sampled_from(batches), min_size=1))
    pathway = Pathway.parse("a")
    once, twice = (build_tally(pathway, some, END_US).labels for some in (batches, [*batches, *again]))
    assert (once is None) == (twice is None)
    if once is not None and twice is not None:
        assert once.keys == twice.keys
        assert all(np.array_equal(one, other) for one, other in zip(once[1:], twice[1:], strict=True))
