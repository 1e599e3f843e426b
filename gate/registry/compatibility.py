"""Compatibility of schemas: whether one reads what another wrote, as decided by Apache Avro's own library."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.breaks import Break, find_breaks, is_compatible


class CompatibilityLevel(StrEnum):
    """Compatibility level of a subject: which of its versions must read which others."""

    NONE = "none"
    BACKWARD = "backward"
    BACKWARD_TRANSITIVE = "backward_transitive"
    FORWARD = "forward"
    FORWARD_TRANSITIVE = "forward_transitive"
    FULL = "full"
    FULL_TRANSITIVE = "full_transitive"

    @property
    def is_transitive(self) -> bool:
        """Compatibility with all earlier versions is required, not only with the latest."""
        return self.endswith("_transitive")

    @property
    def needs_backward(self) -> bool:
        """A new version must read what older versions wrote."""
        return self.startswith(("backward", "full"))

    @property
    def needs_forward(self) -> bool:
        """Older versions must read what a new version writes."""
        return self.startswith(("forward", "full"))


DEFAULT_LEVEL: Final = CompatibilityLevel.BACKWARD_TRANSITIVE
"""Level of subjects without a configured one: readers are upgraded first, and read all stored events."""


class Direction(StrEnum):
    """Direction of a compatibility check: which side reads, and which one writes."""

    BACKWARD = "backward"
    """The new schema reads what a version wrote."""
    FORWARD = "forward"
    """The version reads what the new schema writes."""


class Conflict(NamedTuple):
    """Conflict of a new schema with one version, in one direction; it has at least one break."""

    version: int
    direction: Direction
    breaks: tuple[Break, ...]


class SchemaVersion(NamedTuple):
    """Version number, from 1, with its schema."""

    number: int
    schema: Schema


def is_readable(reader: Schema, writer: Schema) -> bool:
    """Return whether the reader's schema can read all that the writer's schema may write."""
    return is_compatible(reader.parsed, writer.parsed)


def find_conflicts(new: Schema, versions: Sequence[SchemaVersion], level: CompatibilityLevel) -> tuple[Conflict, ...]:
    """Return the conflicts of a new schema with all versions in order; only with the latest if not transitive."""
    owed = versions if level.is_transitive else versions[-1:]
    found = []
    for number, old in owed:
        if level.needs_backward and not is_readable(new, old):
            found.append(Conflict(number, Direction.BACKWARD, find_breaks(new.parsed, old.parsed)))
        if level.needs_forward and not is_readable(old, new):
            found.append(Conflict(number, Direction.FORWARD, find_breaks(old.parsed, new.parsed)))
    return tuple(found)
