"""Tests of the sources of a metric: a page for Prometheus, the backlog of a group, processor shares."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.scale import processor_share
from hopwatch.scale.group_backlog import sum_backlog
from hopwatch.scale.metric import MetricUnavailableError
from hopwatch.scale.metric_page import MetricPage, SampleSelector, find_sample, parse_selector
from hopwatch.scale.processor_share import ProcessorShare, read_session_ticks
from tests.scale.manual_clock import ManualClock

PAGE = """\
# TYPE lag_seconds summary
lag_seconds{stream="orders",quantile="0.5"} 1.5
lag_seconds{stream="orders",quantile="0.95"} 12.25
lag_seconds{stream="rides",quantile="0.95"} NaN
"""
URL = "http://127.0.0.1:9464/metrics"


def pool(answer: bytes) -> httpcore.ConnectionPool:
    """Return connections to a server that gives this answer."""
    return httpcore.ConnectionPool(network_backend=httpcore.MockBackend([answer]))


def test_a_sample_is_found_by_some_of_its_labels() -> None:
    """Others may be there."""
    assert find_sample(PAGE, parse_selector('lag_seconds{quantile="0.5"}')) == 1.5
    assert find_sample(PAGE, parse_selector('lag_seconds{stream="orders",quantile="0.95"}')) == 12.25


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "the page of metrics has no sample nothing"),
        ('lag_seconds{stream="orders"}', 'the page of metrics has 2 samples lag_seconds{stream="orders"}: name more'),
        ('lag_seconds{stream="rides"}', 'lag_seconds{stream="rides"} is nan, which is no number'),
    ],
)
def test_a_sample_that_is_not_one_is_no_metric(name: str, message: str) -> None:
    """None, several, and one that is no number."""
    with pytest.raises(MetricUnavailableError, match=re.escape(message)):
        find_sample(PAGE, parse_selector(name))


@pytest.mark.parametrize("page", ["<!doctype html><p>a</p>\n", 'a{x="1", ="2"} 3\n'])
def test_a_page_that_is_none_is_no_metric(page: str) -> None:
    """A page that is no page of metrics is an error that says so."""
    with pytest.raises(MetricUnavailableError, match="the page of metrics cannot be parsed"):
        find_sample(page, SampleSelector("a", {}))


def test_of_a_page_that_is_none_little_is_told() -> None:
    """A stranger's page does not fill the log: neither a label without end nor a header does."""
    with pytest.raises(MetricUnavailableError, match="the page of metrics cannot be parsed: ") as caught:
        find_sample("a{" + ',b="c"' * 100_000 + "} 1\n", SampleSelector("a", {}))
    assert len(str(caught.value)) < 300
    with pytest.raises(MetricUnavailableError, match=f"{URL} cannot be read: ") as caught:
        MetricPage(URL, SampleSelector("a", {}), pool(b"HTTP/1.1 200 OK\r\n" + b"x" * 50_000 + b"\r\n\r\n")).read()
    assert len(str(caught.value)) < 300


@given(st.text('a_{}="\\\\,# \n1.e+-Nx', max_size=40))
def test_no_page_is_more_than_a_metric_or_none(text: str) -> None:
    """An error of any page or selector is one that is expected."""
    with suppress(MetricUnavailableError):
        find_sample(f'a{{x="1"}} 2\n{text}\n', SampleSelector("a", {}))
    with suppress(ValueError):
        parse_selector(text)


