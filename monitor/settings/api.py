"""``[api]``: readers of the query API, by token, and its TLS files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator
from pydantic_core import InitErrorDetails

from hopwatch.monitor.settings import error_details
from hopwatch.monitor.settings.fields import Names, name_validator
from hopwatch.monitor.settings.gate import TlsSettings, TokenHashes
from hopwatch.monitor.settings.table import SettingsTable


class ReaderSettings(SettingsTable):
    """``[api.readers.NAME]``: tokens of a reader, the streams that it may read, until when, and whether it may mark."""

    tokens: TokenHashes
    streams: Names = ()
    expires: AwareDatetime | None = None
    may_mark: bool = False


def _require_reader(value: object) -> object:
    """Require at least one reader in the table; without the table anybody may read."""
    if value == {}:
        msg = "it names no reader, and without it anyone may read: name a reader, or leave the table out"
        raise ValueError(msg)
    return value


class ApiSettings(SettingsTable):
    """``[api]``: all tables of the query API."""

    readers: Annotated[
        Mapping[Annotated[str, AfterValidator(name_validator("a reader"))], ReaderSettings],
        BeforeValidator(_require_reader),
    ] = {}
    tls: TlsSettings | None = None


def check_readers(readers: Mapping[str, ReaderSettings], streams: Sequence[str]) -> list[InitErrorDetails]:
    """Check readers against each other and the streams that are declared."""
    found: list[InitErrorDetails] = []
    hashes = [one for reader in readers.values() for one in reader.tokens]
    for name, reader in readers.items():
        if any(hashes.count(one) > 1 for one in reader.tokens):
            told = "a token belongs to one reader, and is named once: make another with 'hopwatch gate token'"
            found.append(error_details.error_at(("readers", name, "tokens"), "", told))
        where = ("readers", name, "streams")
        found += error_details.find_unknown_names(where, reader.streams, streams, "stream")
    return found
