"""Burn rates: how fast an objective's budget is spent, ``bad / total / budget``, over two spans at once.

The long span shows that it matters, the short one that it goes on (Google, The Site Reliability Workbook, chapter 5).
Bad are messages surely lost, or those over the target by the distribution function of the digest: never percentiles.
"""

from __future__ import annotations

from hopwatch.alerts.decision.inputs import ObjectiveCounts, PastWindows, WindowInput
from hopwatch.alerts.decision.reading import Reading, bad_reading, good_reading
from hopwatch.alerts.decision.rules import AlertRule, Objective
from hopwatch.alerts.events import MAX_LOST_IDS
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.results import UNINFORMATIVE
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import WINDOW_US


def count_window(objective: Objective, stream: StreamConfig, minute: WindowInput) -> ObjectiveCounts | None:
    """Count the messages of a window for an objective; none for a window that is unknown."""
    result = minute.result
    if result.verdict in UNINFORMATIVE:
        return None
    if objective.target_us is None:
        return ObjectiveCounts(result.known, result.lost_lower)
    ends = [lags.lag_out_us for lags, is_end in zip(minute.lags, stream.pathway.terminals, strict=True) if is_end]
    late = [count_late(digest, objective.target_us) for digest in ends]
    return ObjectiveCounts(sum(int(digest.weights.sum()) for digest in ends), sum(late))


def count_late(digest: tdigest.Digest, target_us: float) -> int:
    """Count the values of a digest that are over a target."""
    count = int(digest.weights.sum())
    return count - round(tdigest.cdf(digest, target_us) * count) if count else 0


def evaluate_burn_rate(rule: AlertRule, stream: StreamConfig, minute: WindowInput, past: PastWindows) -> Reading | None:
    """Evaluate a burn rate rule at the end of a window; the first pair of spans that is exceeded makes it bad.

    The reading names the node that burns most of the budget in this window, with some ids that it lost.
    """
    result, objective = minute.result, rule.objective
    if objective is None or result.verdict in UNINFORMATIVE:
        return None
    end_us = result.window_start_us + WINDOW_US
    # Usually nothing is bad at all, and no sum has to be queried.
    last_bad_us = past.find_last_bad_us(result.stream, objective.name)
    for pair in rule.pairs:
        if last_bad_us is None or last_bad_us < end_us - pair.short_us:
            continue
        # The short span is the cheaper query, and usually decides.
        if (
            _burn_rate(rule, past.sum_counts(result.stream, objective.name, end_us - pair.short_us, end_us))
            <= pair.rate
        ):
            continue
        counts = past.sum_counts(result.stream, objective.name, end_us - pair.long_us, end_us)
        if (rate := _burn_rate(rule, counts)) > pair.rate:
            node, lost_ids = _find_worst_node(objective, stream, minute)
            reading = bad_reading("", rate, pair.rate, (counts.bad, counts.total), f"worst at {node}" if node else "")
            return reading._replace(lost_ids=lost_ids)
    return good_reading("")


def _find_worst_node(objective: Objective, stream: StreamConfig, minute: WindowInput) -> tuple[str, tuple[str, ...]]:
    """Return the node that burns most of a window's budget, and some ids that it lost; empty if no node burns any."""
    if objective.target_us is None:
        burnt = [node.loss_lower for node in minute.result.nodes]
    else:
        ends = zip(minute.lags, stream.pathway.terminals, strict=True)
        burnt = [count_late(lags.lag_out_us, objective.target_us) if is_end else 0 for lags, is_end in ends]
    if not any(burnt):
        return "", ()
    node = minute.result.nodes[burnt.index(max(burnt))].node
    return node, minute.lost_ids.get(node, ())[:MAX_LOST_IDS] if objective.target_us is None else ()


def _burn_rate(rule: AlertRule, counts: ObjectiveCounts) -> float:
    """Return the burn rate; 0 if there are fewer messages than the rule asks for."""
    if rule.objective is None or counts.total < rule.least:
        return 0.0
    return compute_burn_rate(rule.objective, counts)


def compute_burn_rate(objective: Objective, counts: ObjectiveCounts) -> float:
    """Return how fast the budget of an objective is spent by some messages, at least one: 1 spends just all of it."""
    return counts.bad / counts.total / objective.budget
