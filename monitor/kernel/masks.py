"""Masks: the stamps of each message at each node, built by one sort.

A mask holds four bits a node, so 16 nodes fill one 64-bit word; pathways with more nodes use more words. Each set of
SEMANTICS.md but ``deferred(N)`` is a function of a mask, and so a window's millions of messages shrink to a few
distinct masks with counts.

Method: sort (prefix of a 64-bit fold of the id, index of the observation), packed into 64 bits, so that no argsort is
needed; then compare the ids themselves inside each run of equal prefixes and sort the runs that mix ids once more.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

IN: Final = 1
OUT: Final = 2
FILTERED: Final = 4
REJECTED: Final = 8
BITS_PER_NODE: Final = 4
NODES_PER_WORD: Final = 64 // BITS_PER_NODE

MAX_CELLS: Final = 1 << 20
"""Pairs of mask and sighting that are counted in a table; more of them are sorted."""

_MIX_FIRST: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_BOTH: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_MIX_LAST: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF_BITS: Final = np.uint64(32)
_FEW_MASKS: Final = 1 << 16

Ids = NDArray[np.uint64]
"""Message ids, shape (n, 2): the first and the last eight bytes, each read little-endian."""


class Groups(NamedTuple):
    """Observations brought together by message id.

    ``order`` holds the indexes of the observations, one message's after the other's, shape (observations,);
    ``starts`` where each message begins in it, shape (messages,).
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]


def ids_from_bytes(packed: bytes | NDArray[np.uint8]) -> Ids:
    """Return the ids in a packed field of 16 bytes each, without a copy; shape (n, 2)."""
    return np.frombuffer(packed, "<u8").reshape(-1, 2)


def fold(ids: Ids) -> NDArray[np.uint64]:
    """Return 64 well-mixed bits for each id, shape (n,); all 16 bytes take part: no part of an id varies surely."""
    mixed = ids[:, 0] * _MIX_FIRST
    # The one half is mixed before the other joins it: pairs of small numbers would meet in the highest bits else.
    mixed ^= mixed >> _HALF_BITS
    mixed ^= ids[:, 1]
    mixed *= _MIX_BOTH
    mixed ^= mixed >> _HALF_BITS
    mixed *= _MIX_LAST
    return mixed


def shard_of(ids: Ids, shards: int) -> NDArray[np.uint64]:
    """Return the shard, 0 … shards - 1, that each id belongs to; shape (n,)."""
    return ((fold(ids) & np.uint64(0xFFFFFFFF)) * np.uint64(shards)) >> _HALF_BITS


def group_by_id(ids: Ids) -> Groups:
    """Bring equal ids together; equal means all 16 bytes. Shape of ``ids``: (observations, 2)."""
    count = len(ids)
    if count == 0:
        return Groups(np.empty(0, np.int64), np.empty(0, np.int64))
    index_bits = np.uint64(max(1, (count - 1).bit_length()))
    keys = fold(ids)
    keys >>= index_bits
    keys <<= index_bits
    keys |= np.arange(count, dtype=np.uint64)
    keys.sort()
    order = (keys & ((np.uint64(1) << index_bits) - np.uint64(1))).view(np.int64)
    keys >>= index_bits
    new_prefix = keys[1:] != keys[:-1]
    new_id = _differs(_gather_ids(ids, order))
    if np.array_equal(new_id, new_prefix):
        return Groups(order, _starts(new_prefix))
    return _separate(ids, order, _starts(new_prefix), np.flatnonzero(new_id & ~new_prefix) + 1)


