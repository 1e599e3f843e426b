"""Generation of a typed Python module for a schema: frozen dataclasses that encode to the envelope and decode from it.

The module needs only fastavro. It contains the schemas of the other versions of its subject that it can read, and
resolves them against its own by Avro's rules.
"""

from __future__ import annotations

import builtins
import json
import keyword
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pprint import pformat
from typing import Any, Final

import fastavro
import orjson

from hopwatch.gate.registry.avro_schema import Schema
from hopwatch.gate.registry.compatibility import is_readable

WIDTH: Final = 110
_SIMPLE: Final = {
    "null": "None", "boolean": "bool", "int": "int", "long": "int", "float": "float", "double": "float",
    "bytes": "bytes", "string": "str",
}  # fmt: skip
_LOGICAL: Final = {
    "date": "datetime.date", "time-millis": "datetime.time", "time-micros": "datetime.time",
    "timestamp-millis": "datetime.datetime", "timestamp-micros": "datetime.datetime",
    "local-timestamp-millis": "datetime.datetime", "local-timestamp-micros": "datetime.datetime",
    "decimal": "decimal.Decimal", "uuid": "uuid.UUID",
}  # fmt: skip
_PARTS: Final = {"array": ("items", "list"), "map": ("values", "dict")}
_MODULES: Final = ("dataclasses", "datetime", "decimal", "enum", "fastavro", "io", "typing", "uuid")
_CLASSES_TAKEN: Final = frozenset({"SCHEMA", "FINGERPRINT", "WRITERS", *_MODULES, *keyword.kwlist, *dir(builtins)})
_MEMBERS_TAKEN: Final = frozenset({"encode", "decode", "dataclasses", "classmethod", "list", "dict", *keyword.kwlist})
"""Names in use in the body of a generated class."""
_SYMBOLS_TAKEN: Final = frozenset({"mro", "name", "value", *keyword.kwlist})


class CodeGenerationError(ValueError):
    """Schema for which no module can be generated; the message says why, and what to do."""


@dataclass(slots=True)
class _Module:
    """Named types of a schema, each after the types that it depends on."""

    types: dict[str, dict[str, Any]] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)

    def add_types(self, schema: Any) -> None:  # noqa: ANN401 - JSON, here and below
        """Collect the records and enums of a schema, and give each a unique class name."""
        if isinstance(schema, list):
            for branch in schema:
                self.add_types(branch)
        elif isinstance(schema, dict):
            for part in ("items", "values", "type"):
                if isinstance(schema.get(part), list | dict):
                    self.add_types(schema[part])
            for one in schema.get("fields", ()):
                self.add_types(one["type"])
            if schema.get("type") in {"record", "enum"}:
                self.types[schema["name"]] = schema
                self.classes[schema["name"]] = self._class_name(schema["name"])

    def _class_name(self, full: str) -> str:
        short = full.rpartition(".")[2]
        name = short[:1].upper() + short[1:]
        while name in self.classes.values() or name in _CLASSES_TAKEN:
            name += "_"
        return name

    def annotation(self, schema: Any) -> str:  # noqa: ANN401, PLR0911 - one a kind of type
        """Return the Python type annotation of a type."""
        if isinstance(schema, list):
            return " | ".join(dict.fromkeys(self.annotation(branch) for branch in schema))
        kind = schema if isinstance(schema, str) else schema["type"]
        if isinstance(schema, dict) and schema.get("logicalType") in _LOGICAL:
            return _LOGICAL[schema["logicalType"]]
        match kind:
            case "array":
                return f"list[{self.annotation(schema['items'])}]"
            case "map":
                return f"dict[str, {self.annotation(schema['values'])}]"
            case "fixed":
                return "bytes"
            case "record" | "enum":
                return self.classes[schema["name"]]
            case _:
                return self.classes.get(kind) or _SIMPLE.get(kind, "bytes")

    def read(self, schema: Any, value: str) -> str:  # noqa: ANN401
        """Return an expression that converts what fastavro has read to a value."""
        if isinstance(schema, list):
            return self._read_union(schema, value)
        name = self._name(schema)
        if name in self.classes:
            is_record = self.types[name]["type"] == "record"
            return f"{self.classes[name]}._of({value})" if is_record else f"{self.classes[name]}({value})"
        return self._by_form([schema], value, value, self.read, is_alone=True)

    def _read_union(self, branches: list[Any], value: str) -> str:
        others = [branch for branch in branches if branch != "null"]
        if len(others) == 1:
            # For a union fastavro returns the name of a named type with its value.
            inner, plain = self.read(others[0], f"_member({value})"), f"_member({value})"
            is_named = self._name(others[0]) is not None
            return f"None if {value} is None else {inner}" if is_named or inner != plain else value
        return self._by_form(others, value, f"_chosen({value})", self.read)

    def write(self, schema: Any, value: str) -> str:  # noqa: ANN401
        """Return an expression that converts a value to what fastavro writes."""
        if isinstance(schema, list):
            others = [branch for branch in schema if branch != "null"]
            is_named = any(self._name(branch) is not None for branch in others)
            return self._by_form(others, value, f"_tagged({value})" if is_named else value, self.write)
        name = self._name(schema)
        if name in self.classes:
            return f"{value}._avro()" if self.types[name]["type"] == "record" else value
        return self._by_form([schema], value, value, self.write, is_alone=True)

    def _by_form(
        self, branches: list[Any], value: str, other: str, each: Callable[[Any, str], str], *, is_alone: bool = False
    ) -> str:
        """Return the conversion of lists and maps among the branches, with ``other`` for all other values."""
        found = other
        for branch in branches:
            kind = branch if isinstance(branch, str) else branch["type"]
            if kind not in _PARTS:
                continue
            part, form = _PARTS[kind]
            inner = each(branch[part], "one")
            if inner != "one":
                made = f"[{inner} for one in {value}]"
                if kind == "map":
                    made = f"{{key: {inner} for key, one in {value}.items()}}"
                found = made if is_alone else f"{made} if isinstance({value}, {form}) else {found}"
        return found

    def _name(self, schema: Any) -> str | None:  # noqa: ANN401
        """Return the name of a named type; None for any other type."""
        if isinstance(schema, str):
            return None if schema in _SIMPLE else schema
        return str(schema["name"]) if isinstance(schema, dict) and "name" in schema else None


