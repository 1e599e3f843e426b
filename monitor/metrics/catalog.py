"""Catalog of the monitor's metrics; docs/METRICS.md is written from it.

Two rules hold for all of them. What cannot be known has no sample: neither 0, which would read as well, nor NaN, which
would spoil every sum. And gauges of a window are those of the newest final one, for as long as it is recent.
"""

from __future__ import annotations

from typing import Final

from hopwatch.monitor.results import Verdict
from hopwatch.probes.metrics.metric import Label, Metric, MetricType

STREAM: Final = Label("stream")
NODE: Final = Label("node")
QUANTILE: Final = Label("quantile", ("0.5", "0.95", "0.99"))
BOUND: Final = Label("bound", ("lower", "upper"))
STAMP: Final = Label("stamp", ("in", "out"))
VERDICT: Final = Label("verdict", tuple(Verdict))
BUCKETS_S: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

_NEVER: Final = "Quantiles can be neither averaged nor added, nor is the largest of them one."
_BOUNDS: Final = (
    "Lower: surely lost. Upper: no more than that can be lost; no sample where that is unknown. "
    "Neither has one where nothing is known at all."
)
_OF_WINDOWS: Final = "Counted when a window becomes final, and what amendments add to it."


def _counter(name: str, text: str, *labels: Label) -> Metric:
    return Metric(name, MetricType.COUNTER, text, labels)


def _gauge(name: str, text: str, *labels: Label) -> Metric:
    return Metric(name, MetricType.GAUGE, text, labels)


# Of a node.

NODE_LAG: Final = Metric(
    "hopwatch_node_lag_seconds",
    MetricType.SUMMARY,
    "How late messages came in at a node and went out of it, after their event time, and how long they were inside, "
    f"in the newest final window. {_NEVER}",
    (STREAM, NODE, Label("stamp", ("in", "out", "inside")), QUANTILE),
)
NODE_LOSS: Final = _gauge(
    "hopwatch_node_loss_ratio",
    f"Messages lost at a node, over those expected or seen there, in the newest final window. {_BOUNDS}",
    STREAM,
    NODE,
    BOUND,
)
NODE_COVERAGE: Final = _gauge(
    "hopwatch_node_coverage_ratio",
    "Probe instances of a node with a complete account of the newest final window, over those with a say in it.",
    STREAM,
    NODE,
)
NODE_DEFERRED: Final = _gauge(
    "hopwatch_node_deferred_messages",
    "Messages of the newest final window that a node keeps for a later try.",
    STREAM,
    NODE,
)
NODE_MESSAGES: Final = _counter(
    "hopwatch_node_messages_total", f"Messages expected or seen at a node. {_OF_WINDOWS}", STREAM, NODE
)
NODE_LOST: Final = _counter(
    "hopwatch_node_lost_messages_total", f"Messages surely lost at a node. {_OF_WINDOWS}", STREAM, NODE
)
NODE_DUPLICATES: Final = _counter(
    "hopwatch_node_duplicate_stamps_total",
    f"Stamps of messages that the node had stamped before. {_OF_WINDOWS}",
    STREAM,
    NODE,
    STAMP,
)
NODE_NEGATIVE_LAGS: Final = _counter(
    "hopwatch_node_negative_lags_total",
    f"Stamps earlier than the event time of their message: a clock is wrong. {_OF_WINDOWS}",
    STREAM,
    NODE,
)
NODE_DROPPED: Final = _counter(
    "hopwatch_node_dropped_observations_total",
    f"Observations that a node's probes had to drop, by their own account. {_OF_WINDOWS}",
    STREAM,
    NODE,
)
NODE_UNOBSERVED: Final = _counter(
    "hopwatch_node_unobserved_messages_total",
    f"Messages that a node's probe missed: expected there, and seen below it. {_OF_WINDOWS}",
    STREAM,
    NODE,
)

RECENT_LAG: Final = Metric(
    "hopwatch_node_recent_lag_seconds",
    MetricType.SUMMARY,
    "How late messages came in at a node and went out of it, after their event time, in the last ten seconds of "
    f"arrival; provisional. {_NEVER}",
    (STREAM, NODE, STAMP, QUANTILE),
)
EDGE_TIME: Final = Metric(
    "hopwatch_edge_recent_time_seconds",
    MetricType.SUMMARY,
    "How long messages took from their departure from a source to their arrival at a node, of those that arrived in "
    f"the last ten seconds; of a sample, by the clocks of both, and provisional. {_NEVER}",
    (STREAM, Label("source"), NODE, QUANTILE),
)
RECENT_RATE: Final = _gauge(
    "hopwatch_node_recent_messages_per_second",
    "Messages that a node stamped a second, in the last ten seconds of arrival; provisional.",
    STREAM,
    NODE,
    STAMP,
)
BACKLOG: Final = _gauge(
    "hopwatch_node_backlog_messages",
    "Messages that a node was to have and has not passed on, in all windows that can still change; those that are lost "
    "are among them until their windows are final.",
    STREAM,
    NODE,
)
BACKLOG_TIME: Final = _gauge(
    "hopwatch_node_backlog_seconds",
    "The time that the backlog of a node takes at the pace of the last ten seconds. No sample where nothing passes it.",
    STREAM,
    NODE,
)

