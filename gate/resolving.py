"""Avro bodies that one schema wrote, read as another one says: by the rules of Avro's "Schema Resolution".

By hand, and not by a library: of a union a library returns the value and not the type that it was written as, so that
0.1 as a double may be written on as a float; and fastavro takes numbers that do not fit their type, indices below 0 and
defaults of bytes as text. Both schemas were linted when they were registered, so that neither is recursive, and no
item of an array or map is without a byte.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from pydantic_core import SchemaValidator, ValidationError

from hopwatch.gate import avro_body as bodies
from hopwatch.gate.avro_body import (
    MOST_DEFAULTS_BYTES,
    Body,
    Read,
    UnreadableError,
    UnresolvableError,
    decimal_of,
)
from hopwatch.gate.defaults import default_of, name_of
from hopwatch.gate.reading import LOGICAL
from hopwatch.gate.registry.avro_schema import Schema, logical_type
from hopwatch.gate.registry.breaks import fits

_NAMED: Final = frozenset({"record", "enum", "fixed"})
_TEXTS: Final = ("bytes", "string")
_NUMBERS: Final = ("int", "long", "float", "double")

Avro = Any
"""A schema of Avro's library."""


class Resolution:
    """Reads what one schema wrote as another one says."""

    def __init__(self, writer: Schema, reader: Schema) -> None:
        """Build what reads, once.

        Raises:
            UnresolvableError: nothing that the one wrote can be read by the other.
        """
        self._read = _read(writer.parsed, reader.parsed)

    def read(self, data: bytes, at: int) -> Any:  # noqa: ANN401 - what the schema says
        """Return the value of the body that begins at ``at``, in the form that a codec of the reader's schema writes.

        Raises:
            UnreadableError: it is none, holds what the reader cannot take, or other bytes follow it.
        """
        body = Body(data, at)
        try:
            value = self._read(body)
        except (IndexError, struct.error):
            raise UnreadableError("it ends within a value") from None
        if body.at != len(data):
            raise UnreadableError(f"{len(data) - body.at} bytes follow the event")
        return value


def _read(writer: Avro, reader: Avro) -> Read:
    """Return what reads a type as another.

    Raises:
        UnresolvableError: nothing does.
    """
    if writer.type == "union":
        return _written_union(writer, reader)
    if reader.type == "union":
        return _chosen(writer, reader)
    if writer.type in _NAMED and writer.type == reader.type and not _is_named_alike(writer, reader):
        raise UnresolvableError(f"the {writer.type} is named {reader.fullname}, not {writer.fullname}")
    made = _OF_TYPE.get((writer.type, reader.type))
    if made is None:
        raise UnresolvableError(f"what was written as {writer.type} is not read as {reader.type}")
    return _meant(made(writer, reader), reader)


def _written_union(writer: Avro, reader: Avro) -> Read:
    branches: list[Read | UnresolvableError] = []
    for branch in writer.schemas:
        try:
            branches.append(_read(branch, reader))
        except UnresolvableError as error:
            branches.append(error)
    if all(isinstance(one, UnresolvableError) for one in branches):
        raise UnresolvableError("no type of the union that was written is read")

    def read(body: Body) -> Any:  # noqa: ANN401 - what the schema says, here and below
        number = bodies.long(body)
        if not 0 <= number < len(branches):
            raise UnreadableError(f"the union has {len(branches)} types, got number {number}")
        branch = branches[number]
        if isinstance(branch, UnresolvableError):
            raise UnreadableError(str(branch), *branch.way)
        return branch(body)

    return read


def _chosen(writer: Avro, reader: Avro) -> Read:
    """Return what reads a type as the branch of a union that is most like it, and says which one that is."""
    able = sorted((one for one in reader.schemas if fits(one, writer)), key=lambda one: _unlikeness(writer, one))
    alike = sorted((one for one in reader.schemas if one.type == writer.type), key=lambda one: _unlikeness(writer, one))
    for branch in (*able, *alike):
        try:
            inner = _read(writer, branch)
        except UnresolvableError:
            continue
        if branch.type == "null":
            return inner
        name = name_of(branch)
        return lambda body: (name, inner(body))
    raise UnresolvableError(f"what was written as {writer.type} has no place in the union of the reader's")


def _unlikeness(writer: Avro, branch: Avro) -> int:
    if branch.type != writer.type:
        # The least promotion first.
        return 2 + (_NUMBERS.index(branch.type) if branch.type in _NUMBERS else 0)
    return 0 if branch.type not in _NAMED or branch.fullname == writer.fullname else 1


def _is_named_alike(writer: Avro, reader: Avro) -> bool:
    """As Avro's library has it: without the namespace, or by an alias in full."""
    return reader.name == writer.name or writer.fullname in (reader.props.get("aliases") or ())


def _fixed(writer: Avro, reader: Avro) -> Read:
    size: int = writer.size
    if reader.size != size:
        raise UnresolvableError(f"a fixed of {size} bytes is not read as one of {reader.size}")
    return lambda body: body.take(size)


