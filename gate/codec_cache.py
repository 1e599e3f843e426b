"""Caches of codecs: the latest schema of a subject, or the version that a request names."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, NamedTuple, TypeVar

from anyio import CapacityLimiter, Lock, move_on_after, to_thread

from hopwatch.gate.avro_events import AvroEvents, EventPaths
from hopwatch.gate.codec import Codec
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.schema_store import SchemaStoreError, StoredSchema
from hopwatch.gate.registry.subjects import Registry, UnknownError
from hopwatch.gate.request_bodies import DecodedData, SentEvent
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


class _Latest(NamedTuple):
    """Codec of the latest version, and when the registry was asked for it."""

    codec: Codec
    asked_ns: int


class LatestCodecs:
    """Codecs of the latest versions of subjects, fresh for a second each; from any thread.

    One that is cached is still served while the schema store is down.
    """

    def __init__(self, registry: Registry, clock: Clock) -> None:
        """Begin with an empty cache."""
        self._registry, self._now_ns = registry, clock.monotonic_ns
        self._latest: dict[str, _Latest] = {}
        self._changing = threading.Lock()
        self._by_number: dict[int, Codec] = {}

    def find(self, subject: str) -> Codec | None:
        """Return the cached codec, however old."""
        found = self._latest.get(subject)
        return None if found is None else found.codec

    def find_fresh(self, subject: str) -> Codec | None:
        """Return the cached codec unless it is too old."""
        found = self._latest.get(subject)
        return found[0] if found is not None and self._now_ns() - found[1] < FRESH_NS else None

    def get(self, subject: str) -> Codec:
        """Return the codec of the latest version.

        Raises:
            UnknownError: the subject has no schema.
            SchemaStoreError: none is cached, and the store is down.
        """
        # As find_fresh, without a call: a validator comes here twice a record.
        found = self._latest.get(subject)
        if found is not None and self._now_ns() - found[1] < FRESH_NS:
            return found[0]
        try:
            return self.load(subject)
        except SchemaStoreError:
            if (stale := self.find(subject)) is None:
                raise
            self.renew(subject)
            return stale

    def load(self, subject: str) -> Codec:
        """Ask the registry for the latest version, whether one is cached or not.

        Raises:
            UnknownError: the subject has no schema.
            SchemaStoreError: the store is down.
        """
        asked_ns = self._now_ns()
        codec = self.build(self._registry.entry(subject).schema)
        with self._changing:
            found = self._latest.get(subject)
            # An answer that came late must not replace that of a later question.
            if found is None or found.asked_ns <= asked_ns:
                self._latest[subject] = _Latest(codec, asked_ns)
        return codec

    def renew(self, subject: str) -> None:
        """Count the cached codec as fresh from now on."""
        now_ns = self._now_ns()
        # Another thread may have loaded a newer codec meanwhile: that one is renewed, never replaced.
        with self._changing:
            found = self._latest[subject]
            self._latest[subject] = found._replace(asked_ns=max(found.asked_ns, now_ns))

    def build(self, kept: StoredSchema) -> Codec:
        """Return the codec of a schema, built once."""
        codec = self._by_number.get(kept.number)
        if codec is None:
            codec = Codec(Schema.parse(kept.text))
            _make_room(self._by_number)[kept.number] = codec
        return codec


class CodecCache:
    """Codecs by subject for an event loop, which never waits long for the schema store if it knows an earlier one."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        """Begin with an empty cache."""
        self._registry, self._latest = registry, LatestCodecs(registry, clock)
        self._events = AvroEvents(registry)
        self._by_fingerprint: dict[tuple[str, bytes], Codec] = {}
        self._lock = Lock()
        self._threads = CapacityLimiter(THREADS)

    async def get_codec(self, subject: str, fingerprint: bytes | None = None) -> Codec:
        """Return the codec of a version of a subject, by its fingerprint, or of the latest.

        Raises:
            HttpProblem: the subject has no schema, or not that one; or it is not cached, and the store is down.
        """
        if fingerprint is not None:
            return await self._load_version(subject, fingerprint)
        if (fresh := self._latest.find_fresh(subject)) is not None:
            return fresh
        stale = self._latest.find(subject)
        if stale is None:
            async with self._lock:
                return await self._load_latest(subject)
        # A store that hangs must not block events whose schema is cached.
        with move_on_after(WAIT_S):
            async with self._lock:
                return await self._load_latest(subject)
        self._latest.renew(subject)
        return stale

    async def decode_event(self, data: bytes, codec: Codec) -> DecodedData:
        """Return the value of an event in framed Avro, or why it has none.

        Raises:
            HttpProblem: its schema is not cached, and the store is down.
        """
        try:
            return await self._run_in_thread(lambda: self._events.decode(data, codec))
        except SchemaStoreError as error:
            raise _store_down_problem(error) from None

    async def parse_container(self, body: bytes, codec: Codec, paths: EventPaths, max_bytes: int) -> list[SentEvent]:
        """Return the events of an Avro object container file.

        Raises:
            HttpProblem: it is none, or has too many events or bytes.
        """
        return await self._run_in_thread(lambda: self._events.parse_container(body, codec, paths, max_bytes))

    async def _load_latest(self, subject: str) -> Codec:
        try:
            return await self._run_in_thread(lambda: self._latest.get(subject))
        except SchemaStoreError as error:
            raise _store_down_problem(error) from None
        except UnknownError:
            raise _no_schema_problem(subject) from None

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
        codec = await self._run_in_thread(lambda: self._latest.build(kept))
        _make_room(self._by_fingerprint)[subject, fingerprint] = codec
        return codec

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
