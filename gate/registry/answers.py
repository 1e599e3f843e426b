"""What the registry answers, as its OpenAPI document has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import orjson
from pydantic import BaseModel, ConfigDict, Field

from hopwatch.gate.registry.compatibility import Conflict, Direction, Level
from hopwatch.gate.registry.explained import Explanation, explained, new_major
from hopwatch.gate.registry.shelf import Entry, Kept
from hopwatch.gate.registry.subjects import IncompatibleError, parsed

AVRO: Final[dict[str, Any]] = {"anyOf": [{"type": "string"}, {"type": "array"}, {"type": "object"}]}
"""What a schema is in JSON; whether it is one of Avro, no JSON schema says."""
Fingerprint = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the canonical form")]
Number = Annotated[int, Field(ge=1)]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", serialize_by_alias=True, validate_by_name=True)


class SchemaAnswer(_Answer):
    """A schema; ``id`` is its number, as Confluent's API has it."""

    id: Number
    fingerprint: Fingerprint
    avro: Annotated[Any, Field(alias="schema", json_schema_extra=AVRO)]


class VersionAnswer(SchemaAnswer):
    """A schema as a version of a subject."""

    subject: str
    version: Number


class SubjectAnswer(_Answer):
    """A subject: what its versions owe each other, and all of them."""

    subject: str
    compatibility: Level
    schemas: list[VersionAnswer]


class ConflictAnswer(_Answer):
    """One thing that keeps a schema from joining a version: where, what, what would break, what to do."""

    version: Number
    direction: Direction
    place: str
    problem: str
    breaks: str
    fix: str

    @classmethod
    def of(cls, told: Explanation) -> ConflictAnswer:
        """Return an explanation as it is answered."""
        return cls(**told._asdict())


class CompatibilityAnswer(_Answer):
    """Whether a schema would be taken, and what keeps it from that."""

    compatible: bool
    compatibility: Level
    conflicts: list[ConflictAnswer]


def json_of(kept: Kept) -> Any:  # noqa: ANN401 - JSON
    """Return a schema that is kept as JSON."""
    return orjson.loads(kept.text)


def version(subject: str, entry: Entry) -> VersionAnswer:
    """Return a version of a subject."""
    schema = parsed(entry.kept.text)
    return VersionAnswer(
        id=entry.kept.number,
        fingerprint=schema.fingerprint.hex(),
        avro=json_of(entry.kept),
        subject=subject,
        version=entry.version,
    )


def advice(error: IncompatibleError) -> str:
    """Return what to do with a schema that does not fit."""
    return f"mend what is listed, or {new_major(error.new.name)}"


def conflicts(found: Sequence[Conflict]) -> list[ConflictAnswer]:
    """Return what keeps a schema from joining a subject, each thing by itself."""
    return [ConflictAnswer.of(one) for one in explained(found)]
