"""Outlier detection of a micro-batch: final windows enter the series of the ledger, and the store keeps the findings.

The memory of the series is kept by the hour, so that a monitor that starts later finds what one that goes on finds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from sqlalchemy import Connection

from hopwatch.monitor.accounting.ledger import Conclusion, Ledger
from hopwatch.monitor.outliers.series_tracker import SeriesTracker
from hopwatch.monitor.outliers.window_values import extract_values
from hopwatch.monitor.selftest.stream import SELFTEST_STREAM
from hopwatch.monitor.store import outliers, pathway_versions, reader
from hopwatch.monitor.store.outliers import StoredSeries
from hopwatch.monitor.store.rollups import DAY_US, HOUR_US
from hopwatch.probes.contract.limits import WINDOW_US

LOOKBACK_US: Final = DAY_US
"""Span of past windows that a series without a stored state starts from."""

_NEVER_US: Final = 2**63 - 1


def detect_outliers(connection: Connection, ledger: Ledger, conclusions: Sequence[Conclusion]) -> list[Conclusion]:
    """Run the detector over newly written final windows, and write its findings.

    Returns the conclusions, with the outliers of their nodes.
    """
    for stream in dict.fromkeys(conclusion.result.stream for conclusion in conclusions):
        results = [one.result for one in conclusions if one.result.stream == stream and one.result.status.is_final]
        # In the self-test nothing is usual: its losses are drawn by chance.
        if not results or stream == SELFTEST_STREAM:
            continue
        came = {result.window_start_us for result in results}
        if stream not in ledger.watched:
            ledger.watched[stream] = resume_series(connection, stream, _read_nodes(connection, ledger, stream), came)
        changes = ledger.watched[stream].enter(results, StoredSeries(connection, stream))
        outliers.write_changes(connection, stream, changes)
    return [_with_findings(ledger, conclusion) for conclusion in conclusions]


def save_series(connection: Connection, ledger: Ledger) -> None:
    """Save the series states of one stream, at the newest hour before which no window can change.

    The stream with the oldest values in memory comes first.
    """
    for stream, watched in sorted(ledger.watched.items(), key=lambda one: min(one[1].values, default=_NEVER_US)):
        oldest_us = min(ledger.live.get(stream, ()), default=watched.newest_us + WINDOW_US)
        hour_us = oldest_us // HOUR_US * HOUR_US
        if min(watched.values, default=hour_us) < hour_us:
            states = watched.base_at(hour_us, StoredSeries(connection, stream))
            outliers.save_states(connection, stream, hour_us, states)
            return


def resume_series(
    connection: Connection, stream: str, nodes: tuple[str, ...], came: Collection[int] = ()
) -> SeriesTracker:
    """Rebuild the series of a stream up to the windows in ``came``, which are written already."""
    stored = StoredSeries(connection, stream)
    base_us = stored.before_us()
    if base_us is None:
        newest_us = reader.read_newest_final_us(connection, stream)
        base_us = 0 if newest_us is None else max(0, newest_us - LOOKBACK_US)
        # A monitor that starts before any state is stored starts at the same time as this one.
        outliers.save_start(connection, stream, base_us)
    watched = SeriesTracker(nodes, base_us)
    results = reader.read_final_windows(connection, stream, base_us)
    values = {
        result.window_start_us: extract_values(result, nodes)
        for result in results
        if result.window_start_us not in came
    }
    watched.restore_windows(values, list(outliers.read_latest_outliers(connection, stream, base_us)), stored)
    return watched


def _read_nodes(connection: Connection, ledger: Ledger, stream: str) -> tuple[str, ...]:
    """Return the nodes of all versions of a stream, also of those of which no window can change any more."""
    stored = pathway_versions.read_stream(connection, stream)
    return (ledger.rules[stream] if stored is None else stored).nodes_by_age


def _with_findings(ledger: Ledger, conclusion: Conclusion) -> Conclusion:
    result = conclusion.result
    if not result.status.is_final or result.stream not in ledger.watched:
        return conclusion
    return conclusion._replace(outliers=ledger.watched[result.stream].find_outliers(result.window_start_us))
