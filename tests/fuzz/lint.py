"""A target: texts and trees that are said to be schemas; see test_fuzz.py."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any, Final

import atheris

with atheris.instrument_imports(include=["hopwatch.probes", "avro"]):
    from hopwatch.gate.registry.avro_schema import Schema, SchemaError

from hopwatch.gate.codec import Codec

WORDS: Final = (
    "record", "enum", "fixed", "array", "map", "null", "int", "long", "float", "double", "bytes", "string", "boolean",
    "error", "union", "decimal", "uuid", "timestamp-millis", "A", "B", "com.x.A", "a.b", "", "é", "x" * 300, "1a",
)  # fmt: skip
KEYS: Final = (
    "type", "name", "namespace", "fields", "items", "values", "symbols", "size", "default", "aliases", "logicalType",
    "precision", "scale", "order", "doc",
)  # fmt: skip
MOST_DEPTH: Final = 40


def tree(data: atheris.FuzzedDataProvider, depth: int = 0) -> Any:  # noqa: ANN401 - JSON
    """Return a tree of what schemas are made of, in any order."""
    kind = data.ConsumeIntInRange(0, 9)
    if depth > MOST_DEPTH or kind < 3 or not data.remaining_bytes():
        return WORDS[data.ConsumeIntInRange(0, len(WORDS) - 1)]
    if kind == 3:
        return data.ConsumeInt(8)
    if kind == 4:
        return [None, True, 1.5, -1, 2**70][data.ConsumeIntInRange(0, 4)]
    if kind < 7:
        return [tree(data, depth + 1) for _ in range(data.ConsumeIntInRange(0, 4))]
    return {
        KEYS[data.ConsumeIntInRange(0, len(KEYS) - 1)]: tree(data, depth + 1)
        for _ in range(data.ConsumeIntInRange(1, 5))
    }


def once(data: bytes) -> None:
    """Read a schema; what is one, the gate has to be able to read events by."""
    text = data[1:] if data[:1] < b"\x80" else json.dumps(tree(atheris.FuzzedDataProvider(data[1:]))).encode()
    try:
        schema = Schema.parse(text)
    except SchemaError:
        return
    Codec(schema)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # Avro's library warns of logical types that it does not know
    atheris.Setup(sys.argv, once)
    atheris.Fuzz()
