"""From what the monitor knows to samples: a pure function, and the only place that decides what is shown of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, TypeVar

from hopwatch.monitor.metrics import declared
from hopwatch.monitor.metrics.counted import OF_NODES, OF_STREAMS
from hopwatch.monitor.metrics.known import Known
from hopwatch.monitor.metrics.metric import MOST_OPEN, OTHER, Metric, Sample
from hopwatch.monitor.results import IGNORANT, NodeResult, Quantiles, Verdict, WindowResult

RECENT_US: Final = 600_000_000
"""For how long after it was due to be judged the newest final window is shown, by the watermark."""
_US: Final = 1e6
_Labels = TypeVar("_Labels", bound=tuple[str, ...])
_FIGURES: Final = ("p50", "p95", "p99")


def samples(known: Known) -> Iterator[Sample]:
    """Yield all samples, at most as many as the plan has room for."""
    recent = {stream: result for stream, result in known.newest.items() if _is_recent(known, result)}
    yield from _of_streams(known, recent)
    yield from _of_nodes(known, recent)
    yield from _of_batches(known)
    yield from _of_the_store(known)
    verdicts = [result.verdict for result in recent.values()]
    for verdict in Verdict:
        yield Sample(declared.STREAMS, (verdict.value,), verdicts.count(verdict))
    yield Sample(declared.STREAMS, ("none",), len(known.rules) - len(verdicts))
    yield Sample(declared.FOLDED, (), known.plan.folded_series)


def _is_recent(known: Known, result: WindowResult) -> bool:
    """Return whether a window still says how things are: a stream that falls silent has no windows any more."""
    if result.stream not in known.rules:
        return False
    due_us = known.rules[result.stream].terms.final_at_us(result.window_start_us)
    return known.watermark_us <= due_us + RECENT_US


def _of_streams(known: Known, recent: Mapping[str, WindowResult]) -> Iterator[Sample]:
    shown = [stream for stream in known.rules if stream in known.plan.streams]
    folded = [stream for stream in known.rules if stream not in known.plan.streams]
    for stream in shown:
        for place, column in enumerate(OF_STREAMS):
            yield Sample(column.metric, (stream, *column.labels), int(known.totals[stream].stream[place]))
        if stream in known.newest:
            yield Sample(declared.NEWEST, (stream,), known.newest[stream].window_start_us / _US)
        if stream in recent:
            yield from _of_window(stream, recent[stream])
    if folded:
        for place, column in enumerate(OF_STREAMS):
            total = sum(int(known.totals[stream].stream[place]) for stream in folded)
            yield Sample(column.metric, (OTHER, *column.labels), total)
        windows = [recent[stream] for stream in folded if stream in recent]
        yield from _bounds(declared.LOSS, (OTHER,), [*map(_of_all, windows)])
        if windows:
            yield Sample(declared.IN_FLIGHT, (OTHER,), sum(result.in_flight for result in windows))
            yield Sample(declared.PARTIAL, (OTHER,), sum(result.partial for result in windows))


def _of_window(stream: str, result: WindowResult) -> Iterator[Sample]:
    yield from _lag(declared.END_TO_END_LAG, (stream,), result.lag_us)
    yield from _bounds(declared.LOSS, (stream,), [_of_all(result)])
    for verdict in Verdict:
        yield Sample(declared.VERDICTS, (stream, verdict.value), int(result.verdict is verdict))
    yield Sample(declared.IN_FLIGHT, (stream,), result.in_flight)
    yield Sample(declared.PARTIAL, (stream,), result.partial)


def _of_all(result: WindowResult) -> tuple[int, int | None, int]:
    """Return the bounds of a stream's loss and what it is out of; UNKNOWN bounds nothing, whatever some probes say."""
    upper = None if result.verdict in IGNORANT else result.lost_upper
    return result.lost_lower, upper, result.known


def _of_nodes(known: Known, recent: Mapping[str, WindowResult]) -> Iterator[Sample]:
    others: list[NodeResult] = []
    other_totals = [0] * len(OF_NODES)
    for stream, of_stream in known.rules.items():
        named = known.plan.nodes.get(stream, frozenset())
        rows = known.totals[stream].nodes.tolist()
        for node, row in zip(of_stream.pathway.nodes, rows, strict=True):
            if node in named:
                for column, total in zip(OF_NODES, row, strict=True):
                    yield Sample(column.metric, (stream, node, *column.labels), total)
            else:
                other_totals = [*map(sum, zip(other_totals, row, strict=True))]
        for result in recent[stream].nodes if stream in recent else ():
            if result.node in named:
                yield from _of_node((stream, result.node), result)
            else:
                others.append(result)
    if known.plan.folded_series:
        yield from _of_others(others, other_totals)


