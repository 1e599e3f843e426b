"""Cache of the codecs of a subject: one for its latest schema, or for the version that a request names."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final, TypeVar

from anyio import CapacityLimiter, Lock, move_on_after, to_thread

from hopwatch.gate.codec import Codec
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.schema_store import SchemaStoreError, StoredSchema
from hopwatch.gate.registry.subjects import Registry, UnknownError
from hopwatch.probes.clock import Clock
from hopwatch.probes.http.problems import HttpProblem

FRESH_NS: Final = 1_000_000_000
"""Period for which the latest version is cached, in ns."""
WAIT_S: Final = 0.5
"""Maximum wait for the registry while an earlier latest version is known, in s."""
THREADS: Final = 4
"""Number of threads reserved for calls of the registry."""
MAX_CODECS: Final = 64

K = TypeVar("K")
V = TypeVar("V")


class CodecCache:
    """Codecs by subject; one that is cached is still served while the schema store is down."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        """Begin with an empty cache."""
        self._registry, self._clock = registry, clock
        self._latest: dict[str, tuple[Codec, int]] = {}
        self._by_fingerprint: dict[tuple[str, bytes], Codec] = {}
        self._by_number: dict[int, Codec] = {}
        self._lock = Lock()
        self._threads = CapacityLimiter(THREADS)

    async def get_codec(self, subject: str, fingerprint: bytes | None = None) -> Codec:
        """Return the codec of a version of a subject, by its fingerprint, or of the latest.

        Raises:
            HttpProblem: the subject has no schema, or not that one; or it is not cached, and the store is down.
        """
        if fingerprint is not None:
            return await self._load_version(subject, fingerprint)
        found = self._latest.get(subject)
        if found is not None and self._clock.monotonic_ns() - found[1] < FRESH_NS:
            return found[0]
        if found is None:
            async with self._lock:
                return await self._load_latest(subject)
        # A store that hangs must not block events whose schema is cached.
        with move_on_after(WAIT_S):
            async with self._lock:
                return await self._load_latest(subject)
        self._latest[subject] = found[0], self._clock.monotonic_ns()
        return found[0]

    async def _load_latest(self, subject: str) -> Codec:
        found = self._latest.get(subject)
        now_ns = self._clock.monotonic_ns()
        if found is not None and now_ns - found[1] < FRESH_NS:
            return found[0]
        try:
            entry = await self._run_in_thread(lambda: self._registry.entry(subject))
            codec = await self._build_codec(entry.schema)
        except SchemaStoreError as error:
            if found is None:
                raise _store_down_problem(error) from None
            codec = found[0]
        except UnknownError:
            raise _no_schema_problem(subject) from None
        self._latest[subject] = codec, now_ns
        return codec

    async def _load_version(self, subject: str, fingerprint: bytes) -> Codec:
        if (found := self._by_fingerprint.get((subject, fingerprint))) is not None:
            return found
        try:
            entries = await self._run_in_thread(lambda: self._registry.entries(subject))
            kept = await self._run_in_thread(lambda: self._registry.by_fingerprint(fingerprint))
        except SchemaStoreError as error:
            raise _store_down_problem(error) from None
        except UnknownError:
            raise _no_schema_problem(subject, fingerprint) from None
        if all(entry.schema != kept for entry in entries):
            raise _no_schema_problem(subject, fingerprint)
        codec = await self._build_codec(kept)
        _make_room(self._by_fingerprint)[subject, fingerprint] = codec
        return codec

    async def _build_codec(self, kept: StoredSchema) -> Codec:
        if kept.number not in self._by_number:
            codec = await self._run_in_thread(lambda: Codec(Schema.parse(kept.text)))
            _make_room(self._by_number)[kept.number] = codec
        return self._by_number[kept.number]

    async def _run_in_thread(self, act: Callable[[], V]) -> V:
        return await to_thread.run_sync(act, limiter=self._threads, abandon_on_cancel=True)


def _make_room(kept: dict[K, Codec]) -> dict[K, Codec]:
    """Return the map with room for one more codec; a full one is cleared, and its codecs are built again on demand."""
    if len(kept) >= MAX_CODECS:
        kept.clear()
    return kept


def _no_schema_problem(subject: str, fingerprint: bytes | None = None) -> HttpProblem:
    what = "no schema" if fingerprint is None else f"no version with the fingerprint {fingerprint.hex()}"
    told = f"the subject {subject!r} has {what}: register it with PUT /subjects/{subject}/schemas"
    return HttpProblem(HTTPStatus.CONFLICT, "no-schema", told)


def _store_down_problem(error: SchemaStoreError) -> HttpProblem:
    return HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, "store-down", str(error))
