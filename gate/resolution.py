"""Schema resolution: decode Avro bodies of a writer's schema as values of a reader's schema.

It follows "Schema Resolution" of the Avro specification, without a library: of a union a library returns the value but
not the type it was written as, so that 0.1 as a double might be re-encoded as a float; and fastavro accepts numbers out
of the range of their type, negative indices, and text as the default of bytes. Both schemas were linted when they were
registered, so that neither is recursive, and each item of an array or map takes at least one byte.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from pydantic_core import SchemaValidator, ValidationError

from hopwatch.gate import avro_body as bodies
from hopwatch.gate.avro_body import (
    MAX_DEFAULTS_BYTES,
    AvroInput,
    ReadValue,
    ResolutionError,
    UnreadableError,
    build_decimal,
)
from hopwatch.gate.defaults import branch_name, build_default
from hopwatch.gate.json_reader import LOGICAL_TYPES
from hopwatch.gate.registry.avro_schema import Schema, logical_type
from hopwatch.gate.registry.breaks import is_compatible

_NAMED: Final = frozenset({"record", "enum", "fixed"})
_TEXTS: Final = ("bytes", "string")
_NUMBERS: Final = ("int", "long", "float", "double")

Avro = Any
"""A schema of Avro's library."""


class Resolution:
    """Decoder of the values of a writer's schema as those of a reader's schema."""

    def __init__(self, writer: Schema, reader: Schema) -> None:
        """Build the reader functions, once.

        Raises:
            ResolutionError: no value of the writer can be read by the reader.
        """
        self._read = _build_reader(writer.parsed, reader.parsed)

    def read(self, data: bytes, at: int) -> Any:  # noqa: ANN401 - what the schema says
        """Return the value of the body that begins at ``at``, in the form that a codec of the reader's schema writes.

        Raises:
            UnreadableError: it is invalid, holds a value that the reader cannot represent, or has bytes after it.
        """
        body = AvroInput(data, at)
        value = self.read_next(body)
        if body.position != len(data):
            raise UnreadableError(f"{len(data) - body.position} bytes follow the event")
        return value

    def read_next(self, body: AvroInput) -> Any:  # noqa: ANN401 - as above
        """Return the next value of a body that holds several, and advance.

        Raises:
            UnreadableError: it is invalid, or holds a value that the reader cannot represent.
        """
        try:
            return self._read(body)
        except (IndexError, struct.error):
            raise UnreadableError("it ends within a value") from None


def _build_reader(writer: Avro, reader: Avro) -> ReadValue:
    """Return the function that reads a type of the writer as a type of the reader.

    Raises:
        ResolutionError: the types do not match.
    """
    if writer.type == "union":
        return _build_union_reader(writer, reader)
    if reader.type == "union":
        return _build_branch_reader(writer, reader)
    if writer.type in _NAMED and writer.type == reader.type and not _has_same_name(writer, reader):
        raise ResolutionError(f"the {writer.type} is named {reader.fullname}, not {writer.fullname}")
    made = _BUILDERS.get((writer.type, reader.type))
    if made is None:
        raise ResolutionError(f"a value written as {writer.type} cannot be read as {reader.type}")
    return _with_logical_type(made(writer, reader), reader)


def _build_union_reader(writer: Avro, reader: Avro) -> ReadValue:
    branches: list[ReadValue | ResolutionError] = []
    for branch in writer.schemas:
        try:
            branches.append(_build_reader(branch, reader))
        except ResolutionError as error:
            branches.append(error)
    if all(isinstance(one, ResolutionError) for one in branches):
        raise ResolutionError("no type of the writer's union can be read")

    def read(body: AvroInput) -> Any:  # noqa: ANN401 - what the schema says, here and below
        number = bodies.read_long(body)
        if not 0 <= number < len(branches):
            raise UnreadableError(f"the union has {len(branches)} types, got number {number}")
        branch = branches[number]
        if isinstance(branch, ResolutionError):
            raise UnreadableError(str(branch), *branch.path)
        return branch(body)

    return read


def _build_branch_reader(writer: Avro, reader: Avro) -> ReadValue:
    """Return the function that reads a type as the closest branch of the reader's union, with the branch's name."""
    able = sorted((one for one in reader.schemas if is_compatible(one, writer)), key=lambda one: _distance(writer, one))
    alike = sorted((one for one in reader.schemas if one.type == writer.type), key=lambda one: _distance(writer, one))
    for branch in (*able, *alike):
        try:
            inner = _build_reader(writer, branch)
        except ResolutionError:
            continue
        if branch.type == "null":
            return inner
        name = branch_name(branch)
        return lambda body: (name, inner(body))
    raise ResolutionError(f"a value written as {writer.type} matches no type of the reader's union")


def _distance(writer: Avro, branch: Avro) -> int:
    if branch.type != writer.type:
        # The smallest promotion first.
        return 2 + (_NUMBERS.index(branch.type) if branch.type in _NUMBERS else 0)
    return 0 if branch.type not in _NAMED or branch.fullname == writer.fullname else 1


def _has_same_name(writer: Avro, reader: Avro) -> bool:
    """Return whether two named types match as in Avro's library: by their short names, or by an alias in full."""
    return reader.name == writer.name or writer.fullname in (reader.props.get("aliases") or ())


def _build_fixed(writer: Avro, reader: Avro) -> ReadValue:
    size: int = writer.size
    if reader.size != size:
        raise ResolutionError(f"a fixed of {size} bytes is not read as one of {reader.size}")
    return lambda body: body.read(size)


