"""HTTP routes of the registry: subjects, their schemas, and compatibility checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

from anyio import to_thread
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.params import Depends

from hopwatch.gate.registry import answers
from hopwatch.gate.registry.answers import (
    AVRO,
    CompatibilityAnswer,
    SchemaAnswer,
    SubjectAnswer,
    VersionAnswer,
)
from hopwatch.gate.registry.avro_schema import Schema, SchemaError
from hopwatch.gate.registry.schema_store import SchemaStoreError
from hopwatch.gate.registry.subjects import SUBJECT_PATTERN, IncompatibleError, MeaningError, Registry, UnknownError
from hopwatch.probes.http import handlers
from hopwatch.probes.http.problems import Fault, HttpProblem

Found = TypeVar("Found")

SubjectName = Annotated[str, Path(pattern=SUBJECT_PATTERN, description="1 to 255 of the characters A-Za-z0-9._-")]
_DESCRIPTIONS: Final = {
    400: "the body ends too early, or is no gzip",
    401: "missing or invalid token",
    403: "the producer may not change the schemas of the subject",
    404: "there is no such subject, version or schema",
    408: "the body came too slowly",
    409: "the schema would break readers, or its fingerprint is taken by another one: see conflicts",
    413: "the body is too large",
    422: "the body is not JSON, not an Avro schema, or a schema that would harm a decoder; or the path is invalid",
    429: "the producer has sent more than his quota: retry after the time in Retry-After",
    503: "the store is down, or too many requests came at once: retry after the time in Retry-After",
}
_BODY: Final[dict[str, Any]] = {"requestBody": {"required": True, "content": {"application/json": {"schema": AVRO}}}}


def document_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI descriptions of some statuses."""
    return handlers.document_problems({status: _DESCRIPTIONS[status] for status in statuses})


def build_router(registry: Registry, writing: Sequence[Depends] = ()) -> APIRouter:  # noqa: C901 - one function a route
    """Build the routes; those that write depend on ``writing``."""
    routes = APIRouter(tags=["registry"], responses=document_responses(401, 429))

    @routes.get("/subjects", responses=document_responses(503))
    async def list_subjects() -> list[str]:
        """List the subjects that have a schema."""
        return list(await call_registry(registry.subjects))

    @routes.get("/subjects/{subject}/schemas", responses=document_responses(404, 422, 503))
    async def list_schemas(subject: SubjectName) -> SubjectAnswer:
        """List all versions of a subject."""

        def read() -> SubjectAnswer:
            versions = [answers.build_version_answer(subject, entry) for entry in registry.entries(subject)]
            return SubjectAnswer(subject=subject, compatibility=registry.level(subject), schemas=versions)

        return await call_registry(read)

    @routes.get("/subjects/{subject}/schemas/{version}", responses=document_responses(404, 422, 503))
    async def get_version(
        subject: SubjectName, version: Annotated[str, Path(pattern=r"^(latest|[1-9][0-9]{0,8})$")]
    ) -> VersionAnswer:
        """Get one version of a subject, by its number or as ``latest``."""
        number = None if version == "latest" else int(version)
        return await call_registry(lambda: answers.build_version_answer(subject, registry.entry(subject, number)))

    @routes.put(
        "/subjects/{subject}/schemas",
        status_code=HTTPStatus.CREATED,
        dependencies=writing,
        responses={
            **document_responses(400, 403, 408, 409, 413, 422, 503),
            200: {"description": "it is the latest version of the subject already", "model": VersionAnswer},
        },
        openapi_extra=_BODY,
    )
    async def register(subject: SubjectName, request: Request, response: Response) -> VersionAnswer:
        """Register a schema as the newest version of a subject, unless it is the latest one already."""
        body = await request.body()

        def write() -> VersionAnswer:
            made = registry.register(subject, Schema.parse(body))
            if not made.is_new:
                response.status_code = HTTPStatus.OK
            return answers.build_version_answer(subject, made.entry)

        return await call_registry(write)

    @routes.get("/subjects/{subject}/compatibility", responses=document_responses(409, 422, 503))
    async def would_fit(
        subject: SubjectName, schema: Annotated[str, Query(description="an Avro schema, JSON")]
    ) -> CompatibilityAnswer:
        """Check whether a schema would be accepted, without registering it."""
        return await call_registry(lambda: _check_compatibility(registry, subject, schema))

    @routes.get("/schemas/{fingerprint}", responses=document_responses(404, 422, 503))
    async def get_schema(
        fingerprint: Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the canonical form")],
    ) -> SchemaAnswer:
        """Get a schema by its fingerprint."""

        def read() -> SchemaAnswer:
            kept = registry.by_fingerprint(bytes.fromhex(fingerprint))
            return SchemaAnswer(id=kept.number, fingerprint=fingerprint, avro=answers.parse_schema_json(kept))

        return await call_registry(read)

    return routes


def _check_compatibility(registry: Registry, subject: str, schema: str) -> CompatibilityAnswer:
    level, found = registry.conflicts(subject, Schema.parse(schema))
    told = answers.build_conflict_answers(found)
    return CompatibilityAnswer(compatible=not told, compatibility=level, conflicts=told)


async def call_registry(act: Callable[[], Found]) -> Found:
    """Call the registry in a thread, and return its answer.

    Raises:
        HttpProblem: the registry failed or refused; its error as an HTTP answer.
    """
    try:
        return await to_thread.run_sync(act)
    except SchemaError as error:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        raise HttpProblem(status, "bad-schema", str(error), [Fault(error.place, str(error))]) from None
    except SchemaStoreError as error:
        raise HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, "store-down", str(error)) from None
    except UnknownError as error:
        raise HttpProblem(HTTPStatus.NOT_FOUND, f"unknown-{error.what}", str(error)) from None
    except MeaningError as error:
        raise HttpProblem(HTTPStatus.CONFLICT, "other-meaning", str(error)) from None
    except IncompatibleError as error:
        told = f"{error}: {answers.describe_fix(error)}"
        conflicts = [one.model_dump(mode="json") for one in answers.build_conflict_answers(error.conflicts)]
        raise HttpProblem(HTTPStatus.CONFLICT, "incompatible", told, extra_members={"conflicts": conflicts}) from None
