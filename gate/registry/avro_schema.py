"""Parsed Avro schema: its text, fingerprint and meaning.

The canonical form of the Avro specification, and so the fingerprint, omits logical types, defaults, aliases and sort
orders. Two texts may have the same fingerprint and decode the same bytes to different values; ``meaning`` distinguishes
them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import avro.schema
import fastavro.schema
import orjson

from hopwatch.gate import json_members
from hopwatch.gate.registry.standard_types import NAMESPACE, STANDARD_TYPES
from hopwatch.probes.avro_lint import PRIMITIVES, LintError, full_name, lint
from hopwatch.probes.avro_references import write_out_references

MAX_SCHEMA_BYTES: Final = 1024 * 1024
_LOGICAL_KEYS: Final = ("logicalType", "precision", "scale")
_LOGICAL: Final = "logical-type"
"""Name of ``logicalType`` in schemas for Avro's library: it does not need the attribute to decide, but would print a
warning for each unknown value, and keep each warning forever."""
_STANDARD: Final = NAMESPACE.encode()
_EXACT: Final = 2**53
"""Whole numbers below it have an exact float."""


class SchemaError(ValueError):
    """Text that is not a schema, or a schema that is refused; ``place`` is a JSON pointer into it."""

    def __init__(self, place: str, message: str) -> None:
        """Keep the place beside the sentence."""
        super().__init__(message)
        self.place = place


@dataclass(frozen=True, slots=True)
class Schema:
    """Parsed schema.

    ``text`` is JSON without spaces, ``fingerprint`` the SHA-256 of the canonical form, 32 bytes. Schemas with an equal
    ``meaning`` decode the same bytes to the same values, and resolve alike against any other schema. ``name`` is that
    of the outermost type with its namespace, empty if it has none.
    """

    text: str
    fingerprint: bytes
    meaning: str
    name: str
    parsed: avro.schema.Schema = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str | bytes) -> Schema:
        """Parse a schema, and check it by the lint; names of standard types are written out.

        Raises:
            SchemaError: it is not a schema, or one that would harm a decoder.
        """
        told = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        if len(told) > MAX_SCHEMA_BYTES:
            raise SchemaError("", f"a schema has at most {MAX_SCHEMA_BYTES:,} bytes, got {len(told):,}")
        try:
            said = orjson.loads(told)
        except ValueError as error:
            raise SchemaError("", f"a schema is JSON: {error!s:.200}") from None
        repeated = json_members.find_repeated_member(told) if json_members.may_have_repeats(told) else None
        if repeated is not None:
            raise SchemaError(repeated, json_members.REPEATED_MEMBER)
        try:
            if _STANDARD in told:
                said = write_out_references(said, STANDARD_TYPES)
            lint(said)
        except LintError as error:
            raise SchemaError(error.place, str(error)) from None
        try:
            compact = orjson.dumps(said).decode()
            meaning = orjson.dumps(_normalize(said, ""), option=orjson.OPT_SORT_KEYS).decode()
            # With all names in full, also those of aliases, which the library does not resolve.
            parsed = avro.schema.parse(orjson.dumps(_hide_logical_types(orjson.loads(meaning))).decode())
            # By fastavro: Avro's own library leaves logical types in the canonical form.
            canonical = fastavro.schema.to_parsing_canonical_form(said)
        except Exception as error:  # noqa: BLE001 - the parsers may raise anything, always because of the text
            raise SchemaError("", f"Avro does not accept it as a schema: {error!s:.300}") from None
        fingerprint = sha256(canonical.encode()).digest()
        name = full_name(said, "") if isinstance(said, dict) and "name" in said else ""
        return cls(compact, fingerprint, meaning, name, parsed)


def parse_with_references(text: str | bytes, referenced: Sequence[str | bytes]) -> Schema:
    """Parse a schema that uses types of others, whose texts are given; what it uses of them becomes a part of it.

    Raises:
        SchemaError: one of them is no JSON, or the whole is no schema, or one that would harm a decoder.
    """
    try:
        said, *others = [orjson.loads(one) for one in (text, *referenced)]
        whole = orjson.dumps(write_out_references(said, others))
    except LintError as error:
        raise SchemaError(error.place, str(error)) from None
    except ValueError as error:
        raise SchemaError("", f"a schema is JSON: {error!s:.200}") from None
    return Schema.parse(whole)


def logical_type(parsed: avro.schema.Schema) -> str | None:
    """Return the logical type of a type in :attr:`Schema.parsed`; None if it has none."""
    found = parsed.props.get(_LOGICAL)
    return None if found is None else str(found)


def _hide_logical_types(meant: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a schema for Avro's library, with ``logicalType`` under a name that the library ignores."""
    if isinstance(meant, list):
        return [_hide_logical_types(one) for one in meant]
    if not isinstance(meant, dict):
        return meant
    told = {_LOGICAL if name == "logicalType" else name: value for name, value in meant.items()}
    for part in ("type", "items", "values"):
        if part in told:
            told[part] = _hide_logical_types(told[part])
    if "fields" in told:
        told["fields"] = [one | {"type": _hide_logical_types(one["type"])} for one in told["fields"]]
    return told


