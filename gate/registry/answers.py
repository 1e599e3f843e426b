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
"""JSON type of a schema; a JSON schema cannot check that it is a valid Avro schema."""
Fingerprint = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the canonical form")]
Number = Annotated[int, Field(ge=1)]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", serialize_by_alias=True, validate_by_name=True)


class SchemaAnswer(_Answer):
    """Schema; ``id`` is its number, as in Confluent's API."""

    id: Number
    fingerprint: Fingerprint
    avro: Annotated[Any, Field(alias="schema", json_schema_extra=AVRO)]


class VersionAnswer(SchemaAnswer):
    """Version of a subject, with its schema."""

    subject: str
    version: Number


class SubjectAnswer(_Answer):
    """Subject: its compatibility level, and all its versions."""

    subject: str
    compatibility: CompatibilityLevel
    schemas: list[VersionAnswer]


class ConflictAnswer(_Answer):
    """Conflict with one version: its place, the problem, the readers that would break, and the fix."""

    version: Number
    direction: Direction
    place: str
    problem: str
    breaks: str
    fix: str

    @classmethod
    def from_explanation(cls, told: ConflictExplanation) -> ConflictAnswer:
        """Build the answer from an explanation."""
        return cls(**told._asdict())


class CompatibilityAnswer(_Answer):
    """Result of a compatibility check: whether the schema would be accepted, and the conflicts if not."""

    compatible: bool
    compatibility: CompatibilityLevel
    conflicts: list[ConflictAnswer]


def parse_schema_json(kept: StoredSchema) -> Any:  # noqa: ANN401 - JSON
    """Return a stored schema as JSON."""
    return orjson.loads(kept.text)


def build_version_answer(subject: str, entry: SubjectVersion) -> VersionAnswer:
    """Build the answer for a version of a subject."""
    schema = parse_stored(entry.schema.text)
    return VersionAnswer(
        id=entry.schema.number,
        fingerprint=schema.fingerprint.hex(),
        avro=parse_schema_json(entry.schema),
        subject=subject,
        version=entry.version,
    )


def describe_fix(error: IncompatibleError) -> str:
    """Return the advice for an incompatible schema."""
    return f"mend what is listed, or {describe_new_major(error.new.name)}"


def build_conflict_answers(found: Sequence[Conflict]) -> list[ConflictAnswer]:
    """Build the answers for the conflicts of a schema, one for each break."""
    return [ConflictAnswer.from_explanation(one) for one in explain_conflicts(found)]
