"""Hook that evaluates alerts at the end of a micro-batch, in the same transaction as the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from hopwatch.alerts.channels.routing import Routes, route_to_none
from hopwatch.alerts.decision import burn_rate
from hopwatch.alerts.decision.evaluation import evaluate
from hopwatch.alerts.decision.inputs import ObjectiveCounts, SeriesOutlier, WindowInput
from hopwatch.alerts.decision.rules import AlertRules
from hopwatch.alerts.events import MAX_LOST_IDS
from hopwatch.alerts.storage import alert_state, outbox
from hopwatch.display.bursts import summarize_bursts
from hopwatch.display.causes import summarize_causes, summarize_lag_causes
from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.kernel import naming
from hopwatch.monitor.kernel.bursts import find_bursts
from hopwatch.monitor.kernel.causes import rank_causes, rank_lag_causes
from hopwatch.monitor.kernel.tally import LostIds
from hopwatch.monitor.outliers.findings import OutlierFinding
from hopwatch.monitor.results import LabelCounts, NodeResult, SecondCounts
from hopwatch.monitor.texts.escaping import escape_line
from hopwatch.probes.contract.limits import WINDOW_US


@dataclass(frozen=True, slots=True)
class AlertHook:
    """A :class:`monitor.micro_batch.BatchFollower` that evaluates the alert rules and writes notifications.

    Without rules, as when alerts are disabled, it resolves all open incidents.
    """

    rules: AlertRules
    routes: Routes = route_to_none

    def note(self, conclusion: Conclusion) -> WindowInput | None:
        """Return the input of a window for the rules; none if no rule reads it."""
        result = conclusion.result
        if result.stream not in self.rules.streams:
            return None
        if not result.status.is_final:
            is_overdue = result.overdue > 0 or any(node.overdue for node in result.nodes)
            is_read = self.rules.reads_early(result, is_overdue=is_overdue or conclusion.was_overdue)
            return WindowInput(result, conclusion.tally.lags) if is_read else None
        pairs = zip(result.nodes, conclusion.lost, strict=True)
        lost_ids = {node.node: _format_lost_ids(node, lost) for node, lost in pairs}
        outliers = {node: tuple(map(_build_outlier, found)) for node, found in conclusion.outliers.items()}
        explanations = {
            node.node: _explain_loss(result.window_start_us, node.node, rows, counts)
            for node, rows, counts in zip(result.nodes, conclusion.labels, conclusion.seconds, strict=False)
            if node.loss
        }
        lag_explanations = {
            node.node: summarize_lag_causes(rank_lag_causes(rows))
            for node, rows in zip(result.nodes, conclusion.labels, strict=False)
        }
        return WindowInput(
            result, conclusion.tally.lags, lost_ids, outliers, conclusion.count_lags, explanations, lag_explanations
        )

    def follow(self, connection: Connection, noted: Sequence[WindowInput], watermark_us: int) -> None:
        """Count the windows for their objectives, evaluate the rules, and write states and notifications.

        Without new windows, rules are evaluated only when the watermark has entered another window.
        """
        if not noted and alert_state.read_clock_us(connection) >= watermark_us - watermark_us % WINDOW_US:
            return
        final = [minute for minute in noted if minute.result.status.is_final]
        alert_state.write_counts(connection, self._count_windows(final))
        before = alert_state.read_snapshot(connection)
        decision = evaluate(self.rules, noted, before, watermark_us, alert_state.StoredPastWindows(connection))
        alert_state.write_snapshot(connection, before, decision.snapshot)
        notifications = decision.notifications
        outbox.enqueue(connection, notifications, [self.routes(notification) for notification in notifications])

    def _count_windows(self, noted: Sequence[WindowInput]) -> dict[alert_state.ObjectiveKey, ObjectiveCounts | None]:
        return {
            (minute.result.stream, objective.name, minute.result.window_start_us): burn_rate.count_window(
                objective, self.rules.find_config(minute.result), minute
            )
            for minute in noted
            for objective in self.rules.objectives[minute.result.stream]
        }


def _explain_loss(start_us: int, node: str, rows: Sequence[LabelCounts], counts: SecondCounts | None) -> str:
    told = summarize_bursts(start_us, find_bursts(counts)), summarize_causes(node, rank_causes([rows]))
    return "; ".join(filter(None, told))


def _build_outlier(finding: OutlierFinding) -> SeriesOutlier:
    why = finding.why
    return SeriesOutlier(why.quantity.value, why.observed, why.low, why.high, why.score)


def _format_lost_ids(node: NodeResult, lost: LostIds) -> tuple[str, ...]:
    if not node.loss_lower:
        return ()
    first = np.arange(min(len(lost.message_ids), MAX_LOST_IDS))
    return tuple(map(escape_line, naming.format_ids(lost.message_ids[first], lost.names.taken(first))))
