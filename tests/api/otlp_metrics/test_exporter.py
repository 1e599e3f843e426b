"""Exporter of metrics over both databases, to a receiver that may refuse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from sqlalchemy import Engine

from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome
from hopwatch.api.otlp_metrics import exporter
from hopwatch.api.otlp_metrics.exporter import MetricsExporter
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import StoreError, TransportError
from hopwatch.monitor.results import Status, WindowResult
from hopwatch.monitor.store import dialect
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.conclusions import build_conclusion, write_conclusions
from tests.support.results_topic import RUN
from tests.support.spool import START_US


class Receiver:
    """Receiver of metrics: its next outcomes, and the windows that it has accepted, in µs from the first."""

    def __init__(self) -> None:
        """Start without a window; without an outcome all are accepted."""
        self.outcomes: list[Outcome] = []
        self.posts = 0
        self.windows: list[list[int]] = []

    def post(self, body: bytes, _: int) -> Outcome:
        """Take a request, or refuse it."""
        self.posts += 1
        outcome = self.outcomes.pop(0) if self.outcomes else Accepted()
        if isinstance(outcome, Accepted):
            request = ExportMetricsServiceRequest()
            request.ParseFromString(body)
            (verdicts,) = (
                one
                for one in request.resource_metrics[0].scope_metrics[0].metrics
                if one.name == "hopwatch.window.verdict"
            )
            starts_us = [point.start_time_unix_nano // 1_000 for point in verdicts.gauge.data_points]
            self.windows.append([(start_us - START_US) // WINDOW_US for start_us in starts_us])
        return outcome


@pytest.fixture
def receiver() -> Receiver:
    """Return a receiver that accepts all."""
    return Receiver()


@contextmanager
def exporting(engine: Engine, receiver: Receiver, url: str = "http://one", run: str = RUN) -> Iterator[MetricsExporter]:
    """Yield an exporter of a run that has the store."""
    with dialect.lock_store(engine.url.render_as_string(hide_password=False)) as hold:
        made = MetricsExporter(engine, url, receiver.post, clock=SystemClock(), run=run, hold=hold)
        yield made
        made.close()


def export(engine: Engine, receiver: Receiver, url: str = "http://one", run: str = RUN) -> list[int]:
    """Export until nothing is left, and return how many windows each request had."""
    counts = []
    with exporting(engine, receiver, url, run) as made:
        while count := made.publish_next():
            counts.append(count)
    return counts


def window(minute: int) -> WindowResult:
    """Return a window."""
    return replace(build_conclusion().result, window_start_us=START_US + minute * WINDOW_US)


def write(engine: Engine, *minutes: int) -> None:
    """Write windows that are final."""
    for minute in minutes:
        write_conclusions(engine, build_conclusion(window(minute)))


def test_windows_are_exported_from_now_on(engine: Engine, receiver: Receiver) -> None:
    """Receivers refuse what is old; a window that is judged again is sent again."""
    write(engine, 0, 1)
    assert export(engine, receiver) == []
    write(engine, 2, 3, 1)
    assert export(engine, receiver) == [3]
    assert [sorted(one) for one in receiver.windows] == [[1, 2, 3]]
    assert export(engine, receiver) == []


def test_a_request_has_no_more_than_a_receiver_takes(
    engine: Engine, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows of so many nodes together; a window that has more goes alone."""
    export(engine, receiver)
    write(engine, 0, 1, 2, 3)
    monkeypatch.setattr(exporter, "MAX_NODES", 4)
    assert export(engine, receiver) == [2, 2]
    write(engine, 4, 5)
    monkeypatch.setattr(exporter, "MAX_NODES", 1)
    assert export(engine, receiver) == [1, 1]


def test_the_first_window_of_a_new_store_is_exported(engine: Engine, receiver: Receiver) -> None:
    """A store that was empty at the first look has nothing old."""
    assert export(engine, receiver) == []
    write(engine, 0)
    assert export(engine, receiver) == [1]
    assert receiver.windows == [[0]]


def test_windows_that_are_not_final_are_not_sent(engine: Engine, receiver: Receiver) -> None:
    """Their figures are of now, and change."""
    write(engine, 0)
    export(engine, receiver)
    write_conclusions(engine, build_conclusion(replace(window(1), status=Status.PROVISIONAL, verdict=None)))
    assert export(engine, receiver) == [1]
    assert receiver.posts == 0


def test_what_is_not_taken_is_sent_again(engine: Engine, receiver: Receiver) -> None:
    """Nothing is lost, and the error says why."""
    write(engine, 0)
    export(engine, receiver)
    write(engine, 1)
    receiver.outcomes.append(Failure("it is busy"))
    with pytest.raises(TransportError, match=r"the receiver of \[otlp\] does not take metrics now: it is busy"):
        export(engine, receiver)
    assert export(engine, receiver) == [1]
    assert receiver.windows == [[1]]


def test_what_is_refused_for_good_holds_up_nothing(
    engine: Engine, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    """Windows that are refused are left out, and the log says so once."""
    write(engine, 0)
    with exporting(engine, receiver) as made:
        assert made.publish_next() == 0
        for minute in (1, 2):
            write(engine, minute)
            receiver.outcomes.append(Failure("it answered 400", is_for_good=True))
            assert made.publish_next() == 1
        write(engine, 3)
        assert made.publish_next() == 1
    assert receiver.windows == [[3]]
    assert capsys.readouterr().out.count("metrics are left out") == 1


def test_another_receiver_begins_anew(engine: Engine, receiver: Receiver) -> None:
    """With what is written from then on."""
    write(engine, 0)
    export(engine, receiver)
    write(engine, 1)
    assert export(engine, receiver, "http://other") == []
    assert receiver.posts == 0


def test_who_has_lost_the_store_exports_nothing(engine: Engine, receiver: Receiver) -> None:
    """Another monitor does."""
    write(engine, 0)
    with pytest.raises(StoreError, match="another monitor has taken the store"):
        export(engine, receiver, run="another")