def generate_module(schema: Schema, versions: Mapping[int, Schema], subject: str, version: int) -> str:
    """Return the source of a module for one version of a subject; it also reads events of the other versions.

    Raises:
        CodeGenerationError: the schema is not a record, or has a name that cannot be an attribute in Python.
    """
    parsed: Any = fastavro.parse_schema(orjson.loads(schema.text))
    if not isinstance(parsed, dict) or parsed["type"] != "record":
        raise CodeGenerationError(f"a module is made of a record, got {schema.text[:60]}: register a record")
    made = _Module()
    made.add_types(parsed)
    writers = [one for one in versions.values() if one.fingerprint != schema.fingerprint and is_readable(schema, one)]
    lines = [
        f'"""Events of {subject}, version {version}: made by hopwatch schema generate python, and not to be edited."""',
        _HEAD,
        f'FINGERPRINT = bytes.fromhex("{schema.fingerprint.hex()}")',
        f"SCHEMA = fastavro.parse_schema({_literal(schema.text)})",
        '"""The schema that events are written with."""',
        "WRITERS = {",
        "    FINGERPRINT: SCHEMA,",
        *(
            f'    bytes.fromhex("{one.fingerprint.hex()}"): fastavro.parse_schema({_literal(one.text)}),'
            for one in writers
        ),
        "}",
        '"""By their fingerprints, the schemas of events that can be read."""',
        *_generate_classes(made, parsed["name"]),
        "",
        "",
        "_BY_NAME: dict[str, typing.Any] = {",
        *(
            f'    "{full}": {name}{"._of" if made.types[full]["type"] == "record" else ""},'
            for full, name in made.classes.items()
        ),
        "}",
        "_NAMES: dict[type, str] = {",
        *(f'    {name}: "{full}",' for full, name in made.classes.items()),
        "}",
        _TAIL,
    ]
    return "\n".join(lines)


def _literal(text: str) -> str:
    """Return a schema as a Python literal."""
    return pformat(json.loads(text), width=WIDTH, sort_dicts=False)


