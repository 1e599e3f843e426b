"""Tests of restarts: which instances begin again, and which only have the name of another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.accounting.restarts import MAX_SPAN_US, Restart, find_restarts
from hopwatch.monitor.kernel.books import BatchRun, Book

SECOND_US = 1_000_000


def life(began_s: int, through_s: int, probe: str = "p", node: str = "a", heard_s: int | None = None) -> Book:
    """Return the book of an instance that began at a second, and reported up to another."""
    heard_us = (began_s if heard_s is None else heard_s) * SECOND_US
    run = BatchRun(0, 0, through_s * SECOND_US, through_s * SECOND_US)
    return Book("orders", node, probe, began_s * SECOND_US, heard_us, heard_us, (run,))


def restarts(*known: Book, new: tuple[Book, ...] = ()) -> list[Restart]:
    """Return the restarts among new instances, where others are known."""
    return find_restarts({one.key: one for one in (*known, *new)}, {one.key for one in new})


def test_an_instance_that_follows_one_of_its_name_is_a_restart() -> None:
    """At the moment when it began; its forerunner may be heard with it for the first time."""
    expected = [Restart("orders", "a", 100 * SECOND_US, ("p",))]
    assert restarts(life(0, 90), new=(life(100, 110),)) == expected
    assert restarts(new=(life(0, 90), life(100, 110))) == expected


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ((), life(100, 110)),
        ((life(0, 90, "q"),), life(100, 110)),
        ((life(0, 90, node="b"),), life(100, 110)),
        ((life(0, 105),), life(100, 110)),
        ((life(0, 90),), life(100, 110, heard_s=100 + MAX_SPAN_US // SECOND_US + 1)),
        ((life(0, 90),), life(100, 110, heard_s=99)),
        ((life(200, 300),), life(100, 110)),
    ],
    ids=["first", "another name", "another node", "beside", "long ago", "clock ahead", "before"],
)
def test_what_is_no_restart_is_none(known: tuple[Book, ...], new: Book) -> None:
    """A first instance, one beside another, one that is heard late, and one whose clock cannot be right."""
    assert restarts(*known, new=(new,)) == []


def test_restarts_of_a_node_are_one_as_long_as_they_are_near() -> None:
    """With the names of all probes; other nodes have their own, and so has a restart much later."""
    far_s = 100 + MAX_SPAN_US // SECOND_US + 1
    known = [life(0, 9, probe, node) for probe, node in (("p", "a"), ("q", "a"), ("p", "b"))]
    new = life(100, 110), life(120, 130), life(110, 130, "q"), life(far_s, far_s + 1), life(105, 110, node="b")
    assert restarts(*known, new=new) == [
        Restart("orders", "a", 100 * SECOND_US, ("p", "q")),
        Restart("orders", "a", far_s * SECOND_US, ("p",)),
        Restart("orders", "b", 105 * SECOND_US, ("p",)),
    ]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30), st.booleans()), max_size=8, unique_by=lambda one: one[0])
)
def test_each_restart_is_a_new_instance_behind_another(lives: list[tuple[int, int, bool]]) -> None:
    """A restart is at the beginning of a new instance, whose forerunner had ended; near ones of a node are one."""
    books = [life(began_s, began_s + span_s) for began_s, span_s, _ in lives]
    new = tuple(book for book, (*_, is_new) in zip(books, lives, strict=True) if is_new)
    found = restarts(*(book for book in books if book not in new), new=new)
    assert len(found) <= 1
    for one in found:
        assert one.at_us in {book.epoch_us for book in new}
        assert any(book.epoch_us < one.at_us and book.complete_through_us <= one.at_us for book in books)
