"""Response models of the registry, as its OpenAPI document describes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import orjson
from pydantic import BaseModel, ConfigDict, Field

from hopwatch.gate.registry.compatibility import CompatibilityLevel, Conflict, Direction
from hopwatch.gate.registry.explanations import ConflictExplanation, describe_new_major, explain_conflicts
from hopwatch.gate.registry.schema_store import StoredSchema, SubjectVersion
from hopwatch.gate.registry.subjects import IncompatibleError, parse_stored

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
    compatibility: CompatibilityLevel
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
    def from_explanation(cls, told: ConflictExplanation) -> ConflictAnswer:
        """Return an explanation as it is answered."""
        return cls(**told._asdict())


class CompatibilityAnswer(_Answer):
    """Result of a compatibility check: whether the schema would be accepted, and the conflicts if not."""

    compatible: bool
    compatibility: CompatibilityLevel
    conflicts: list[ConflictAnswer]


def parse_schema_json(kept: StoredSchema) -> Any:  # noqa: ANN401 - JSON
    """Return a schema that is kept as JSON."""
    return orjson.loads(kept.text)


def build_version_answer(subject: str, entry: SubjectVersion) -> VersionAnswer:
    """Return a version of a subject."""
    schema = parse_stored(entry.schema.text)
    return VersionAnswer(
        id=entry.schema.number,
        fingerprint=schema.fingerprint.hex(),
        avro=parse_schema_json(entry.schema),
        subject=subject,
        version=entry.version,
    )


def describe_fix(error: IncompatibleError) -> str:
    """Return what to do with a schema that does not fit."""
    return f"mend what is listed, or {describe_new_major(error.new.name)}"


def build_conflict_answers(found: Sequence[Conflict]) -> list[ConflictAnswer]:
    """Return what keeps a schema from joining a subject, each thing by itself."""
    return [ConflictAnswer.from_explanation(one) for one in explain_conflicts(found)]
