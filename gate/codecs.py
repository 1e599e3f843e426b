"""Which schema the events of a subject are read by: the latest, or the version that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final, TypeVar

from anyio import CapacityLimiter, Lock, move_on_after, to_thread

from hopwatch.gate.codec import Codec
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.shelf import Kept, ShelfDownError
from hopwatch.gate.registry.subjects import Registry, UnknownError
from hopwatch.probes.clock import Clock
from hopwatch.probes.http.problems import Problem

FRESH_NS: Final = 1_000_000_000
"""So long nobody asks again which version is the latest."""
WAIT_S: Final = 0.5
"""So long a request waits for the answer, if there is a schema that was the latest."""
THREADS: Final = 4
"""Threads that ask the registry, and nobody else uses."""
MOST_CODECS: Final = 64

K = TypeVar("K")
V = TypeVar("V")


class Codecs:
    """What reads and writes events, by subject; what was found once serves on while the store is down."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        """Begin knowing none."""
        self._registry, self._clock = registry, clock
        self._latest: dict[str, tuple[Codec, int]] = {}
        self._members: dict[tuple[str, bytes], Codec] = {}
        self._made: dict[int, Codec] = {}
        self._looking = Lock()
        self._threads = CapacityLimiter(THREADS)

    async def of(self, subject: str, fingerprint: bytes | None = None) -> Codec:
        """Return the codec of a version of a subject, by its fingerprint, or of the latest.

        Raises:
            Problem: the subject has no schema, or not that one; or it is not known yet, and the store is down.
        """
        if fingerprint is not None:
            return await self._member(subject, fingerprint)
        found = self._latest.get(subject)
        if found is not None and self._clock.monotonic_ns() - found[1] < FRESH_NS:
            return found[0]
        if found is None:
            async with self._looking:
                return await self._newest(subject)
        # A store that hangs keeps nothing out that was known to fit.
        with move_on_after(WAIT_S):
            async with self._looking:
                return await self._newest(subject)
        self._latest[subject] = found[0], self._clock.monotonic_ns()
        return found[0]

    async def _newest(self, subject: str) -> Codec:
        found = self._latest.get(subject)
        now_ns = self._clock.monotonic_ns()
        if found is not None and now_ns - found[1] < FRESH_NS:
            return found[0]
        try:
            entry = await self._asked(lambda: self._registry.entry(subject))
            codec = await self._codec(entry.kept)
        except ShelfDownError as error:
            if found is None:
                raise _down(error) from None
            codec = found[0]
        except UnknownError:
            raise _no_schema(subject) from None
        self._latest[subject] = codec, now_ns
        return codec

    async def _member(self, subject: str, fingerprint: bytes) -> Codec:
        if (found := self._members.get((subject, fingerprint))) is not None:
            return found
        try:
            entries = await self._asked(lambda: self._registry.entries(subject))
            kept = await self._asked(lambda: self._registry.by_fingerprint(fingerprint))
        except ShelfDownError as error:
            raise _down(error) from None
        except UnknownError:
            raise _no_schema(subject, fingerprint) from None
        if all(entry.kept != kept for entry in entries):
            raise _no_schema(subject, fingerprint)
        codec = await self._codec(kept)
        _bounded(self._members)[subject, fingerprint] = codec
        return codec

    async def _codec(self, kept: Kept) -> Codec:
        if kept.number not in self._made:
            codec = await self._asked(lambda: Codec(Schema.parse(kept.text)))
            _bounded(self._made)[kept.number] = codec
        return self._made[kept.number]

    async def _asked(self, act: Callable[[], V]) -> V:
        return await to_thread.run_sync(act, limiter=self._threads, abandon_on_cancel=True)


def _bounded(kept: dict[K, Codec]) -> dict[K, Codec]:
    """Return a map with room for one more: what is let go of is made again."""
    if len(kept) >= MOST_CODECS:
        kept.clear()
    return kept


def _no_schema(subject: str, fingerprint: bytes | None = None) -> Problem:
    what = "no schema" if fingerprint is None else f"no version with the fingerprint {fingerprint.hex()}"
    told = f"the subject {subject!r} has {what}: register it with PUT /subjects/{subject}/schemas"
    return Problem(HTTPStatus.CONFLICT, "no-schema", told)


def _down(error: ShelfDownError) -> Problem:
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "store-down", str(error))
