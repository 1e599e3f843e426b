"""Tests of the lag of consumer groups on the page of a stream: read in a thread, and told as it was read last."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from hopwatch.dashboards.queries.consumer_lags import FRESH_FOR_S, ConsumerLags, LagAnswer
from hopwatch.dashboards.queries.query_cache import QueryCache
from hopwatch.monitor import settings
from hopwatch.monitor.errors import TransportError
from hopwatch.monitor.kernel.group_lag import GroupLag, measure_lag
from hopwatch.monitor.settings import Settings
from servers.process import until
from tests.support.clock import ManualClock
from tests.support.dashboard_stores import build_windows, clock, fill, plain, read_page, run_app, store_url
from tests.support.recent import recent_figures, save_recent
from tests.support.windows import at
from tests.support.workspace import CONFIGURATION

GROUPS: Final = 'topics = { a = "kafka://h:1/orders" }\ngroups = { b = "<b>" }\n[streams.clicks]\npath = "a -> b"\n'


class Brokers:
    """Brokers that answer once they may, with a lag that grows by one each time, or not at all."""

    def __init__(self) -> None:
        """Begin with nothing asked."""
        self.asked = 0
        self.error = ""
        self.may_answer = threading.Event()
        self.may_answer.set()

    def read(self, settings: Settings, stream: str) -> Iterator[GroupLag]:
        """Yield the lag of one group."""
        assert settings.streams[stream].groups
        self.asked += 1
        self.may_answer.wait()
        if self.error:
            raise TransportError(self.error)
        yield GroupLag("b", "a", "orders", "<b>", (measure_lag(0, 5, 10, 20 + self.asked),))


@pytest.fixture
def brokers() -> Brokers:
    """Return brokers that answer at once."""
    return Brokers()


def load(folder: Path, text: str = GROUPS) -> Settings:
    """Load a configuration of two streams, of which one has a group."""
    (folder / "hopwatch.toml").write_text(CONFIGURATION + text)
    return settings.load(folder / "hopwatch.toml", flags={}, environ={})


def await_lag(lags: ConsumerLags, lag: int) -> LagAnswer:
    """Ask until the lag of the group is this one."""

    def is_there() -> bool:
        answer = lags.find_latest("orders")
        return answer is not None and [one.lag for one in answer.groups] == [lag]

    until(is_there, f"a lag of {lag}")
    return lags.find_latest("orders") or LagAnswer()


def test_nobody_waits_for_brokers(tmp_path: Path, brokers: Brokers) -> None:
    """One question is for all who look, and another one follows after some seconds."""
    now, lags = clock(), ConsumerLags(load(tmp_path), clock(), brokers.read)
    brokers.may_answer.clear()
    for _ in range(3):
        assert lags.find_latest("orders") == LagAnswer()
    brokers.may_answer.set()
    assert await_lag(lags, 11) == LagAnswer(await_lag(lags, 11).groups, now.now_us())
    assert brokers.asked == 1


def test_lags_stay_while_brokers_are_away(tmp_path: Path, brokers: Brokers) -> None:
    """With the error of the last attempt; then they are new."""
    now = clock()
    lags = ConsumerLags(load(tmp_path), now, brokers.read)
    first = await_lag(lags, 11)
    brokers.error = "no broker answers"
    now.advance(FRESH_FOR_S)
    until(lambda: (lags.find_latest("orders") or LagAnswer()).error == brokers.error, "the error")
    assert lags.find_latest("orders") == LagAnswer(first.groups, first.read_us, brokers.error)
    brokers.error = ""
    now.advance(FRESH_FOR_S)
    assert await_lag(lags, 13).error == ""


def test_a_stream_without_groups_has_no_lags(tmp_path: Path, brokers: Brokers) -> None:
    """Nor has an unknown one, or a dashboard without a configuration."""
    lags = ConsumerLags(load(tmp_path), clock(), brokers.read)
    assert (lags.find_latest("clicks"), lags.find_latest("x")) == (None, None)
    assert ConsumerLags(None, clock(), brokers.read).find_latest("orders") is None
    assert not brokers.asked


def open_page(folder: Path, lags: ConsumerLags | None, now: ManualClock, chosen: Settings) -> str:
    """Return the text of the page of a stream."""
    answers = QueryCache(store_url(folder), now, chosen)
    if lags is not None:
        answers.consumer_lags = lags
    return read_page(run_app(answers, now, page="stream", stream="orders"))


def test_the_page_of_a_stream_has_the_lag_beside_the_backlog(tmp_path: Path, brokers: Brokers) -> None:
    """With what retention has deleted, by partition; foreign text is text."""
    now, chosen = clock(), load(tmp_path)
    fill(store_url(tmp_path), *build_windows())
    save_recent(store_url(tmp_path), recent_figures(through_us=at(12) - 3_000_000))
    lags = ConsumerLags(chosen, now, brokers.read)
    assert "Consumer lag The brokers are asked." in plain(open_page(tmp_path, lags, now, chosen))
    await_lag(lags, 11)
    page = open_page(tmp_path, lags, now, chosen)
    told = (
        "b is 11 behind in orders, as the group &lt;b&gt;; by stamps 600 messages, 3.0 s; retention has deleted 5 that"
    )
    assert told in page
    assert "Consumer lag As the brokers said at 2026-01-01 00:12:00 UTC." in plain(page)
    assert "Partition Committed End Lag Deleted unread 0 5 21 11 5" in plain(page)
    brokers.error = "no broker answers"
    now.advance(FRESH_FOR_S)
    until(lambda: (lags.find_latest("orders") or LagAnswer()).error == brokers.error, "the error")
    assert "no broker answers" in open_page(tmp_path, lags, now, chosen)


def test_of_many_partitions_the_page_has_the_worst(tmp_path: Path) -> None:
    """In their order, with the number of the others."""
    now, chosen = clock(), load(tmp_path)
    fill(store_url(tmp_path), *build_windows())
    partitions = tuple(measure_lag(number, 0, 0, 1_000 + number % 13) for number in range(13))
    lags = ConsumerLags(chosen, now, lambda *_: [GroupLag("b", "a", "orders", "g", partitions)])
    await_lag(lags, sum(one.lag for one in partitions))
    told = plain(open_page(tmp_path, lags, now, chosen))
    assert "Deleted unread 3 0 1,003 1,003 0 4 0 1,004" in told
    assert "12 0 1,012 1,012 0 3 more partitions, none of them further behind." in told


def test_a_page_of_a_stream_without_groups_has_no_panel(tmp_path: Path) -> None:
    """As of a pipeline without Kafka."""
    fill(store_url(tmp_path), *build_windows())
    assert "Consumer lag" not in open_page(tmp_path, None, clock(), load(tmp_path, ""))
