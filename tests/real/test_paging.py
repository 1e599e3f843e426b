"""From decision to page, through a real store, dispatcher, channel and Alertmanager: none missed, none twice."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Engine

from servers.process import until
from tests.alerts.conftest import prepared
from tests.support.alert_scenario import build_rules
from tests.support.channel import ERROR
from tests.support.delivery_scenario import Post
from tests.support.dispatcher_process import run
from tests.support.examples import soak_after
from tests.support.http_receiver import Receiver as Other
from tests.support.http_receiver import answers, certificate, closes, hangs, receiving, server_tls
from tests.support.loss_rules import ONLY_LOSS
from tests.support.notifications import notification
from tests.support.outbox import RESOLVED, put, states
from tests.support.pager import Pager, Paging, channel, paging
from tests.support.streams import STREAMS, a_drop


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """Yield the engine of an empty store."""
    with prepared(f"sqlite:///{tmp_path}/store.db") as made:
        yield made


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Paging]:
    """Yield an Alertmanager, and whom it pages."""
    with paging(tmp_path / "alertmanager") as found:
        yield found


def posted(engine: Engine, pages: Paging, streams: tuple[str, ...] = ("orders",), path: str = "a -> b") -> Post:
    """Return a post office whose pager is that Alertmanager."""
    post = Post(build_rules(ONLY_LOSS, streams, path), engine=engine)
    pager = Pager(post.clock, works=channel(pages.server.url))
    post.receivers["pager"] = pager
    post.dispatcher.workers["pager"].channel = pager
    return post


@contextmanager
def by_tls(folder: Path) -> Iterator[Other]:
    """Yield a receiver whose certificate nobody has signed."""
    with receiving(answers(200), context=server_tls(certificate(folder))) as other:
        yield other


BAD: Final[dict[str, Callable[[Path], AbstractContextManager[Other]]]] = {
    "answers 500": lambda _: receiving(answers(500)),
    "answers 429": lambda _: receiving(answers(429, Retry_After="45")),
    "closes": lambda _: receiving(closes),
    "hangs": lambda _: receiving(hangs),
    "bad TLS": by_tls,
}


@pytest.mark.parametrize("bad", soak_after(2, BAD.values()), ids=BAD)
def test_an_alertmanager_that_is_away_for_ten_minutes_misses_nothing(
    bad: Callable[[Path], AbstractContextManager[Other]], engine: Engine, pages: Paging, tmp_path: Path
) -> None:
    """Over beginning and end of three incidents: a person is paged of each once, and told of its end."""
    post = a_drop(posted(engine, pages, STREAMS)).answer(10.5, 20.5, ERROR)
    with bad(tmp_path) as other:
        post.pager.fails = channel(other.url())  # type: ignore[attr-defined]  # it is a Pager
        for number in range(6 * 32 + 1):
            post.step(number / 6)
            if number == 6 * 20:
                assert pages.person.requests == []
        assert other.connections > 0
    assert states(engine) == {("pager", "sent"): 6}
    told = pages.await_told(6)
    assert told == {(status, stream): 1 for status in ("firing", "resolved") for stream in STREAMS}
    until(lambda: pages.alerts() == [], "the end of all alerts")


def test_five_thousand_nodes_that_break_at_once_are_one_page(engine: Engine, pages: Paging) -> None:
    """One alert, which names twenty of them and counts all."""
    streams = tuple(f"s{number:02}" for number in range(20))
    names = tuple(f"n{number:03}" for number in range(250))
    post = posted(engine, pages, streams, " -> ".join(names))
    for stream in streams:
        post.push(1, stream=stream, names=names, lost=dict.fromkeys(names, 1_100), known=100_000)
    for number in range(12, 15):
        post.step(number / 6)
    assert pages.await_told(1) == {("firing", "*"): 1}
    (alert,) = pages.alerts()
    assert alert["annotations"]["places"] == "5,000"
    assert "and 4,980 more" in alert["annotations"]["description"]


def test_flapping_pages_a_bounded_number_of_times(engine: Engine, pages: Paging) -> None:
    """Every second minute over the threshold, for eight hours: ten notifications at most."""
    post = posted(engine, pages)
    for minute in range(480):
        post.push(minute, lost={"b": 0 if minute % 2 else 500})
        post.step(minute + 1)
    pages.await_told(1)
    news = [delivery for _, delivery in post.pager.heard if not delivery.is_again]
    assert len(news) <= 10
    assert len(pages.told()) <= len(news)


def test_a_dispatcher_that_is_killed_behind_a_send_opens_no_second_incident(
    engine: Engine, pages: Paging, tmp_path: Path
) -> None:
    """``kill -9`` once Alertmanager has it, and nobody has noted that: it is sent again, and pages nobody again."""
    heard = tmp_path / "heard"
    put(engine, notification())
    assert run(engine, heard, 1, pages.server.url) == -signal.SIGKILL
    assert states(engine) == {("pager", "waiting"): 1}
    assert pages.await_told(1) == {("firing", "orders"): 1}
    assert run(engine, heard, 0, pages.server.url) == 0
    put(engine, RESOLVED)
    assert run(engine, heard, 4, pages.server.url) == 0
    assert len(heard.read_text("utf-8").splitlines()) == 3
    assert pages.await_told(2) == {("firing", "orders"): 1, ("resolved", "orders"): 1}
