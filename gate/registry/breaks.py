"""Reasons why one schema cannot read another: each place, with the type of the reader and that of the writer.

Both schemas are walked the way a reader resolves them (Apache Avro 1.12 specification, "Schema Resolution"). This never
decides: Avro's library has found before that the two schemas are incompatible.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import Any, Final, NamedTuple

from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType

MAX_BREAKS: Final = 100
MAX_CHARS: Final = 300
"""Maximum length of a description."""
_NUMBERS: Final = ("int", "long", "float", "double")
_TEXTS: Final = frozenset({"string", "bytes"})
_NAMED: Final = frozenset({"record", "enum", "fixed"})


class BreakKind(StrEnum):
    """Kind of an incompatibility at one place."""

    NO_DEFAULT = "no-default"
    """The reader has a field without a default that the writer does not have."""
    TYPE = "type"
    NAME = "name"
    SIZE = "size"
    SYMBOLS = "symbols"
    """The writer has symbols that the reader's enum, which has no default, does not have."""
    BRANCH = "branch"
    """A type of the writer matches no branch of the reader's union."""


class Break(NamedTuple):
    """Incompatibility at a place such as ``customer.address[].zip``, empty for the whole schema, with both sides."""

    kind: BreakKind
    place: str
    reader: str
    writer: str


def find_breaks(reader: Any, writer: Any) -> tuple[Break, ...]:  # noqa: ANN401 - schemas of a library without types, all below
    """Return the breaks between a reader and a writer of Avro's library: at least one, at most ``MAX_BREAKS``.

    Call it only for incompatible schemas.
    """
    return tuple(islice(_iter_breaks(reader, writer, ""), MAX_BREAKS)) or (
        Break(BreakKind.TYPE, "", _describe(reader), _describe(writer)),
    )


def _iter_breaks(reader: Any, writer: Any, place: str) -> Iterator[Break]:  # noqa: ANN401
    if writer.type == "union":
        for branch in writer.schemas:
            yield from _iter_breaks(reader, branch, place)
    elif reader.type == "union":
        if not any(is_compatible(branch, writer) for branch in reader.schemas):
            yield from _branch_breaks(reader, writer, place)
    elif reader.type != writer.type:
        if not _is_promoted(reader.type, writer.type):
            yield Break(BreakKind.TYPE, place, _describe(reader), _describe(writer))
    elif reader.type == "array":
        yield from _iter_breaks(reader.items, writer.items, f"{place}[]")
    elif reader.type == "map":
        yield from _iter_breaks(reader.values, writer.values, f"{place}{{}}")
    elif reader.type in _NAMED:
        yield from _named_breaks(reader, writer, place)


def _branch_breaks(reader: Any, writer: Any, place: str) -> Iterator[Break]:  # noqa: ANN401
    """Yield the breaks of the one branch of the same kind, or one break if there is not exactly one."""
    alike = [one for one in reader.schemas if one.type == writer.type and writer.type not in {"string", "bytes"}]
    if len(alike) == 1 and writer.type in {*_NAMED, "array", "map"}:
        yield from _iter_breaks(alike[0], writer, place)
    else:
        yield Break(BreakKind.BRANCH, place, _describe(reader), _describe(writer))


def _named_breaks(reader: Any, writer: Any, place: str) -> Iterator[Break]:  # noqa: ANN401
    if reader.name != writer.name and writer.fullname not in (reader.props.get("aliases") or ()):
        yield Break(BreakKind.NAME, place, reader.fullname, writer.fullname)
    if reader.type == "fixed":
        if reader.size != writer.size:
            yield Break(BreakKind.SIZE, place, str(reader.size), str(writer.size))
    elif reader.type == "enum":
        known = set(reader.symbols)
        gone = [symbol for symbol in writer.symbols if symbol not in known]
        if gone and reader.props.get("default") not in known:
            yield Break(BreakKind.SYMBOLS, place, _truncate(", ".join(reader.symbols)), _truncate(", ".join(gone)))
    else:
        for field in reader.fields:
            there = f"{place}.{field.name}" if place else str(field.name)
            found = _find_field(writer, field)
            if found is not None:
                yield from _iter_breaks(field.type, found.type, there)
            elif not field.has_default:
                yield Break(BreakKind.NO_DEFAULT, there, _describe(field.type), "")


def _find_field(writer: Any, field: Any) -> Any:  # noqa: ANN401
    """Return the writer's field for a reader's field; None if there is none."""
    names = (field.name, *(field.props.get("aliases") or ()))
    return next((writer.fields_dict[name] for name in names if name in writer.fields_dict), None)


def is_compatible(reader: Any, writer: Any) -> bool:  # noqa: ANN401
    """Return whether a reader of Avro's library can read all that a writer may write; the library decides."""
    found = ReaderWriterCompatibilityChecker().get_compatibility(reader, writer)  # type: ignore[no-untyped-call]
    return bool(found.compatibility is SchemaCompatibilityType.compatible)


def _is_promoted(reader: str, writer: str) -> bool:
    if reader in _NUMBERS and writer in _NUMBERS:
        return _NUMBERS.index(writer) <= _NUMBERS.index(reader)
    return {reader, writer} == _TEXTS


def _describe(schema: Any) -> str:  # noqa: ANN401
    if schema.type == "union":
        return _truncate(" | ".join(_describe(branch) for branch in schema.schemas))
    return f"{schema.type} {schema.fullname}" if schema.type in _NAMED else str(schema.type)


def _truncate(words: str) -> str:
    return words if len(words) <= MAX_CHARS else f"{words[:MAX_CHARS]}…"
