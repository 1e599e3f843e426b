"""Metrics of final windows, as OTLP has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from hopwatch.api.otlp_metrics.metric_points import MAX_EXEMPLARS, LostIds, build_request
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.rollup import SpanPart
from hopwatch.monitor.kernel.tally import NodeLags
from hopwatch.monitor.results import NodeResult, Verdict, WindowResult
from tests.support.conclusions import build_conclusion
from tests.support.spool import START_US

TRACE, SPAN = "ab" * 16, "cd" * 8
NO_LAGS: Final = NodeLags(tdigest.EMPTY, tdigest.EMPTY, tdigest.EMPTY)
WINDOW: Final = build_conclusion().result
PLACE: Final = ("orders", START_US, WINDOW.nodes[1].node)


def read(
    window: WindowResult, lags: NodeLags = NO_LAGS, lost_ids: LostIds | None = None
) -> dict[str, list[tuple[dict[str, str], Any]]]:
    """Return the points of a window by the names of their metrics, with their attributes."""
    request = ExportMetricsServiceRequest()
    request.ParseFromString(build_request([SpanPart(window, (NO_LAGS, lags), (None, None))], lost_ids or {}))
    (resource,) = request.resource_metrics
    assert [(one.key, one.value.string_value) for one in resource.resource.attributes] == [("service.name", "hopwatch")]
    return {
        metric.name: [
            ({one.key: one.value.string_value for one in point.attributes}, point)
            for point in getattr(metric, metric.WhichOneof("data")).data_points
        ]
        for metric in resource.scope_metrics[0].metrics
    }


def with_node(**changed: Any) -> WindowResult:  # noqa: ANN401 - fields of a node
    """Return a window whose second node is as said."""
    first, second = WINDOW.nodes
    changes: NodeResult = replace(second, **changed)
    return replace(WINDOW, nodes=(first, changes))


def test_points_have_the_times_of_their_window() -> None:
    """So that a window that is sent again has the same points."""
    for points in read(with_node(expected=3)).values():
        for _, point in points:
            assert point.start_time_unix_nano == START_US * 1_000
            assert point.time_unix_nano == (START_US + 60_000_000) * 1_000


def test_a_window_has_its_verdict() -> None:
    """As an attribute, for it is no number."""
    ((attributes, point),) = read(replace(WINDOW, verdict=Verdict.LOSSY))["hopwatch.window.verdict"]
    assert (attributes, point.as_int) == ({"hopwatch.stream": "orders", "hopwatch.verdict": "LOSSY"}, 1)
    assert "hopwatch.window.verdict" not in read(replace(WINDOW, verdict=None))


def test_a_node_has_its_counts_and_bounds() -> None:
    """By stream and node."""
    found = read(with_node(expected=10, seen=7, loss=3, loss_lower=2, loss_upper=4))
    names = ("expected", "seen", "lost", "lost.max")
    points = [found[f"hopwatch.node.{name}"][-1] for name in names]
    assert [point.as_int for _, point in points] == [10, 7, 2, 4]
    assert [of for of, _ in points] == [{"hopwatch.stream": "orders", "hopwatch.node": PLACE[2]}] * 4


def test_what_is_not_known_has_no_point() -> None:
    """No upper bound, and no lower one of 0: it would look like good news."""
    for lower, names in ((0, []), (2, ["hopwatch.node.lost"])):
        found = read(with_node(loss=3, loss_lower=lower, loss_upper=None))
        of_node = [
            name for name, points in found.items() if ".lost" in name and points[-1][0]["hopwatch.node"] == PLACE[2]
        ]
        assert of_node == names


def test_lost_messages_are_exemplars() -> None:
    """With trace and span, where the id is that of a traced service; a few of many."""
    ids = [f"{TRACE}-{SPAN}-1f", f"{TRACE}-{SPAN}", "order-7", *map(str, range(MAX_EXEMPLARS))]
    window = with_node(loss=99, loss_lower=99, loss_upper=99)
    exemplars = read(window, lost_ids={PLACE: ids})["hopwatch.node.lost"][-1][1].exemplars
    assert [one.filtered_attributes[0].value.string_value for one in exemplars] == ids[:MAX_EXEMPLARS]
    assert [(one.trace_id.hex(), one.span_id.hex()) for one in exemplars[:3]] == [
        (TRACE, SPAN),
        (TRACE, SPAN),
        ("", ""),
    ]


def test_no_message_is_called_lost_that_may_not_be() -> None:
    """Nobody knows which are, if fewer are surely lost than are missing."""
    window = with_node(loss=2, loss_lower=1, loss_upper=2)
    assert list(read(window, lost_ids={PLACE: ["a", "b"]})["hopwatch.node.lost"][-1][1].exemplars) == []


def test_lags_are_histograms_in_seconds() -> None:
    """At arrival and at departure; a stamp without a lag has none."""
    lags = NodeLags(tdigest.build(np.array([500_000, 1_500_000])), tdigest.EMPTY, tdigest.EMPTY)
    ((attributes, point),) = read(WINDOW, lags)["hopwatch.node.lag"]
    assert attributes == {"hopwatch.stream": "orders", "hopwatch.node": PLACE[2], "hopwatch.stamp": "in"}
    assert (point.count, point.sum, point.min, point.max) == (2, 2.0, 0.5, 1.5)
    assert "hopwatch.node.lag" not in read(WINDOW)
