"""Decoder of foreign Avro values: the schema is checked before any Avro library parses it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import fastavro
import fastavro.schema
import orjson

from hopwatch.probes.avro_lint import lint
from hopwatch.probes.avro_reader import CONFLUENT, CONFLUENT_BYTES, read_value
from hopwatch.probes.contract.envelope import MARKER
from hopwatch.probes.taps.errors import TapUsageError

MAX_SCHEMA_BYTES: Final = 256 * 1024


class AvroFraming(StrEnum):
    """Framing of an Avro value: the bytes before its body."""

    FINGERPRINT = "fingerprint"
    CONFLUENT = "confluent"
    RAW = "raw"


class AvroValues:
    """Decoder for values of one schema; bytes behind a value are an error."""

    def __init__(self, file: Path, framing: AvroFraming) -> None:
        """Read the schema.

        Raises:
            TapUsageError: the file cannot be read, is no schema, or is refused as unsafe.
        """
        try:
            with file.open("rb") as opened:
                text = opened.read(MAX_SCHEMA_BYTES + 1)
        except OSError as error:
            advice = "name a file that is there with --avro-schema"
            raise TapUsageError(f"the schema {file} cannot be read: {error.strerror}: {advice}") from None
        try:
            if len(text) > MAX_SCHEMA_BYTES:
                raise ValueError(f"it has more than {MAX_SCHEMA_BYTES} bytes")  # noqa: TRY301 - one sentence for all
            parsed = orjson.loads(text)
            lint(parsed)
            self._schema = fastavro.parse_schema(parsed)
        except Exception as error:  # noqa: BLE001 - a library of parsers may raise anything, and all of it is the file's
            raise TapUsageError(f"the schema {file} cannot be used: {error!s:.200}") from None
        self._prefix = self._build_prefix(framing)
        self._body_start = CONFLUENT_BYTES if framing is AvroFraming.CONFLUENT else len(self._prefix)

    def decode(self, value: bytes) -> Any:  # noqa: ANN401 - what the schema says
        """Decode a value.

        Raises:
            ValueError: it has another schema or framing, or is too short or too long.
        """
        if not value.startswith(self._prefix) or len(value) < self._body_start:
            raise ValueError(f"a value starts with {self._prefix.hex()}, got {value[: len(self._prefix)].hex()}")
        return read_value(value, self._body_start, self._schema, "a value of the schema", "value")

    def strip_framing(self, data: bytes) -> bytes | None:
        """Return the body of bytes that are framed as values are, such as a key of another schema; else None."""
        is_framed = data.startswith(self._prefix[:1]) and len(data) >= self._body_start
        return data[self._body_start :] if is_framed else None

    def _build_prefix(self, framing: AvroFraming) -> bytes:
        if framing is AvroFraming.FINGERPRINT:
            canonical = fastavro.schema.to_parsing_canonical_form(self._schema)
            return bytes([MARKER]) + bytes.fromhex(fastavro.schema.fingerprint(canonical, "SHA-256"))
        return bytes([CONFLUENT]) if framing is AvroFraming.CONFLUENT else b""
