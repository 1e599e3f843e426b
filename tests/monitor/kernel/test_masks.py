"""Tests of masks: examples that can be worked out by hand, and ids made to look alike."""

from __future__ import annotations

import numpy as np
import pytest

from hopwatch.monitor.kernel import masks
from hopwatch.probes.contract.ids import id_bytes


def _ids(*numbers: int) -> masks.Ids:
    return masks.ids_from_bytes(b"".join(map(id_bytes, numbers)))


def test_a_message_has_one_mask_of_all_its_stamps() -> None:
    """Of three messages at two nodes, each bit stands at its node's place."""
    ids = _ids(7, 8, 7, 9, 7)
    codes = np.array([masks.IN, masks.IN | masks.OUT, masks.OUT, masks.REJECTED, masks.FILTERED], np.uint8)
    node_of = np.array([0, 0, 0, 1, 1], np.uint8)
    groups = masks.group_by_id(ids)
    words = masks.build_masks(groups, codes, node_of, nodes=2)
    of_message = dict(
        zip(ids[groups.order[groups.starts]][:, 1].byteswap().tolist(), words[:, 0].tolist(), strict=True)
    )
    assert of_message == {7: 0b0100_0011, 8: 0b0000_0011, 9: 0b1000_0000}


def test_nothing_observed_has_no_masks() -> None:
    """No groups, no words, nothing distinct."""
    groups = masks.group_by_id(_ids())
    words = masks.build_masks(groups, np.zeros(0, np.uint8), np.zeros(0, np.uint8), nodes=20)
    assert (len(groups.order), len(groups.starts), words.shape) == (0, 0, (0, 2))
    assert [part.tolist() for part in masks.find_distinct(words)] == [[], []]


def test_runs_of_one_prefix_are_sorted_by_the_ids_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fold of zeros all ids collide: three messages whose observations are mixed come apart."""
    monkeypatch.setattr(masks, "fold", lambda ids: np.zeros(len(ids), np.uint64))
    groups = masks.group_by_id(_ids(3, 1, 3, 2, 1, 3))
    found = [sorted(part.tolist()) for part in np.split(groups.order, groups.starts[1:])]
    assert sorted(found) == [[0, 2, 5], [1, 4], [3]]


def test_only_the_run_that_mixes_ids_is_sorted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collision in one run leaves the runs before and behind it as they are."""
    upper = np.uint64(1 << 60)
    monkeypatch.setattr(masks, "fold", lambda ids: np.minimum(ids[:, 1].byteswap(), np.uint64(2)) * upper)
    groups = masks.group_by_id(_ids(0, 9, 1, 2, 0, 9, 1, 2))
    assert np.split(groups.order, groups.starts[1:])[0].tolist() == [0, 4]
    found = [part.tolist() for part in np.split(groups.order, groups.starts[1:])]
    assert found[:2] == [[0, 4], [2, 6]]
    assert sorted(found[2:]) == [[1, 5], [3, 7]]


WORDS = {0: 0, 1: 1, 15: 1, 16: 1, 17: 2, 32: 2, 33: 3, 255: 16}


@pytest.mark.parametrize(("nodes", "words"), WORDS.items())
def test_sixteen_nodes_fill_a_word(nodes: int, words: int) -> None:
    """Pathways with more nodes use more words."""
    assert masks.mask_words(nodes) == words


@pytest.mark.parametrize("nodes", [1, 4, 5, 8, 9, 16, 17, 20, 21, 32, 255])
def test_each_node_has_its_place(nodes: int) -> None:
    """One message at every node, coded by the node's number, is told back node by node, whatever the width."""
    node_of = np.arange(nodes, dtype=np.uint8)
    codes = (node_of % 15 + 1).astype(np.uint8)
    words = masks.build_masks(masks.group_by_id(_ids(*[4] * nodes)), codes, node_of, nodes)
    for bit in (masks.IN, masks.OUT, masks.FILTERED, masks.REJECTED):
        assert masks.has_bit(words, bit, nodes).tolist() == [[bool(code & bit) for code in codes.tolist()]]


LOOKS = {
    "small integers": [number.to_bytes(16) for number in range(1 << 14)],
    "integers, the other way round": [number.to_bytes(16, "little") for number in range(1 << 14)],
    "one prefix, as UUIDv7 of one moment": [b"\x01\x99" + bytes(10) + n.to_bytes(4) for n in range(1 << 14)],
    "one suffix, as UUIDv1 of one host": [n.to_bytes(4) + b"\x12\x34\x11\xef" + bytes(8) for n in range(1 << 14)],
    "both halves alike": [number.to_bytes(8) * 2 for number in range(1 << 14)],
    "partition and offset": [(n % 16).to_bytes(8) + (n // 16).to_bytes(8) for n in range(1 << 14)],
    "two numbers, little-endian": [(n % 128).to_bytes(8, "little") + (n // 128).to_bytes(8) for n in range(1 << 14)],
}


@pytest.mark.parametrize("looks", LOOKS.values(), ids=LOOKS)
def test_shards_are_of_about_one_size(looks: list[bytes]) -> None:
    """Of 16,384 ids each of 16 shards has 1,024 give or take five standard deviations, whatever the ids look like."""
    sizes = np.bincount(masks.shard_of(masks.ids_from_bytes(b"".join(looks)), 16).astype(np.int64), minlength=16)
    assert len(sizes) == 16
    assert np.abs(sizes - 1_024).max() < 5 * np.sqrt(1_024 * 15 / 16)


@pytest.mark.parametrize("looks", LOOKS.values(), ids=LOOKS)
def test_no_two_of_many_ids_fold_alike(looks: list[bytes]) -> None:
    """Sixteen thousand ids of one kind have as many folds: a collision is an accident, no habit."""
    folds = masks.fold(masks.ids_from_bytes(b"".join(looks)))
    assert len(np.unique(folds)) == len(looks)


def test_grouping_leaves_the_ids_alone() -> None:
    """Ids are grouped in memory that cannot be written to, and stay as they are."""
    ids = _ids(1, 2, 1)
    masks.group_by_id(ids)
    assert not ids.flags.writeable
    assert ids.tobytes() == b"".join(map(id_bytes, (1, 2, 1)))