def _normalize(schema: Any, namespace: str) -> Any:  # noqa: ANN401 - JSON, here and below
    """Return a normal form of all parts of a schema that affect its readers."""
    if isinstance(schema, str):
        return schema if schema in PRIMITIVES or "." in schema or not namespace else f"{namespace}.{schema}"
    if isinstance(schema, list):
        return [_normalize(branch, namespace) for branch in schema]
    kind, more = schema["type"], _logical_properties(schema)
    match kind:
        case "array":
            return {"type": kind, "items": _normalize(schema["items"], namespace)} | more
        case "map":
            return {"type": kind, "values": _normalize(schema["values"], namespace)} | more
        case "record" | "enum" | "fixed":
            return _normalize_named(schema, namespace) | more
        case _:
            inner = _normalize(kind, namespace)
            return {"type": inner} | more if more else inner


def _logical_properties(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a logical type, without a scale of 0, which is the default."""
    if "logicalType" not in schema:
        return {}
    return {name: schema[name] for name in _LOGICAL_KEYS if name in schema and (name, schema[name]) != ("scale", 0)}


def _normalize_named(schema: dict[str, Any], namespace: str) -> dict[str, Any]:
    full = full_name(schema, namespace)
    space = full.rpartition(".")[0]
    told: dict[str, Any] = {"type": schema["type"], "name": full}
    if aliases := schema.get("aliases"):
        told["aliases"] = sorted(one if "." in one or not space else f"{space}.{one}" for one in aliases)
    for name in ("symbols", "size", "default"):
        if name in schema:
            told[name] = schema[name]
    if "fields" in schema:
        told["fields"] = [_normalize_field(one, space) for one in schema["fields"]]
    return told


def _normalize_field(one: dict[str, Any], namespace: str) -> dict[str, Any]:
    told = {"name": one["name"], "type": _normalize(one["type"], namespace)}
    if "default" in one:
        told["default"] = _normalize_default(one["default"])
    if one.get("order", "ascending") != "ascending":
        told["order"] = one["order"]
    if aliases := one.get("aliases"):
        told["aliases"] = sorted(aliases)
    return told


def _normalize_default(default: Any) -> Any:  # noqa: ANN401 - as above
    """Return a default with 1.0 as 1, as JSON has one number type; floats that no integer equals exactly stay."""
    if isinstance(default, list):
        return [_normalize_default(one) for one in default]
    if isinstance(default, dict):
        return {name: _normalize_default(one) for name, one in default.items()}
    is_whole = isinstance(default, float) and default.is_integer() and abs(default) < _EXACT
    is_minus_nothing = isinstance(default, float) and default == 0 and math.copysign(1, default) < 0
    return int(default) if is_whole and not is_minus_nothing else default
