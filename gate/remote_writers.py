"""Schemas of writers in a registry of others, behind a URL."""

from __future__ import annotations

from typing import Final

import orjson

from hopwatch.gate.registry.avro_schema import Schema, SchemaError
from hopwatch.gate.registry.schema_store import SchemaStoreError
from hopwatch.gate.registry.subjects import UnknownError
from hopwatch.probes.avro_reader import SchemaRef
from hopwatch.probes.clock import Clock
from hopwatch.probes.schema_registry import (
    ForeignSchemaError,
    RegistryDownError,
    SchemaRegistry,
    UnknownSchemaError,
    describe_ref,
)

ASK_AGAIN_NS: Final = 5_000_000_000
"""Time for which a schema that is unknown or cannot be used is not asked for again, in ns."""
MAX_REFUSED: Final = 1_024


class RemoteWriters:
    """Schemas of writers behind a URL; those that are found are kept by whoever asks."""

    def __init__(self, registry: SchemaRegistry, clock: Clock) -> None:
        """Begin with none."""
        self._registry, self._now_ns = registry, clock.monotonic_ns
        self._refused: dict[SchemaRef, tuple[int, str]] = {}
        """When a schema was last asked for, and why it cannot be used; empty if it is unknown."""

    def find_text(self, writer: SchemaRef) -> str:
        """Return the text of a schema.

        Raises:
            UnknownError: it is not registered.
            SchemaStoreError: the registry is down.
            ForeignSchemaError: it cannot be used.
        """
        asked_ns, why = self._refused.get(writer, (self._now_ns() - ASK_AGAIN_NS, ""))
        if self._now_ns() - asked_ns < ASK_AGAIN_NS:
            raise ForeignSchemaError(why) if why else UnknownError("schema", describe_ref(writer))
        try:
            return Schema.parse(orjson.dumps(self._registry.find_schema(writer))).text
        except RegistryDownError as error:
            raise SchemaStoreError(str(error)) from None
        except UnknownSchemaError:
            self._refuse(writer, "")
            raise UnknownError("schema", describe_ref(writer)) from None
        except (ForeignSchemaError, SchemaError) as error:
            told = f"the schema {describe_ref(writer)} cannot be used: {error}"
            self._refuse(writer, told)
            raise ForeignSchemaError(told) from None

    def find_name(self, writer: SchemaRef) -> str:
        """Return subject and version under which a schema is registered, the first ones by name; else nothing.

        Raises:
            SchemaStoreError: the registry is down.
        """
        try:
            return self._registry.find_name(writer)
        except RegistryDownError as error:
            raise SchemaStoreError(str(error)) from None

    def _refuse(self, writer: SchemaRef, why: str) -> None:
        if len(self._refused) >= MAX_REFUSED:
            self._refused.clear()
        self._refused[writer] = self._now_ns(), why
