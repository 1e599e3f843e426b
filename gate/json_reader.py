"""Validation of JSON events against an Avro schema: one validator per type, built once, run by pydantic-core.

Types that JSON lacks are written as in other JSON APIs: bytes in base64, timestamps as RFC 3339 or whole units since
1970, decimals as text. A union is written as its value; if two of its types look the same in JSON, as an object with
one member that names the type, as in Avro's own JSON encoding. A member that the schema does not know is an error:
otherwise it would be lost silently.
"""

from __future__ import annotations

import binascii
import math
import re
import struct
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from pydantic_core import PydanticCustomError, core_schema

from hopwatch.gate.defaults import build_default

ValueSchema = core_schema.CoreSchema
Avro = Any
"""Schema parsed by fastavro: JSON that defines each named type once, and refers to it by its full name after that."""

ParsedSchema = Any
"""The same schema, parsed by Avro's own library."""

_RANGES: Final = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DATE: Final = date(1970, 1, 1)
_DAY: Final = timedelta(days=1)
_US: Final = timedelta(microseconds=1)
_UNIT_US: Final = {"millis": 1_000, "micros": 1}
_DATE_CHARS: Final = 10
_DECIMAL: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,4})?")
_JSON_KINDS: Final = {
    "null": "null", "boolean": "boolean", "int": "integer", "long": "integer", "float": "number", "double": "number",
    "array": "array", "map": "object", "record": "object",
}  # fmt: skip
"""JSON type of each Avro type; all others are texts."""


def build_validator(schema: Avro, parsed: ParsedSchema) -> ValueSchema:
    """Return the pydantic-core schema that validates JSON and converts it to the values that fastavro writes.

    ``parsed`` is the same schema from Avro's library, which has the types of defaults. Of an array or a map only the
    first fault is reported: a body of a megabyte may have half a million.
    """
    types: dict[str, dict[str, ParsedSchema]] = {}
    _collect(parsed, types)
    return _Builder(types).build(schema)


def _collect(schema: ParsedSchema, types: dict[str, dict[str, ParsedSchema]]) -> None:
    """Collect the types of the fields of all records, by the full name of the record."""
    match schema.type:
        case "array":
            _collect(schema.items, types)
        case "map":
            _collect(schema.values, types)
        case "union":
            for branch in schema.schemas:
                _collect(branch, types)
        case "record" if schema.fullname not in types:
            types[schema.fullname] = {field.name: field.type for field in schema.fields}
            for field in schema.fields:
                _collect(field.type, types)


