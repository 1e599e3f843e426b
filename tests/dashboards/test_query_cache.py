"""Tests of the answers that are kept: asked once for all, and never lost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from sqlalchemy import Connection

from hopwatch.dashboards.queries.query_cache import FRESH_FOR_US, MAX_ENTRIES, QueryCache
from tests.support.dashboard_stores import clock, fill, store_url


@dataclass(frozen=True)
class Counted:
    """A question that counts how often it is read."""

    name: str
    reads: list[str] = field(compare=False, hash=False, default_factory=list)

    def run(self, connection: Connection) -> int:
        """Return how often it was read."""
        del connection
        self.reads.append(self.name)
        return len(self.reads)


def test_fifty_viewers_are_one_question(tmp_path: Path) -> None:
    """Of equal questions at one time one goes to the store, and another only when the answer is old."""
    fill(store_url(tmp_path))
    now, question = clock(), Counted("a")
    answers = QueryCache(store_url(tmp_path), now)
    with ThreadPoolExecutor(50) as viewers:
        assert {answer.value for answer in viewers.map(answers.fetch, [question] * 50)} == {1}
    now.advance(FRESH_FOR_US / 1e6)
    assert answers.fetch(question).value == 2


class Costly(Counted):
    """A question whose answer is good for a minute."""

    fresh_for_us: ClassVar = 60_000_000


def test_a_question_that_costs_more_is_asked_less_often(tmp_path: Path) -> None:
    """A question says itself for how long its answer is as good as a new one."""
    fill(store_url(tmp_path))
    now, question = clock(), Costly("a")
    answers = QueryCache(store_url(tmp_path), now)
    values = []
    for _ in range(4):
        values.append(answers.fetch(question).value)
        now.advance(30)
    assert values == [1, 1, 2, 2]


def test_a_clock_that_goes_back_does_not_stop_the_page(tmp_path: Path) -> None:
    """An answer from the future is no answer."""
    fill(store_url(tmp_path))
    now, question = clock(), Counted("a")
    answers = QueryCache(store_url(tmp_path), now)
    answers.fetch(question)
    now.advance(-100)
    assert answers.fetch(question).value == 2


def test_trouble_is_told_with_the_last_answer(tmp_path: Path) -> None:
    """While the store fails, the last answer is returned with its time and the error, until the store is back."""
    fill(store_url(tmp_path)).dispose()
    file, now, question = tmp_path / "store.db", clock(), Counted("a")
    answers = QueryCache(store_url(tmp_path), now)
    read_us = answers.fetch(question).read_us
    whole = file.read_bytes()
    file.write_bytes(b"no database" * 1_000)
    now.advance(10)
    told = answers.fetch(question)
    assert (told.value, told.read_us) == (1, read_us)
    assert "store.db failed: file is not a database" in told.error
    file.write_bytes(whole)
    now.advance(10)
    assert (answers.fetch(question).value, answers.fetch(question).error) == (2, "")


def test_a_store_that_is_not_there_yet_is_no_trouble(tmp_path: Path) -> None:
    """A missing store is not an error, and reading it creates no file."""
    answer = QueryCache(store_url(tmp_path), clock()).fetch(Counted("a"))
    assert (answer.value, answer.has_store, answer.error) == (None, False, "")
    assert list(tmp_path.iterdir()) == []


def test_so_many_answers_are_kept_at_most(tmp_path: Path) -> None:
    """The one that was asked for longest ago goes."""
    fill(store_url(tmp_path))
    answers, first = QueryCache(store_url(tmp_path), clock()), Counted("first")
    answers.fetch(first)
    for number in range(MAX_ENTRIES):
        answers.fetch(Counted(str(number)))
    assert answers.fetch(first).value == 2


@dataclass(frozen=True)
class Slow:
    """A question that waits until it is let go, and says that it has been asked."""

    asked: threading.Event = field(compare=False, hash=False, default_factory=threading.Event)
    let_go: threading.Event = field(compare=False, hash=False, default_factory=threading.Event)
    reads: list[str] = field(compare=False, hash=False, default_factory=list)

    def run(self, connection: Connection) -> int:
        """Return how often it was read, when it may."""
        del connection
        self.reads.append("")
        self.asked.set()
        self.let_go.wait()
        return len(self.reads)


def test_while_one_asks_others_get_what_was_known(tmp_path: Path) -> None:
    """As long as it was known lately; so nobody waits for a slow question that somebody else has asked."""
    fill(store_url(tmp_path))
    now, question = clock(), Slow()
    answers = QueryCache(store_url(tmp_path), now)
    question.let_go.set()
    assert answers.fetch(question).value == 1
    question.let_go.clear()
    question.asked.clear()
    now.advance(FRESH_FOR_US / 1e6)
    with ThreadPoolExecutor(1) as other:
        asking = other.submit(answers.fetch, question)
        question.asked.wait()
        assert answers.fetch(question).value == 1
        question.let_go.set()
        assert asking.result().value == 2


@dataclass(frozen=True)
class Same:
    """A question whose answers are equal, and each an object of its own."""

    def run(self, connection: Connection) -> list[str]:
        """Return the same words."""
        del connection
        return ["nothing new"]


def test_an_answer_that_says_the_same_is_the_same(tmp_path: Path) -> None:
    """So that what was made of it is as good as before; it was read later."""
    fill(store_url(tmp_path))
    now = clock()
    answers = QueryCache(store_url(tmp_path), now)
    first = answers.fetch(Same())
    now.advance(FRESH_FOR_US / 1e6)
    again = answers.fetch(Same())
    assert again.value is first.value
    assert again.read_us > first.read_us
