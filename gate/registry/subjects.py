"""Subjects of the registry: register schemas, check their compatibility, and look them up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.compatibility import (
    DEFAULT_LEVEL,
    CompatibilityLevel,
    Conflict,
    SchemaVersion,
    find_conflicts,
)
from hopwatch.gate.registry.schema_store import (
    SchemaStore,
    SchemaStoreError,
    SchemaTransaction,
    StoredSchema,
    SubjectVersion,
)

SUBJECT_PATTERN: Final = r"^[A-Za-z0-9._-]{1,255}$"
"""Pattern of subject names."""
ALL_SUBJECTS: Final = ""
"""Empty subject name: all subjects without a level of their own."""
MAX_TRIES: Final = 100
"""Maximum number of tries of a registration that conflicts with concurrent ones."""
_PARSED: Final = 64


class RegistryError(ValueError):
    """Base of the errors of the registry.

    RegistryError
     ├─ UnknownError        there is no such subject, version or schema
     ├─ MeaningError        the fingerprint is taken by another schema
     └─ IncompatibleError   the schema would break readers
    """


class UnknownError(RegistryError):
    """Unknown subject, version or schema; ``what`` is the kind that is missing."""

    def __init__(self, what: str, name: str) -> None:
        """Take the kind and the name of what is missing."""
        super().__init__(f"there is no {what} {name[:300]}")
        self.what = what


class MeaningError(RegistryError):
    """Fingerprint that is already taken by a schema with another meaning."""

    def __init__(self, new: Schema, kept: StoredSchema) -> None:
        """Take both schemas."""
        super().__init__(
            f"the fingerprint {new.fingerprint.hex()} stands already for a schema that differs in logical types,"
            f" defaults, aliases or sort orders, which it does not cover: a reader could not tell their events apart."
            f" Kept is {kept.text:.2000}. Register that text, or change a name, so that the fingerprint becomes another"
        )


class IncompatibleError(RegistryError):
    """Schema that would break readers of a subject."""

    def __init__(self, subject: str, new: Schema, level: CompatibilityLevel, found: Sequence[Conflict]) -> None:
        """Keep the conflicts."""
        versions = ", ".join(dict.fromkeys(str(one.version) for one in found))
        super().__init__(f"the schema does not fit version {versions} of {subject!r}, which is {level.value}")
        self.new, self.level, self.conflicts = new, level, tuple(found)


class Registration(NamedTuple):
    """Result of a registration: the version that has the schema, and whether it is new."""

    subject: str
    entry: SubjectVersion
    schema: Schema
    is_new: bool


class _SubjectState(NamedTuple):
    """State that a registration depends on; stored versions and schemas never change."""

    latest: int
    level: CompatibilityLevel
    schema: StoredSchema | None
    """The stored schema with the same fingerprint."""


class Registry:
    """Schema registry over a schema store; thread-safe if the store is."""

    def __init__(self, shelves: SchemaStore) -> None:
        """Take the schema store."""
        self._store = shelves

    def register(self, subject: str, new: Schema, *, renews: bool = True) -> Registration:
        """Register a schema as the newest version of a subject, or return the version that has it.

        A schema of an older version is added again as the newest; without ``renews`` the older version is returned.
        The compatibility check runs outside of the write transaction, so that other writers do not wait for it. The
        state that it used is checked again in that transaction, and the registration starts over if it has changed.

        Raises:
            MeaningError: its fingerprint is taken by another schema.
            IncompatibleError: it would break readers.
            SchemaStoreError: concurrent registrations of the subject came first each time.
        """
        level, compared = None, 0
        for _ in range(MAX_TRIES):
            with self._store.reading() as shelf:
                entries, stand = shelf.entries(subject), _read_state(shelf, subject, new)
            _check_meaning(new, stand.schema)
            own = next((entry for entry in reversed(entries) if entry.schema == stand.schema), None)
            if own is not None and (own == entries[-1] or not renews):
                return Registration(subject, own, parse_stored(own.schema.text), is_new=False)
            # Versions compared in an earlier try stay compatible at the same level.
            left = [entry for entry in entries if entry.version > compared or stand.level is not level]
            if found := find_conflicts(new, _parse_versions(left), stand.level):
                raise IncompatibleError(subject, new, stand.level, found)
            level, compared = stand.level, stand.latest
            with self._store.writing() as shelf:
                if _read_state(shelf, subject, new) == stand:
                    kept = stand.schema or shelf.add(new.fingerprint, new.text)
                    return Registration(
                        subject, _add_version(shelf, subject, kept), parse_stored(kept.text), is_new=True
                    )
        raise SchemaStoreError(f"others registered versions of {subject!r} {MAX_TRIES} times meanwhile: retry later")

    def restore(self, subject: str, version: int) -> Registration:
        """Add an older version of a subject again as the newest, without a compatibility check.

        Raises:
            UnknownError: there is no such subject, or no such version.
        """
        with self._store.writing() as shelf:
            entries = _read_entries(shelf, subject)
            wanted = _find_version(subject, entries, version)
            is_new = wanted.schema != entries[-1].schema
            entry = _add_version(shelf, subject, wanted.schema) if is_new else entries[-1]
        return Registration(subject, entry, parse_stored(entry.schema.text), is_new)

    def conflicts(
        self, subject: str, new: Schema, version: int | None = None
    ) -> tuple[CompatibilityLevel, tuple[Conflict, ...]]:
        """Return the level of a subject, and the conflicts of a schema with it, or with one version of it.

        Raises:
            MeaningError: its fingerprint is taken by another schema.
            UnknownError: there is no such version.
        """
        with self._store.reading() as shelf:
            entries, stand = shelf.entries(subject), _read_state(shelf, subject, new)
        _check_meaning(new, stand.schema)
        if version is not None:
            entries = [_find_version(subject, entries, version)]
        return stand.level, find_conflicts(new, _parse_versions(entries), stand.level)

    def subjects(self) -> Sequence[str]:
        """Return the names of all subjects, in order."""
        with self._store.reading() as shelf:
            return shelf.subjects()

    def entries(self, subject: str) -> Sequence[SubjectVersion]:
        """Return all versions of a subject, in order.

        Raises:
            UnknownError: there is no such subject.
        """
        with self._store.reading() as shelf:
            return _read_entries(shelf, subject)

    def entry(self, subject: str, version: int | None = None) -> SubjectVersion:
        """Return one version of a subject; the latest without a number.

        Raises:
            UnknownError: there is no such subject, or no such version.
        """
        with self._store.reading() as shelf:
            entries = _read_entries(shelf, subject)
        return entries[-1] if version is None else _find_version(subject, entries, version)

    def find(self, subject: str, schema: Schema) -> SubjectVersion | None:
        """Return the version of a subject that has a schema; None if there is none.

        Raises:
            UnknownError: there is no such subject.
        """
        with self._store.reading() as shelf:
            entries = _read_entries(shelf, subject)
        return next((entry for entry in entries if parse_stored(entry.schema.text).meaning == schema.meaning), None)

    def by_fingerprint(self, fingerprint: bytes) -> StoredSchema:
        """Return the schema with a fingerprint.

        Raises:
            UnknownError: there is none.
        """
        with self._store.reading() as shelf:
            return _require_schema(shelf.by_fingerprint(fingerprint), fingerprint.hex())

    def by_number(self, number: int) -> StoredSchema:
        """Return the schema with a number.

        Raises:
            UnknownError: there is none.
        """
        with self._store.reading() as shelf:
            return _require_schema(shelf.by_number(number), str(number))

    def places(self, number: int) -> Sequence[tuple[str, int]]:
        """Return the subjects and versions that have a schema.

        Raises:
            UnknownError: there is no such schema.
        """
        with self._store.reading() as shelf:
            _require_schema(shelf.by_number(number), str(number))
            return shelf.places(number)

    def level(self, subject: str = ALL_SUBJECTS) -> CompatibilityLevel:
        """Return the level of a subject: its own, else the default."""
        with self._store.reading() as shelf:
            return _read_level(shelf, subject)

    def own_level(self, subject: str) -> CompatibilityLevel | None:
        """Return the subject's own level; None if it was not set."""
        with self._store.reading() as shelf:
            found = shelf.level(subject)
        return None if found is None else CompatibilityLevel(found)

    def set_level(self, level: CompatibilityLevel, subject: str = ALL_SUBJECTS) -> None:
        """Set the level of a subject, or of all without their own; stored schemas are not checked again."""
        with self._store.writing() as shelf:
            shelf.set_level(subject, level.value)


