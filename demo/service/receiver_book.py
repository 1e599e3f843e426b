"""Book of a receiver: decides how each request ends, and remembers which messages it took and which it refused.

===========  =========================================================================================
failure      what the receiver does
===========  =========================================================================================
slow         takes the messages, and answers 200 after a second
error        takes none, and answers 500
busy         takes none, and answers 429 with ``Retry-After: 1``
gone         refuses all for good, by 404
hang         takes none, and never answers
reset        takes the messages, and resets the connection before the answer
mixed        207: every third is for later (503), one is refused for good (422), the others are taken
===========  =========================================================================================

A message has one end: what was taken is never refused later, and what was refused stays so, whenever it comes again.
So what the receiver wrote down is an account that a sender can be held against.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from enum import Enum
from http import HTTPStatus
from typing import Final, NamedTuple

from hopwatch.demo.truth import NodeAction

MIXED_LATER_EVERY: Final = 3
_SUCCESS: Final = 2
_CLIENT_ERROR: Final = 4


class FailureMode(Enum):
    """Ways in which a request fails; ``NONE`` is the healthy one."""

    NONE = "none"
    SLOW = "slow"
    ERROR = "error"
    BUSY = "busy"
    GONE = "gone"
    HANG = "hang"
    RESET = "reset"
    MIXED = "mixed"


_FAILURES: Final = tuple(failure for failure in FailureMode if failure is not FailureMode.NONE)
_TAKING: Final = {
    FailureMode.NONE: NodeAction.HANDED_ON,
    FailureMode.SLOW: NodeAction.HANDED_ON,
    FailureMode.RESET: NodeAction.UNHEARD,
}
_WHOLE: Final = {FailureMode.ERROR: HTTPStatus.INTERNAL_SERVER_ERROR, FailureMode.BUSY: HTTPStatus.TOO_MANY_REQUESTS}


class Reaction(NamedTuple):
    """Reaction to a request: the failure, a status for each message, and what is done to which messages."""

    failure: FailureMode
    statuses: tuple[int, ...]
    deeds: dict[NodeAction, list[bytes]]


class ReceiverBook:
    """Book of one receiver."""

    def __init__(self, fail_ratio: float, seed: int) -> None:
        """Let a share of the requests fail, in all ways alike."""
        self._fail_ratio = fail_ratio
        self._chance = random.Random(seed)  # noqa: S311 - chance that a seed repeats
        self.taken: set[bytes] = set()
        self.refused: set[bytes] = set()

    def decide(self, ids: Sequence[bytes]) -> Reaction:
        """Return what happens to a request with these messages, and remember it."""
        failure = self._draw_failure(ids)
        if failure is FailureMode.HANG or failure in _WHOLE:
            return Reaction(failure, (_WHOLE.get(failure, 0),) * len(ids), {})
        if failure is FailureMode.GONE:
            return self._note(failure, ids, [HTTPStatus.NOT_FOUND] * len(ids), NodeAction.HANDED_ON)
        if failure is FailureMode.MIXED:
            return self._note(failure, ids, self._mix(ids), NodeAction.HANDED_ON)
        statuses = [HTTPStatus.NOT_FOUND if one in self.refused else HTTPStatus.OK for one in ids]
        return self._note(failure, ids, statuses, _TAKING[failure])

    def _draw_failure(self, ids: Sequence[bytes]) -> FailureMode:
        if self._chance.random() >= self._fail_ratio:
            return FailureMode.NONE
        failure = self._chance.choice(_FAILURES)
        known = (self.refused, self.taken) if failure is FailureMode.GONE else (self.refused,)
        return failure if all(some.isdisjoint(ids) for some in known) else FailureMode.NONE

    def _mix(self, ids: Sequence[bytes]) -> list[HTTPStatus]:
        statuses = [
            HTTPStatus.SERVICE_UNAVAILABLE if at % MIXED_LATER_EVERY == 1 else HTTPStatus.CREATED
            for at in range(len(ids))
        ]
        fresh = [at for at, one in enumerate(ids) if one not in self.taken and statuses[at] is HTTPStatus.CREATED]
        if fresh:
            statuses[self._chance.choice(fresh)] = HTTPStatus.UNPROCESSABLE_ENTITY
        return [
            HTTPStatus.NOT_FOUND if one in self.refused else status for one, status in zip(ids, statuses, strict=True)
        ]

    def _note(
        self, failure: FailureMode, ids: Sequence[bytes], statuses: Sequence[HTTPStatus], taking: NodeAction
    ) -> Reaction:
        deeds: dict[NodeAction, list[bytes]] = {taking: [], NodeAction.REJECTED: []}
        for one, status in zip(ids, statuses, strict=True):
            if status // 100 == _SUCCESS:
                deeds[taking].append(one)
            elif status // 100 == _CLIENT_ERROR:
                deeds[NodeAction.REJECTED].append(one)
        self.taken.update(deeds[taking])
        self.refused.update(deeds[NodeAction.REJECTED])
        return Reaction(failure, tuple(map(int, statuses)), {deed: some for deed, some in deeds.items() if some})
