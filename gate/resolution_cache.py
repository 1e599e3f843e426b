"""Cache of the writers' schemas of a topic, resolved against the latest version of its subject."""

from __future__ import annotations

from typing import Final

from hopwatch.gate.avro_body import ResolutionError
from hopwatch.gate.codec import Codec
from hopwatch.gate.codec_cache import LatestCodecs
from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.subjects import Registry
from hopwatch.gate.resolution import Resolution
from hopwatch.gate.writer_schemas import StoredWriters, WriterSchemas
from hopwatch.probes.avro_reader import SchemaRef
from hopwatch.probes.clock import Clock
from hopwatch.probes.schema_registry import name_ref

MAX_WRITERS: Final = 256


class ResolutionCache:
    """Cache of schema resolutions; one that is cached is still served while the registry is down."""

    def __init__(self, registry: Registry, subject: str, clock: Clock, writers: WriterSchemas | None = None) -> None:
        """Begin with an empty cache; ``writers`` knows the schemas of writers where the registry does not."""
        self._sources = writers or StoredWriters(registry)
        self.subject, self._latest = subject, LatestCodecs(registry, clock)
        self._writers: dict[SchemaRef, Schema] = {}
        self._names: dict[SchemaRef, str] = {}
        self._resolutions: dict[SchemaRef, Resolution | ResolutionError] = {}
        self._codec: Codec | None = None

    def get_codec(self) -> Codec:
        """Return the codec of the latest version.

        Raises:
            UnknownError: the subject has no schema.
            SchemaStoreError: none is cached, and the registry is down.
        """
        codec = self._latest.get(self.subject)
        if codec is not self._codec:
            self._codec = codec
            self._resolutions.clear()
        return codec

    def get_name(self, writer: SchemaRef) -> str:
        """Return the name of a writer's schema: subject and version of one that was resolved, else its reference."""
        return self._names.get(writer) or name_ref(writer)

    def get_resolution(self, writer: SchemaRef) -> tuple[Resolution, Codec]:
        """Return the resolution of a writer's schema against the latest version, and the codec of that version.

        Raises:
            UnknownError: the schema is not registered.
            ResolutionError: its values cannot be read as the latest version.
            SchemaStoreError: it is not cached, and the registry is down.
            ValueError: the schema cannot be used.
        """
        schema = self._writers.get(writer)
        if schema is None:
            schema = Schema.parse(self._sources.find_text(writer))
            name = self._sources.find_name(writer) or name_ref(schema.fingerprint)
            # A new writer's schema may come with a new latest version.
            self._latest.load(self.subject)
            if len(self._writers) >= MAX_WRITERS:
                self._writers.clear()
                self._names.clear()
                self._resolutions.clear()
            self._writers[writer], self._names[writer] = schema, name
        codec = self.get_codec()
        found = self._resolutions.get(writer)
        if found is None:
            try:
                found = Resolution(schema, codec.schema)
            except ResolutionError as error:
                found = error
            self._resolutions[writer] = found
        if isinstance(found, ResolutionError):
            raise ResolutionError(str(found), *found.path)
        return found, codec
