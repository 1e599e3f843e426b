"""Defaults of fields as schemas say them, in the form that a codec writes; bytes are said as U+0000 to U+00FF."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hopwatch.gate.avro_body import decimal_of
from hopwatch.gate.registry.avro_schema import logical_type

Avro = Any
"""A schema of Avro's library."""
Fits = Callable[[Avro, Any], bool]


def default_of(schema: Avro, said: Any) -> Any:  # noqa: ANN401 - JSON in, a value out
    """Return the value that a default says.

    Raises:
        ValueError: it is none of its type.
    """
    is_fit, made = _OF_TYPE[schema.type]
    if not is_fit(schema, said):
        raise ValueError(f"{said!r:.80} as {schema.type}")
    return made(schema, said)


def _of_union(schema: Avro, said: Any) -> Any:  # noqa: ANN401
    """Return the default as the first branch that it fits, and say which one that is."""
    for branch in schema.schemas:
        try:
            found = default_of(branch, said)
        except ValueError:
            continue
        if branch.type == "null":
            return None
        return name_of(branch), found
    raise ValueError(f"{said!r:.80} as none of the union's types")


def name_of(branch: Avro) -> str:
    """Return what a type of a union is called, by its full name if it has one."""
    return str(branch.fullname if branch.type in {"record", "enum", "fixed"} else branch.type)


def _of_field(field: Avro, said: dict[str, Any]) -> Any:  # noqa: ANN401
    if field.name in said:
        return default_of(field.type, said[field.name])
    if not field.has_default:
        raise ValueError(f"it lacks {field.name}")
    return default_of(field.type, field.default)


def _octets(schema: Avro, said: str) -> Any:  # noqa: ANN401
    found = said.encode("latin-1")
    is_decimal = schema.type == "bytes" and logical_type(schema) == "decimal"
    return decimal_of(found, schema.props) if is_decimal else found


def _is_number(_: Avro, said: Any) -> bool:  # noqa: ANN401
    return type(said) in {int, float}


def _is(kind: type) -> Fits:
    return lambda _, said: type(said) is kind


def _same(_: Avro, said: Any) -> Any:  # noqa: ANN401
    return said


_WHOLE: Final = (_is(int), _same)
_REAL: Final = (_is_number, lambda _, said: float(said))
_OF_TYPE: Final[dict[str, tuple[Fits, Callable[[Avro, Any], Any]]]] = {
    "union": (lambda _, __: True, _of_union),
    "null": (_is(type(None)), _same),
    "boolean": (_is(bool), _same),
    "int": _WHOLE,
    "long": _WHOLE,
    "float": _REAL,
    "double": _REAL,
    "string": (_is(str), _same),
    "bytes": (_is(str), _octets),
    "enum": (lambda schema, said: said in schema.symbols, _same),
    "fixed": (lambda schema, said: isinstance(said, str) and len(said) == schema.size, _octets),
    "array": (_is(list), lambda schema, said: [default_of(schema.items, one) for one in said]),
    "map": (_is(dict), lambda schema, said: {key: default_of(schema.values, one) for key, one in said.items()}),
    "record": (_is(dict), lambda schema, said: {field.name: _of_field(field, said) for field in schema.fields}),
}
