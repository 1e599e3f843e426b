"""Batches of a micro-batch that are behind all that is known of their instances, in the order of their numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from hopwatch.monitor.accounting.ledger import InstanceKey
from hopwatch.monitor.kernel.books import BatchFact, Book
from hopwatch.monitor.payloads import FactSheet


def sort_new_batches(
    books: Mapping[InstanceKey, Book], sheets: Iterable[FactSheet]
) -> Iterator[tuple[InstanceKey, Book | None, list[BatchFact]]]:
    """Yield each instance with its book, None if it has no batches yet, and the batches behind the book's last one.

    A batch that came twice is there once.
    """
    came: defaultdict[InstanceKey, list[BatchFact]] = defaultdict(list)
    for sheet in sheets:
        came[sheet.key] += sheet.facts
    for key, facts in came.items():
        book = books.get(key)
        known = book if book is not None and book.runs else None
        last, new = known.runs[-1].last if known else -1, list[BatchFact]()
        for fact in sorted(facts):
            if fact.seq > last:
                new.append(fact)
                last = fact.seq
        yield key, known, new
