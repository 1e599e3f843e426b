"""Traffic through validators, and the check of where each record ended."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final, Self

from hopwatch.gate.codec import Codec
from tests.real.validators import PARTITIONS, Place, id_of, rejected
from tests.support.schemas import FIRST, SECOND, schema

PAUSE_S: Final = 0.002


class Traffic:
    """Records one after the other, within the context and until it is to end: one in ten is broken."""

    def __init__(self, place: Place) -> None:
        """Take the place."""
        self.count, self._place, self._is_over = 0, place, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, whatever became of what was sent."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(PAUSE_S):
            number = self.count
            said = (FIRST, SECOND)[number % 2]
            value = self._place.framed(said, {"a": number} | ({"b": number} if said is SECOND else {}))
            self._place.send(value[:-1] if number % 10 == 9 else value, number, partition=number % PARTITIONS)
            self.count += 1

    def end(self) -> int:
        """Return how many there were."""
        self.__exit__()
        self._place.sent()
        return self.count


def check_all(place: Place, count: int) -> None:
    """Check that each record is in one of the two topics, once, and says what it said."""
    good, bad = place.good(count - count // 10), place.bad(count // 10)
    found = Counter(id_of(one) for one in (*good, *bad))
    sent = Counter(id_of(one) for one in place.read(place.name, count))
    assert sent == Counter(map(str, range(count)))
    assert found == sent, (len(good), len(bad), count, place.said()[-2_000:])
    codec = Codec(schema(SECOND))
    for one in good:
        number = int(id_of(one))
        assert number % 10 != 9
        assert codec.decode(one.value() or b"") == {"a": number, "b": number if number % 2 else 7}
    for one in bad:
        number = int(id_of(one))
        assert number % 10 == 9
        kept = rejected(one)
        assert kept.reasons[0].detail == "it ends within a value"
        assert kept.data == place.framed(SECOND, {"a": number, "b": number})[:-1]
