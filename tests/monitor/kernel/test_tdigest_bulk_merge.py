"""Tests of stored digests merged at once: what reading and merging them one by one makes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.centroids import DigestError
from hopwatch.monitor.kernel.tdigest import Digest, build, from_bytes, merge, to_bytes
from hopwatch.monitor.kernel.tdigest_bulk_merge import merge_stored

INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES = st.lists(st.one_of(st.integers(-300, 300), st.integers(0, 10**8), INT64), max_size=12)
SEEDS = st.integers(0, 2**32 - 1)


def one_by_one(groups: list[list[bytes]]) -> list[Digest]:
    """Return the merge of each group the slow way."""
    return [merge([from_bytes(data) for data in group]) for group in groups]


def same(found: list[Digest], expected: list[Digest]) -> bool:
    """Return whether digests are the same to the byte."""
    return [to_bytes(one) for one in found] == [to_bytes(one) for one in expected]


@given(st.lists(st.lists(VALUES, max_size=4), max_size=4))
def test_any_digests_merge_as_one_by_one(values: list[list[list[int]]]) -> None:
    """Empty ones and empty groups, of one value, negative, and as far apart as 64 bits are."""
    groups = [[to_bytes(build(np.array(one, np.int64))) for one in group] for group in values]
    assert same(merge_stored(groups), one_by_one(groups))


@given(SEEDS, st.integers(1, 40), st.integers(1, 3_000))
def test_great_digests_merge_as_one_by_one(seed: int, parts: int, count: int) -> None:
    """With centroids of weight 1 and of more, and digests that were merged before."""
    dice = np.random.default_rng(seed)
    built = [build((dice.lognormal(size=dice.integers(0, count)) * 50_000).astype(np.int64)) for _ in range(parts)]
    groups = [[to_bytes(one) for one in built], [to_bytes(merge(built)), to_bytes(built[0])], []]
    assert same(merge_stored(groups), one_by_one(groups))


def test_means_that_are_not_whole_merge_too() -> None:
    """Digests with fractional means merge as they do one by one."""
    halves = tdigest.from_dict({"centroids": [{"m": 0.5, "c": 2}, {"m": 7.25, "c": 1}]})
    groups = [[to_bytes(halves), to_bytes(build(np.arange(9)))]]
    assert same(merge_stored(groups), one_by_one(groups))


GOOD = to_bytes(build(np.arange(0, 4_000, 3)))


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (b"\x01", "the head alone is 4 bytes, got 1"),
        (b"\x02" + GOOD[1:], "got version 2 and form"),
        (GOOD[:1] + b"\x07" + GOOD[2:], "got version 1 and form 7"),
        (GOOD[:-1], "are"),
        (GOOD + b"\x01", "numbers, got"),
        (GOOD[:-1] + b"\x80", "it breaks off within a number"),
        (b"\x01\x01\x02\x00\x00\x02\x00" + b"\xff" * 9 + b"\x01", "its means"),
        (b"\x01\x01\x01\x00\x00\x02\x08", "outside 0 to 1"),
        (b"\x01\x00\x01\x00\x00\x02\x00" + b"\xff" * 8 + b"\x7f", "its weights"),
    ],
)
def test_bytes_of_no_digest_are_told(bad: bytes, told: str) -> None:
    """Among good ones, in the words of whoever reads one."""
    with pytest.raises(DigestError, match=told):
        merge_stored([[GOOD], [GOOD, bad, GOOD]])


@given(st.binary(max_size=24))
def test_any_bytes_are_read_or_refused_as_one_by_one(data: bytes) -> None:
    """A damaged store says the same either way."""
    groups = [[GOOD, b"\x01" + data]]
    assert told(merge_stored, groups) == told(one_by_one, groups)


def told(merge_all: Callable[[list[list[bytes]]], list[Digest]], groups: list[list[bytes]]) -> list[bytes] | str:
    """Return what is made of groups, or why nothing is."""
    try:
        return [to_bytes(one) for one in merge_all(groups)]
    except DigestError as error:
        return str(error)