def _generate_classes(made: _Module, outermost: str) -> Iterator[str]:
    for full, one in made.types.items():
        name = made.classes[full]
        yield from ("", "")
        if one["type"] == "enum":
            yield f"class {name}(enum.StrEnum):"
            yield f'    """{_build_docstring(one, full)}"""'
            yield ""
            yield from (
                f'    {_check_attribute(symbol, full, _SYMBOLS_TAKEN)} = "{symbol}"' for symbol in one["symbols"]
            )
            continue
        yield "@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)"
        yield f"class {name}:"
        yield f'    """{_build_docstring(one, full)}"""'
        yield ""
        yield from (
            f"    {_check_attribute(field['name'], full)}: {made.annotation(field['type'])}{_build_default(field)}"
            for field in one["fields"]
        )
        yield _METHODS if full == outermost else ""
        yield "    @classmethod"
        yield "    def _of(cls, value: dict[str, typing.Any]) -> typing.Self:"
        arguments = ", ".join(
            f"{field['name']}={made.read(field['type'], _item(field['name']))}" for field in one["fields"]
        )
        yield f"        return cls({arguments})"
        yield ""
        yield "    def _avro(self) -> dict[str, typing.Any]:"
        members = ", ".join(
            f'"{field["name"]}": {made.write(field["type"], "self." + field["name"])}' for field in one["fields"]
        )
        yield f"        return {{{members}}}"


def _item(name: str) -> str:
    return f'value["{name}"]'


def _check_attribute(name: str, full: str, taken: frozenset[str] = _MEMBERS_TAKEN) -> str:
    if name in taken or name.startswith("_"):
        what = f"the name {name!r} of {full} cannot be an attribute in Python"
        raise CodeGenerationError(f"{what}: rename it in a new version, with this name as an alias")
    return name


def _build_docstring(one: Mapping[str, Any], full: str) -> str:
    words = "".join(letter if letter.isprintable() else " " for letter in str(one.get("doc") or ""))
    told = re.sub(r"\s+", " ", words).strip().replace("\\", "").replace('"', "'")
    return told or f"``{full}``."


def _build_default(one: Mapping[str, Any]) -> str:
    """Return the default of a field as source text, if it is a simple value; else an empty text."""
    if "default" not in one:
        return ""
    default = one["default"]
    kind = one["type"][0] if isinstance(one["type"], list) else one["type"]
    if not isinstance(kind, str):
        return _build_empty_default(default, kind)
    if default is None or (isinstance(default, bool | int | str) and kind in {"boolean", "int", "long", "string"}):
        return f" = {default!r}"
    if isinstance(default, int | float) and kind in {"float", "double"}:
        return f" = {float(default)!r}"
    return ""


def _build_empty_default(default: object, kind: Mapping[str, Any]) -> str:
    if (default, kind["type"]) == ([], "array"):
        return " = dataclasses.field(default_factory=list)"
    if (default, kind["type"]) == ({}, "map"):
        return " = dataclasses.field(default_factory=dict)"
    return ""


_HEAD: Final = """
from __future__ import annotations

import dataclasses
import datetime  # noqa: F401 - not each schema has moments
import decimal  # noqa: F401
import enum  # noqa: F401
import io
import typing
import uuid  # noqa: F401

import fastavro

_MARKER = b"\\x81"
_PREFIX_BYTES = 33
"""
_METHODS: Final = '''
    def encode(self) -> bytes:
        """Return the event as it travels: a marker, the fingerprint of its schema, the Avro body."""
        body = io.BytesIO()
        body.write(_MARKER + FINGERPRINT)
        fastavro.schemaless_writer(body, SCHEMA, self._avro())
        return body.getvalue()

    @classmethod
    def decode(cls, record: bytes) -> typing.Self:
        """Return the event that a record holds, whichever version wrote it.

        Raises:
            ValueError: it is of a schema that is not known here, or its body ends too early or too late.
        """
        writer = WRITERS.get(record[1:_PREFIX_BYTES]) if record[:1] == _MARKER else None
        if writer is None:
            raise ValueError(f"no event of a known schema: {record[:_PREFIX_BYTES].hex()}")
        body = io.BytesIO(record)
        body.seek(_PREFIX_BYTES)
        try:
            value: typing.Any = fastavro.schemaless_reader(body, writer, SCHEMA, return_named_type=True)
        except Exception as error:
            raise ValueError(f"an event of the schema was expected: {error or type(error).__name__}") from error
        if body.tell() != len(record):
            raise ValueError(f"{len(record) - body.tell()} bytes follow the event")
        return cls._of(value)
'''
_TAIL: Final = """

def _tagged(value: typing.Any) -> typing.Any:
    name = _NAMES.get(type(value))
    if name is None:
        return value
    return name, value if isinstance(value, enum.Enum) else value._avro()


def _member(value: typing.Any) -> typing.Any:
    return value[1] if isinstance(value, tuple) else value


def _chosen(value: typing.Any) -> typing.Any:
    return _BY_NAME.get(value[0], bytes)(value[1]) if isinstance(value, tuple) else value
"""
