"""Tests of a receiver's book: each message has one end, whatever fails and however often it comes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.demo.service.receiver_book import FailureMode, ReceiverBook
from hopwatch.demo.truth import NodeAction

messages = st.integers(0, 30).map(lambda number: bytes([number]) * 16)
requests = st.lists(st.lists(messages, min_size=1, max_size=12, unique=True), max_size=60)
TAKING = {NodeAction.HANDED_ON, NodeAction.UNHEARD}


@given(requests=requests, fail_ratio=st.floats(0, 1), seed=st.integers(0, 99))
def test_what_was_taken_is_never_refused_and_what_was_refused_stays_so(
    requests: list[list[bytes]], fail_ratio: float, seed: int
) -> None:
    """In all that is written down, for any requests: the sets of both are apart, and are what the deeds say."""
    book = ReceiverBook(fail_ratio, seed)
    taken, refused = set[bytes](), set[bytes]()
    for ids in requests:
        for deed, some in book.decide(ids).deeds.items():
            (taken if deed in TAKING else refused).update(some)
            assert set(some) <= set(ids)
    assert not taken & refused
    assert (taken, refused) == (book.taken, book.refused)


@given(requests=requests, fail_ratio=st.floats(0, 1), seed=st.integers(0, 99))
def test_a_status_says_what_was_done(requests: list[list[bytes]], fail_ratio: float, seed: int) -> None:
    """2xx of what was taken, 4xx of what was refused but for 429, others of what is for later."""
    book = ReceiverBook(fail_ratio, seed)
    for ids in requests:
        reaction = book.decide(ids)
        done = {one: deed for deed, some in reaction.deeds.items() for one in some}
        for one, status in zip(ids, reaction.statuses, strict=True):
            expected = {2: TAKING, 4: {NodeAction.REJECTED}}.get(status // 100, set()) if status != 429 else set()
            assert done[one] in expected if expected else one not in done


def test_a_healthy_receiver_takes_all() -> None:
    """At a ratio of 0 nothing fails."""
    reaction = ReceiverBook(0.0, 1).decide([b"a" * 16, b"b" * 16])
    assert (reaction.failure, reaction.statuses) == (FailureMode.NONE, (200, 200))
    assert reaction.deeds == {NodeAction.HANDED_ON: [b"a" * 16, b"b" * 16]}


@pytest.mark.parametrize("failure", [one for one in FailureMode if one is not FailureMode.NONE])
def test_every_failure_comes(failure: FailureMode) -> None:
    """All kinds alike, of requests with new messages."""
    book = ReceiverBook(1.0, 5)
    seen = Counter(book.decide([number.to_bytes(16)]).failure for number in range(700))
    assert 60 <= seen[failure] <= 140
