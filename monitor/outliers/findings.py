"""Findings of the outlier detector, as values."""

from __future__ import annotations

from typing import NamedTuple

from hopwatch.monitor.outliers.explanation import Explanation
from hopwatch.monitor.outliers.quantities import Quantity


class OutlierFinding(NamedTuple):
    """A window in which an episode of a series begins, or becomes an outlier."""

    window_start_us: int
    node: str
    is_outlier: bool
    why: Explanation


class Retraction(NamedTuple):
    """Retraction of the findings of a series from a window on."""

    node: str
    quantity: Quantity
    from_us: int


class FindingChanges(NamedTuple):
    """Changes of findings by some windows: retracted ones, and new ones."""

    erased: list[Retraction]
    findings: list[OutlierFinding]
