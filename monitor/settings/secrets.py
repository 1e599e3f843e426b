"""Secrets of a table: each stands in the configuration, the environment, or a file of its own, and is never shown.

Of a key ``password`` the other form is ``password_file``, the path of a file that holds it; both in one place are
refused, and what the environment says in either form comes before what the file says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from pydantic import SecretStr, model_validator
from pydantic_core import InitErrorDetails

from hopwatch.monitor.settings import error_details
from hopwatch.monitor.settings.table import SettingsTable

FILE_SUFFIX: Final = "_file"
MAX_FILE_CHARS: Final = 100_000
_FILE_ONLY_KEYS: Final = frozenset({"ca_file"})
"""What stands in a file and nowhere else: there is no other form of it to unsay."""


class SecretTable(SettingsTable):
    """A table some of whose keys may stand in files.

    ``SECRET_CHECKS`` are those keys, each with what checks its text and raises ValueError; without
    ``REQUIRED_SECRETS``, some of them, there is no such table.
    """

    SECRET_CHECKS: ClassVar[Mapping[str, Callable[[str], object]]] = {}
    REQUIRED_SECRETS: ClassVar[tuple[str, ...]] = ()

    def read_secret(self, key: str) -> str:
        """Return what a key of ``SECRET_CHECKS`` says, wherever that stands; empty where nothing does.

        Raises:
            ValueError: both forms say it, or the file cannot be read.
        """
        value, file = getattr(self, key), getattr(self, key + FILE_SUFFIX)
        text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        if text and file:
            raise ValueError(f"{key} and {key}{FILE_SUFFIX} both say it: keep one of them")
        return read_text_file(file).rstrip("\r\n") if file else text

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_values(cls, table: object) -> object:
        # A layer unsays a form for the layers behind it by an empty one, see whole().
        if not isinstance(table, Mapping):
            return table
        return {key: value for key, value in table.items() if value != "" or key in cls.model_fields}

    @model_validator(mode="after")
    def _check_secrets(self) -> Self:
        # Read now, so that what is wrong is told before anything starts.
        found = list(self._find_errors())
        if found:
            raise error_details.build_error(type(self).__name__, found)
        return self

    def _find_errors(self) -> Iterator[InitErrorDetails]:
        for key, check in self.SECRET_CHECKS.items():
            where = key + FILE_SUFFIX if getattr(self, key + FILE_SUFFIX) else key
            try:
                text = self.read_secret(key)
                if text:
                    check(text)
            except ValueError as error:
                yield error_details.error_at((where,), "", str(error))
            else:
                if not text and key in self.REQUIRED_SECRETS:
                    told = f"this is required: {key}, or {key}{FILE_SUFFIX} for a file that holds it"
                    yield error_details.error_at((key,), "", told)


def read_text_file(file: str) -> str:
    """Return what stands in a file.

    Raises:
        ValueError: it cannot be read, or is far too long.
    """
    try:
        text = Path(file).read_text("utf-8")
    except OSError as error:
        msg = f"the file {file} cannot be read: {error.strerror}"
        raise ValueError(msg) from None
    except UnicodeDecodeError:
        msg = f"the file {file} cannot be read: its text is UTF-8"
        raise ValueError(msg) from None
    if len(text) > MAX_FILE_CHARS:
        msg = f"the file {file} is too long: it has {len(text):,} characters, and {MAX_FILE_CHARS:,} are enough"
        raise ValueError(msg)
    return text


def resolve_paths(table: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return a layer's table with the relative paths of its files made absolute from ``base``."""
    files = {
        key: str(base / file) for key, file in table.items() if key.endswith(FILE_SUFFIX) and isinstance(file, str)
    }
    return {**table, **{key: file for key, file in files.items() if table[key]}}


def reset_other_form(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a layer's table so that what it says in either form unsays both in the layers behind.

    What is empty says nothing: of keys that have no other form, an empty one is let go of later.
    """
    said = {key: value for key, value in table.items() if value != ""}
    keys = {key.removesuffix(FILE_SUFFIX) for key in said if key not in _FILE_ONLY_KEYS}
    return dict.fromkeys((form for key in keys for form in (key, key + FILE_SUFFIX)), "") | said
