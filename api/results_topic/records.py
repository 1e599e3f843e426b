"""Records of the topic of results: a node in a window as ``hopwatch report --json`` shows it, in Avro.

The schema is built from the types of the results, so that a field that they get is one of the records, too.
"""

from __future__ import annotations

import io
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

import fastavro

from hopwatch.monitor.results import LabelCounts, LagCause, LossBurst, LossCause, NodeResult, PathTime, SecondCounts
from hopwatch.probes.avro_reader import CONFLUENT

Json = dict[str, Any]

NAMESPACE: Final = "hopwatch.results"
_PRIMITIVES: Final[Mapping[type, str]] = {bool: "boolean", int: "long", float: "double", str: "string"}
_OF_WINDOW: Final = ("status", "revision", "verdict", "reasons")
"""Fields of the window that each of its nodes has."""


class ResultRecord(NamedTuple):
    """Key and value of a record, as they are written."""

    key: bytes
    value: bytes


def build_schema() -> Json:
    """Build the schema of a value."""
    known: set[str] = set()
    nodes = {one["name"]: one for one in _build_fields(NodeResult, known)}
    slow = [_field("id", "string"), _field("lag_out_us", "long")]
    slowest = {"type": "record", "name": "SlowMessage", "fields": slow}
    return {
        "type": "record",
        "name": "NodeWindow",
        "namespace": NAMESPACE,
        "fields": [
            _field("stream", "string"),
            _field("window_start", {"type": "long", "logicalType": "timestamp-micros"}),
            nodes.pop("node"),
            _field("sequence", "long"),
            _field("status", "string"),
            _field("revision", "long"),
            _field("verdict", ["null", "string"]),
            _field("reasons", {"type": "array", "items": "string"}),
            *nodes.values(),
            _field("lost_ids", {"type": "array", "items": "string"}),
            _field("slowest", ["null", {"type": "array", "items": slowest}]),
            _field("labels", {"type": "array", "items": _build_type(LabelCounts, known)}),
            _field("causes", {"type": "array", "items": _build_type(LossCause, known)}, []),
            _field("lag_causes", {"type": "array", "items": _build_type(LagCause, known)}, []),
            _field("seconds", ["null", _build_type(SecondCounts, known)]),
            _field("bursts", {"type": "array", "items": _build_type(LossBurst, known)}, []),
            _field("times", {"type": "array", "items": _build_type(PathTime, known)}, []),
        ],
    }


def build_record(
    schema_number: int, stream: str, window: Mapping[str, Any], node: Mapping[str, Any], place: tuple[int, int]
) -> ResultRecord:
    """Build the record of a node in a window, both as the report shows them.

    ``schema_number`` is that of the registry, by which Confluent's framing names it. ``place`` are the start of the
    window, µs, and the number of the write that wrote it.
    """
    start_us, sequence = place
    value = {"stream": stream, "sequence": sequence, **{name: window[name] for name in _OF_WINDOW}, **node}
    body = io.BytesIO()
    body.write(bytes([CONFLUENT]) + schema_number.to_bytes(4))
    fastavro.schemaless_writer(body, _parse_schema(), value | {"window_start": start_us})
    return ResultRecord(f"{stream}|{window['window_start']}|{node['node']}".encode(), body.getvalue())


@cache
def _parse_schema() -> Any:  # noqa: ANN401 - of fastavro
    return fastavro.parse_schema(build_schema())


def _build_fields(of: type, known: set[str]) -> list[Json]:
    hints = get_type_hints(of)
    return [_field(one.name, _build_type(hints[one.name], known), one.default) for one in fields(of)]


def _build_type(hint: Any, known: set[str]) -> Any:  # noqa: ANN401 - a type, and JSON
    """Return the Avro type of a Python type; one that is ``known`` by its name already is only named."""
    if isinstance(hint, types.UnionType):
        return ["null", *(_build_type(one, known) for one in get_args(hint) if one is not types.NoneType)]
    if is_dataclass(hint) and isinstance(hint, type):
        if hint.__name__ in known:
            return hint.__name__
        known.add(hint.__name__)
        return {"type": "record", "name": hint.__name__, "fields": _build_fields(hint, known)}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _build_type(get_args(hint)[0], known)}
    return "string" if issubclass(hint, StrEnum) else _PRIMITIVES[hint]


def _field(name: str, of: Any, default: Any = MISSING) -> Json:  # noqa: ANN401 - JSON
    """Return a field, with a default for records that were written before it was there: that of a union is null."""
    if isinstance(of, list):
        default = None
    elif isinstance(default, tuple):
        default = list(default)
    return {"name": name, "type": of} | ({} if default is MISSING else {"default": default})