def _enum(writer: Avro, reader: Avro) -> Read:
    known, default = set(reader.symbols), reader.props.get("default")
    symbols = [one if one in known else default if default in known else None for one in writer.symbols]
    written = list(writer.symbols)

    def read(body: Body) -> str:
        number = bodies.long(body)
        if not 0 <= number < len(symbols):
            raise UnreadableError(f"the enum has {len(symbols)} symbols, got number {number}")
        symbol = symbols[number]
        if symbol is None:
            raise UnreadableError(f"the reader's enum has no {written[number]:.80} and no default")
        return str(symbol)

    return read


def _array(writer: Avro, reader: Avro) -> Read:
    item = _read(writer.items, reader.items)

    def read(body: Body) -> list[Any]:
        found: list[Any] = []
        try:
            while count := bodies.blocks(body):
                for _ in range(count):
                    found.append(item(body))  # noqa: PERF401 - how many there are is told where it fails
        except UnresolvableError as error:
            error.way.insert(0, len(found))
            raise
        return found

    return read


def _map(writer: Avro, reader: Avro) -> Read:
    value = _read(writer.values, reader.values)

    def read(body: Body) -> dict[str, Any]:
        found, key = {}, ""
        try:
            while count := bodies.blocks(body):
                for _ in range(count):
                    key = bodies.text(body)
                    found[key] = value(body)
        except UnresolvableError as error:
            error.way.insert(0, key)
            raise
        return found

    return read


def _field(writer: Avro, field: Avro) -> tuple[str, Read] | None:
    """Return what a field of the reader's is read from, and how; none if it was not written."""
    names = (field.name, *(field.props.get("aliases") or ()))
    source = next((writer.fields_dict[name] for name in names if name in writer.fields_dict), None)
    if source is not None:
        return source.name, _read(source.type, field.type)
    if not field.has_default:
        raise UnresolvableError("the field was not written, and has no default")
    return None


def _record(writer: Avro, reader: Avro) -> Read:
    defaults: dict[str, Any] = {}
    wanted: dict[str, list[tuple[str, Read]]] = {field.name: [] for field in writer.fields}
    for field in reader.fields:
        try:
            if (found := _field(writer, field)) is None:
                defaults[field.name] = default_of(field.type, field.default)
            else:
                wanted[found[0]].append((field.name, found[1]))
        except UnresolvableError as error:
            error.way.insert(0, field.name)
            raise
        except ValueError as error:
            raise UnresolvableError(f"its default is none of its type: {error}", field.name) from None
    # What the reader does not know is read as it was written, and left.
    steps = [(wanted[one.name] or [("", _read(one.type, one.type))], one.name) for one in writer.fields]
    cost = len(repr(defaults)) if defaults else 0

    def read(body: Body) -> dict[str, Any]:
        body.left -= cost
        if body.left < 0:
            raise UnreadableError(f"what it lacks would be more than {MOST_DEFAULTS_BYTES:,} bytes of defaults")
        found = dict(defaults)
        for targets, name in steps:
            start = body.at
            try:
                for target, value in targets:
                    body.at = start
                    found[target] = value(body)
            except UnresolvableError as error:
                error.way.insert(0, name)
                raise
        found.pop("", None)
        return found

    return read


def _meant(read: Read, reader: Avro) -> Read:
    """Return what reads a type with a logical one in the form that the codec has for it."""
    logical = logical_type(reader)
    if (reader.type, logical) not in LOGICAL:
        return read
    if logical == "decimal":
        return lambda body: decimal_of(read(body), reader.props)
    check = SchemaValidator(LOGICAL[reader.type, logical]({})).validate_python

    def meant(body: Body) -> Any:  # noqa: ANN401
        try:
            return check(read(body))
        except ValidationError as error:
            raise UnreadableError(error.errors(include_url=False)[0]["msg"][:200]) from None

    return meant


def _plain(read: Read) -> Callable[[Avro, Avro], Read]:
    return lambda _, __: read


def _as(kind: Callable[[Any], Any], read: Read) -> Callable[[Avro, Avro], Read]:
    return lambda _, __: lambda body: kind(read(body))


_SINGLE: Final = bodies.real("<f", 4)
_OF_TYPE: Final[dict[tuple[str, str], Callable[[Avro, Avro], Read]]] = {
    ("null", "null"): _plain(lambda _: None),
    ("boolean", "boolean"): _plain(bodies.boolean),
    ("int", "int"): _plain(bodies.integer),
    ("int", "long"): _plain(bodies.integer),
    ("long", "long"): _plain(bodies.long),
    **{
        (number, real): _as(float, read)
        for number, read in (("int", bodies.integer), ("long", bodies.long))
        for real in _NUMBERS[2:]
    },
    ("float", "float"): _plain(_SINGLE),
    ("float", "double"): _plain(_SINGLE),
    ("double", "double"): _plain(bodies.real("<d", 8)),
    **{(written, "bytes"): _plain(bodies.octets) for written in _TEXTS},
    **{(written, "string"): _plain(bodies.text) for written in _TEXTS},
    ("fixed", "fixed"): _fixed,
    ("enum", "enum"): _enum,
    ("array", "array"): _array,
    ("map", "map"): _map,
    ("record", "record"): _record,
}