def _of_node(place: tuple[str, str], result: NodeResult) -> Iterator[Sample]:
    for stamp, lag in (("in", result.lag_in_us), ("out", result.lag_out_us), ("inside", result.inside_us)):
        yield from _lag(declared.NODE_LAG, (*place, stamp), lag)
    yield from _bounds(declared.NODE_LOSS, place, [(result.loss_lower, result.loss_upper, result.expected_or_seen)])
    if result.coverage is not None:
        yield Sample(declared.NODE_COVERAGE, place, result.coverage)


def _of_others(nodes: Sequence[NodeResult], totals: Sequence[int]) -> Iterator[Sample]:
    """Yield what can be said of many nodes at once: sums, and ratios of sums. Of quantiles, nothing."""
    for column, total in zip(OF_NODES, totals, strict=True):
        yield Sample(column.metric, (OTHER, OTHER, *column.labels), total)
    bounds = [(node.loss_lower, node.loss_upper, node.expected_or_seen) for node in nodes]
    yield from _bounds(declared.NODE_LOSS, (OTHER, OTHER), bounds)


def _lag(metric: Metric, place: tuple[str, ...], lag: Quantiles | None) -> Iterator[Sample]:
    if lag is None or not lag.count:
        return
    for quantile, name in zip(declared.QUANTILE.values, _FIGURES, strict=True):
        yield Sample(metric, (*place, quantile), getattr(lag, name) / _US)


def _bounds(metric: Metric, place: tuple[str, ...], bounds: Sequence[tuple[int, int | None, int]]) -> Iterator[Sample]:
    """Yield what is known of a loss: of (lower, upper, out of), summed up. Where nothing is known there is no 0."""
    lower, whole = sum(one[0] for one in bounds), sum(one[2] for one in bounds)
    uppers = [one[1] for one in bounds if one[1] is not None]
    is_bounded = len(uppers) == len(bounds)
    if whole and (lower or is_bounded):
        yield Sample(metric, (*place, "lower"), lower / whole)
    if whole and is_bounded:
        # Drops of a probe count too, so that it may be more than all.
        yield Sample(metric, (*place, "upper"), min(1.0, sum(uppers) / whole))


def _of_batches(known: Known) -> Iterator[Sample]:
    batches, metric = known.batches, declared.BATCH_DURATION
    yield Sample(declared.BUILD, (known.version,), 1)
    yield Sample(declared.START, (), known.started_us / _US)
    if batches.last_us:
        yield Sample(declared.LAST_BATCH, (), batches.last_us / _US)
    if known.watermark_us:
        yield Sample(declared.WATERMARK, (), known.watermark_us / _US)
    for limit, count in zip(metric.labels[0].values, accumulate(batches.counts), strict=True):
        yield Sample(metric, (limit,), count, "_bucket")
    yield Sample(metric, (), sum(batches.counts), "_count")
    yield Sample(metric, (), batches.sum_s, "_sum")


def _of_the_store(known: Known) -> Iterator[Sample]:
    if known.is_store_up is not None:
        yield Sample(declared.STORE_UP, (), int(known.is_store_up))
    if known.figures is None:
        return
    store, alerts = known.figures.store, known.figures.alerts
    yield Sample(declared.STORE_READ, (), known.figures.read_at_us / _US)
    yield Sample(declared.RECORDS, (), store.records)
    yield Sample(declared.OBSERVATIONS, (), store.observations)
    yield Sample(declared.DUPLICATE_BATCHES, (), store.duplicate_batches)
    yield Sample(declared.TOO_LATE, (), store.too_late)
    yield Sample(declared.IMPLAUSIBLE, (), store.implausible)
    yield Sample(declared.AGED_OUT, (), store.aged_out)
    yield Sample(declared.MISSING, (), store.missing_batches)
    for metric, counts in ((declared.WAITING, store.waiting), (declared.INSTANCES, store.instances)):
        for value in metric.labels[0].values:
            yield Sample(metric, (value,), counts.get(value, 0))
    yield from _open(declared.SET_ASIDE, {(reason,): count for reason, count in store.set_aside.items()})
    yield from _open(declared.INCIDENTS, alerts.incidents)
    yield from _open(declared.OUTBOX, alerts.outbox)
    if alerts.oldest_waiting_us is not None:
        yield Sample(declared.OLDEST_WAITING, (), alerts.oldest_waiting_us / _US)


def _open(metric: Metric, counts: Mapping[_Labels, int]) -> Iterator[Sample]:
    """Yield counts by labels that nobody knows beforehand: the first ones by name, all others as one."""
    ordered = sorted(counts)
    for labels in ordered[:MOST_OPEN]:
        yield Sample(metric, labels, counts[labels])
    if rest := ordered[MOST_OPEN:]:
        yield Sample(metric, (OTHER,) * len(metric.labels), sum(counts[labels] for labels in rest))
