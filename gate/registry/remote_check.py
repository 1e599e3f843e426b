"""Compatibility of a schema by a registry of others: its own verdict, explained as ours is."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import orjson

from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.compatibility import (
    DEFAULT_LEVEL,
    CompatibilityLevel,
    Conflict,
    SchemaVersion,
    find_conflicts,
)
from hopwatch.probes.schema_registry import RegistryAnswer, SchemaRegistry, find_message

NO_SUBJECT: Final = 40401
NO_VERSION: Final = 40402
_REFUSED: Final = frozenset({HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY})
_NO_ROUTE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})


class RemoteVerdict(NamedTuple):
    """Verdict of a registry: its level for the subject, and the conflicts.

    ``reason`` is what the registry says of a schema that it refuses; empty for one that it takes.
    """

    level: CompatibilityLevel
    conflicts: tuple[Conflict, ...]
    reason: str = ""


def check_remotely(registry: SchemaRegistry, subject: str, new: Schema) -> RemoteVerdict:
    """Ask a registry whether it would take a schema as the newest version of a subject; nothing is registered.

    The registry decides. Where it refuses, its versions are fetched, and compared here as to what is in the way.

    Raises:
        RegistryDownError: the registry gives no usable answer.
    """
    name, level = quote(subject, safe=""), _fetch_level(registry, quote(subject, safe=""))
    body = {"schema": new.text, "schemaType": "AVRO"}
    answer = registry.request("POST", f"/compatibility/subjects/{name}/versions?verbose=true", body)
    if answer.status in _NO_ROUTE and _find_code(answer) not in {NO_SUBJECT, NO_VERSION}:
        # Some registries compare with one version at a time only.
        answer = registry.request("POST", f"/compatibility/subjects/{name}/versions/latest?verbose=true", body)
    if _find_code(answer) in {NO_SUBJECT, NO_VERSION}:
        return RemoteVerdict(level, ())
    if answer.status in _REFUSED and (said := find_message(answer.body)):
        return RemoteVerdict(level, (), said)
    found = answer.body.get("is_compatible") if isinstance(answer.body, dict) else None
    if answer.status != HTTPStatus.OK or not isinstance(found, bool):
        raise registry.build_refusal(answer, f"whether a schema fits {subject}")
    if found:
        return RemoteVerdict(level, ())
    messages = answer.body.get("messages")
    said = "; ".join(map(str, messages)) if isinstance(messages, list) else ""
    told = said or f"the registry {registry.url} says that it does not fit {subject}, and not why"
    try:
        return RemoteVerdict(level, find_conflicts(new, _fetch_versions(registry, name), level), told)
    except ValueError:
        return RemoteVerdict(level, (), told)


def _fetch_level(registry: SchemaRegistry, name: str) -> CompatibilityLevel:
    answer = registry.request("GET", f"/config/{name}?defaultToGlobal=true")
    said = answer.body.get("compatibilityLevel") if isinstance(answer.body, dict) else None
    if answer.status == HTTPStatus.OK and isinstance(said, str) and said in CompatibilityLevel.__members__:
        return CompatibilityLevel[said]
    if _find_code(answer) is None:
        raise registry.build_refusal(answer, "what the level of a subject is")
    return DEFAULT_LEVEL


def _fetch_versions(registry: SchemaRegistry, name: str) -> list[SchemaVersion]:
    answer = registry.request("GET", f"/subjects/{name}/versions")
    if answer.status != HTTPStatus.OK or not isinstance(answer.body, list):
        raise registry.build_refusal(answer, "what the versions of a subject are")
    return [
        SchemaVersion(number, Schema.parse(orjson.dumps(registry.find_version(name, number))))
        for number in sorted(one for one in answer.body if type(one) is int)
    ]


def _find_code(answer: RegistryAnswer) -> Any:  # noqa: ANN401 - of JSON
    """Return the code of an error answer of Confluent's API; None without one."""
    return answer.body.get("error_code") if isinstance(answer.body, dict) else None
