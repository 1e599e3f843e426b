"""Selection of messages in a topic of many types: by the type or the schema of their values, or by a header."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hopwatch.probes.taps.avro import WriterSchema
from hopwatch.probes.taps.errors import TapUsageError

_FORM: Final = re.compile(r"(?P<kind>type|schema|header):(?P<name>.+)", re.DOTALL)
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{64}")


class SelectionKind(StrEnum):
    """Property by which messages are selected."""

    TYPE = "type"
    SCHEMA = "schema"
    HEADER = "header"


@dataclass(frozen=True, slots=True)
class Selection:
    """Messages of a topic that are taken; ``value`` is that of a header."""

    kind: SelectionKind
    name: str
    value: bytes = b""

    def takes_schema(self, writer: WriterSchema) -> bool:
        """Return whether values of a schema are taken; any, if a header decides."""
        match self.kind:
            case SelectionKind.TYPE:
                return writer.name == self.name
            case SelectionKind.SCHEMA:
                return writer.fingerprint == self.name
            case _:
                return True

    def takes_headers(self, headers: Mapping[str, object]) -> bool:
        """Return whether a message with these headers is taken; any, if its schema decides."""
        if self.kind is not SelectionKind.HEADER:
            return True
        found = headers.get(self.name)
        return (found.encode() if isinstance(found, str) else found) == self.value


def parse_selection(text: str) -> Selection:
    """Parse a selection such as ``type:com.shop.Order``.

    Raises:
        TapUsageError: it is none.
    """
    if found := _FORM.fullmatch(text):
        kind, name = SelectionKind(found["kind"]), found["name"]
        if kind is SelectionKind.HEADER:
            name, equals, value = name.partition("=")
            if name and equals:
                return Selection(kind, name, value.encode())
        elif kind is SelectionKind.TYPE or _FINGERPRINT.fullmatch(name):
            return Selection(kind, name)
    told = "--take is type:NAME, schema:FINGERPRINT (64 hexadecimal digits) or header:NAME=VALUE"
    raise TapUsageError(f"{told}, got {text!r:.100}")
