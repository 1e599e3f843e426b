"""Restarts of probe instances: one that begins under the name of an instance of its node that has ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from hopwatch.monitor.accounting.ledger import InstanceKey
from hopwatch.monitor.kernel.books import Book

MAX_SPAN_US: Final = 600_000_000
"""Time in which restarts at a node are told as one, and in which an instance is heard for the first time."""


class Restart(NamedTuple):
    """Restart of probes of a node, at the moment when the first of them began; their names are in order."""

    stream: str
    node: str
    at_us: int
    probes: tuple[str, ...]


def find_restarts(books: Mapping[InstanceKey, Book], new: Collection[InstanceKey]) -> list[Restart]:
    """Return the restarts among instances that were heard for the first time, by stream, node and moment.

    No restart is an instance whose forerunner has reported beyond its beginning: two of one name run at once. Nor is
    one that began long before it was heard, or after that.
    """
    names = {key[:3] for key in new}
    lives: dict[tuple[str, str, str], list[Book]] = defaultdict(list)
    for key, book in books.items() if names else ():
        if key[:3] in names:
            lives[key[:3]].append(book)
    began: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for (stream, node, probe), own in lives.items():
        own.sort(key=lambda book: book.epoch_us)
        for before, book in pairwise(own):
            is_news = 0 <= book.first_arrival_us - book.epoch_us <= MAX_SPAN_US
            if book.key in new and is_news and before.complete_through_us <= book.epoch_us:
                began[stream, node].append((book.epoch_us, probe))
    return [
        Restart(*place, of_span[0][0], tuple(sorted({probe for _, probe in of_span})))
        for place, moments in sorted(began.items())
        for of_span in _split_spans(sorted(moments))
    ]


def _split_spans(moments: Iterable[tuple[int, str]]) -> list[list[tuple[int, str]]]:
    spans: list[list[tuple[int, str]]] = []
    for at_us, probe in moments:
        if not spans or at_us - spans[-1][0][0] > MAX_SPAN_US:
            spans.append([])
        spans[-1].append((at_us, probe))
    return spans
