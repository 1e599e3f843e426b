"""Laws of masks: grouping by sorting is grouping by a dict, whatever ids look like."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.masks import Groups, Ids
from hopwatch.probes.contract.ids import id_bytes


def _uuid1(number: int) -> bytes:
    return uuid.UUID(fields=(number, 0x1234, 0x11EF, 0x80, 0x01, 0x0242AC120002)).bytes


def _uuid7(number: int) -> bytes:
    return (0x0199_0000_0000_7000_8000_0000_0000_0000 | number).to_bytes(16)


def _halves(number: int) -> bytes:
    return (number % 3).to_bytes(8) + (number // 3 % 3).to_bytes(8, "little")


SMALL = st.integers(0, 300)
IDS = st.one_of(
    st.lists(SMALL.map(id_bytes)),
    st.lists(SMALL.map(_uuid1)),
    st.lists(SMALL.map(_uuid7)),
    st.lists(SMALL.map(_halves)),
    st.lists(st.binary(min_size=16, max_size=16)),
    st.lists(st.sampled_from([bytes(16), b"\x00" * 15 + b"\x01", b"\x7f\xf0" * 8, b"\xff" * 16])),
)
"""Small integers, UUIDs that share their beginning or their end, equal halves, any bytes, NaNs among them."""


def _as_dict(ids: Sequence[bytes]) -> dict[bytes, set[int]]:
    found = defaultdict(set)
    for place, message_id in enumerate(ids):
        found[message_id].add(place)
    return dict(found)


def _as_sets(groups: Groups, ids: Sequence[bytes]) -> dict[bytes, set[int]]:
    parts = np.split(groups.order, groups.starts[1:]) if len(groups.starts) else []
    assert sorted(groups.order.tolist()) == list(range(len(ids)))
    assert len({ids[part[0]] for part in parts}) == len(parts)
    return {ids[part[0]]: set(part.tolist()) for part in parts}


def _packed(ids: Sequence[bytes]) -> Ids:
    return masks.ids_from_bytes(b"".join(ids))


@given(IDS)
def test_grouping_is_grouping_by_a_dict(ids: list[bytes]) -> None:
    """Each id has one group, and in it are the places where the id stands."""
    assert _as_sets(masks.group_by_id(_packed(ids)), ids) == _as_dict(ids)


@given(IDS, st.integers(0, 64))
def test_ids_that_fold_alike_are_told_apart(ids: list[bytes], bits: int) -> None:
    """Groups are exact, however few bits the fold leaves to tell ids apart."""

    def fold(packed: Ids) -> np.ndarray:
        mixed = packed[:, 0] ^ packed[:, 1]
        return mixed & np.uint64(2**64 - 2 ** (64 - bits)) if bits else np.zeros_like(mixed)

    with patch.object(masks, "fold", fold):
        assert _as_sets(masks.group_by_id(_packed(ids)), ids) == _as_dict(ids)


@st.composite
def stamped(draw: st.DrawFn) -> tuple[int, list[tuple[bytes, int, int]]]:
    """Draw how many nodes there are, and observations: (id, node, code)."""
    nodes = draw(st.sampled_from([1, 4, 5, 8, 9, 16, 17, 33, 255]))
    observation = st.tuples(SMALL.map(_halves), st.integers(0, nodes - 1), st.integers(0, 15))
    return nodes, draw(st.lists(observation))


def _masks(nodes: int, observations: Sequence[tuple[bytes, int, int]]) -> dict[bytes, int]:
    """Return each id's mask as one whole number, by the kernel."""
    ids = [message_id for message_id, _, _ in observations]
    node_of, codes = (np.array([o[column] for o in observations], np.uint8) for column in (1, 2))
    groups = masks.group_by_id(_packed(ids))
    words = masks.build_masks(groups, codes, node_of, nodes)
    assert words.shape == (len(groups.starts), masks.mask_words(nodes))
    numbers = [sum(word << 64 * place for place, word in enumerate(row)) for row in words.tolist()]
    return {ids[groups.order[start]]: number for start, number in zip(groups.starts, numbers, strict=True)}


@given(stamped(), st.randoms(use_true_random=False))
def test_a_mask_is_all_that_was_stamped(drawn: tuple[int, list[tuple[bytes, int, int]]], order: object) -> None:
    """Four bits a node, or-ed together, in one word or in several; and the order of observations plays no part."""
    nodes, observations = drawn
    expected: dict[bytes, int] = {}
    for message_id, node, code in observations:
        expected[message_id] = expected.get(message_id, 0) | code << 4 * node
    assert _masks(nodes, observations) == expected
    order.shuffle(observations)  # type: ignore[attr-defined]
    assert _masks(nodes, observations) == expected


WORDS = st.integers(1, 3).flatmap(
    lambda width: st.tuples(
        st.just(width),
        st.lists(st.lists(st.sampled_from([0, 1, 5, 2**16 - 1, 2**16, 2**64 - 1]), min_size=width, max_size=width)),
    )
)


@given(WORDS)
def test_distinct_masks_and_whose_they_are(drawn: tuple[int, list[list[int]]]) -> None:
    """Each mask is listed once, in an order that depends on nothing else, and every message finds its own."""
    width, rows = drawn
    words = np.array(rows, np.uint64).reshape(-1, width)
    found, place = masks.find_distinct(words)
    assert found[place].tolist() == rows
    assert len(found) == len(set(map(tuple, rows)))
    assert found.tolist() == masks.find_distinct(words[::-1])[0].tolist()


@given(IDS, st.data())
def test_the_message_of_an_observation_is_the_group_that_holds_it(ids: list[bytes], data: st.DataObject) -> None:
    """Of any observations, in any order, each named once."""
    groups = masks.group_by_id(_packed(ids))
    wanted = data.draw(st.permutations(range(len(ids))).map(lambda order: order[: len(ids) // 2 + 1]))
    found = masks.find_messages(groups, np.array(wanted, np.int64))
    first = groups.order[groups.starts[found]]
    assert [ids[place] for place in first.tolist()] == [ids[place] for place in wanted]


@given(IDS, st.integers(1, 64))
def test_every_id_has_its_shard(ids: list[bytes], shards: int) -> None:
    """A shard lies within bounds, and equal ids share theirs."""
    shard = masks.shard_of(_packed(ids), shards).tolist()
    assert all(0 <= number < shards for number in shard)
    assert len(set(zip(ids, shard, strict=True))) == len(set(ids))


@given(IDS)
def test_byte_order_is_that_of_the_bytes(ids: list[bytes]) -> None:
    """Ids come out as Python sorts them."""
    order = masks.byte_order(_packed(ids))
    assert [ids[place] for place in order] == sorted(ids)
