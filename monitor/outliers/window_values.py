"""Values of a window for the series of its stream; a missing value is a gap.

A series is a node and one quantity; in every array here the nodes come first, in the order of the pathway, and within a
node the quantities of ``WATCHED``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from hopwatch.monitor.outliers.quantities import Floats, Quantity, to_scale
from hopwatch.monitor.results import UNINFORMATIVE, NodeResult, Quantiles, WindowResult

TRACKED_QUANTITIES: Final = (
    Quantity.LAG_IN_P95_US,
    Quantity.LAG_OUT_P95_US,
    Quantity.INSIDE_P95_US,
    Quantity.LOSS_RATIO,
    Quantity.MESSAGES,
    Quantity.DUPLICATES,
)
"""The quantities of a node that are followed."""


def extract_values(result: WindowResult) -> Floats:
    """Return the values of a final window, each in its own unit; shape (nodes, quantities + 1), a gap is NaN.

    Last stand the messages that a node's loss is a ratio of. All is a gap where the verdict is UNKNOWN or SILENT, and
    at a node whose books are not complete: what its probes have not told is not seen as few messages or as no loss.
    """
    if result.verdict in UNINFORMATIVE:
        return np.full((len(result.nodes), len(TRACKED_QUANTITIES) + 1), np.nan)
    return np.array(list(_extract_rows(result.nodes)), np.float64).reshape(-1, len(TRACKED_QUANTITIES) + 1)


def scale_values(values: Floats) -> Floats:
    """Return the values of :func:`extract_values` as the detector judges them; shape (nodes · quantities,)."""
    totals = values[:, -1]
    columns = [to_scale(quantity, values[:, place], totals) for place, quantity in enumerate(TRACKED_QUANTITIES)]
    return np.stack(columns, axis=1).reshape(-1)


def _extract_rows(nodes: Iterable[NodeResult]) -> Iterable[tuple[float, ...]]:
    for node in nodes:
        if node.coverage != 1:
            yield (np.nan,) * (len(TRACKED_QUANTITIES) + 1)
            continue
        ratio = np.nan if node.loss_ratio is None else node.loss_ratio
        lags = (_p95(node.lag_in_us), _p95(node.lag_out_us), _p95(node.inside_us))
        yield (*lags, ratio, node.seen, node.duplicates_in + node.duplicates_out, node.expected_or_seen)


def _p95(lag: Quantiles | None) -> float:
    return np.nan if lag is None else lag.p95
