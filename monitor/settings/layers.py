"""Layers of settings: flags, environment and file, each with the source of its keys."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hopwatch.monitor.errors import ConfigurationError, Problem, SettingsError
from hopwatch.monitor.settings.toml_lines import Key, find_key_lines

PREFIX: Final = "HOPWATCH_"
NESTING: Final = "__"
KAFKA: Final = ("transport", "kafka")
CHANNELS: Final = ("alerts", "channels")
DELIVER: Final = ("deliver",)
LOGIN: Final = ("dashboard", "login")
TEXT_KEYS: Final = frozenset(
    {"bearer_token", "headers", "password", "routing_key", "secret", "template", "title", "url", "username"}
)
"""Keys of channels and deliveries whose variables are always text, never TOML."""
_SYNTAX_ERROR: Final = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)


@dataclass(frozen=True)
class Layer:
    """Raw settings: nested tables, the source of each key, and its line when the source is a file."""

    values: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[Key, tuple[str, int | None]] = field(default_factory=dict)


def from_file(path: Path, flag: str = "") -> Layer:
    """Read a TOML file; ``flag`` is the flag that names the file, for the error message.

    Raises:
        SettingsError: it is not valid TOML; the message has line and column.
        ConfigurationError: it is missing or cannot be read.
    """
    text = _read_text(path, flag)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError([_syntax_problem(path, text, str(error))]) from None
    return Layer(values, {key: (str(path), line) for key, line in find_key_lines(text).items()})


def _read_text(path: Path, flag: str) -> str:
    try:
        # TOML allows both line endings; reading bytes keeps them.
        data = path.read_bytes()
    except OSError as error:
        advice = f"name a file that is there{flag and f' with {flag}'}"
        if isinstance(error, FileNotFoundError):
            advice += ", or let hopwatch init write one"
        raise ConfigurationError(f"the configuration {path} cannot be read: {error.strerror}; {advice}") from None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"not TOML: its text is UTF-8, got the byte 0x{data[error.start]:02x}"
        raise SettingsError([Problem(message, "", str(path), line)]) from None


def _syntax_problem(path: Path, text: str, told: str) -> Problem:
    match = _SYNTAX_ERROR.fullmatch(told)
    what, line, column = match.groups() if match else (told, None, None)
    last = text.count("\n") + 1
    return Problem(f"not TOML: {what}", "", str(path), int(line or last), int(column) if column else None)


def from_flags(flags: Mapping[str, Any]) -> Layer:
    """Build a layer from the flags of a command, nested as the file is; None means not given."""
    given = [(key, value) for key, value in _flatten(flags, ()) if value is not None]
    values: dict[str, Any] = {}
    for key, value in given:
        _set_value(values, key, str(value) if isinstance(value, Path) else value)
    return Layer(values, {key: (f"--{str(key[-1]).replace('_', '-')}", None) for key, _ in given})


def from_environ(
    environ: Mapping[str, str], streams: Iterable[str], channels: Iterable[str] = (), deliveries: Iterable[str] = ()
) -> Layer:
    """Build a layer from environment variables, such as ``HOPWATCH_STORE__URL`` for ``url`` of ``[store]``.

    A value is parsed as TOML if it is valid TOML, else it is text; values of ``[transport.kafka]``, which probes read
    too, of ``[dashboard.login]`` and of secret keys of channels and deliveries are always text. ``streams``,
    ``channels`` and ``deliveries`` are the names known so far: a variable spells them in capitals, with ``_`` for all
    other characters than letters and digits. Variables without ``__`` are not settings: other programs have some with
    the same prefix.
    """
    known = {_to_variable(stream): stream for stream in streams}
    named = {_to_variable(channel): channel for channel in channels}
    delivering = {_to_variable(delivery): delivery for delivery in deliveries}
    values: dict[str, Any] = {}
    sources: dict[Key, tuple[str, int | None]] = {}
    for variable in sorted(environ):
        name = variable.removeprefix(PREFIX)
        if name == variable or NESTING not in name:
            continue
        first, *rest = name.split(NESTING)
        if first == "STREAMS":
            rest[0] = known.get(rest[0], rest[0].lower())
            key = ("streams", rest[0], *(part.lower() for part in rest[1:]))
        elif first == "ALERTS" and rest[0] == "CHANNELS" and len(rest) > 1:
            key = ("alerts", "channels", named.get(rest[1], rest[1].lower()), *(part.lower() for part in rest[2:]))
        elif first == "DELIVER":
            rest[0] = delivering.get(rest[0], rest[0].lower())
            key = ("deliver", rest[0], *(part.lower() for part in rest[1:]))
        else:
            key = tuple(part.lower() for part in (first, *rest))
        text = environ[variable]
        _set_value(values, key, text if _is_text(key) else _parse_value(text))
        sources[key] = (f"environment {variable}", None)
    return Layer(values, sources)


def _to_variable(name: str) -> str:
    return re.sub(r"[^A-Z0-9]+", "_", name.upper())


def _is_text(key: Key) -> bool:
    """Return whether the value of a key is always text: a secret of digits is not a number."""
    if key[:2] == CHANNELS or key[:1] == DELIVER:
        return bool(set(key[3:4] if key[:2] == CHANNELS else key[2:3]) & TEXT_KEYS)
    return key[:-1] in (KAFKA, LOGIN)


def _parse_value(text: str) -> object:
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return read["value"] if len(read) == 1 else text


def _flatten(table: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, (*above, name))
        else:
            yield (*above, name), value


def _set_value(values: dict[str, Any], key: tuple[str, ...], value: object) -> None:
    *tables, name = key
    for table in tables:
        below = values.setdefault(table, {})
        if not isinstance(below, dict):
            below = values[table] = {}
        values = below
    values[name] = value
