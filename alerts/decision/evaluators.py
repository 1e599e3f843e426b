"""Evaluators of the rule kinds: each reads a final window; those of loss and of lag read open ones, too.

Where nothing can be known there is no reading: UNKNOWN neither fires an alert of loss nor ends one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Final

from hopwatch.alerts.decision import burn_rate, forecast
from hopwatch.alerts.decision.burn_rate import count_late
from hopwatch.alerts.decision.inputs import PastWindows, SeriesOutlier, WindowInput
from hopwatch.alerts.decision.reading import Reading, bad_reading, good_reading
from hopwatch.alerts.decision.rules import AlertRule
from hopwatch.alerts.events import MAX_LOST_IDS, AlertKind
from hopwatch.display import texts
from hopwatch.monitor.kernel.count_lags import CountLags
from hopwatch.monitor.kernel.tally import NodeLags
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import UNINFORMATIVE, NodeCounts, NodeResult, Quantiles, Verdict, WindowResult
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.monitor.texts.escaping import escape_line
from hopwatch.probes.contract.limits import WINDOW_US

USUAL_WINDOWS: Final = 5
"""Windows before one that is not final, of which the one with the most stamps of a node is a usual minute."""
STAMPS_OF_P95: Final = 20
"""p95 is over a threshold where more than one of so many stamps is."""
HEALTHY: Final = frozenset({Verdict.CLEAN, Verdict.IDLE})


def evaluate_rule(rule: AlertRule, stream: StreamConfig, minute: WindowInput, past: PastWindows) -> Iterator[Reading]:
    """Yield the readings of a rule for a window, one for each place."""
    if not minute.result.status.is_final:
        for early in _read_open(rule, stream, minute, past) if rule.reads_open else ():
            if rule.is_for(minute.result.stream, early.node):
                yield early
        return
    if rule.kind is AlertKind.BURN_RATE:
        burnt = burn_rate.evaluate_burn_rate(rule, stream, minute, past)
        if burnt is not None:
            yield burnt
        return
    if rule.kind is AlertKind.DEFERRED_AGE:
        yield from _deferred_age(rule, stream, minute, past)
        return
    if rule.kind is AlertKind.FORECAST:
        yield from forecast.evaluate_forecast(rule, minute, past)
        return
    for reading in _BY_KIND[rule.kind](rule, stream, minute):
        if rule.is_for(minute.result.stream, reading.node):
            yield reading


def _read_open(rule: AlertRule, stream: StreamConfig, minute: WindowInput, past: PastWindows) -> Iterator[Reading]:
    return _overdue(rule, stream, minute.result) if rule.kind is AlertKind.LOSS else _late_so_far(rule, minute, past)


def _loss(rule: AlertRule, stream: StreamConfig, minute: WindowInput) -> Iterator[Reading]:
    result = minute.result
    # 1. An unknown window is neither a loss nor the end of one.
    if result.verdict in UNINFORMATIVE:
        return
    # 2. End to end, over all that is known.
    of_stream = _judge_loss(rule, minute, "", (result.lost_lower, result.lost_upper), result.known)
    if of_stream:
        yield of_stream._replace(note=_describe_partial(result)) if of_stream.is_bad else of_stream
    for node in result.nodes:
        # 3. At a node, over what was expected or seen there.
        out_of = node.expected_or_seen
        of_node = _judge_loss(rule, minute, node.node, (node.loss_lower, node.loss_upper), out_of)
        if of_node and of_node.is_bad:
            ids = minute.lost_ids.get(node.node, ())[:MAX_LOST_IDS]
            note = "; ".join(filter(None, (minute.explanations.get(node.node, ""), _describe_partial(result))))
            of_node = of_node._replace(edge=_edge(stream.pathway, node), lost_ids=ids, note=note)
        if of_node:
            yield of_node
    for counted in result.counts:
        # 4. Before a node that only counts, by its counts: there are no ids to name.
        bounds = counted.lost_before_lower, 0 if counted.same_before else None
        by_count = _judge_loss(rule, minute, counted.node, bounds, counted.left_before or 0)
        if by_count:
            edge = f"{counted.before} -> {counted.node}"
            yield by_count._replace(edge=edge, note="by count") if by_count.is_bad else by_count


def _overdue(rule: AlertRule, stream: StreamConfig, result: WindowResult) -> Iterator[Reading]:
    """Yield the readings of a window that is not final: bad by what is overdue, good where so little is missing."""
    threshold, deadlines_us = rule.thresholds[result.stream], dict(stream.deadlines)
    places = [
        (node.node, node.overdue, node.in_flight, max(node.expected, node.seen), node.overdue_ids)
        for node in result.nodes
    ]
    for node, overdue, missing, out_of, ids in [("", result.overdue, result.in_flight, result.known, ()), *places]:
        if overdue > threshold * out_of and out_of >= rule.least:
            note = texts.format_lag(deadlines_us[node]) if node in deadlines_us else ""
            reading = bad_reading(node, overdue / out_of, threshold, (overdue, out_of), note)
            yield reading._replace(is_early=True, lost_ids=tuple(map(escape_line, ids[:MAX_LOST_IDS])))
        # What is missing and cannot be shown to be overdue any more ends nothing.
        elif missing <= threshold * out_of:
            yield good_reading(node)


def _describe_partial(result: WindowResult) -> str:
    """Describe messages that were delivered on one branch and are missing on another; empty if there are none."""
    if not result.partial:
        return ""
    return f"of {result.lost:,} missing in the stream {result.partial:,} were delivered elsewhere"


def _judge_loss(
    rule: AlertRule, minute: WindowInput, node: str, bounds: tuple[int, int | None], out_of: int
) -> Reading | None:
    """Return the reading of a loss by its bounds; none if the threshold lies between them."""
    threshold, (lower, upper) = rule.thresholds[minute.result.stream], bounds
    # 5. It is bad by what was surely lost.
    if lower > threshold * out_of and out_of >= rule.least:
        return bad_reading(node, lower / out_of, threshold, (lower, out_of))
    # 6. It is good where no more can have been lost.
    if minute.result.verdict in HEALTHY or (upper is not None and upper <= threshold * out_of):
        return good_reading(node)
    return None


def _lag(rule: AlertRule, stream: StreamConfig, minute: WindowInput) -> Iterator[Reading]:
    del stream
    for node, lags in zip_longest(minute.result.nodes, minute.lags):
        yield from _judge_lag(rule, minute, node, lags)
    for counted, told in zip_longest(minute.result.counts, minute.count_lags):
        for reading in _judge_lag(rule, minute, counted, told):
            yield reading._replace(note="by count") if reading.is_bad else reading


def _judge_lag(
    rule: AlertRule, minute: WindowInput, node: NodeResult | NodeCounts, digests: NodeLags | CountLags | None
) -> Iterator[Reading]:
    """Yield the reading of the worse side of a node; none where too few lags are known."""
    threshold = rule.thresholds[minute.result.stream]
    sides = {"in": node.lag_in_us, "out": node.lag_out_us}
    lags = [(side, lag) for side in rule.sides if (lag := sides[side]) and lag.count >= rule.least]
    if not lags:
        return
    side, worst = max(lags, key=lambda pair: pair[1].p95)
    if worst.p95 > threshold:
        late = count_late(getattr(digests, f"lag_{side}_us"), threshold) if digests else 0
        reading = bad_reading(node.node, worst.p95, threshold, (late, worst.count), side)
        yield reading._replace(because=minute.lag_explanations.get(node.node, ""))
    # A message seen late was late; messages seen in time say nothing about those not seen.
    elif minute.result.verdict not in UNINFORMATIVE:
        yield good_reading(node.node)


def _late_so_far(rule: AlertRule, minute: WindowInput, past: PastWindows) -> Iterator[Reading]:
    """Yield the readings of a window that is not final: bad where p95 stays over the threshold, whatever comes in time.

    That is where more than a twentieth of all stamps of a usual minute are late already.
    """
    result = minute.result
    span_us = result.window_start_us - USUAL_WINDOWS * WINDOW_US, result.window_start_us
    for node, digests in zip(result.nodes, minute.lags, strict=False):
        for found in _judge_lag(rule, minute, node, digests):
            if not found.is_bad or not rule.is_for(result.stream, node.node):
                continue
            before = [point.stamps for point in past.read_lags(result.stream, *span_us).get(node.node, ())]
            if len(before) == USUAL_WINDOWS and found.affected * STAMPS_OF_P95 > max(found.out_of, *before):
                yield found._replace(is_early=True)


def _end_to_end_lag(rule: AlertRule, stream: StreamConfig, minute: WindowInput) -> Iterator[Reading]:
    threshold, lag = rule.thresholds[minute.result.stream], minute.result.lag_us
    if lag is None or lag.count < rule.least:
        return
    if lag.p95 > threshold:
        yield bad_reading("", lag.p95, threshold, (_late_at_ends(stream, minute, threshold), lag.count))
    elif minute.result.verdict not in UNINFORMATIVE:
        yield good_reading("")


def _late_at_ends(stream: StreamConfig, minute: WindowInput, threshold: float) -> int:
    pairs = zip(minute.lags, stream.pathway.terminals, strict=False)
    return sum(count_late(lags.lag_out_us, threshold) for lags, is_end in pairs if is_end)


def _unknown(rule: AlertRule, stream: StreamConfig, minute: WindowInput) -> Iterator[Reading]:
    del stream
    # A silent window is not an unknown one: it has a rule of its own.
    if minute.result.verdict is not Verdict.SILENT:
        is_bad = minute.result.verdict is Verdict.UNKNOWN
        yield (
            bad_reading("", 0, rule.for_windows, note="; ".join(minute.result.reasons)) if is_bad else good_reading("")
        )


def _silent(rule: AlertRule, stream: StreamConfig, minute: WindowInput) -> Iterator[Reading]:
    del stream
    if minute.result.verdict is Verdict.SILENT:
        yield bad_reading("", 0, rule.for_windows)
        return
    yield good_reading("")
    for node in minute.result.nodes:
        # Nothing was seen there, and no probe has complete books that would prove that there was nothing.
        is_silent = not node.seen and not node.coverage
        yield bad_reading(node.node, 0, rule.for_windows) if is_silent else good_reading(node.node)


def _outlier(rule: AlertRule, stream: StreamConfig, minute: WindowInput) -> Iterator[Reading]:
    del stream
    threshold = rule.thresholds[minute.result.stream]
    for node, outliers in minute.outliers.items():
        worst = max(outliers, key=lambda outlier: (outlier.score, outlier.quantity), default=None)
        if worst is None or worst.score < threshold:
            yield good_reading(node)
        else:
            yield bad_reading(node, worst.score, threshold, note=_describe_outlier(worst))


def _describe_outlier(outlier: SeriesOutlier) -> str:
    known = outlier.low is not None and outlier.high is not None
    return f"{outlier.quantity} is {outlier.observed:g}" + (
        f", expected {outlier.low:g} to {outlier.high:g}" if known else ""
    )


def _probe_drops(rule: AlertRule, stream: StreamConfig, minute: WindowInput) -> Iterator[Reading]:
    del stream
    threshold, is_unhurt = rule.thresholds[minute.result.stream], minute.result.verdict in HEALTHY
    for node in minute.result.nodes:
        out_of = node.dropped + node.seen
        if node.dropped > threshold * out_of and out_of >= rule.least:
            yield bad_reading(node.node, node.dropped / out_of, threshold, (node.dropped, out_of))
        # Books with a hole may hide drops.
        elif is_unhurt or node.coverage == 1:
            yield good_reading(node.node)


def _rejected(rule: AlertRule, stream: StreamConfig, minute: WindowInput) -> Iterator[Reading]:
    del stream
    threshold, is_unhurt = rule.thresholds[minute.result.stream], minute.result.verdict in HEALTHY
    for node in minute.result.nodes:
        if node.rejected > threshold * node.seen and node.seen >= rule.least:
            yield bad_reading(node.node, node.rejected / node.seen, threshold, (node.rejected, node.seen))
        # Books with a hole may hide rejections.
        elif is_unhurt or node.coverage == 1:
            yield good_reading(node.node)


def _deferred(rule: AlertRule, stream: StreamConfig, minute: WindowInput) -> Iterator[Reading]:
    del stream
    threshold, is_unhurt = rule.thresholds[minute.result.stream], minute.result.verdict in HEALTHY
    for node in minute.result.nodes:
        if node.deferred > threshold * node.seen and node.seen >= rule.least:
            yield bad_reading(node.node, node.deferred / node.seen, threshold, (node.deferred, node.seen))
        # Books with a hole may hide deferrals.
        elif is_unhurt or node.coverage == 1:
            yield good_reading(node.node)


def _deferred_age(rule: AlertRule, stream: StreamConfig, minute: WindowInput, past: PastWindows) -> Iterator[Reading]:
    """Yield the reading of the oldest message that waits at the end of a window, of those that can be judged again."""
    threshold, start_us = rule.thresholds[minute.result.stream], minute.result.window_start_us
    end_us = start_us + WINDOW_US
    from_us = start_us - (stream.terms.amendable_until_us(start_us) - end_us)
    waiting = past.sum_deferred(minute.result.stream, from_us, end_us)
    age_us = 0 if waiting.oldest_us is None else end_us - waiting.oldest_us
    if age_us > threshold:
        yield bad_reading("", age_us, threshold, (waiting.messages, waiting.messages))
    elif minute.result.verdict not in UNINFORMATIVE:
        yield good_reading("")


def _clock_skew(rule: AlertRule, stream: StreamConfig, minute: WindowInput) -> Iterator[Reading]:
    del stream
    threshold = rule.thresholds[minute.result.stream]
    for node in minute.result.nodes:
        stamps = _count(node.lag_in_us) + _count(node.lag_out_us)
        if node.lag_negative > threshold * stamps and stamps >= rule.least:
            yield bad_reading(node.node, node.lag_negative / stamps, threshold, (node.lag_negative, stamps))
        # Without stamps nothing is known of a clock.
        elif stamps:
            yield good_reading(node.node)


def _count(lag: Quantiles | None) -> int:
    return lag.count if lag else 0


def _edge(pathway: Pathway, node: NodeResult) -> str:
    """Return the edge on which most of a node's loss is, if it is on one."""
    place = pathway.nodes.index(node.node)
    if node.lost_in_transit >= max(node.lost_inside, node.lost_after, 1):
        sources = [pathway.nodes[source] for source, is_must in enumerate(pathway.must[:, place]) if is_must]
        return f"{sources[0]} -> {node.node}" if len(sources) == 1 else ""
    if node.lost_after > node.lost_inside:
        branches = [group.targets for group in pathway.branches if group.source == place]
        targets = " | ".join(pathway.nodes[target] for target in branches[0]) if len(branches) == 1 else ""
        return f"{node.node} -> {targets}" if targets else ""
    return ""


_BY_KIND: Final[Mapping[AlertKind, Callable[[AlertRule, StreamConfig, WindowInput], Iterator[Reading]]]] = {
    AlertKind.LOSS: _loss,
    AlertKind.LAG: _lag,
    AlertKind.END_TO_END_LAG: _end_to_end_lag,
    AlertKind.UNKNOWN: _unknown,
    AlertKind.SILENT: _silent,
    AlertKind.OUTLIER: _outlier,
    AlertKind.PROBE_DROPS: _probe_drops,
    AlertKind.CLOCK_SKEW: _clock_skew,
    AlertKind.REJECTED: _rejected,
    AlertKind.DEFERRED: _deferred,
}
