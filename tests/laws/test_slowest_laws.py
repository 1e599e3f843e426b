"""Laws of the slowest messages: they are those of a plain sort, whatever the order, the batches and the shards."""

from __future__ import annotations

from typing import Final

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hopwatch.monitor.kernel import masks, naming, slowest
from hopwatch.monitor.kernel.masks import Ids
from hopwatch.monitor.kernel.slowest import MAX_SLOWEST_IDS, Slowest
from tests.support.examples import examples

Departures = list[tuple[int, bytes]]

LAGS: Final = st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 7, 2**63 - 1]) | st.integers(-(2**63), 2**63 - 1)
IDS: Final = st.sampled_from([bytes(16), bytes(15) + b"\1", b"\1" + bytes(15), b"\xff" * 16]) | st.binary(
    min_size=16, max_size=16
)
FEW: Final = st.lists(st.tuples(LAGS, IDS), max_size=40)


@st.composite
def many(draw: st.DrawFn) -> Departures:
    """Draw thousands of departures: few or many lags, few or many messages, ids that differ in either half alone."""
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.integers(1_000, 12_000))
    lags_us = chance.integers(0, draw(st.sampled_from([1, 2, 5, 300, 2**40])), count)
    numbers = chance.integers(0, draw(st.sampled_from([1, 3, 6, 200, 2**60])), count)
    shift = draw(st.sampled_from([0, 64]))
    if draw(st.booleans()):
        lags_us.sort()
    return [
        (lag_us, (number << shift).to_bytes(16))
        for lag_us, number in zip(*map(np.ndarray.tolist, (lags_us, numbers)), strict=True)
    ]


def _expected(departures: Departures) -> list[tuple[int, bytes]]:
    greatest: dict[bytes, int] = {}
    for lag_us, message_id in departures:
        greatest[message_id] = max(lag_us, greatest.get(message_id, lag_us))
    ranked = sorted((-lag_us, message_id) for message_id, lag_us in greatest.items())
    return [(-lag_us, message_id) for lag_us, message_id in ranked[:MAX_SLOWEST_IDS]]


def _arrays(departures: Departures) -> tuple[np.ndarray, Ids]:
    return np.array([lag_us for lag_us, _ in departures], np.int64), masks.ids_from_bytes(
        b"".join(one for _, one in departures)
    )


def _found(departures: Departures) -> list[tuple[int, bytes]]:
    lags_us, ids = _arrays(departures)
    rows, slow_us = slowest.find_slowest(lags_us, ids)
    return [(lag_us, ids[row].tobytes()) for lag_us, row in zip(slow_us.tolist(), rows, strict=True)]


@given(FEW)
@example([])
def test_few_are_those_of_a_plain_sort(departures: Departures) -> None:
    """By their greatest lag, then in byte order of their ids, each message once, whatever 64 bits hold."""
    assert _found(departures) == _expected(departures)


@settings(max_examples=examples(150))
@given(many())
def test_many_are_those_of_a_plain_sort(departures: Departures) -> None:
    """Also where thousands are equally slow, where one message departs thousands of times, and where lags rise."""
    assert _found(departures) == _expected(departures)


@settings(max_examples=examples(60))
@given(FEW | many(), st.integers(0, 2**32))
def test_order_changes_nothing_and_rows_are_looked_up(departures: Departures, seed: int) -> None:
    """Departures may come in any order, and their messages stand in any rows among those of others."""
    chance = np.random.default_rng(seed)
    lags_us, ids = _arrays(departures)
    order = chance.permutation(len(departures))
    rows = np.sort(chance.permutation(2 * len(departures))[: len(departures)])
    every = np.full((2 * len(departures), 2), 2**64 - 1, np.uint64)
    every[rows] = ids[order]
    found, slow_us = slowest.find_slowest(lags_us[order], every, rows)
    told = [(lag_us, every[row].tobytes()) for lag_us, row in zip(slow_us.tolist(), found.tolist(), strict=True)]
    assert told == _expected(departures)
    assert set(found.tolist()) <= set(rows.tolist())


@given(FEW, st.integers(1, 4), st.randoms())
def test_shards_merge_to_the_whole(departures: Departures, shards: int, chance: object) -> None:
    """Messages shared out by a hash of their ids, and the shards merged in any order, are as slow as without."""
    parts: list[Departures] = [[] for _ in range(shards)]
    for lag_us, message_id in departures:
        parts[int(masks.shard_of(masks.ids_from_bytes(message_id), shards)[0])].append((lag_us, message_id))
    merged = slowest.merge_slowest([_kept(part) for part in parts[:: chance.choice([1, -1])]])  # type: ignore[attr-defined]
    ids = [one.tobytes() for one in merged.message_ids]
    assert list(zip(merged.lag_us.tolist(), ids, strict=True)) == _expected(departures)


def _kept(departures: Departures) -> Slowest:
    lags_us, ids = _arrays(departures)
    rows, slow_us = slowest.find_slowest(lags_us, ids)
    return Slowest(ids[rows], slow_us, naming.unknown_names(len(rows)))
