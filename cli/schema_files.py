"""Files with a schema or a protocol, which a user names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from hopwatch.monitor.errors import ConfigurationError

if TYPE_CHECKING:
    from hopwatch.gate.registry.avro_schema import Schema


def read_schema(file: Path, type_name: str | None = None, others: Sequence[Path] = ()) -> Schema:
    """Read a schema, or a type of a protocol, with what it uses of other files.

    Raises:
        ConfigurationError: a file cannot be read, or holds none.
    """
    from hopwatch.gate.registry import protocols
    from hopwatch.gate.registry.avro_schema import Schema, SchemaError
    from hopwatch.probes.avro_lint import LintError
    from hopwatch.probes.avro_references import write_out_references

    text = _read_file(file)
    try:
        if type_name is None and not others and not protocols.is_protocol(_parse_json(file, text)):
            return Schema.parse(text)
        said, known = _parse_json(file, text), [part for one in others for part in _read_types(one)]
        if protocols.is_protocol(said):
            whole = protocols.select_type(said, type_name, known)
        elif type_name is not None:
            raise ConfigurationError(f"--type is for a protocol, and {file} is none: leave it out")
        else:
            whole = write_out_references(said, known)
        return Schema.parse(orjson.dumps(whole))
    except (SchemaError, LintError) as error:
        raise ConfigurationError(f"{file}{f' at {error.place}' if error.place else ''}: {error}") from None
    except protocols.ProtocolError as error:
        raise ConfigurationError(f"{file}: {error}") from None


def _read_types(file: Path) -> list[Any]:
    """Return the schemas of a file whose types another one uses."""
    from hopwatch.gate.registry import protocols

    said = _parse_json(file, _read_file(file))
    return list(protocols.list_types(said)) if protocols.is_protocol(said) else [said]


def _read_file(file: Path) -> bytes:
    from hopwatch.gate.registry.avro_schema import MAX_SCHEMA_BYTES

    try:
        with file.open("rb") as opened:
            text = opened.read(MAX_SCHEMA_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"the schema {file} cannot be read: {error.strerror}: name a file of JSON") from None
    if len(text) > MAX_SCHEMA_BYTES:
        raise ConfigurationError(f"{file}: a schema has at most {MAX_SCHEMA_BYTES:,} bytes, got more")
    return text


def _parse_json(file: Path, text: bytes) -> Any:  # noqa: ANN401 - JSON
    if file.suffix == ".avdl":
        made = f"java -jar avro-tools.jar idl {file} {file.with_suffix('.avpr')}"
        raise ConfigurationError(f"{file}: Avro IDL is compiled by Avro's own tools first: {made}")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ConfigurationError(f"{file}: a schema is JSON: {error!s:.200}") from None