def find_observations(groups: Groups, messages: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each observation of some messages, given by their places, which of them it is of, and its index."""
    ends = np.append(groups.starts[1:], len(groups.order))
    sizes = ends[messages] - groups.starts[messages]
    first = np.cumsum(sizes) - sizes
    within = np.arange(int(sizes.sum())) - np.repeat(first, sizes)
    which = np.repeat(np.arange(len(messages)), sizes)
    return which, groups.order[np.repeat(groups.starts[messages], sizes) + within]


def find_messages(groups: Groups, observations: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of the message of each of a few observations, none of which is named twice."""
    is_wanted = np.zeros(len(groups.order), bool)
    is_wanted[observations] = True
    at = np.flatnonzero(is_wanted.take(groups.order, mode="clip"))
    order = np.argsort(groups.order[at])
    of_message = np.searchsorted(groups.starts, at, "right") - 1
    found = np.empty(len(observations), np.int64)
    found[np.argsort(observations)] = of_message[order]
    return found


def _gather_ids(ids: Ids, order: NDArray[np.int64]) -> Ids:
    """Return ids in order. As items of 16 bytes that numpy knows, of which the values do not matter: twice as fast."""
    return ids.view(np.complex128).reshape(-1).take(order, mode="clip").view(np.uint64).reshape(-1, 2)


def _differs(ordered: Ids) -> NDArray[np.bool_]:
    """Return whether each id differs from the one before it; two comparisons of columns beat one of rows."""
    differs = ordered[1:, 0] != ordered[:-1, 0]
    differs |= ordered[1:, 1] != ordered[:-1, 1]
    return np.asarray(differs)


def _starts(is_new: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.concatenate((np.zeros(1, np.int64), np.flatnonzero(is_new) + 1))


def _separate(ids: Ids, order: NDArray[np.int64], runs: NDArray[np.int64], mixed_at: NDArray[np.int64]) -> Groups:
    """Sort the runs of equal prefix that hold different ids once more, by the ids themselves.

    ``runs`` says where each run begins, ``mixed_at`` where the id changes inside one.
    """
    order = order.copy()
    ends = np.append(runs[1:], len(order))
    starts = [runs]
    for run in np.unique(np.searchsorted(runs, mixed_at, side="right") - 1):
        of_run = order[runs[run] : ends[run]]
        of_run = of_run[np.lexsort((of_run, ids[of_run, 1], ids[of_run, 0]))]
        order[runs[run] : ends[run]] = of_run
        starts.append(runs[run] + np.flatnonzero(_differs(ids[of_run])) + 1)
    return Groups(order, np.sort(np.concatenate(starts)))


def mask_words(nodes: int) -> int:
    """Return how many 64-bit words a mask over so many nodes takes."""
    return -(-nodes // NODES_PER_WORD)


def build_masks(groups: Groups, codes: NDArray[np.uint8], node_of: NDArray[np.uint8], nodes: int) -> NDArray[np.uint64]:
    """Return each message's mask, shape (messages, words): its observations' codes, or-ed at their node's place.

    ``codes`` holds the four bits of each observation, ``node_of`` the number of its node: both of shape
    (observations,).
    """
    words = np.zeros((len(groups.starts), mask_words(nodes)), np.uint64)
    if not len(groups.starts):
        return words
    for word in range(words.shape[1]):
        first = word * NODES_PER_WORD
        narrow = _narrowest(min(nodes - first, NODES_PER_WORD))
        bits: NDArray[Any] = codes.astype(narrow)
        if nodes > NODES_PER_WORD:
            bits[(node_of < first) | (node_of >= first + NODES_PER_WORD)] = 0
        bits <<= ((node_of - np.uint8(first)) % np.uint8(NODES_PER_WORD) * np.uint8(BITS_PER_NODE)).astype(narrow)
        words[:, word] = np.bitwise_or.reduceat(bits[groups.order], groups.starts)
    return words


def _narrowest(nodes: int) -> type[np.uint16 | np.uint32 | np.uint64]:
    """Return the smallest type that holds the bits of so many nodes: the gather's cost goes with its width."""
    bits = nodes * BITS_PER_NODE
    if bits <= np.iinfo(np.uint16).bits:
        return np.uint16
    return np.uint32 if bits <= np.iinfo(np.uint32).bits else np.uint64


def find_distinct(words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the distinct masks, shape (distinct, words), and for each message the place of its own among them."""
    if words.shape[1] == 1 and words.max(initial=0) < _FEW_MASKS:
        # So few can be told apart by a table, an order of magnitude faster than by a sort.
        narrow = words[:, 0].astype(np.int64)
        found = np.flatnonzero(np.bincount(narrow, minlength=1))
        table = np.zeros(_FEW_MASKS, np.int64)
        table[found] = np.arange(len(found))
        return found.astype(np.uint64)[:, None], table[narrow]
    if words.shape[1] == 1:
        single, place = np.unique(words[:, 0], return_inverse=True)
        return single[:, None], place.astype(np.int64)
    several, place = np.unique(words, axis=0, return_inverse=True)
    return several, place.reshape(-1).astype(np.int64)


def count_rows(
    distinct: NDArray[np.uint64],
    place: NDArray[np.int64],
    moments_us: NDArray[np.int64],
    moment: NDArray[Any],
    counts: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    """Count by mask and sighting: return the masks, counts and sightings of the rows, in one order for all inputs."""
    cell = place * len(moments_us) + moment
    if len(distinct) * len(moments_us) <= MAX_CELLS:
        cells = np.bincount(cell, counts, len(distinct) * len(moments_us)).astype(np.int64)
        filled = np.flatnonzero(cells)
        found = cells[filled]
    else:
        filled, which = np.unique(cell, return_inverse=True)
        found = np.bincount(which, counts).astype(np.int64)
    mask, sighting = np.divmod(filled, max(1, len(moments_us)))
    return distinct[mask], found, moments_us[sighting]


def has_bit(words: NDArray[np.uint64], bit: int, nodes: int) -> NDArray[np.bool_]:
    """Return whether each mask has ``bit`` at each node; shape (masks, nodes)."""
    node = np.arange(nodes)
    shifts = ((node % NODES_PER_WORD) * BITS_PER_NODE).astype(np.uint64)
    return np.asarray((words[:, node // NODES_PER_WORD] >> shifts) & np.uint64(bit), bool)


def byte_order(ids: Ids) -> NDArray[np.int64]:
    """Return the indexes that put ids into the order of their bytes; shape (n,)."""
    big_endian = ids.byteswap()
    return np.lexsort((big_endian[:, 1], big_endian[:, 0]))
