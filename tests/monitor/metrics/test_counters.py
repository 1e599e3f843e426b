"""Tests of counters: each window counts once, for the most that it ever said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hopwatch.monitor.metrics.recorder import MetricsRecorder
from hopwatch.monitor.metrics.snapshot import InitialState
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import CommittedBatch, Status, Verdict, WindowResult
from tests.support.metrics_page import make_recorder, sample_value
from tests.support.windows import at, window


def commit(of: MetricsRecorder, *results: WindowResult, watermark_us: int = at(5)) -> None:
    """Let a micro-batch be written."""
    of.committed(CommittedBatch(results, watermark_us, 0.5))


def lost(of: MetricsRecorder) -> float | None:
    """Return how many messages are counted as lost at b."""
    return sample_value(of, "hopwatch_node_lost_messages_total", stream="orders", node="b")


def test_counters_are_there_before_the_first_window() -> None:
    """At 0, so that the first increase is seen."""
    assert lost(make_recorder()) == 0


def test_a_window_counts_when_it_becomes_final() -> None:
    """Not before: what is missing then is in flight."""
    of = make_recorder()
    commit(of, window(0, lost={"b": 20}, status=Status.PROVISIONAL))
    assert lost(of) == 0
    commit(of, window(0, lost={"b": 20}), window(1, lost={"b": 3}))
    assert lost(of) == 23
    assert sample_value(of, "hopwatch_lost_messages_total", stream="orders") == 23
    assert sample_value(of, "hopwatch_messages_total", stream="orders") == 2_000
    assert sample_value(of, "hopwatch_node_messages_total", stream="orders", node="b") == 2_000


def test_an_amended_window_counts_what_is_added() -> None:
    """Counters never fall: what turned up stays counted as lost, and counts as recovered."""
    of = make_recorder()
    first = window(0, lost={"b": 20})
    commit(of, first)
    commit(of, first)
    assert lost(of) == 20
    commit(of, replace(window(0, lost={"b": 5}), status=Status.AMENDED, recovered=15))
    assert lost(of) == 20
    assert sample_value(of, "hopwatch_recovered_messages_total", stream="orders") == 15
    commit(of, replace(window(0, lost={"b": 21}), status=Status.AMENDED, recovered=15))
    assert lost(of) == 21


def test_an_unknown_window_is_not_judged_until_it_is() -> None:
    """Its messages are no part of what loss is a part of; amended, they are."""
    of = make_recorder()
    commit(of, window(0, verdict=Verdict.UNKNOWN))
    assert sample_value(of, "hopwatch_messages_total", stream="orders") == 1_000
    assert sample_value(of, "hopwatch_judged_messages_total", stream="orders") == 0
    commit(of, replace(window(0), status=Status.AMENDED))
    assert sample_value(of, "hopwatch_judged_messages_total", stream="orders") == 1_000
    for verdict in ("UNKNOWN", "CLEAN"):
        assert sample_value(of, "hopwatch_windows_total", stream="orders", verdict=verdict) == 1


def test_what_was_counted_before_a_restart_counts_from_there_on() -> None:
    """A window that was final already adds only what comes to it."""
    of = make_recorder(beginning=InitialState(at(4), (), {("orders", at(0))}))
    commit(of, window(0, lost={"b": 20}))
    assert lost(of) == 0
    commit(of, replace(window(0, lost={"b": 22}), status=Status.AMENDED))
    assert lost(of) == 2


@pytest.mark.parametrize(("minute", "kept"), [(68, 1), (69, 0)])
def test_windows_that_cannot_be_judged_again_are_forgotten(minute: int, kept: int) -> None:
    """An hour of amendments and what may be in flight then are waited for."""
    of = make_recorder()
    commit(of, window(0, lost={"b": 20}))
    commit(of, watermark_us=at(minute))
    assert len(of._counted._said) == kept
    assert lost(of) == 20


@pytest.mark.parametrize("dropped", [2**32 - 1, 2**32, 2**53 - 4])
def test_counts_of_any_size_can_be_judged_again(dropped: int) -> None:
    """A probe may say that it dropped as many as the books take; what a window says again adds nothing."""
    of = make_recorder()
    commit(of, window(0, nodes={"b": {"dropped": dropped}}))
    commit(of, replace(window(0, nodes={"b": {"dropped": dropped + 3}}), status=Status.AMENDED))
    commit(of, window(0, nodes={"b": {"dropped": dropped}}))
    assert sample_value(of, "hopwatch_node_dropped_observations_total", stream="orders", node="b") == dropped + 3


def test_streams_that_are_not_configured_count_nowhere() -> None:
    """The store may hold windows of a stream that was taken out."""
    of = make_recorder()
    commit(of, window(0, stream="gone"))
    assert sample_value(of, "hopwatch_messages_total", stream="gone") is None


def test_counts_stay_with_their_nodes_when_a_path_is_edited() -> None:
    """By their names, whatever their places; an amended window adds what comes to it, also at a node that is gone."""
    of = make_recorder()
    commit(of, window(0, lost={"b": 20}))
    before = of.rules["orders"]
    edited = replace(before, pathway=Pathway.parse("b -> c"), valid_from_us=at(2), earlier=(before,))
    of.change_rules({"orders": edited, "new": before}, of.plan)
    assert lost(of) == 20
    assert sample_value(of, "hopwatch_messages_total", stream="orders") == 1_000
    commit(of, replace(window(0, lost={"b": 23}), status=Status.AMENDED))
    assert lost(of) == 23
    commit(of, replace(window(1, lost={"b": 1}), stream="new"))
    assert of.known().totals["new"].stream.any()
    of.refuse_config()
    assert sample_value(of, "hopwatch_config_last_reload_successful") == 0
    of.change_rules({"orders": edited}, of.plan)
    assert sample_value(of, "hopwatch_config_last_reload_successful") == 1
    assert list(of.known().totals) == ["orders"]