class _Builder:
    """Builds validators in one pass over a schema; ``known`` are the named types seen so far."""

    def __init__(self, types: Mapping[str, Mapping[str, ParsedSchema]]) -> None:
        self._types = types
        self.known: dict[str, tuple[Avro, ValueSchema]] = {}

    def build(self, schema: Avro) -> ValueSchema:  # noqa: PLR0911 - one a kind of type
        if isinstance(schema, list):
            return self._build_union(schema)
        kind = schema if isinstance(schema, str) else schema["type"]
        if isinstance(schema, str) and schema in self.known:
            return self.known[schema][1]
        if isinstance(schema, dict) and (logical := LOGICAL_TYPES.get((kind, schema.get("logicalType")))):
            return logical(schema)
        match kind:
            case "array":
                return core_schema.list_schema(self.build(schema["items"]), strict=True, fail_fast=True)
            case "map":
                return core_schema.dict_schema(_TEXT, self.build(schema["values"]), strict=True, fail_fast=True)
            case "record":
                return self._register(schema, self._build_record(schema))
            case "enum":
                return self._register(schema, core_schema.literal_schema(list(schema["symbols"])))
            case "fixed":
                return self._register(schema, _build_fixed(schema))
            case _:
                return _PRIMITIVES[kind]

    def _register(self, schema: Avro, read: ValueSchema) -> ValueSchema:
        self.known[schema["name"]] = schema, read
        return read

    def _build_record(self, schema: Avro) -> ValueSchema:
        fields = {one["name"]: self._build_field(schema["name"], one) for one in schema["fields"]}
        return core_schema.typed_dict_schema(fields, extra_behavior="forbid", strict=True)

    def _build_field(self, record: str, field: Mapping[str, Any]) -> core_schema.TypedDictField:
        read = self.build(field["type"])
        if "default" not in field:
            return core_schema.typed_dict_field(read, required=True)
        try:
            default = build_default(self._types[record][field["name"]], field["default"])
        except ValueError:  # the default is invalid, so the field is required
            return core_schema.typed_dict_field(read, required=True)
        return core_schema.typed_dict_field(core_schema.with_default_schema(read, default=default), required=False)

    def _build_union(self, branches: Sequence[Avro]) -> ValueSchema:
        reads = [(branch, self.build(branch)) for branch in branches]
        looks = [self._json_kind(branch) for branch in branches]
        others = [(branch, read) for (branch, read), look in zip(reads, looks, strict=True) if look != "null"]
        if not others:
            return _PRIMITIVES["null"]
        if len(set(looks)) < len(looks) or {"integer", "number"} <= set(looks):
            chosen: ValueSchema = self._build_tagged(others)
        elif len(others) == 1:
            chosen = self._with_branch_name(*others[0])
        else:
            chosen = core_schema.union_schema([self._with_branch_name(*one) for one in others], mode="left_to_right")
        return core_schema.nullable_schema(chosen) if "null" in looks else chosen

    def _build_tagged(self, branches: Sequence[tuple[Avro, ValueSchema]]) -> ValueSchema:
        """Return the validator of an object with one member: the name of a type, and its value."""
        members = {
            _branch_name(branch): core_schema.typed_dict_field(self._with_branch_name(branch, read), required=False)
            for branch, read in branches
        }
        names = ", ".join(members)

        def one(value: dict[str, Any]) -> Any:  # noqa: ANN401 - what was read
            if len(value) != 1:
                told = {"names": names, "got": len(value)}
                raise PydanticCustomError("union", "an object with one member of {names}, got {got}", told)
            return next(iter(value.values()))

        read = core_schema.typed_dict_schema(members, extra_behavior="forbid", strict=True)
        return core_schema.no_info_after_validator_function(one, read)

    def _with_branch_name(self, branch: Avro, read: ValueSchema) -> ValueSchema:
        """Return the validator of a branch that adds its name to the value, so that the writer need not guess."""
        name = _branch_name(branch)
        return core_schema.no_info_after_validator_function(lambda value: (name, value), read)

    def _json_kind(self, branch: Avro) -> str:
        if isinstance(branch, str) and branch in self.known:
            branch = self.known[branch][0]
        kind = branch if isinstance(branch, str) else branch["type"]
        is_logical = isinstance(branch, dict) and (kind, branch.get("logicalType")) in LOGICAL_TYPES
        return "text" if is_logical else _JSON_KINDS.get(kind, "text")


def _branch_name(branch: Avro) -> str:
    if isinstance(branch, str):
        return branch
    return str(branch.get("name") or branch["type"])


def _then(read: ValueSchema, make: Callable[[Any], Any]) -> ValueSchema:
    """Return a validator that converts the value; a ValueError becomes the error text."""

    def made(value: Any) -> Any:  # noqa: ANN401 - of JSON
        try:
            return make(value)
        except ValueError as error:
            raise PydanticCustomError("value", "{told}", {"told": str(error)}) from None

    return core_schema.no_info_after_validator_function(made, read)


def _parse_base64(value: str) -> bytes:
    try:
        return b64decode(value, validate=True)
    except binascii.Error:
        raise ValueError(f"bytes are written in base64, got {value!r:.60}") from None


def _build_fixed(schema: Mapping[str, Any]) -> ValueSchema:
    size = schema["size"]

    def sized(value: str) -> bytes:
        found = _parse_base64(value)
        if len(found) != size:
            raise ValueError(f"{size} bytes are required, got {len(found)}")
        return found

    return _then(_TEXT, sized)


def _check_single(value: float) -> float:
    try:
        struct.pack("<f", value)
    except OverflowError:
        raise ValueError(f"a float is at most 3.4e38, got {value}") from None
    return value


def _build_decimal(schema: Mapping[str, Any]) -> ValueSchema:
    precision, scale = schema["precision"], schema.get("scale", 0)

    def exact(value: str) -> Decimal:
        try:
            found = Decimal(value if _DECIMAL.fullmatch(value) else "")
            sign, digits, exponent = found.as_tuple()
        except InvalidOperation:
            raise ValueError(f"a decimal is written as text such as 12.50, got {value!r:.60}") from None
        if not isinstance(exponent, int) or -exponent > scale or len(digits) + exponent + scale > precision:
            told = f"a decimal has at most {precision} digits, {scale} of them behind the point"
            raise ValueError(f"{told}, got {value!r:.60}")
        del sign
        return found

    return _then(_TEXT, exact)


