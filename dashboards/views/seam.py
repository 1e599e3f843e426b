"""Comparison of a stream before and after a seam between two versions of it: loss and lag of each node."""

from __future__ import annotations

from typing import Final

from hopwatch.dashboards.queries.models import VersionSeam
from hopwatch.display import loss, texts
from hopwatch.monitor.results import NodeRollUp, Quantiles, RollUp

SEAM_COLUMNS: Final = ("Node", "Loss before", "Loss after", "Lag out p95 before", "Lag out p95 after")
END_TO_END: Final = "end to end"


def build_seam_rows(seam: VersionSeam) -> list[tuple[str, ...]]:
    """Return a row for the stream, end to end, and one for each node of either side; what a side lacks is a dash."""
    sides = seam.before, seam.after
    losses = [loss.format_loss_ratio(one) if one else texts.NONE for one in sides]
    rows = [(END_TO_END, *losses, *(_format_p95(one.lag_us if one else None) for one in sides))]
    before, after = _by_name(seam.before), _by_name(seam.after)
    for name in dict.fromkeys((*after, *before)):
        nodes = before.get(name), after.get(name)
        losses = [loss.format_node_loss_ratio(node) if node else texts.NONE for node in nodes]
        rows.append((name, *losses, *(_format_p95(node.lag_out_us if node else None) for node in nodes)))
    return rows


def _format_p95(lag: Quantiles | None) -> str:
    return texts.format_lag(lag.p95 if lag else None)


def _by_name(one: RollUp | None) -> dict[str, NodeRollUp]:
    return {node.node: node for node in one.nodes} if one else {}