# Of a stream.

END_TO_END_LAG: Final = Metric(
    "hopwatch_end_to_end_lag_seconds",
    MetricType.SUMMARY,
    f"How late messages left the last nodes of a stream, after their event time, in the newest final window. {_NEVER}",
    (STREAM, QUANTILE),
)
LOSS: Final = _gauge(
    "hopwatch_stream_loss_ratio",
    f"Messages of a stream lost end to end, over those known, in the newest final window. {_BOUNDS}",
    STREAM,
    BOUND,
)
VERDICTS: Final = _gauge(
    "hopwatch_window_verdict",
    "1 for the verdict on a stream's newest final window, 0 for the others. UNKNOWN is neither good nor loss.",
    STREAM,
    VERDICT,
)
NEWEST: Final = _gauge(
    "hopwatch_newest_final_window_timestamp_seconds", "The start of a stream's newest final window.", STREAM
)
IN_FLIGHT: Final = _gauge(
    "hopwatch_in_flight_messages",
    "Messages of the newest final window that are not judged yet, because they were first seen late.",
    STREAM,
)
DEFERRED: Final = _gauge(
    "hopwatch_deferred_messages",
    "Messages of the newest final window that some node keeps for a later try: in flight while they wait, and no loss.",
    STREAM,
)
OVERDUE: Final = _gauge(
    "hopwatch_overdue_messages",
    "Messages of windows that are not final yet which are missing at some node beyond its deadline, for sure. "
    "No sample where no node of the stream has a deadline.",
    STREAM,
)
RECENT_THROUGH: Final = _gauge(
    "hopwatch_recent_timestamp_seconds",
    "The end of the ten seconds of arrival that the recent figures of a stream are of.",
    STREAM,
)
PARTIAL: Final = _gauge(
    "hopwatch_partial_messages",
    "Messages of the newest final window that are missing at some node, lost or not, and were delivered elsewhere.",
    STREAM,
)
MESSAGES: Final = _counter("hopwatch_messages_total", f"Messages of a stream that were seen. {_OF_WINDOWS}", STREAM)
JUDGED: Final = _counter(
    "hopwatch_judged_messages_total",
    "Messages of windows that are neither UNKNOWN nor SILENT: what surely lost ones are a part of. " + _OF_WINDOWS,
    STREAM,
)
LOST: Final = _counter(
    "hopwatch_lost_messages_total", f"Messages of a stream surely lost, end to end. {_OF_WINDOWS}", STREAM
)
STOPPED: Final = _counter(
    "hopwatch_stopped_messages_total",
    f"Messages that a node ended: filtered on purpose, rejected as bad. {_OF_WINDOWS}",
    STREAM,
    Label("outcome", ("filtered", "rejected")),
)
RECOVERED: Final = _counter(
    "hopwatch_recovered_messages_total",
    "Messages that had been called lost and turned up; they stay counted as lost too.",
    STREAM,
)
WINDOWS: Final = _counter(
    "hopwatch_windows_total",
    "Final windows of a stream by verdict; one that is amended to another verdict counts under both.",
    STREAM,
    VERDICT,
)

# Of the monitor itself.

