"""All of a registry as one file: subjects, versions, numbers and compatibility levels, in an order of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hopwatch.gate.registry.avro_schema import Schema, SchemaError
from hopwatch.gate.registry.compatibility import CompatibilityLevel
from hopwatch.gate.registry.schema_store import SchemaStore, SchemaTransaction, StoredSchema
from hopwatch.gate.registry.subjects import ALL_SUBJECTS, SUBJECT_PATTERN, parse_stored

FORMAT: Final = 1
"""Version of the file's form."""
_Number = Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)]


class TransferError(ValueError):
    """Base of the errors of an import.

    TransferError
     ├─ FileFormError        the file is no export of a registry
     └─ ContradictionError   the file says otherwise than the registry
    """


class FileFormError(TransferError):
    """File that is no export of a registry, or one that contradicts itself."""


class ContradictionError(TransferError):
    """File that says otherwise than the registry that it is to be taken into."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_by_name=True, serialize_by_alias=True)


class SchemaEntry(_Part):
    """Schema of the file."""

    id: _Number
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    avro: Annotated[Any, Field(alias="schema")]


class VersionEntry(_Part):
    """Version of a subject, and the number of its schema."""

    version: _Number
    id: _Number


class SubjectEntry(_Part):
    """Subject, its own compatibility level if it has one, and its versions."""

    subject: Annotated[str, Field(pattern=SUBJECT_PATTERN)]
    compatibility: CompatibilityLevel | None
    versions: list[VersionEntry]


class RegistryFile(_Part):
    """Content of the file; ``compatibility`` is the level of all subjects without their own, if it was set."""

    form: Annotated[Literal[1], Field(alias="hopwatch_schemas")]
    compatibility: CompatibilityLevel | None
    schemas: list[SchemaEntry]
    subjects: list[SubjectEntry]


class ImportCounts(NamedTuple):
    """Counts of what an import has added."""

    schemas: int
    versions: int
    levels: int


def export_registry(store: SchemaStore) -> bytes:
    """Return all of a registry as the text of a file: the same registry gives the same bytes."""
    with store.reading() as shelf:
        levels = dict(shelf.all_levels())
        entries = {subject: shelf.entries(subject) for subject in sorted({*shelf.subjects(), *levels} - {ALL_SUBJECTS})}
    schemas = {entry.schema.number: entry.schema for found in entries.values() for entry in found}
    told = {
        "hopwatch_schemas": FORMAT,
        "compatibility": levels.get(ALL_SUBJECTS),
        "schemas": [_describe_schema(schemas[number]) for number in sorted(schemas)],
        "subjects": [
            {
                "subject": subject,
                "compatibility": levels.get(subject),
                "versions": [{"version": entry.version, "id": entry.schema.number} for entry in found],
            }
            for subject, found in entries.items()
        ],
    }
    return orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def import_registry(store: SchemaStore, data: bytes) -> ImportCounts:
    """Take a file into a registry, all of it or nothing; what is there already stays, and counts as nothing new.

    Numbers and versions are those of the file, and compatibility is not checked: it was when they were registered.

    Raises:
        FileFormError: the file is no export of a registry, or contradicts itself.
        ContradictionError: the registry says otherwise.
        SchemaStoreError: the store is down.
    """
    file = _parse_file(data)
    schemas = _parse_schemas(file)
    with store.writing() as shelf:
        new = [number for number, schema in schemas.items() if _is_new(shelf, number, schema)]
        versions = [found for subject in file.subjects for found in _find_new_versions(shelf, subject)]
        told = [(ALL_SUBJECTS, file.compatibility), *((one.subject, one.compatibility) for one in file.subjects)]
        levels = [found for subject, level in told if level for found in _find_new_level(shelf, subject, level)]
        for number in sorted(new):
            shelf.add(schemas[number].fingerprint, schemas[number].text, number)
        for subject, version, number in versions:
            shelf.enter(subject, version, number)
        for subject, level in levels:
            shelf.set_level(subject, level.value)
    return ImportCounts(len(new), len(versions), len(levels))


def _describe_schema(kept: StoredSchema) -> dict[str, Any]:
    fingerprint = parse_stored(kept.text).fingerprint.hex()
    return {"id": kept.number, "fingerprint": fingerprint, "schema": orjson.loads(kept.text)}


def _parse_file(data: bytes) -> RegistryFile:
    try:
        file = RegistryFile.model_validate(orjson.loads(data))
    except orjson.JSONDecodeError as error:
        raise FileFormError(f"it is no JSON: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "".join(f"/{part}" for part in first["loc"])
        raise FileFormError(f"it is no export of a registry: {place or '/'}: {first['msg']}") from None
    _check_unique("the schema", (one.id for one in file.schemas))
    _check_unique("the fingerprint", (one.fingerprint for one in file.schemas))
    _check_unique("the subject", (one.subject for one in file.subjects))
    for subject in file.subjects:
        _check_unique(f"a version of {subject.subject}:", (one.version for one in subject.versions))
    return file


def _parse_schemas(file: RegistryFile) -> dict[int, Schema]:
    """Return the schemas of a file by their numbers."""
    found = {}
    for one in file.schemas:
        try:
            schema = Schema.parse(orjson.dumps(one.avro))
        except SchemaError as error:
            raise FileFormError(f"the schema {one.id} is refused: {error.place or '/'}: {error}") from None
        if schema.fingerprint.hex() != one.fingerprint:
            told = f"the schema {one.id} has the fingerprint {schema.fingerprint.hex()}"
            raise FileFormError(f"{told}, and the file says {one.fingerprint}")
        found[one.id] = schema
    for subject in file.subjects:
        for version in subject.versions:
            if version.id not in found:
                told = f"version {version.version} of {subject.subject} is the schema {version.id}"
                raise FileFormError(f"{told}, which is missing")
    return found


def _check_unique(what: str, said: Iterable[object]) -> None:
    for one, count in Counter(said).items():
        if count > 1:
            raise FileFormError(f"{what} {one} stands in it {count} times")


def _is_new(shelf: SchemaTransaction, number: int, schema: Schema) -> bool:
    """Return whether a schema is to be added.

    Raises:
        ContradictionError: its number or its fingerprint is that of another one.
    """
    kept = shelf.by_fingerprint(schema.fingerprint)
    if kept is None:
        if shelf.by_number(number) is not None:
            raise ContradictionError(f"the number {number} is that of another schema here than in the file")
        return True
    if kept.number != number:
        told = f"the schema {schema.fingerprint.hex()} has the number {kept.number} here"
        raise ContradictionError(f"{told}, and {number} in the file: readers by number would take one for another")
    if parse_stored(kept.text).meaning != schema.meaning:
        told = f"the schema {number} differs here in logical types, defaults, aliases or sort orders"
        raise ContradictionError(f"{told}, which its fingerprint does not cover")
    return False


def _find_new_versions(shelf: SchemaTransaction, subject: SubjectEntry) -> Sequence[tuple[str, int, int]]:
    """Return subject, version and number of the versions that are to be added.

    Raises:
        ContradictionError: a version is another schema.
        FileFormError: one is missing between them.
    """
    name = subject.subject
    kept = {entry.version: entry.schema.number for entry in shelf.entries(name)}
    new = []
    for version, number in sorted((one.version, one.id) for one in subject.versions):
        if kept.get(version, number) != number:
            told = f"version {version} of {name} is the schema {kept[version]} here"
            raise ContradictionError(f"{told}, and {number} in the file")
        if version not in kept:
            if version > 1 and version - 1 not in kept:
                raise FileFormError(f"version {version - 1} of {name} is missing")
            kept[version] = number
            new.append((name, version, number))
    return new


def _find_new_level(
    shelf: SchemaTransaction, subject: str, level: CompatibilityLevel
) -> Sequence[tuple[str, CompatibilityLevel]]:
    """Return a level that is to be set, if it is.

    Raises:
        ContradictionError: another one is set.
    """
    kept = shelf.level(subject)
    if kept not in {None, level.value}:
        name = subject or "all subjects"
        raise ContradictionError(f"the compatibility of {name} is {kept} here, and {level.value} in the file")
    return [] if kept else [(subject, level)]
