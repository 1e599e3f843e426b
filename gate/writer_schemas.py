"""Schemas that values were written with, by their references."""

from __future__ import annotations

from typing import Protocol

from hopwatch.gate.registry.subjects import Registry
from hopwatch.probes.avro_reader import SchemaRef


class WriterSchemas(Protocol):
    """Registry that knows the schemas of writers."""

    def find_text(self, writer: SchemaRef) -> str:
        """Return the text of a schema.

        Raises:
            UnknownError: it is not registered.
            SchemaStoreError: the registry is down.
            ValueError: it cannot be used.
        """


class StoredWriters:
    """Schemas of writers in our own registry."""

    def __init__(self, registry: Registry) -> None:
        """Take the registry."""
        self._registry = registry

    def find_text(self, writer: SchemaRef) -> str:
        """Return the text of a schema.

        Raises:
            UnknownError: it is not registered.
            SchemaStoreError: the registry is down.
        """
        kept = self._registry.by_fingerprint(writer) if isinstance(writer, bytes) else self._registry.by_number(writer)
        return kept.text
