"""HTTP routes of Confluent's registry API: https://docs.confluent.io/platform/current/schema-registry/develop/api.html.

Features that this registry lacks (modes, deletion, other formats than Avro) are refused. A schema with references is
kept with all that it refers to written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

from anyio import to_thread
from fastapi import APIRouter, Path, Query
from fastapi.params import Depends
from pydantic import BaseModel, ConfigDict, Field

from hopwatch.gate.registry.avro_schema import Schema, SchemaError, parse_with_references
from hopwatch.gate.registry.compatibility import CompatibilityLevel
from hopwatch.gate.registry.explanations import ConflictExplanation, explain_conflicts
from hopwatch.gate.registry.routes import SubjectName
from hopwatch.gate.registry.schema_store import SchemaStoreError, SubjectVersion
from hopwatch.gate.registry.subjects import ALL_SUBJECTS, IncompatibleError, MeaningError, Registry, UnknownError
from hopwatch.probes.http import problems
from hopwatch.probes.schema_registry import MAX_REFERENCES, ForeignSchemaError, parse_reference

Found = TypeVar("Found")

AVRO: Final = "AVRO"
MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
NO_SUBJECT, NO_VERSION, NO_SCHEMA, NO_LEVEL = 40401, 40402, 40403, 40408
BAD_SCHEMA, BAD_LEVEL = 42201, 42203
_CODES: Final = {"subject": NO_SUBJECT, "version": NO_VERSION, "schema": NO_SCHEMA}
Version = Annotated[str, Path(pattern=r"^(latest|[1-9][0-9]{0,8})$")]
Id = Annotated[int, Path(ge=1, le=2**31 - 1)]


@dataclass(eq=False)
class ConfluentError(Exception):
    """Error answer in the format of Confluent's registry."""

    status: HTTPStatus
    code: int
    message: str


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore", validate_by_name=True, serialize_by_alias=True)


class SchemaBody(_Body):
    """Schema to register or to check."""

    text: Annotated[str, Field(alias="schema")]
    kind: Annotated[str, Field(alias="schemaType")] = AVRO
    references: list[Any] | None = None


class LevelBody(_Body):
    """Compatibility level to set, in the request and in its answer."""

    compatibility: str


class LevelAnswer(_Body):
    """Compatibility level of a subject, or of all subjects."""

    level: Annotated[str, Field(alias="compatibilityLevel")]


class IdAnswer(_Body):
    """Number of a schema."""

    id: int


class TextAnswer(_Body):
    """Text of a schema."""

    text: Annotated[str, Field(alias="schema")]


class ConfluentVersionAnswer(TextAnswer):
    """Version of a subject."""

    subject: str
    id: int
    version: int


class SubjectVersionAnswer(_Body):
    """Subject and version under which a schema is registered."""

    subject: str
    version: int


class CompatibilityCheckAnswer(_Body):
    """Result of a compatibility check, with the reasons if it failed."""

    is_compatible: bool
    messages: list[str]


class ModeAnswer(_Body):
    """Mode of the registry: read and write."""

    mode: str


_CONTENT: Final = {
    MEDIA_TYPE: {
        "schema": {
            "type": "object",
            "required": ["error_code", "message"],
            "properties": {"error_code": {"type": "integer"}, "message": {"type": "string"}},
        }
    },
    # Errors raised before a route is reached have the common format.
    problems.MEDIA_TYPE: {"schema": problems.SCHEMA},
}
_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    status: {"description": when, "content": _CONTENT}
    for status, when in {
        400: "the body is no UTF-8, or ends too early",
        401: "missing or invalid token",
        403: "the producer may not change the schemas of the subject",
        404: "there is no such subject, version or schema",
        408: "the body came too slowly",
        409: "the schema would break readers, or its fingerprint is taken by another one",
        413: "the body is too large",
        422: "the request is invalid",
        429: "the producer has sent more than his quota: retry after the time in Retry-After",
        503: "the store is down, or too many requests came at once",
    }.items()
}


def build_router(registry: Registry, writing: Sequence[Depends] = ()) -> APIRouter:
    """Build the routes; those that write depend on ``writing``."""
    routes = APIRouter(tags=["Confluent's API"], responses=_RESPONSES)
    _add_subjects(routes, registry, writing)
    _add_schemas(routes, registry)
    _add_compatibility(routes, registry)
    _add_levels(routes, registry, writing)
    return routes


