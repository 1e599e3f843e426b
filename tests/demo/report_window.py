"""A window of the report, in which a node lost messages."""

from __future__ import annotations

from typing import Any


def window(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any field of the report
    """Return a final window in which router lost 12 of 1,200 messages."""
    nodes = [
        {"node": node, "loss": loss, "loss_lower": loss, "loss_upper": loss}
        for node, loss in (("ingest", 0), ("router", 12), ("norm", 0), ("connector", 0))
    ]
    return {
        "window_start": "2026-01-02T03:04:00Z",
        "status": "FINAL",
        "verdict": "LOSSY",
        "known": 1200,
        "delivered": 1188,
        "lost": 12,
        "lost_lower": 12,
        "lost_upper": 12,
        "in_flight": 0,
        "lag_us": {"p95": 12_345},
        "nodes": nodes,
        **changes,
    }