@lru_cache(_PARSED)
def parse_stored(text: str) -> Schema:
    """Parse the text of a stored schema, which was checked before; results are cached."""
    return Schema.parse(text)


def _read_state(shelf: SchemaTransaction, subject: str, new: Schema) -> _SubjectState:
    return _SubjectState(shelf.latest(subject), _read_level(shelf, subject), shelf.by_fingerprint(new.fingerprint))


def _check_meaning(new: Schema, kept: StoredSchema | None) -> None:
    """Check that the stored schema with the same fingerprint has the same meaning."""
    if kept is not None and parse_stored(kept.text).meaning != new.meaning:
        raise MeaningError(new, kept)


def _add_version(shelf: SchemaTransaction, subject: str, kept: StoredSchema) -> SubjectVersion:
    """Add a stored schema as the newest version of a subject."""
    entry = SubjectVersion(shelf.latest(subject) + 1, kept)
    shelf.enter(subject, entry.version, kept.number)
    return entry


def _require_schema(kept: StoredSchema | None, name: str) -> StoredSchema:
    if kept is None:
        raise UnknownError("schema", name)
    return kept


def _read_entries(shelf: SchemaTransaction, subject: str) -> Sequence[SubjectVersion]:
    entries = shelf.entries(subject)
    if not entries:
        raise UnknownError("subject", subject)
    return entries


def _find_version(subject: str, entries: Sequence[SubjectVersion], version: int) -> SubjectVersion:
    for entry in entries:
        if entry.version == version:
            return entry
    raise UnknownError("version", f"{version} of {subject}")


def _parse_versions(entries: Sequence[SubjectVersion]) -> list[SchemaVersion]:
    return [SchemaVersion(entry.version, parse_stored(entry.schema.text)) for entry in entries]


def _read_level(shelf: SchemaTransaction, subject: str) -> CompatibilityLevel:
    return CompatibilityLevel(shelf.level(subject) or shelf.level(ALL_SUBJECTS) or DEFAULT_LEVEL)
