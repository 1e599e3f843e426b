"""Observations as the arrays of batches, which is how the kernel takes them, and books; in a shorthand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.bounds import NodeBooks
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.tally import instance_name
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.contract.limits import NOT_STAMPED


def make_batch(
    node: int,
    ids: Sequence[bytes],
    lags_in_us: Sequence[int | None] = (),
    lags_out_us: Sequence[int | None] = (),
    outcomes: Sequence[int] = (),
    arrival_us: int = 0,
) -> ObservedBatch:
    """Return a batch of one node; a column that says nothing is left empty, as on the wire."""
    return ObservedBatch(
        node,
        instance_name(str(node), f"p{node}", 0),
        arrival_us,
        masks.ids_from_bytes(b"".join(ids)),
        _lags(lags_in_us),
        _lags(lags_out_us),
        np.array(outcomes if any(outcomes) else (), np.uint8),
    )


def passed_batch(node: int, ids: Sequence[bytes], arrival_us: int = 0) -> ObservedBatch:
    """Return a batch of messages that passed the node, in after 10 µs and out after 30 µs."""
    return make_batch(node, ids, [10] * len(ids), [30] * len(ids), arrival_us=arrival_us)


def stopped_batch(node: int, ids: Sequence[bytes], outcome: Outcome) -> ObservedBatch:
    """Return a batch of messages that came in and were filtered or rejected."""
    return make_batch(node, ids, [10] * len(ids), outcomes=[outcome] * len(ids))


def _lags(lags_us: Sequence[int | None]) -> np.ndarray:
    if all(lag is None for lag in lags_us):
        return np.empty(0, np.int64)
    return np.array([NOT_STAMPED if lag is None else lag for lag in lags_us], np.int64)


def message_batches(*ways: str, arrival_us: int = 0) -> list[ObservedBatch]:
    """Return what was seen of messages 1, 2, 3 …, each given by one word a node.

    ``io if -``: in and out at the first node, in and filtered at the second, nothing at the third; r is rejected.
    """
    batches = []
    for number, way in enumerate(ways, 1):
        for node, said in enumerate(way.split()):
            outcome = Outcome.FILTERED if "f" in said else Outcome.REJECTED if "r" in said else Outcome.PASSED
            stamps = ([10 if "i" in said else None], [30 if "o" in said else None])
            if said != "-":
                batches.append(make_batch(node, [id_bytes(number)], *stamps, [outcome], arrival_us))
    return batches


def complete_books(*nodes: str) -> NodeBooks:
    """Return a window's books, one word a node, one letter an instance.

    c: complete, d: told, but dropped 3, h: heard, with a hole, s: silent, not heard, but with a say; - for none. An a
    stands for 3 implausible observations, a u for 3 of undeclared nodes.
    """
    columns = (
        [sum(letter in kinds for letter in node) * each for node in nodes]
        for kinds, each in (("cdhs", 1), ("cdh", 1), ("cd", 1), ("c", 1), ("d", 3), ("a", 3), ("u", 3))
    )
    return NodeBooks(*(np.array(column, np.int64) for column in columns))
