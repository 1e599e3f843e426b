"""What alerts do at the end of a micro-batch: in its transaction, so that results and notifications are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from hopwatch.alerts import burn, outbox, store
from hopwatch.alerts.evaluate import evaluate
from hopwatch.alerts.events import MOST_LOST_IDS
from hopwatch.alerts.minute import Counts, Minute, Outlier
from hopwatch.alerts.rules import Rules
from hopwatch.alerts.ways import Routes, nowhere
from hopwatch.monitor.accounting.ledger import Conclusion
from hopwatch.monitor.kernel import naming
from hopwatch.monitor.kernel.naming import Names
from hopwatch.monitor.outliers.series_tracker import OutlierFinding
from hopwatch.monitor.results import NodeResult
from hopwatch.monitor.texts.escaping import escape_line
from hopwatch.probes.contract.limits import ID_BYTES, WINDOW_US


@dataclass(frozen=True, slots=True)
class Alerting:
    """A :class:`monitor.commit.Follower`: it decides about alerts and puts what is to be told into the outbox.

    Without rules, as when alerts are switched off, it ends all that is open.
    """

    rules: Rules
    routes: Routes = nowhere

    def note(self, conclusion: Conclusion) -> Minute | None:
        """Return what is needed of a window; none of one that is not final."""
        result = conclusion.result
        if not result.status.is_final or result.stream not in self.rules.streams:
            return None
        told = zip(result.nodes, conclusion.lost, strict=True)
        lost_ids = {node.node: _shown(node, lost.message_ids.tobytes(), lost.names) for node, lost in told}
        outliers = {node: tuple(map(_outlier, found)) for node, found in conclusion.outliers.items()}
        return Minute(result, conclusion.tally.lags, lost_ids, outliers)

    def follow(self, connection: Connection, noted: Sequence[Minute], watermark_us: int) -> None:
        """Count the windows into their objectives, decide, and write what came of it.

        Without a window there is something to decide only when a minute of the watermark has passed.
        """
        if not noted and store.clock_us(connection) >= watermark_us - watermark_us % WINDOW_US:
            return
        store.write_counts(connection, self._counts(noted))
        before = store.standing(connection)
        decision = evaluate(self.rules, noted, before, watermark_us, store.StoredPast(connection))
        store.write_standing(connection, before, decision.standing)
        said = decision.notifications
        outbox.put(connection, said, [self.routes(notification) for notification in said])

    def _counts(self, noted: Sequence[Minute]) -> dict[store.ObjectiveKey, Counts | None]:
        return {
            (minute.result.stream, objective.name, minute.result.window_start_us): burn.counts(
                objective, self.rules.streams[minute.result.stream], minute
            )
            for minute in noted
            for objective in self.rules.objectives[minute.result.stream]
        }


def _outlier(finding: OutlierFinding) -> Outlier:
    why = finding.why
    return Outlier(why.quantity.value, why.observed, why.low, why.high, why.score)


def _shown(node: NodeResult, packed: bytes, names: Names) -> tuple[str, ...]:
    if not node.loss_lower:
        return ()
    ids = (packed[at : at + ID_BYTES] for at in range(0, min(len(packed), ID_BYTES * MOST_LOST_IDS), ID_BYTES))
    return tuple(
        escape_line(naming.format_id(message_id, kind, text))
        for message_id, kind, text in zip(ids, names.kinds.tolist(), names.texts.tolist(), strict=False)
    )
