"""Stores with problems for tests: probe instances, incidents, outliers, records set aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Engine

from hopwatch.alerts.decision.episode import AlertEpisode, AlertSeries, AlertState, Phase
from hopwatch.alerts.decision.evaluation import AlertSnapshot
from hopwatch.alerts.decision.incidents import Incident
from hopwatch.alerts.decision.reading import bad_reading
from hopwatch.alerts.events import Event, Notification
from hopwatch.alerts.storage import alert_state, outbox
from hopwatch.monitor.accounting.holes import Hole
from hopwatch.monitor.kernel.books import BatchRun as Batches
from hopwatch.monitor.kernel.books import Book, InstanceCounts
from hopwatch.monitor.outliers.explanation import Explanation, SurpriseReason
from hopwatch.monitor.outliers.findings import FindingChanges, OutlierFinding
from hopwatch.monitor.outliers.quantities import Quantity
from hopwatch.monitor.payloads import SetAside
from hopwatch.monitor.store import outliers, writer
from hopwatch.monitor.store.writer import Changes
from tests.support.dashboard_stores import NOW_MINUTE
from tests.support.windows import at

WATERMARK_US: Final = at(NOW_MINUTE) - 5_000_000
SECOND_US: Final = 1_000_000


def book(node: str = "b", probe: str = "probe-1", *, told_ago_s: float = 5, **fields: Any) -> Book:  # noqa: ANN401
    """Return the book of an instance that told all up to so long before the watermark, in 60 batches."""
    through_us = WATERMARK_US - round(told_ago_s * 1e6)
    given: dict[str, Any] = {
        "stream": "orders",
        "epoch_us": at(0),
        "first_arrival_us": at(0) + SECOND_US,
        "last_arrival_us": through_us + SECOND_US,
        "runs": (Batches(0, 59, at(0), through_us),),
        "tallies": InstanceCounts(batches=60, observations=6_000),
        "skew_us": -SECOND_US,
    }
    return Book(node=node, probe=probe, **given | fields)


def holed(**fields: Any) -> Book:  # noqa: ANN401 - the fields of a book
    """Return the book of an instance of which three batches in two holes are missing, and some stamps were dropped."""
    runs = (Batches(0, 9, at(0), at(2)), Batches(11, 29, at(2.5), at(5)), Batches(32, 62, at(6), WATERMARK_US))
    told = {"runs": runs, "drops": {(at(5) // 1_000, "queue full"): 7, (at(6) // 1_000, "sink"): 2}}
    return book(**{"probe": "probe-2"} | told | fields)


def write(engine: Engine, *books: Book, set_aside: Sequence[SetAside] = (), holes: Sequence[Hole] = ()) -> None:
    """Write what came in."""
    changes = Changes(WATERMARK_US, books=list(books), set_aside=list(set_aside), holes=list(holes))
    with engine.execution_options(writes=True).begin() as connection:
        writer.write_changes(connection, changes)


def record(position: int = 8, **fields: Any) -> SetAside:  # noqa: ANN401 - the fields of a record
    """Return a record that could not be read."""
    given: dict[str, Any] = {
        "path": "/spool/0/0000000007.seg",
        "length": 217,
        "arrival_us": at(9),
        "reason": "bad_crc",
        "message": "the checksum is 1, got 2",
    }
    return SetAside(position=position, **given | fields)


def fire(
    engine: Engine,
    *notifications: Notification,
    channels: tuple[str, ...] = ("pager",),
    untold: Sequence[AlertState] = (),
) -> None:
    """Let incidents be open, put what they say on record, and keep alerts that none tells of."""
    incidents = {
        one.key: Incident(
            one.key, one.rule, one.severity, one.labels.get("stream", ""), one.since_us, one.at_us, one.total, one
        )
        for one in notifications
    }
    after = AlertSnapshot({state.series: state for state in untold}, incidents, at(0), WATERMARK_US)
    with engine.execution_options(writes=True).begin() as connection:
        alert_state.write_snapshot(connection, AlertSnapshot(), after)
        outbox.enqueue(connection, notifications, [channels for _ in notifications])


def tell(engine: Engine, *notifications: Notification, channels: tuple[str, ...] = ("pager",)) -> None:
    """Put notifications on record, of incidents that are not open."""
    with engine.execution_options(writes=True).begin() as connection:
        outbox.enqueue(connection, notifications, [channels for _ in notifications])


def over(one: Notification, minute: float) -> Notification:
    """Return the end of an incident."""
    return replace(one, event=Event.RESOLVED, at_us=at(minute))


def bad_since(minute: float, phase: Phase, rule: str = "lag", **series: str) -> AlertState:
    """Return an alert that is bad since a minute, and that no incident tells of."""
    names = {"rule": rule, "severity": "ticket", "stream": "orders", "node": "b"} | series
    reading = bad_reading(names["node"], 2e8, 1.5e8)
    run = AlertEpisode(phase, at(minute), 1)
    return AlertState(AlertSeries(**names), run=run, worst=reading, worst_us=at(minute))


def finding(minute: int = 5, *, is_outlier: bool = True, node: str = "b", **fields: Any) -> OutlierFinding:  # noqa: ANN401
    """Return a lag that is odd."""
    given: dict[str, Any] = {
        "quantity": Quantity.LAG_OUT_P95_US,
        "observed": 2_500_000.0,
        "low": 1_000.0,
        "high": 3_000.0,
        "reasons": (SurpriseReason("level", "far from its usual level", 100_000.0),),
        "since_us": at(minute - 2),
        "score": 12.0,
    }
    return OutlierFinding(at(minute), node, is_outlier, Explanation(**given | fields))


def find(engine: Engine, *findings: OutlierFinding, stream: str = "orders") -> None:
    """Write what is odd."""
    with engine.execution_options(writes=True).begin() as connection:
        outliers.write_changes(connection, stream, FindingChanges([], list(findings)))