def _add_subjects(routes: APIRouter, registry: Registry, writing: Sequence[Depends]) -> None:
    @routes.post("/subjects/{subject}/versions", dependencies=writing)
    async def register(subject: SubjectName, body: SchemaBody) -> IdAnswer:
        """Register a schema as the newest version of a subject; one that is registered already is returned."""
        # Confluent's clients register their schema at each start.
        made = await _call_registry(lambda: registry.register(subject, _parse_schema(registry, body), renews=False))
        return IdAnswer(id=made.entry.schema.number)

    @routes.post("/subjects/{subject}")
    async def find(subject: SubjectName, body: SchemaBody) -> ConfluentVersionAnswer:
        """Find the version of a subject that has a schema."""
        entry = await _call_registry(lambda: registry.find(subject, _parse_schema(registry, body)))
        if entry is None:
            raise ConfluentError(HTTPStatus.NOT_FOUND, NO_SCHEMA, "the schema is no version of this subject")
        return _build_version_answer(subject, entry)

    @routes.get("/subjects/{subject}/versions")
    async def list_versions(subject: SubjectName) -> list[int]:
        """List the numbers of all versions of a subject."""
        return [entry.version for entry in await _call_registry(lambda: registry.entries(subject))]

    @routes.get("/subjects/{subject}/versions/{version}")
    async def get_version(subject: SubjectName, version: Version) -> ConfluentVersionAnswer:
        """Get one version of a subject."""
        return _build_version_answer(
            subject, await _call_registry(lambda: registry.entry(subject, _parse_version(version)))
        )


def _add_schemas(routes: APIRouter, registry: Registry) -> None:
    @routes.get("/schemas/types")
    async def types() -> list[str]:
        """List the supported schema types."""
        return [AVRO]

    @routes.get("/schemas/ids/{number}")
    async def by_number(number: Id) -> TextAnswer:
        """Get a schema by its number."""
        kept = await _call_registry(lambda: registry.by_number(number))
        return TextAnswer(text=kept.text)

    @routes.get("/schemas/ids/{number}/versions")
    async def places(number: Id) -> list[SubjectVersionAnswer]:
        """List the subjects and versions that have a schema."""
        found = await _call_registry(lambda: registry.places(number))
        return [SubjectVersionAnswer(subject=subject, version=version) for subject, version in found]


def _add_compatibility(routes: APIRouter, registry: Registry) -> None:
    @routes.post("/compatibility/subjects/{subject}/versions/{version}")
    async def fits_version(
        subject: SubjectName, version: Version, body: SchemaBody, *, verbose: Annotated[bool, Query()] = False
    ) -> CompatibilityCheckAnswer:
        """Check whether a schema is compatible with one version of a subject."""

        def ask() -> CompatibilityCheckAnswer:
            number = registry.entry(subject, _parse_version(version)).version
            return _check_fit(registry, subject, body, number, is_told=verbose)

        return await _call_registry(ask)

    @routes.post("/compatibility/subjects/{subject}/versions")
    async def fits(
        subject: SubjectName, body: SchemaBody, *, verbose: Annotated[bool, Query()] = False
    ) -> CompatibilityCheckAnswer:
        """Check whether a schema is compatible with a subject."""
        return await _call_registry(lambda: _check_fit(registry, subject, body, None, is_told=verbose))


def _add_levels(routes: APIRouter, registry: Registry, writing: Sequence[Depends]) -> None:
    @routes.get("/config")
    async def get_level() -> LevelAnswer:
        """Get the compatibility level of subjects without their own."""
        return LevelAnswer(level=(await _call_registry(registry.level)).name)

    @routes.put("/config", dependencies=writing)
    async def set_level(body: LevelBody) -> LevelBody:
        """Set the compatibility level of subjects without their own."""
        return await _set_level(registry, body, ALL_SUBJECTS)

    @routes.get("/config/{subject}")
    async def get_own_level(
        subject: SubjectName, *, default_to_global: Annotated[bool, Query(alias="defaultToGlobal")] = False
    ) -> LevelAnswer:
        """Get the compatibility level of a subject, if it has its own."""
        own = await _call_registry(
            lambda: registry.level(subject) if default_to_global else registry.own_level(subject)
        )
        if own is None:
            told = f"the subject {subject!r} has no level of its own: ask with defaultToGlobal=true"
            raise ConfluentError(HTTPStatus.NOT_FOUND, NO_LEVEL, told)
        return LevelAnswer(level=own.name)

    @routes.put("/config/{subject}", dependencies=writing)
    async def set_own_level(subject: SubjectName, body: LevelBody) -> LevelBody:
        """Set the compatibility level of a subject."""
        return await _set_level(registry, body, subject)

    @routes.get("/mode")
    async def mode() -> ModeAnswer:
        """Report that schemas may be read and registered."""
        return ModeAnswer(mode="READWRITE")