def _build_moment(unit: str, *, is_local: bool) -> Callable[[Mapping[str, Any]], ValueSchema]:
    unit_us = _UNIT_US[unit]

    def units(value: int | str) -> int:
        if isinstance(value, int):
            _ = _EPOCH + timedelta(microseconds=value * unit_us)
            return value
        moment = datetime.fromisoformat(value)
        if (moment.tzinfo is None) is not is_local:
            wants = "no zone" if is_local else "a zone, such as Z"
            raise ValueError(f"the moment has {wants}, got {value!r:.60}")
        return _to_units((moment.replace(tzinfo=UTC) if is_local else moment) - _EPOCH, unit_us, value)

    def read(value: int | str) -> int:
        try:
            return units(value)
        except OverflowError:
            raise ValueError(f"a moment lies between the years 1 and 9999, got {value!r:.60}") from None

    return lambda _: _then(_WHOLE_OR_TEXT, read)


def _build_time(unit: str) -> Callable[[Mapping[str, Any]], ValueSchema]:
    unit_us = _UNIT_US[unit]

    def read(value: int | str) -> int:
        if isinstance(value, int):
            if not 0 <= value * unit_us < _DAY // _US:
                raise ValueError(f"a time lies within a day, got {value}")
            return value
        found = time.fromisoformat(value)
        if found.tzinfo is not None:
            raise ValueError(f"a time of day has no zone, got {value!r:.60}")
        since = timedelta(hours=found.hour, minutes=found.minute, seconds=found.second, microseconds=found.microsecond)
        return _to_units(since, unit_us, value)

    return lambda _: _then(_WHOLE_OR_TEXT, read)


def _to_units(span: timedelta, unit_us: int, value: str) -> int:
    count, rest = divmod(span // _US, unit_us)
    if rest or _count_digits(value) > int(math.log10(1_000_000 // unit_us)):
        raise ValueError(f"it is finer than the unit of the schema, got {value!r:.60}")
    return count


def _count_digits(value: str) -> int:
    """Return the number of decimal places of the seconds, without trailing zeros."""
    _, _, fraction = value.replace(",", ".").partition(".")
    digits = fraction[: next((at for at, one in enumerate(fraction) if not one.isdigit()), len(fraction))]
    return len(digits.rstrip("0"))


def _parse_days(value: int | str) -> int:
    if isinstance(value, int):
        try:
            _ = _EPOCH_DATE + timedelta(days=value)
        except OverflowError:
            raise ValueError(f"a date lies between the years 1 and 9999, got {value}") from None
        return value
    if len(value) != _DATE_CHARS:
        raise ValueError(f"a date is written as 2026-01-31, got {value!r:.60}")
    return (date.fromisoformat(value) - _EPOCH_DATE).days


def _parse_uuid(value: str) -> UUID:
    found = UUID(value)
    if str(found) != value.lower():
        raise ValueError(f"a UUID is written as 32 hexadecimal digits with four dashes, got {value!r:.60}")
    return found


_TEXT: Final[ValueSchema] = core_schema.str_schema(strict=True)
_WHOLE_OR_TEXT: Final[ValueSchema] = core_schema.union_schema([core_schema.int_schema(strict=True), _TEXT])
_PRIMITIVES: Final[dict[str, ValueSchema]] = {
    "null": core_schema.none_schema(),
    "boolean": core_schema.bool_schema(strict=True),
    **{name: core_schema.int_schema(strict=True, ge=low, le=high) for name, (low, high) in _RANGES.items()},
    "float": _then(core_schema.float_schema(strict=True, allow_inf_nan=False), _check_single),
    "double": core_schema.float_schema(strict=True, allow_inf_nan=False),
    "string": _TEXT,
    "bytes": _then(_TEXT, _parse_base64),
}
LOGICAL_TYPES: Final[dict[tuple[str, str | None], Callable[[Mapping[str, Any]], ValueSchema]]] = {
    ("int", "date"): lambda _: _then(_WHOLE_OR_TEXT, _parse_days),
    ("int", "time-millis"): _build_time("millis"),
    ("long", "time-micros"): _build_time("micros"),
    ("long", "timestamp-millis"): _build_moment("millis", is_local=False),
    ("long", "timestamp-micros"): _build_moment("micros", is_local=False),
    ("long", "local-timestamp-millis"): _build_moment("millis", is_local=True),
    ("long", "local-timestamp-micros"): _build_moment("micros", is_local=True),
    ("string", "uuid"): lambda _: _then(_TEXT, _parse_uuid),
    ("bytes", "decimal"): _build_decimal,
}
"""Validators of the logical types with a form of their own in JSON; whole numbers are also accepted."""