def test_a_page_that_trickles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for a page is one for all of it: a server that sends a byte now and then holds up no decision."""
    monkeypatch.setattr("hopwatch.scale.metric_page.TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as threads:
        given_up = threading.Event()
        threads.submit(_trickle, server, given_up)
        begun_s = time.monotonic()
        page = MetricPage(f"http://127.0.0.1:{server.getsockname()[1]}/", SampleSelector("a", {}))
        try:
            with pytest.raises(
                MetricUnavailableError, match=r"cannot be read: (it did not come within 0.3 s|timed out)"
            ):
                page.read()
        finally:
            given_up.set()
    assert time.monotonic() - begun_s < 5


def _trickle(server: socket.socket, given_up: threading.Event) -> None:
    connection, _ = server.accept()
    with connection, suppress(OSError):
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        for _ in range(200):
            connection.sendall(b"a")
            if given_up.wait(0.1):
                return


def test_a_host_that_is_none_is_no_metric() -> None:
    """A name that no resolver takes is told as a page that cannot be read."""
    with pytest.raises(MetricUnavailableError, match="cannot be read: "):
        MetricPage("http://a..b/metrics", SampleSelector("a", {})).read()


@pytest.mark.parametrize("text", ["", "a b", "a{", 'a{b="c"', "a\nb", "a{b=c}"])
def test_a_selector_is_a_name_with_labels(text: str) -> None:
    """Anything else is refused with what was got."""
    with pytest.raises(ValueError, match=re.escape(f"got {text!r}")):
        parse_selector(text)


def test_a_page_is_read_by_http() -> None:
    """The sample of its body."""
    found = f"HTTP/1.1 200 OK\r\nContent-Length: {len(PAGE)}\r\n\r\n{PAGE}".encode()
    assert MetricPage(URL, parse_selector('lag_seconds{quantile="0.5"}'), pool(found)).read() == 1.5


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", f"{URL} answers 404, not 200"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", f"{URL} cannot be read: "),
        (b"", f"{URL} cannot be read: "),
    ],
)
def test_a_page_that_cannot_be_had_is_no_metric(answer: bytes, message: str) -> None:
    """Another status, another protocol, and nothing."""
    with pytest.raises(MetricUnavailableError, match=re.escape(message)):
        MetricPage(URL, SampleSelector("a", {}), pool(answer)).read()


def test_a_page_without_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is too long is given up, with its limit."""
    monkeypatch.setattr("hopwatch.scale.metric_page.MAX_PAGE_BYTES", 10)
    found = f"HTTP/1.1 200 OK\r\nContent-Length: {len(PAGE)}\r\n\r\n{PAGE}".encode()
    with pytest.raises(MetricUnavailableError, match="has more than 10 bytes"):
        MetricPage(URL, SampleSelector("a", {}), pool(found)).read()


@pytest.mark.parametrize("url", ["orders", "ftp://a/b", "http:///metrics"])
def test_a_page_has_a_url(url: str) -> None:
    """Of HTTP, with a host."""
    with pytest.raises(ValueError, match=re.escape(f"a page of metrics is http://HOST:PORT/metrics, got {url!r}")):
        MetricPage(url, SampleSelector("a", {}))


@pytest.mark.parametrize(
    ("committed", "starts", "ends", "backlog"),
    [
        ({0: 10, 1: 20}, {0: 0, 1: 0}, {0: 15, 1: 20}, 5),
        ({0: 10, 1: -1_001}, {0: 0, 1: 3}, {0: 15, 1: 20}, 5 + 17),
        ({0: 10}, {0: 12}, {0: 15}, 3),
        ({0: 20}, {0: 0}, {0: 15}, 0),
        ({0: -1_001, 1: -1_001}, {0: 0, 1: 0}, {0: 15, 1: 20}, None),
        ({}, {0: 0}, {0: 15}, None),
    ],
)
def test_a_backlog_is_what_is_behind_the_committed_offsets(
    committed: dict[int, int], starts: dict[int, int], ends: dict[int, int], backlog: int | None
) -> None:
    """All of a partition without one; what aged out waits no longer; a group without any offset has none."""
    assert sum_backlog(committed, starts, ends) == backlog


def test_a_share_is_processor_time_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of processes that were there before; a new one counts against a change."""
    clock, running = ManualClock(), [1, 2]
    ticks: list[Counter[int]] = [Counter({1: 0, 2: 100}), Counter({1: 500, 2: 600}), Counter({1: 1_500, 3: 0})]
    monkeypatch.setattr(processor_share, "read_session_ticks", lambda _: ticks.pop(0))
    source = ProcessorShare(lambda: running, 0.8, clock)
    source._ticks_per_s = 100
    with pytest.raises(MetricUnavailableError, match="the processor share needs two readings"):
        source.read()
    clock.move(10)
    assert source.read() == pytest.approx(0.5)
    clock.move(10)
    running[:] = [1, 3]
    # The one that is known asks for more, the new one turns that.
    assert source.read() == pytest.approx(0.8)


def test_the_time_of_a_session_contains_that_of_its_children() -> None:
    """Of a shell that does nothing while what it started computes."""
    busy = f"{sys.executable} -c 'while True: pass' & wait"
    process = subprocess.Popen(["/bin/sh", "-c", busy], start_new_session=True)
    try:
        give_up_s = time.monotonic() + 30
        while read_session_ticks(Path("/proc"))[process.pid] < 10:
            assert time.monotonic() < give_up_s
            time.sleep(0.05)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