async def _set_level(registry: Registry, body: LevelBody, subject: str) -> LevelBody:
    name = body.compatibility.upper()
    if name not in CompatibilityLevel.__members__:
        known = ", ".join(CompatibilityLevel.__members__)
        told = f"a level is one of {known}, got {body.compatibility[:60]!r}"
        raise ConfluentError(HTTPStatus.UNPROCESSABLE_ENTITY, BAD_LEVEL, told)
    await _call_registry(lambda: registry.set_level(CompatibilityLevel[name], subject))
    return LevelBody(compatibility=name)


def _check_fit(
    registry: Registry, subject: str, body: SchemaBody, version: int | None, *, is_told: bool
) -> CompatibilityCheckAnswer:
    _, found = registry.conflicts(subject, _parse_schema(registry, body), version)
    messages = [_describe(one) for one in explain_conflicts(found)] if is_told else []
    return CompatibilityCheckAnswer(is_compatible=not found, messages=messages)


def _parse_schema(registry: Registry, body: SchemaBody) -> Schema:
    """Return the schema of a request, with all that it refers to.

    Raises:
        ConfluentError: it is of another kind.
        SchemaError: it is refused.
        UnknownError: it refers to what is not registered.
    """
    if body.kind != AVRO:
        told = f"a schema is of the kind {AVRO}, got {body.kind[:60]!r}"
        raise ConfluentError(HTTPStatus.UNPROCESSABLE_ENTITY, BAD_SCHEMA, told)
    if not body.references:
        return Schema.parse(body.text)
    if len(body.references) > MAX_REFERENCES:
        told = f"a schema has at most {MAX_REFERENCES} references, got {len(body.references)}"
        raise ConfluentError(HTTPStatus.UNPROCESSABLE_ENTITY, BAD_SCHEMA, told)
    return parse_with_references(body.text, [_find_referenced(registry, one) for one in body.references])


def _find_referenced(registry: Registry, said: object) -> str:
    """Return the text of a schema that a reference names."""
    try:
        subject, version = parse_reference(said)
    except ForeignSchemaError as error:
        raise ConfluentError(HTTPStatus.UNPROCESSABLE_ENTITY, BAD_SCHEMA, str(error)) from None
    return registry.entry(subject, version).schema.text


def _build_version_answer(subject: str, entry: SubjectVersion) -> ConfluentVersionAnswer:
    return ConfluentVersionAnswer(
        subject=subject, version=entry.version, id=entry.schema.number, text=entry.schema.text
    )


def _parse_version(version: str) -> int | None:
    return None if version == "latest" else int(version)


def _describe(one: ConflictExplanation) -> str:
    return f"{one.place}: {one.problem}: {one.breaks}: {one.fix}"


async def _call_registry(act: Callable[[], Found]) -> Found:
    try:
        return await to_thread.run_sync(act)
    except SchemaError as error:
        told = f"{error.place or '/'}: {error}"
        raise ConfluentError(HTTPStatus.UNPROCESSABLE_ENTITY, BAD_SCHEMA, told) from None
    except SchemaStoreError as error:
        raise ConfluentError(HTTPStatus.SERVICE_UNAVAILABLE, int(HTTPStatus.SERVICE_UNAVAILABLE), str(error)) from None
    except UnknownError as error:
        raise ConfluentError(HTTPStatus.NOT_FOUND, _CODES[error.what], str(error)) from None
    except MeaningError as error:
        raise ConfluentError(HTTPStatus.CONFLICT, int(HTTPStatus.CONFLICT), str(error)) from None
    except IncompatibleError as error:
        why = "; ".join(_describe(one) for one in explain_conflicts(error.conflicts))
        raise ConfluentError(HTTPStatus.CONFLICT, int(HTTPStatus.CONFLICT), f"{error}: {why}") from None
