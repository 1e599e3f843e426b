"""Observations as the arrays of batches, which is how the kernel takes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from monitor.kernel import masks
from monitor.kernel.tally import Observed
from probes.contract.batch import Outcome
from probes.contract.limits import NOT_STAMPED


def batch(
    node: int,
    ids: Sequence[bytes],
    lags_in_us: Sequence[int | None] = (),
    lags_out_us: Sequence[int | None] = (),
    outcomes: Sequence[int] = (),
    arrival_us: int = 0,
) -> Observed:
    """Return a batch of one node; a column that says nothing is left empty, as on the wire."""
    return Observed(
        node,
        arrival_us,
        masks.ids_of(b"".join(ids)),
        _lags(lags_in_us),
        _lags(lags_out_us),
        np.array(outcomes if any(outcomes) else (), np.uint8),
    )


def passed(node: int, ids: Sequence[bytes], arrival_us: int = 0) -> Observed:
    """Return a batch of messages that passed the node, in after 10 µs and out after 30 µs."""
    return batch(node, ids, [10] * len(ids), [30] * len(ids), arrival_us=arrival_us)


def stopped(node: int, ids: Sequence[bytes], outcome: Outcome) -> Observed:
    """Return a batch of messages that came in and were filtered or rejected."""
    return batch(node, ids, [10] * len(ids), outcomes=[outcome] * len(ids))


def _lags(lags_us: Sequence[int | None]) -> np.ndarray:
    if all(lag is None for lag in lags_us):
        return np.empty(0, np.int64)
    return np.array([NOT_STAMPED if lag is None else lag for lag in lags_us], np.int64)
