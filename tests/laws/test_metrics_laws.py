"""Laws of the page of metrics: its bound, that counters only grow, and that order does not matter."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.metrics.recorder import MetricsRecorder
from hopwatch.monitor.metrics.samples import build_samples
from hopwatch.monitor.results import CommittedBatch, Quantiles, Status, Verdict, WindowResult
from hopwatch.monitor.settings.metrics import MIN_SERIES
from hopwatch.probes.metrics.metric import MetricType
from tests.support.metrics_page import STORE_SNAPSHOT, make_recorder, samples_of
from tests.support.recent import recent_figures
from tests.support.windows import at, window

LAG = Quantiles(9, 1, 2, 3, 4, 5)
COUNTS = st.integers(0, 30)


@given(streams=st.integers(1, 90), nodes=st.integers(1, 60), room=st.integers(0, 5_000))
def test_there_are_never_more_series_than_allowed(streams: int, nodes: int, room: int) -> None:
    """The number of series is bounded for any pathways, and no two samples are the same series."""
    names = tuple(f"n{number}" for number in range(nodes))
    of = make_recorder(
        *(f"s{number}" for number in range(streams)), path=" -> ".join(names), most_series=MIN_SERIES + room
    )
    lags = dict.fromkeys(("lag_in_us", "lag_out_us", "inside_us"), LAG)
    nodes_of = dict.fromkeys(names, lags)
    of.committed(
        CommittedBatch(
            tuple(window(0, stream=f"s{n}", names=names, nodes=nodes_of, lag_us=LAG) for n in range(streams)),
            at(5),
            1,
            recent=tuple(recent_figures(f"s{n}", names) for n in range(streams)),
        )
    )
    of.read(STORE_SNAPSHOT)
    found = [(sample.metric.name, sample.suffix, sample.labels) for sample in build_samples(of.known())]
    assert len(found) == len(set(found)) <= MIN_SERIES + room


revisions = st.lists(st.tuples(st.integers(0, 3), COUNTS, st.sampled_from(Verdict)), min_size=1, max_size=12)


def _windows(drawn: list[tuple[int, int, Verdict]]) -> list[WindowResult]:
    return [
        replace(window(minute, lost={"b": lost}, verdict=verdict), status=Status.AMENDED)
        for minute, lost, verdict in drawn
    ]


def _counters(of: MetricsRecorder) -> dict[tuple[str, ...], float]:
    return {
        (sample.metric.name, *sample.labels): sample.value
        for sample in build_samples(of.known())
        if sample.metric.type is MetricType.COUNTER
    }


@given(drawn=revisions)
def test_counters_never_fall(drawn: list[tuple[int, int, Verdict]]) -> None:
    """Counters never fall, whatever a revision subtracts."""
    of = make_recorder()
    before = _counters(of)
    for result in _windows(drawn):
        of.committed(CommittedBatch((result,), at(5), 1))
        now = _counters(of)
        assert all(now[key] >= shows for key, shows in before.items())
        before = now


@given(drawn=revisions, seed=st.integers())
def test_counters_do_not_depend_on_order_or_batching(drawn: list[tuple[int, int, Verdict]], seed: int) -> None:
    """Each window counts for the most that any of its revisions said."""
    results = _windows(drawn)
    one, other = make_recorder(), make_recorder()
    one.committed(CommittedBatch(tuple(results), at(5), 1))
    random.Random(seed).shuffle(results)
    for result in results:
        other.committed(CommittedBatch((result,), at(5), 1))
    assert _counters(one) == _counters(other)
    most: Counter[int] = Counter()
    for minute, lost, _ in drawn:
        most[minute] = max(most[minute], lost)
    assert samples_of(one.known(), "hopwatch_node_lost_messages_total")["orders", "b"] == sum(most.values())
