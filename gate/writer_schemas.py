"""Schemas that values were written with, by their references."""

from __future__ import annotations

from typing import Protocol

from hopwatch.gate.registry.schema_store import StoredSchema
from hopwatch.gate.registry.subjects import Registry
from hopwatch.probes.avro_reader import SchemaRef
from hopwatch.probes.schema_registry import name_version


class WriterSchemas(Protocol):
    """Registry that knows the schemas of writers."""

    def find_text(self, writer: SchemaRef) -> str:
        """Return the text of a schema.

        Raises:
            UnknownError: it is not registered.
            SchemaStoreError: the registry is down.
            ValueError: it cannot be used.
        """

    def find_name(self, writer: SchemaRef) -> str:
        """Return subject and version under which a schema is registered, the first ones by name; else nothing.

        Raises:
            UnknownError: it is not registered.
            SchemaStoreError: the registry is down.
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
        return self._find(writer).text

    def find_name(self, writer: SchemaRef) -> str:
        """Return subject and version under which a schema is registered, the first ones by name; else nothing.

        Raises:
            UnknownError: it is not registered.
            SchemaStoreError: the registry is down.
        """
        return name_version(self._registry.places(self._find(writer).number))

    def _find(self, writer: SchemaRef) -> StoredSchema:
        return self._registry.by_fingerprint(writer) if isinstance(writer, bytes) else self._registry.by_number(writer)
