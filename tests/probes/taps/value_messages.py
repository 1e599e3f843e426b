"""Messages with values, schemas that wrote these, and a registry in memory."""

from __future__ import annotations

import struct
import uuid
from typing import Any

from hopwatch.probes.avro_reader import SchemaRef
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.schema_registry import UnknownSchemaError
from hopwatch.probes.taps.documents import StampableMessage
from hopwatch.testing import EPOCH_US
from tests.probes.integrations.clients import Letter
from tests.probes.taps.avro_values import VALUE

MARKED = [("hopwatch-id", b"a"), ("hopwatch-time", b"%d" % EPOCH_US)]
SEEN = StampableMessage(id_bytes("a"), EPOCH_US)


class Record(Letter):
    """A message with a value and a time of its own."""

    def __init__(self, value: object = b"", headers: object = None, time: tuple[int, int] = (0, -1)) -> None:
        """Take what is asked of it."""
        super().__init__(headers)
        self._value, self._time = value, time

    def value(self) -> object:  # type: ignore[override]
        """Return the value."""
        return self._value

    def timestamp(self) -> tuple[int, int]:
        """Return what kind of time it has, and the time in ms."""
        return self._time


RENAMED: dict[str, Any] = {
    "type": "record", "name": "Order", "namespace": "shop", "fields": [
        {"name": "added", "type": "int"},
        {"name": "key", "aliases": ["id"], "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}],
}  # fmt: skip
"""A later version: fields in another order, one of another name, and the time in another unit."""
LATER = {"added": 1, "key": VALUE["id"], "at": VALUE["at"]}
SEEN_IN_VALUE = StampableMessage(uuid.UUID(str(VALUE["id"])).bytes, 1_699_920_000_000_000)
FRAMED = {number: b"\0" + struct.pack(">I", number) for number in (7, 8, 9)}


FIRST_NAMELESS = 10


class Source:
    """A registry in memory; ``failure`` is raised in place of its answer."""

    def __init__(self, **schemas: Any) -> None:  # noqa: ANN401 - JSON
        """Take schemas by number, such as ``n7``."""
        self.schemas: dict[SchemaRef, Any] = {int(name[1:]): said for name, said in schemas.items()}
        self.failure: Exception | None = None
        self.asked: list[SchemaRef] = []

    def find_schema(self, writer: SchemaRef) -> Any:  # noqa: ANN401 - JSON
        """Return a schema."""
        self.asked.append(writer)
        if self.failure is not None:
            raise self.failure
        if writer not in self.schemas:
            raise UnknownSchemaError("unknown")
        return self.schemas[writer]

    def find_name(self, writer: SchemaRef) -> str:
        """Return its name; those of numbers below 10 are versions of a subject."""
        return f"orders/{writer}" if isinstance(writer, int) and writer < FIRST_NAMELESS else ""
