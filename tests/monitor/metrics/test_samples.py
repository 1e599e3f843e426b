"""Tests of what is shown: every figure where it belongs, and nothing where nothing is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hopwatch import __version__
from hopwatch.monitor.metrics import catalog
from hopwatch.monitor.metrics.recorder import MetricsRecorder
from hopwatch.monitor.metrics.samples import build_samples
from hopwatch.monitor.metrics.snapshot import AlertFigures, InitialState, StoreFigures
from hopwatch.monitor.results import OTHER, CommittedBatch, Quantiles, Status, Verdict, WindowResult
from hopwatch.monitor.settings.metrics import MIN_SERIES
from hopwatch.probes.metrics.metric import MAX_OPEN_SERIES
from tests.support.metrics_page import STORE_SNAPSHOT, make_recorder, sample_value, samples_of
from tests.support.recent import recent_figures
from tests.support.windows import at, window

LAG = Quantiles(100, 1, 500_000, 1_500_000, 2_500_000, 9_000_000)


def after(*results: WindowResult, watermark_us: int = at(5), **what: Any) -> MetricsRecorder:  # noqa: ANN401 - as measured has it
    """Return what is measured after a micro-batch."""
    of = make_recorder(**what)
    of.committed(CommittedBatch(results, watermark_us, 0.5))
    return of


# A window


def test_lags_are_shown_in_seconds_by_stamp_and_quantile() -> None:
    """Those that were measured; of a stamp that was not there is no sample."""
    of = after(window(0, lag_us=LAG, nodes={"b": {"lag_in_us": LAG}}))
    assert samples_of(of.known(), "hopwatch_node_lag_seconds") == {
        ("orders", "b", "in", "0.5"): 0.5,
        ("orders", "b", "in", "0.95"): 1.5,
        ("orders", "b", "in", "0.99"): 2.5,
    }
    assert sample_value(of, "hopwatch_end_to_end_lag_seconds", stream="orders", quantile="0.99") == 2.5


def test_an_empty_lag_is_not_shown_as_zero() -> None:
    """Nobody was in time when nobody came."""
    of = after(window(0, lag_us=Quantiles(0, 0, 0, 0, 0, 0)))
    assert samples_of(of.known(), "hopwatch_end_to_end_lag_seconds") == {}


def test_loss_is_shown_by_its_bounds() -> None:
    """Over what was expected or seen at the node, and over what is known of the stream."""
    of = after(window(0, lost={"b": 20}))
    assert samples_of(of.known(), "hopwatch_node_loss_ratio") == {
        ("orders", "a", "lower"): 0,
        ("orders", "a", "upper"): 0,
        ("orders", "b", "lower"): 0.02,
        ("orders", "b", "upper"): 0.02,
    }
    assert sample_value(of, "hopwatch_stream_loss_ratio", stream="orders", bound="lower") == 0.02


def test_an_unknown_window_has_no_loss_not_even_none() -> None:
    """No sample, where 0 would read as well; the verdict says it, and coverage."""
    of = after(window(0, verdict=Verdict.UNKNOWN))
    known = of.known()
    assert samples_of(known, "hopwatch_node_loss_ratio") == samples_of(known, "hopwatch_stream_loss_ratio") == {}
    assert samples_of(known, "hopwatch_node_coverage_ratio") == {("orders", "a"): 0, ("orders", "b"): 0}
    verdicts = samples_of(known, "hopwatch_window_verdict")
    assert {labels[1]: shows for labels, shows in verdicts.items()} == {
        "SILENT": 0,
        "IDLE": 0,
        "LOSSY": 0,
        "CLEAN": 0,
        "UNKNOWN": 1,
    }


@pytest.mark.parametrize("upper", [0, 5])
def test_an_unknown_window_has_no_loss_end_to_end_where_some_of_it_is_bounded(upper: int) -> None:
    """As when probes say how many they dropped: none surely lost is no 0 there. A node with whole books has its own."""
    whole = {"loss_lower": 0, "loss_upper": 0, "coverage": 1.0}
    of = after(window(0, verdict=Verdict.UNKNOWN, lost_upper=upper, nodes={"a": whole}))
    assert samples_of(of.known(), "hopwatch_stream_loss_ratio") == {}
    assert samples_of(of.known(), "hopwatch_node_loss_ratio") == {
        ("orders", "a", "lower"): 0,
        ("orders", "a", "upper"): 0,
    }


def test_what_is_surely_lost_is_shown_where_the_rest_is_not_known() -> None:
    """A lower bound without an upper one."""
    of = after(window(0, nodes={"b": {"loss_lower": 10, "loss_upper": None, "coverage": None}}))
    assert samples_of(of.known(), "hopwatch_node_loss_ratio") == {
        ("orders", "a", "lower"): 0,
        ("orders", "a", "upper"): 0,
        ("orders", "b", "lower"): 0.01,
    }
    assert samples_of(of.known(), "hopwatch_node_coverage_ratio") == {("orders", "a"): 1}


def test_an_upper_bound_is_a_ratio_still_when_a_probe_dropped_more_than_there_was() -> None:
    """At most all can be lost."""
    of = after(window(0, known=10, nodes={"b": {"loss_upper": 25}}))
    assert sample_value(of, "hopwatch_node_loss_ratio", stream="orders", node="b", bound="upper") == 1


def test_an_idle_window_has_no_ratio() -> None:
    """Of nothing, nothing can be lost."""
    assert samples_of(after(window(0, known=0)).known(), "hopwatch_stream_loss_ratio") == {}


def test_the_newest_final_window_is_shown() -> None:
    """The gauges are those of the newest window; amending an older one changes none."""
    of = after(window(1, lost={"b": 20}), window(0, lost={"b": 500}))
    assert sample_value(of, "hopwatch_stream_loss_ratio", stream="orders", bound="lower") == 0.02
    assert sample_value(of, "hopwatch_newest_final_window_timestamp_seconds", stream="orders") == at(1) / 1e6
    of.committed(CommittedBatch((window(1, lost={"b": 30}),), at(6), 0.5))
    assert sample_value(of, "hopwatch_stream_loss_ratio", stream="orders", bound="lower") == 0.03


def test_after_a_restart_the_newest_window_comes_from_the_store() -> None:
    """There is no hole until the next one."""
    of = make_recorder(beginning=InitialState(at(5), (window(1, lost={"b": 20}),)))
    assert sample_value(of, "hopwatch_stream_loss_ratio", stream="orders", bound="lower") == 0.02
    assert sample_value(of, "hopwatch_watermark_timestamp_seconds") == at(5) / 1e6


@pytest.mark.parametrize(("minute", "is_shown"), [(14, True), (15, False)])
def test_a_stream_without_windows_shows_no_old_ones(minute: int, is_shown: bool) -> None:  # noqa: FBT001 - what is expected
    """Ten minutes after it was due, a window says nothing any more but when it was; verdict and lag are gone."""
    of = after(window(0, lag_us=LAG), watermark_us=at(minute))
    known = of.known()
    for name in ("hopwatch_window_verdict", "hopwatch_end_to_end_lag_seconds", "hopwatch_stream_loss_ratio"):
        assert bool(samples_of(known, name)) == is_shown
    assert samples_of(known, "hopwatch_newest_final_window_timestamp_seconds") == {("orders",): at(0) / 1e6}
    assert samples_of(known, "hopwatch_streams")["none",] == (0 if is_shown else 1)


# What is folded


def folded(*results: WindowResult) -> MetricsRecorder:
    """Return what is measured of more streams than there is room for."""
    names = [f"s{number:02}" for number in range(60)]
    of = make_recorder(*names, most_series=MIN_SERIES)
    of.committed(CommittedBatch(results, at(5), 0.5))
    return of


def test_folded_streams_are_one_whose_counters_are_sums() -> None:
    """And whose loss is a ratio of sums; percentiles and verdicts are not folded at all."""
    of = folded(window(0, stream="s58", lost={"b": 20}, lag_us=LAG), window(0, stream="s59", lag_us=LAG))
    assert sample_value(of, "hopwatch_lost_messages_total", stream=OTHER) == 20
    assert sample_value(of, "hopwatch_messages_total", stream=OTHER) == 2_000
    assert sample_value(of, "hopwatch_stream_loss_ratio", stream=OTHER, bound="lower") == 0.01
    assert sample_value(of, "hopwatch_node_lost_messages_total", stream=OTHER, node=OTHER) == 20
    assert sample_value(of, "hopwatch_node_loss_ratio", stream=OTHER, node=OTHER, bound="upper") == 20 / 4_000
    known = of.known()
    assert known.plan.folded_series == sample_value(of, "hopwatch_folded_series")
    names = ("hopwatch_end_to_end_lag_seconds", "hopwatch_node_lag_seconds", "hopwatch_window_verdict")
    assert [name for name in names if samples_of(known, name)] == []
    assert samples_of(known, "hopwatch_streams")["LOSSY",] == 1


def test_one_folded_node_of_which_nobody_knows_leaves_no_upper_bound() -> None:
    """With one unknown node folded in, there is no upper bound, and the lower bound is still a sample."""
    of = folded(window(0, stream="s58", lost={"b": 20}), window(0, stream="s59", verdict=Verdict.UNKNOWN))
    assert sample_value(of, "hopwatch_node_loss_ratio", stream=OTHER, node=OTHER, bound="lower") == 20 / 4_000
    assert sample_value(of, "hopwatch_node_loss_ratio", stream=OTHER, node=OTHER, bound="upper") is None


def test_folded_streams_of_which_no_window_is_recent_have_nothing_in_flight() -> None:
    """Folded streams without a recent window have no sample of messages in flight, rather than 0."""
    known = folded(window(0, stream="s01")).known()
    assert samples_of(known, "hopwatch_in_flight_messages") == {("s01",): 0}


def test_what_was_delivered_elsewhere_is_counted_beside_the_loss() -> None:
    """Of the newest final window of a stream, and of all folded ones together."""
    of = folded(*(window(0, stream=name, lost={"b": 20}, partial=12) for name in ("s00", "s58", "s59")))
    assert sample_value(of, "hopwatch_partial_messages", stream="s00") == 12
    assert sample_value(of, "hopwatch_partial_messages", stream=OTHER) == 24


def test_counts_by_words_of_others_are_bounded() -> None:
    """Those beyond the bound are one."""
    of = make_recorder()
    reasons = {f"reason {number:03}": 1 for number in range(MAX_OPEN_SERIES + 5)}
    of.read(replace(STORE_SNAPSHOT, store=StoreFigures(set_aside=reasons)))
    found = samples_of(of.known(), "hopwatch_set_aside_records_total")
    assert (len(found), found[OTHER,]) == (MAX_OPEN_SERIES + 1, 5)


# The monitor itself


def test_every_figure_of_the_store_is_shown() -> None:
    """Each under its own name."""
    of = make_recorder()
    of.read(STORE_SNAPSHOT)
    for name, expected, labels in (
        ("hopwatch_records_total", 7, {}),
        ("hopwatch_observations_total", 90, {}),
        ("hopwatch_duplicate_batches_total", 1, {}),
        ("hopwatch_too_late_observations_total", 2, {}),
        ("hopwatch_implausible_observations_total", 3, {}),
        ("hopwatch_aged_out_records_total", 4, {}),
        ("hopwatch_set_aside_records_total", 5, {"reason": "torn"}),
        ("hopwatch_waiting_windows", 3, {"status": "PROVISIONAL"}),
        ("hopwatch_probe_instances", 1, {"state": "silent"}),
        ("hopwatch_missing_batches", 6, {}),
        ("hopwatch_open_incidents", 1, {"rule": "loss", "severity": "page"}),
        ("hopwatch_results_waiting_windows", 11, {}),
        ("hopwatch_outbox_notifications", 2, {"channel": "pager", "state": "waiting"}),
        ("hopwatch_outbox_oldest_waiting_timestamp_seconds", at(3) / 1e6, {}),
        ("hopwatch_store_up", 1, {}),
        ("hopwatch_store_read_timestamp_seconds", at(9) / 1e6, {}),
        ("hopwatch_start_timestamp_seconds", at(10) / 1e6, {}),
        ("hopwatch_build_info", 1, {"version": __version__}),
    ):
        assert sample_value(of, name, **labels) == expected, name


def test_an_outbox_in_which_nothing_waits_has_no_oldest() -> None:
    """Rather than one of 1970."""
    of = make_recorder()
    of.read(replace(STORE_SNAPSHOT, alerts=AlertFigures()))
    assert sample_value(of, "hopwatch_outbox_oldest_waiting_timestamp_seconds") is None


def test_a_store_that_cannot_be_read_breaks_nothing() -> None:
    """The last figures stand, with their time; before the first there are none."""
    of = make_recorder()
    assert sample_value(of, "hopwatch_store_up") is None
    of.read(None)
    assert sample_value(of, "hopwatch_store_up") == 0
    assert sample_value(of, "hopwatch_records_total") is None
    of.read(STORE_SNAPSHOT)
    of.read(None)
    assert sample_value(of, "hopwatch_store_up") == 0
    assert sample_value(of, "hopwatch_records_total") == 7
    assert sample_value(of, "hopwatch_store_read_timestamp_seconds") == at(9) / 1e6


def test_micro_batches_are_counted_by_how_long_they_took() -> None:
    """Each limit with all that took no longer; when the last one was written, by the clock of the wall."""
    of = make_recorder()
    assert sample_value(of, "hopwatch_last_batch_timestamp_seconds") is None
    for took_s in (0.1, 0.3, 500.0):
        of.committed(CommittedBatch((), at(5), took_s))
    buckets = {
        le: sample_value(of, "hopwatch_batch_duration_seconds_bucket", le=le) for le in ("0.1", "0.25", "0.5", "+Inf")
    }
    assert buckets == {"0.1": 1, "0.25": 1, "0.5": 2, "+Inf": 3}
    assert sample_value(of, "hopwatch_batch_duration_seconds_sum") == pytest.approx(500.4)
    assert sample_value(of, "hopwatch_batch_duration_seconds_count") == 3
    assert sample_value(of, "hopwatch_last_batch_timestamp_seconds") == at(10) / 1e6


def test_a_batch_that_wrote_nothing_leaves_the_watermark() -> None:
    """A replay is told without one."""
    of = after(watermark_us=at(5))
    of.committed(CommittedBatch((), 0, 0.1))
    assert sample_value(of, "hopwatch_watermark_timestamp_seconds") == at(5) / 1e6


def test_every_metric_can_be_shown() -> None:
    """There is a moment at which each has a sample."""
    of = after(window(0, lag_us=LAG, nodes={"b": {"lag_in_us": LAG}}))
    of.change_rules({"orders": replace(of.rules["orders"], deadlines=(("b", 1_000_000),))}, of.plan)
    of.read(STORE_SNAPSHOT)
    of.committed(CommittedBatch((), at(10), 0.5, recent=(recent_figures(),)))
    assert {sample.metric for sample in build_samples(of.known())} == set(catalog.ALL_METRICS)


def test_overdue_messages_are_summed_over_windows_that_are_not_final() -> None:
    """Without a deadline there is no sample; a window that is final counts no more."""
    of, name = make_recorder("orders", "late"), "hopwatch_overdue_messages"
    assert samples_of(of.known(), name) == {}
    of.change_rules({**of.rules, "orders": replace(of.rules["orders"], deadlines=(("b", 1_000_000),))}, of.plan)
    assert samples_of(of.known(), name) == {("orders",): 0}
    early = [window(minute, status=Status.OPEN, overdue=3) for minute in (0, 1)]
    of.committed(CommittedBatch(tuple(early), at(2), 0.5))
    assert samples_of(of.known(), name) == {("orders",): 6}
    of.committed(CommittedBatch((window(0), window(1, status=Status.PROVISIONAL, overdue=1)), at(3), 0.5))
    assert samples_of(of.known(), name) == {("orders",): 1}
