"""Schema registry in the store: rows are only added, except the compatibility levels of subjects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, Select, func, insert, select

from hopwatch.gate.registry import schema_store
from hopwatch.gate.registry.schema_store import StoredSchema, SubjectVersion
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.store.tables import schemas, subject_levels, subject_versions


class SchemaStoreDownError(StoreError, schema_store.SchemaStoreError):
    """The store of the registry is unavailable; the message is that of the store."""


@dataclass(frozen=True, slots=True)
class StoredSubjects:
    """A :class:`hopwatch.gate.registry.schema_store.SchemaTransaction` in the store, in one transaction."""

    connection: Connection
    now_us: int

    def subjects(self) -> Sequence[str]:
        """Return the names of all subjects that have a schema, in order."""
        name = subject_versions.c.subject
        return list(self.connection.execute(select(name).distinct().order_by(name)).scalars())

    def entries(self, subject: str) -> Sequence[SubjectVersion]:
        """Return the versions of a subject in order; empty if the subject is unknown."""
        of = subject_versions.c
        rows = select(of.version, schemas.c.number, schemas.c.text).join_from(
            subject_versions, schemas, of.schema_number == schemas.c.number
        )
        found = self.connection.execute(rows.where(of.subject == subject).order_by(of.version))
        return [SubjectVersion(row.version, StoredSchema(row.number, row.text)) for row in found]

    def latest(self, subject: str) -> int:
        """Return the latest version number of a subject, 0 if it is unknown."""
        of = subject_versions.c
        return self.connection.execute(select(func.max(of.version)).where(of.subject == subject)).scalar() or 0

    def latest_versions(self) -> Mapping[str, int]:
        """Return the latest version number of each subject, in the order of their names."""
        of = subject_versions.c
        chosen = select(of.subject, func.max(of.version)).group_by(of.subject).order_by(of.subject)
        return {row[0]: row[1] for row in self.connection.execute(chosen)}

    def by_fingerprint(self, fingerprint: bytes) -> StoredSchema | None:
        """Return the schema of a fingerprint, none without it."""
        return self._kept(_SELECT_SCHEMA.where(schemas.c.fingerprint == fingerprint))

    def by_number(self, number: int) -> StoredSchema | None:
        """Return the schema of a number, none without it."""
        return self._kept(_SELECT_SCHEMA.where(schemas.c.number == number))

    def places(self, number: int) -> Sequence[tuple[str, int]]:
        """Return subjects and versions that a schema stands under, in order."""
        of = subject_versions.c
        chosen = select(of.subject, of.version).where(of.schema_number == number).order_by(of.subject, of.version)
        return [(row.subject, row.version) for row in self.connection.execute(chosen)]

    def level(self, subject: str) -> str | None:
        """Return the level that was set for a subject, or with an empty name for all; none without."""
        of = subject_levels.c
        found: str | None = self.connection.execute(select(of.level).where(of.subject == subject)).scalar()
        return found

    def all_levels(self) -> Mapping[str, str]:
        """Return all levels that were set, by subject; with an empty name that of all others."""
        of = subject_levels.c
        return {row.subject: row.level for row in self.connection.execute(select(of.subject, of.level))}

    def add(self, fingerprint: bytes, text: str, number: int | None = None) -> StoredSchema:
        """Keep a schema whose fingerprint and number are not kept yet; without a number it gets the next."""
        if number is None:
            # The write lock keeps other writers out.
            number = (self.connection.execute(select(func.max(schemas.c.number))).scalar() or 0) + 1
        self.connection.execute(insert(schemas).values(number=number, fingerprint=fingerprint, text=text))
        return StoredSchema(number, text)

    def enter(self, subject: str, version: int, number: int) -> None:
        """Make a schema a version of a subject."""
        row = {"subject": subject, "version": version, "schema_number": number, "registered_us": self.now_us}
        self.connection.execute(insert(subject_versions).values(row))

    def set_level(self, subject: str, level: str) -> None:
        """Set the level of a subject, or with an empty name of all that have none of their own."""
        row = {"subject": subject, "level": level}
        self.connection.execute(dialect.upsert(self.connection, subject_levels), [row])

    def _kept(self, chosen: Select[tuple[int, str]]) -> StoredSchema | None:
        row = self.connection.execute(chosen).one_or_none()
        return None if row is None else StoredSchema(row.number, row.text)


_SELECT_SCHEMA = select(schemas.c.number, schemas.c.text)


@dataclass(frozen=True, slots=True)
class SubjectStore:
    """Opens the schema registry of an existing store."""

    engine: Engine
    clock: Clock

    @contextmanager
    def reading(self) -> Iterator[StoredSubjects]:
        """Open a read transaction on one snapshot.

        Raises:
            SchemasError: the store cannot be read, or is of another version.
        """
        with _translate_errors(), schema.open_snapshot(self.engine) as connection:
            yield StoredSubjects(connection, self.clock.now_us())

    @contextmanager
    def writing(self) -> Iterator[StoredSubjects]:
        """Open a write transaction.

        Raises:
            SchemasError: the store cannot be written, or is of another version.
        """
        made = self.engine.execution_options(writes=True)
        with _translate_errors(), dialect.translate_errors(self.engine.url), made.begin() as connection:
            schema.check_version(connection)
            yield StoredSubjects(connection, self.clock.now_us())


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise SchemaStoreDownError(str(error)) from None
