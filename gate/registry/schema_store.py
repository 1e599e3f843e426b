"""Interface of the schema store: a stored schema is never changed or deleted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class SchemaStoreError(Exception):
    """The schema store cannot be read or written now; the message says why, and what to do."""


class StoredSchema(NamedTuple):
    """A schema that is kept: its number, from 1, which clients of Confluent's API know it by, and its text."""

    number: int
    text: str


class SubjectVersion(NamedTuple):
    """A version of a subject, from 1, and its schema."""

    version: int
    schema: StoredSchema


class SchemaTransaction(Protocol):
    """Schemas and subjects of the store within one transaction."""

    def subjects(self) -> Sequence[str]:
        """Return the names of all subjects that have a schema, in order."""

    def entries(self, subject: str) -> Sequence[SubjectVersion]:
        """Return the versions of a subject in order; none of one that nobody knows."""

    def latest(self, subject: str) -> int:
        """Return the number of the latest version of a subject, 0 of one that nobody knows."""

    def by_fingerprint(self, fingerprint: bytes) -> StoredSchema | None:
        """Return the schema of a fingerprint, none without it."""

    def by_number(self, number: int) -> StoredSchema | None:
        """Return the schema of a number, none without it."""

    def places(self, number: int) -> Sequence[tuple[str, int]]:
        """Return subjects and versions that a schema stands under, in order."""

    def level(self, subject: str) -> str | None:
        """Return the level that was set for a subject, or with an empty name for all; none without."""

    def add(self, fingerprint: bytes, text: str) -> StoredSchema:
        """Keep a schema whose fingerprint is not kept yet."""

    def enter(self, subject: str, version: int, number: int) -> None:
        """Make a schema a version of a subject."""

    def set_level(self, subject: str, level: str) -> None:
        """Set the level of a subject, or with an empty name of all that have none of their own."""


class SchemaStore(Protocol):
    """Opens the shelf."""

    def reading(self) -> AbstractContextManager[SchemaTransaction]:
        """Open it as it stands at one moment."""

    def writing(self) -> AbstractContextManager[SchemaTransaction]:
        """Open it for one who writes; others who write wait. What was written is kept when this ends well."""
