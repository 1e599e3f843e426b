"""Values of a window for the series of its stream; a missing value is a gap.

A series is a node and one quantity; in every array here the nodes come first, in the order in which they came, and
within a node the quantities of ``WATCHED``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def extract_values(result: WindowResult, nodes: Sequence[str]) -> Floats:
    """Return the values of a final window, each in its own unit; shape (nodes, quantities + 1), a gap is NaN.

    Last stand the messages that a node's loss is a ratio of. All is a gap where the verdict is UNKNOWN or SILENT, at a
    node that the window does not have, and at one whose books are not complete: what its probes have not told is not
    seen as few messages or as no loss.
    """
    values = np.full((len(nodes), len(TRACKED_QUANTITIES) + 1), np.nan)
    if result.verdict not in UNINFORMATIVE:
        own = np.array(list(_extract_rows(result.nodes)), np.float64).reshape(-1, len(TRACKED_QUANTITIES) + 1)
        values[[nodes.index(node.node) for node in result.nodes]] = own
    return values


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
