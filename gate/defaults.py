"""Default values of fields, converted from a schema's JSON to what a codec writes; bytes stand as U+0000 to U+00FF."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hopwatch.gate.avro_body import build_decimal
from hopwatch.gate.registry.avro_schema import logical_type

Avro = Any
"""A schema of Avro's library."""
Fits = Callable[[Avro, Any], bool]


def build_default(schema: Avro, said: Any) -> Any:  # noqa: ANN401 - JSON in, a value out
    """Return the value of a default given as JSON.

    Raises:
        ValueError: it does not match its type.
    """
    is_fit, made = _BUILDERS[schema.type]
    if not is_fit(schema, said):
        raise ValueError(f"{said!r:.80} as {schema.type}")
    return made(schema, said)


def _build_union_default(schema: Avro, said: Any) -> Any:  # noqa: ANN401
    """Return the name of the first branch that the default matches, with its value; plain None for null."""
    for branch in schema.schemas:
        try:
            found = build_default(branch, said)
        except ValueError:
            continue
        if branch.type == "null":
            return None
        return branch_name(branch), found
    raise ValueError(f"{said!r:.80} as none of the union's types")


def branch_name(branch: Avro) -> str:
    """Return the name of a branch of a union: its full name if it has one, else its type."""
    return str(branch.fullname if branch.type in {"record", "enum", "fixed"} else branch.type)


def _build_field_default(field: Avro, said: dict[str, Any]) -> Any:  # noqa: ANN401
    if field.name in said:
        return build_default(field.type, said[field.name])
    if not field.has_default:
        raise ValueError(f"it lacks {field.name}")
    return build_default(field.type, field.default)


def _build_bytes(schema: Avro, said: str) -> Any:  # noqa: ANN401
    found = said.encode("latin-1")
    is_decimal = schema.type == "bytes" and logical_type(schema) == "decimal"
    return build_decimal(found, schema.props) if is_decimal else found


def _is_number(_: Avro, said: Any) -> bool:  # noqa: ANN401
    return type(said) in {int, float}


def _is_exactly(kind: type) -> Fits:
    return lambda _, said: type(said) is kind


def _keep(_: Avro, said: Any) -> Any:  # noqa: ANN401
    return said


_WHOLE: Final = (_is_exactly(int), _keep)
_REAL: Final = (_is_number, lambda _, said: float(said))
_BUILDERS: Final[dict[str, tuple[Fits, Callable[[Avro, Any], Any]]]] = {
    "union": (lambda _, __: True, _build_union_default),
    "null": (_is_exactly(type(None)), _keep),
    "boolean": (_is_exactly(bool), _keep),
    "int": _WHOLE,
    "long": _WHOLE,
    "float": _REAL,
    "double": _REAL,
    "string": (_is_exactly(str), _keep),
    "bytes": (_is_exactly(str), _build_bytes),
    "enum": (lambda schema, said: said in schema.symbols, _keep),
    "fixed": (lambda schema, said: isinstance(said, str) and len(said) == schema.size, _build_bytes),
    "array": (_is_exactly(list), lambda schema, said: [build_default(schema.items, one) for one in said]),
    "map": (
        _is_exactly(dict),
        lambda schema, said: {key: build_default(schema.values, one) for key, one in said.items()},
    ),
    "record": (
        _is_exactly(dict),
        lambda schema, said: {field.name: _build_field_default(field, said) for field in schema.fields},
    ),
}