def _build_enum(writer: Avro, reader: Avro) -> ReadValue:
    known, default = set(reader.symbols), reader.props.get("default")
    symbols = [one if one in known else default if default in known else None for one in writer.symbols]
    written = list(writer.symbols)

    def read(body: AvroInput) -> str:
        number = bodies.read_long(body)
        if not 0 <= number < len(symbols):
            raise UnreadableError(f"the enum has {len(symbols)} symbols, got number {number}")
        symbol = symbols[number]
        if symbol is None:
            raise UnreadableError(f"the reader's enum has no {written[number]:.80} and no default")
        return str(symbol)

    return read


def _build_array(writer: Avro, reader: Avro) -> ReadValue:
    item = _build_reader(writer.items, reader.items)

    def read(body: AvroInput) -> list[Any]:
        found: list[Any] = []
        try:
            while count := bodies.read_block_count(body):
                for _ in range(count):
                    found.append(item(body))  # noqa: PERF401 - an error needs the number of items read so far
        except ResolutionError as error:
            error.path.insert(0, len(found))
            raise
        return found

    return read


def _build_map(writer: Avro, reader: Avro) -> ReadValue:
    value = _build_reader(writer.values, reader.values)

    def read(body: AvroInput) -> dict[str, Any]:
        found, key = {}, ""
        try:
            while count := bodies.read_block_count(body):
                for _ in range(count):
                    key = bodies.read_text(body)
                    found[key] = value(body)
        except ResolutionError as error:
            error.path.insert(0, key)
            raise
        return found

    return read


def _find_field(writer: Avro, field: Avro) -> tuple[str, ReadValue] | None:
    """Return the writer's field for a reader's field, and its reader function; None if it was not written."""
    names = (field.name, *(field.props.get("aliases") or ()))
    source = next((writer.fields_dict[name] for name in names if name in writer.fields_dict), None)
    if source is not None:
        return source.name, _build_reader(source.type, field.type)
    if not field.has_default:
        raise ResolutionError("the field was not written, and has no default")
    return None


def _build_record(writer: Avro, reader: Avro) -> ReadValue:
    defaults: dict[str, Any] = {}
    wanted: dict[str, list[tuple[str, ReadValue]]] = {field.name: [] for field in writer.fields}
    for field in reader.fields:
        try:
            if (found := _find_field(writer, field)) is None:
                defaults[field.name] = build_default(field.type, field.default)
            else:
                wanted[found[0]].append((field.name, found[1]))
        except ResolutionError as error:
            error.path.insert(0, field.name)
            raise
        except ValueError as error:
            raise ResolutionError(f"its default does not match its type: {error}", field.name) from None
    # Fields that the reader does not have are read by the writer's own type, and dropped.
    steps = [(wanted[one.name] or [("", _build_reader(one.type, one.type))], one.name) for one in writer.fields]
    cost = len(repr(defaults)) if defaults else 0

    def read(body: AvroInput) -> dict[str, Any]:
        body.defaults_bytes_left -= cost
        if body.defaults_bytes_left < 0:
            raise UnreadableError(f"its missing fields need more than {MAX_DEFAULTS_BYTES:,} bytes of defaults")
        found = dict(defaults)
        for targets, name in steps:
            start = body.position
            try:
                for target, value in targets:
                    body.position = start
                    found[target] = value(body)
            except ResolutionError as error:
                error.path.insert(0, name)
                raise
        found.pop("", None)
        return found

    return read


def _with_logical_type(read: ReadValue, reader: Avro) -> ReadValue:
    """Return the reader function extended by a logical type, in the form that the codec writes."""
    logical = logical_type(reader)
    if (reader.type, logical) not in LOGICAL_TYPES:
        return read
    if logical == "decimal":
        return lambda body: build_decimal(read(body), reader.props)
    check = SchemaValidator(LOGICAL_TYPES[reader.type, logical]({})).validate_python

    def meant(body: AvroInput) -> Any:  # noqa: ANN401
        try:
            return check(read(body))
        except ValidationError as error:
            raise UnreadableError(error.errors(include_url=False)[0]["msg"][:200]) from None

    return meant


def _constant(read: ReadValue) -> Callable[[Avro, Avro], ReadValue]:
    return lambda _, __: read


def _converting(kind: Callable[[Any], Any], read: ReadValue) -> Callable[[Avro, Avro], ReadValue]:
    return lambda _, __: lambda body: kind(read(body))


_SINGLE: Final = bodies.build_real_reader("<f", 4)
_BUILDERS: Final[dict[tuple[str, str], Callable[[Avro, Avro], ReadValue]]] = {
    ("null", "null"): _constant(lambda _: None),
    ("boolean", "boolean"): _constant(bodies.read_boolean),
    ("int", "int"): _constant(bodies.read_int),
    ("int", "long"): _constant(bodies.read_int),
    ("long", "long"): _constant(bodies.read_long),
    **{
        (number, real): _converting(float, read)
        for number, read in (("int", bodies.read_int), ("long", bodies.read_long))
        for real in _NUMBERS[2:]
    },
    ("float", "float"): _constant(_SINGLE),
    ("float", "double"): _constant(_SINGLE),
    ("double", "double"): _constant(bodies.build_real_reader("<d", 8)),
    **{(written, "bytes"): _constant(bodies.read_bytes) for written in _TEXTS},
    **{(written, "string"): _constant(bodies.read_text) for written in _TEXTS},
    ("fixed", "fixed"): _build_fixed,
    ("enum", "enum"): _build_enum,
    ("array", "array"): _build_array,
    ("map", "map"): _build_map,
    ("record", "record"): _build_record,
}
