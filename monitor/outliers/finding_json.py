"""Findings of the outlier detector as JSON has them."""

from __future__ import annotations

from typing import Any

from hopwatch.monitor.outliers.explanation import Explanation
from hopwatch.monitor.outliers.findings import OutlierFinding
from hopwatch.monitor.results import format_iso


def finding_to_json(stream: str, one: OutlierFinding) -> dict[str, Any]:
    """Return a finding as ``hopwatch outliers list --json`` and the API show it."""
    where = {"stream": stream, "window_start": format_iso(one.window_start_us), "node": one.node}
    return where | {"quantity": one.why.quantity, "is_outlier": one.is_outlier} | explanation_to_json(one.why)


def explanation_to_json(why: Explanation) -> dict[str, Any]:
    """Return why something is an outlier, as fields and as ``text``."""
    return {
        "since": format_iso(why.since_us),
        "score": round(why.score, 4),
        "observed": why.observed,
        "low": why.low,
        "high": why.high,
        "reasons": [{"view": told.view, "words": told.words, "once_in": told.once_in} for told in why.reasons],
        "text": str(why),
    }
