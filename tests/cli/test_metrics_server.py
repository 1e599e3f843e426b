"""Tests of what ``hopwatch run`` measures and serves, up to where Spark starts."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import text

from hopwatch.alerts.storage import outbox
from hopwatch.cli import metrics_server
from hopwatch.monitor import settings
from hopwatch.monitor.errors import DependencyError
from hopwatch.monitor.metrics import store_poller
from hopwatch.monitor.micro_batch import ignore_batch
from hopwatch.monitor.results import CommittedBatch
from hopwatch.monitor.selftest.stream import SELFTEST_STREAM
from hopwatch.monitor.spark import job, session
from hopwatch.monitor.spark.sources.record_source import SpoolSource
from hopwatch.monitor.store import dialect, schema
from servers.process import free_ports, until
from tests.support.notifications import notification
from tests.support.report import reported
from tests.support.windows import at, window
from tests.support.workspace import CONFIGURATION, Workspace, one_of_ten_lost


@contextmanager
def measured(workspace: Workspace) -> Iterator[job.JobContext]:
    """Yield the place of a job as the command makes it."""
    chosen = settings.load(workspace.config, flags={}, environ={})
    engine = dialect.create_engine(workspace.store_url)
    schema.prepare_store(engine)
    place = job.JobContext(
        SpoolSource(workspace.folder / "spool"), engine, chosen.stream_configs(), workspace.folder / "work"
    )
    with metrics_server.serve_metrics(place, chosen) as observed:
        yield observed
    engine.dispose()


def page(port: int) -> str:
    """Return the page."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/metrics")
    told = connection.getresponse().read().decode()
    connection.close()
    return told


def served(workspace: Workspace) -> int:
    """Configure the place to serve metrics on a free port, and return it."""
    (port,) = free_ports(1)
    workspace.configure(f'{CONFIGURATION}[metrics]\nlisten = "127.0.0.1:{port}"\n')
    return port


def test_without_an_address_nothing_is_served(workspace: Workspace) -> None:
    """And nobody observes the job."""
    with measured(workspace.configure()) as place:
        assert place.observer is ignore_batch


def test_windows_that_wait_to_be_published_are_counted(workspace: Workspace) -> None:
    """There is no sample but where results have a topic."""
    shown = []
    for more in ("", '[results]\ntopic = "kafka://127.0.0.1:1/results"\n'):
        (port,) = free_ports(1)
        workspace.configure(f'{CONFIGURATION}{more}[metrics]\nlisten = "127.0.0.1:{port}"\n')
        workspace.watch(*one_of_ten_lost())
        with measured(workspace):
            until(lambda at=port: "hopwatch_store_up 1.0" in page(at), "figures of the store")  # type: ignore[misc]
            shown.append([line for line in page(port).splitlines() if line.startswith("hopwatch_results_waiting")])
    windows = len(reported(workspace.store_url)["streams"][0]["windows"])
    assert shown == [[], [f"hopwatch_results_waiting_windows {windows:.1f}"]]


def test_a_monitor_that_starts_shows_what_its_store_holds(workspace: Workspace) -> None:
    """Newest windows, accounts and alerts, before the first micro-batch."""
    port = served(workspace)
    workspace.watch(*one_of_ten_lost())
    engine = dialect.create_engine(workspace.store_url)
    with engine.execution_options(writes=True).begin() as connection:
        outbox.enqueue(connection, [notification()], [("pager",)])
    with measured(workspace):
        until(lambda: "hopwatch_records_total 4.0" in page(port), "the accounts")
        shown = page(port)
    assert 'hopwatch_outbox_notifications{channel="pager",state="waiting"} 1.0' in shown
    assert 'hopwatch_newest_final_window_timestamp_seconds{stream="orders"}' in shown
    assert 'hopwatch_lost_messages_total{stream="orders"} 0.0' in shown
    assert "hopwatch_last_batch_timestamp_seconds" not in shown


def test_a_micro_batch_is_on_the_page_once_it_is_written(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job tells it; nobody reads the store for it. Afterwards the port is free."""
    port = served(workspace)
    with measured(workspace) as place:
        assert capsys.readouterr().err == f"hopwatch: metrics are at http://127.0.0.1:{port}/metrics\n"
        place.observer(CommittedBatch((window(0, lost={"b": 20}),), at(5), 0.5))
        assert 'hopwatch_lost_messages_total{stream="orders"} 20.0' in page(port)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_store_that_goes_away_breaks_no_scrape(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says so."""
    monkeypatch.setattr(store_poller, "POLL_EVERY_S", 0.05)
    port = served(workspace)
    with measured(workspace):
        until(lambda: "hopwatch_store_read_timestamp_seconds 1" in page(port), "the first figures")
        with dialect.create_engine(workspace.store_url).execution_options(writes=True).begin() as connection:
            connection.execute(text("DROP TABLE alembic_version"))
        until(lambda: "hopwatch_store_up 0.0" in page(port), "the failure")
        assert "hopwatch_store_read_timestamp_seconds 1" in page(port)


def test_a_port_that_is_taken_ends_the_command_before_spark_starts(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 3, with the key that names it."""

    def start(*_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(session, "_build_session", start)
    (workspace.folder / "spool").mkdir()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        workspace.configure(f'{CONFIGURATION}[metrics]\nlisten = "127.0.0.1:{port}"\n')
        assert workspace.run("run") == DependencyError.exit_code
    assert capsys.readouterr().err.startswith(f"hopwatch: metrics cannot be served at 127.0.0.1:{port}: ")


def test_the_stream_of_the_self_test_has_no_series_but_its_outcomes(workspace: Workspace) -> None:
    """Sums of losses are without it: all that it loses was lost on purpose."""
    (port,) = free_ports(1)
    workspace.configure(f'{CONFIGURATION}[selftest]\n[metrics]\nlisten = "127.0.0.1:{port}"\n')
    workspace.watch(*one_of_ten_lost())
    with measured(workspace) as place:
        assert SELFTEST_STREAM in place.rules
        place.observer(CommittedBatch((window(0, stream=SELFTEST_STREAM, lost={"b": 3}),), at(5), 0.1))
        until(lambda: "hopwatch_store_up 1.0" in page(port), "figures of the store")
        place.config_observer(place.rules)
        shown = page(port)
    assert f'stream="{SELFTEST_STREAM}"' not in shown
    assert 'hopwatch_selftest_windows{outcome="failed"} 0.0' in shown
    assert 'hopwatch_selftest_lost_messages{counted="injected"} 0.0' in shown
    assert "hopwatch_selftest_last_window_timestamp_seconds " not in shown
