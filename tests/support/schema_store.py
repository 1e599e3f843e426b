"""Schema store in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from hopwatch.gate.registry.schema_store import SchemaStoreError, StoredSchema, SubjectVersion


@dataclass
class MemoryShelf:
    """A schema store in memory, and its transaction; ``down`` says why it cannot be opened."""

    schemas: dict[bytes, StoredSchema] = field(default_factory=dict)
    versions: dict[str, list[SubjectVersion]] = field(default_factory=dict)
    levels: dict[str, str] = field(default_factory=dict)
    down: str = ""

    @contextmanager
    def reading(self) -> Iterator[MemoryShelf]:
        """Open it."""
        if self.down:
            raise SchemaStoreError(self.down)
        yield self

    writing = reading

    def subjects(self) -> Sequence[str]:
        """Return the names of all subjects that have a schema, in order."""
        return sorted(self.versions)

    def entries(self, subject: str) -> Sequence[SubjectVersion]:
        """Return the versions of a subject in order."""
        return list(self.versions.get(subject, ()))

    def latest(self, subject: str) -> int:
        """Return the number of the latest version of a subject."""
        return len(self.versions.get(subject, ()))

    def latest_versions(self) -> dict[str, int]:
        """Return the number of the latest version of each subject."""
        return {subject: len(self.versions[subject]) for subject in sorted(self.versions)}

    def by_fingerprint(self, fingerprint: bytes) -> StoredSchema | None:
        """Return the schema of a fingerprint."""
        return self.schemas.get(fingerprint)

    def by_number(self, number: int) -> StoredSchema | None:
        """Return the schema of a number."""
        return next((kept for kept in self.schemas.values() if kept.number == number), None)

    def places(self, number: int) -> Sequence[tuple[str, int]]:
        """Return subjects and versions that a schema stands under, in order."""
        return [
            (subject, entry.version)
            for subject, entries in sorted(self.versions.items())
            for entry in entries
            if entry.schema.number == number
        ]

    def level(self, subject: str) -> str | None:
        """Return the level that was set."""
        return self.levels.get(subject)

    def all_levels(self) -> dict[str, str]:
        """Return all levels that were set."""
        return self.levels

    def add(self, fingerprint: bytes, text: str, number: int | None = None) -> StoredSchema:
        """Keep a schema."""
        last = max((kept.number for kept in self.schemas.values()), default=0)
        return self.schemas.setdefault(fingerprint, StoredSchema(number or last + 1, text))

    def enter(self, subject: str, version: int, number: int) -> None:
        """Make a schema a version of a subject."""
        kept = self.by_number(number)
        assert kept is not None
        self.versions.setdefault(subject, []).append(SubjectVersion(version, kept))

    def set_level(self, subject: str, level: str) -> None:
        """Set a level."""
        self.levels[subject] = level
