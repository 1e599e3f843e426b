"""Secrets of a table: set in the configuration, the environment or a separate file, and never shown.

The other form of a key ``password`` is ``password_file``, the path of a file that holds it. Both forms in one layer are
refused; either form in the environment overrides both forms in the configuration file.
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
"""Keys that end like a file form, but have no other form."""


class SecretTable(SettingsTable):
    """A table with keys that may be read from files.

    ``SECRET_CHECKS`` maps these keys to checks, which raise ValueError; ``REQUIRED_SECRETS`` are the required ones.
    """

    SECRET_CHECKS: ClassVar[Mapping[str, Callable[[str], object]]] = {}
    REQUIRED_SECRETS: ClassVar[tuple[str, ...]] = ()

    def read_secret(self, key: str) -> str:
        """Return the value of a secret key from either form; empty without one.

        Raises:
            ValueError: both forms are set, or the file cannot be read.
        """
        value, file = getattr(self, key), getattr(self, key + FILE_SUFFIX)
        text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        if text and file:
            raise ValueError(f"{key} and {key}{FILE_SUFFIX} both say it: keep one of them")
        return read_text_file(file).rstrip("\r\n") if file else text

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_values(cls, table: object) -> object:
        # A layer resets a form in the layers below by an empty value, see reset_other_form().
        if not isinstance(table, Mapping):
            return table
        return {key: value for key, value in table.items() if value != "" or key in cls.model_fields}

    @model_validator(mode="after")
    def _check_secrets(self) -> Self:
        # Read now, so that an error is reported before anything starts.
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
    """Read a text file.

    Raises:
        ValueError: it cannot be read, or is too long.
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
    """Resolve the relative paths of files in a table from ``base``."""
    files = {
        key: str(base / file) for key, file in table.items() if key.endswith(FILE_SUFFIX) and isinstance(file, str)
    }
    return {**table, **{key: file for key, file in files.items() if table[key]}}


def reset_other_form(table: Mapping[str, Any]) -> dict[str, Any]:
    """Make a secret of a layer override both of its forms, key and file, in the layers below.

    An empty value counts as missing; empty values of other keys are dropped later.
    """
    said = {key: value for key, value in table.items() if value != ""}
    keys = {key.removesuffix(FILE_SUFFIX) for key in said if key not in _FILE_ONLY_KEYS}
    return dict.fromkeys((form for key in keys for form in (key, key + FILE_SUFFIX)), "") | said
