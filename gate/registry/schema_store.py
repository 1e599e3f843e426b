"""Interface of the schema store: a stored schema is never changed or deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class SchemaStoreError(Exception):
    """The schema store cannot be read or written now; the message says why, and what to do."""


class StoredSchema(NamedTuple):
    """Stored schema: its number, from 1, by which clients of Confluent's API refer to it, and its text."""

    number: int
    text: str


class SubjectVersion(NamedTuple):
    """Version number of a subject, from 1, with its schema."""

    version: int
    schema: StoredSchema


class SchemaTransaction(Protocol):
    """Schemas and subjects of the store within one transaction."""

    def subjects(self) -> Sequence[str]:
        """Return the names of all subjects that have a schema, in order."""

    def entries(self, subject: str) -> Sequence[SubjectVersion]:
        """Return the versions of a subject in order; empty for an unknown subject."""

    def latest(self, subject: str) -> int:
        """Return the number of the latest version of a subject; 0 for an unknown subject."""

    def latest_versions(self) -> Mapping[str, int]:
        """Return the number of the latest version of each subject, in the order of their names."""

    def by_fingerprint(self, fingerprint: bytes) -> StoredSchema | None:
        """Return the schema with a fingerprint; None if there is none."""

    def by_number(self, number: int) -> StoredSchema | None:
        """Return the schema with a number; None if there is none."""

    def places(self, number: int) -> Sequence[tuple[str, int]]:
        """Return the subjects and versions that have a schema, in order."""

    def level(self, subject: str) -> str | None:
        """Return the level set for a subject, or with an empty name the default level; None if it was not set."""

    def all_levels(self) -> Mapping[str, str]:
        """Return all levels that were set, by subject; the default level has an empty name."""

    def add(self, fingerprint: bytes, text: str, number: int | None = None) -> StoredSchema:
        """Store a schema whose fingerprint is not stored yet, nor its number; without one it gets the next."""

    def enter(self, subject: str, version: int, number: int) -> None:
        """Make a schema a version of a subject."""

    def set_level(self, subject: str, level: str) -> None:
        """Set the level of a subject, or with an empty name that of all subjects without their own."""


class SchemaStore(Protocol):
    """Store of schemas that opens transactions."""

    def reading(self) -> AbstractContextManager[SchemaTransaction]:
        """Open a read transaction on a consistent snapshot."""

    def writing(self) -> AbstractContextManager[SchemaTransaction]:
        """Open a write transaction; other writers wait. It commits at a normal exit."""