BUILD: Final = _gauge("hopwatch_build_info", "1; the label says which version runs.", Label("version"))
START: Final = _gauge("hopwatch_start_timestamp_seconds", "When the monitor started.")
CONFIG_IN_FORCE: Final = _gauge(
    "hopwatch_config_last_reload_successful",
    "1 if the configuration file is in force as it is, 0 if the monitor refused its last change.",
)
LAST_BATCH: Final = _gauge("hopwatch_last_batch_timestamp_seconds", "When the last micro-batch was written.")
BATCH_DURATION: Final = Metric(
    "hopwatch_batch_duration_seconds",
    MetricType.HISTOGRAM,
    "How long micro-batches took to be decoded, tallied and written.",
    (Label("le", (*map(str, BUCKETS_S), "+Inf")),),
)
WATERMARK: Final = _gauge(
    "hopwatch_watermark_timestamp_seconds",
    "The moment up to which records have arrived and were read. How far behind that is: time() less this.",
)
STREAMS: Final = _gauge(
    "hopwatch_streams",
    "Streams by the verdict on their newest final window, folded ones too; none where none is recent.",
    Label("verdict", (*Verdict, "none")),
)
WAITING: Final = _gauge(
    "hopwatch_waiting_windows",
    "Windows that are not judged yet: open, or over and provisional.",
    Label("status", ("OPEN", "PROVISIONAL")),
)
INSTANCES: Final = _gauge(
    "hopwatch_probe_instances",
    "Probe instances that have not said bye: alive if they told of the last minute, silent for up to 10 minutes.",
    Label("state", ("alive", "silent")),
)
MISSING: Final = _gauge(
    "hopwatch_missing_batches", "Batches that never came, of probe instances that are alive or silent."
)
RECORDS: Final = _counter("hopwatch_records_total", "Records received: batches and records set aside.")
OBSERVATIONS: Final = _counter("hopwatch_observations_total", "Observations received.")
DUPLICATE_BATCHES: Final = _counter(
    "hopwatch_duplicate_batches_total", "Batches that had come before, and were set aside."
)
TOO_LATE: Final = _counter(
    "hopwatch_too_late_observations_total", "Observations that came when their window could not be amended any more."
)
IMPLAUSIBLE: Final = _counter(
    "hopwatch_implausible_observations_total", "Observations of windows too far ahead of their arrival, or too old."
)
SET_ASIDE: Final = _counter(
    "hopwatch_set_aside_records_total", "Records that cannot be counted and were set aside, by reason.", Label("reason")
)
AGED_OUT: Final = _counter(
    "hopwatch_aged_out_records_total", "Records that had aged out of a topic before they were read."
)
INCIDENTS: Final = _gauge(
    "hopwatch_open_incidents", "Incidents that are open, by rule and severity.", Label("rule"), Label("severity")
)
OUTBOX: Final = _gauge(
    "hopwatch_outbox_notifications",
    "Notifications in the outbox, by channel and what has become of them.",
    Label("channel"),
    Label("state"),
)
OLDEST_WAITING: Final = _gauge(
    "hopwatch_outbox_oldest_waiting_timestamp_seconds",
    "When the oldest notification that still waits to be sent was decided, by the watermark; none where none waits.",
)
RESULTS_WAITING: Final = _gauge(
    "hopwatch_results_waiting_windows",
    "Windows whose last state is not in the topic of results yet; none where there is no topic.",
)
SELFTEST_WINDOWS: Final = _gauge(
    "hopwatch_selftest_windows",
    "Windows of the self-test in the last hour, by whether they were measured as they were injected.",
    Label("outcome", ("as_injected", "failed")),
)
SELFTEST_LOST: Final = _gauge(
    "hopwatch_selftest_lost_messages",
    "Lost messages of the self-test in the last hour: those that were injected, those of them that were found as "
    "missing, and those that were called surely lost by mistake.",
    Label("counted", ("injected", "found", "false")),
)
SELFTEST_WINDOW: Final = _gauge(
    "hopwatch_selftest_last_window_timestamp_seconds",
    "When the newest window began that was compared with what was injected; none before the first.",
)
STORE_UP: Final = _gauge("hopwatch_store_up", "1 if the store could be read the last time that it was tried, else 0.")
STORE_READ: Final = _gauge(
    "hopwatch_store_read_timestamp_seconds", "When the store was read last: what it says is as old as that."
)
FOLDED: Final = _gauge(
    "hopwatch_folded_series", "Series that are not shown by themselves, because there may be no more than most_series."
)

NODE_METRICS: Final = (
    NODE_LAG,
    NODE_LOSS,
    NODE_COVERAGE,
    NODE_DEFERRED,
    NODE_MESSAGES,
    NODE_LOST,
    NODE_DUPLICATES,
    NODE_NEGATIVE_LAGS,
    NODE_DROPPED,
    NODE_UNOBSERVED,
    RECENT_LAG,
    RECENT_RATE,
    BACKLOG,
    BACKLOG_TIME,
)
EDGE_METRICS: Final = (EDGE_TIME,)
STREAM_METRICS: Final = (
    END_TO_END_LAG,
    LOSS,
    VERDICTS,
    NEWEST,
    IN_FLIGHT,
    DEFERRED,
    OVERDUE,
    RECENT_THROUGH,
    PARTIAL,
    MESSAGES,
    JUDGED,
    LOST,
    STOPPED,
    RECOVERED,
    WINDOWS,
)
MONITOR_METRICS: Final = (
    BUILD,
    START,
    CONFIG_IN_FORCE,
    LAST_BATCH,
    BATCH_DURATION,
    WATERMARK,
    STREAMS,
    WAITING,
    INSTANCES,
    MISSING,
    RECORDS,
    OBSERVATIONS,
    DUPLICATE_BATCHES,
    TOO_LATE,
    IMPLAUSIBLE,
    SET_ASIDE,
    AGED_OUT,
    INCIDENTS,
    OUTBOX,
    OLDEST_WAITING,
    RESULTS_WAITING,
    SELFTEST_WINDOWS,
    SELFTEST_LOST,
    SELFTEST_WINDOW,
    STORE_UP,
    STORE_READ,
    FOLDED,
)
ALL_METRICS: Final = (*STREAM_METRICS, *NODE_METRICS, *EDGE_METRICS, *MONITOR_METRICS)
