"""Error messages of settings: the key, its source, the value got and the values allowed."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hopwatch.monitor.errors import Problem
from hopwatch.monitor.settings import channels, deliver, gate
from hopwatch.monitor.settings.alerting import KINDS, AlertsSettings, BurnWindow
from hopwatch.monitor.settings.dashboard import DashboardSettings, LoginSettings
from hopwatch.monitor.settings.deliver import DeliverySettings
from hopwatch.monitor.settings.gate import (
    EntranceSettings,
    GateSettings,
    ProducerSettings,
    RegistrySettings,
    TlsSettings,
)
from hopwatch.monitor.settings.kafka import KafkaSettings
from hopwatch.monitor.settings.layers import Layer
from hopwatch.monitor.settings.locations import redact_value
from hopwatch.monitor.settings.metrics import MetricsSettings
from hopwatch.monitor.settings.model import MonitorSettings, Settings, StoreSettings, StreamSettings, TransportSettings
from hopwatch.monitor.settings.otlp import OtlpSettings
from hopwatch.monitor.settings.results import ResultsSettings
from hopwatch.monitor.settings.toml_lines import Key
from hopwatch.monitor.texts import validation
from hopwatch.probes.contract.kafka import SECRETS

_MODELS: Final[dict[str | int, type[BaseModel]]] = {
    "alerts": AlertsSettings,
    "dashboard": DashboardSettings,
    "deliver": DeliverySettings,
    "gate": GateSettings,
    "metrics": MetricsSettings,
    "monitor": MonitorSettings,
    "otlp": OtlpSettings,
    "results": ResultsSettings,
    "store": StoreSettings,
    "streams": StreamSettings,
    "transport": TransportSettings,
}
_NESTED_MODELS: Final[dict[Key, type[BaseModel]]] = {
    ("transport", "kafka"): KafkaSettings,
    ("dashboard", "login"): LoginSettings,
    ("gate", "registry"): RegistrySettings,
    ("gate", "tls"): TlsSettings,
}
_NAMED_MODELS: Final[dict[Key, type[BaseModel]]] = {
    ("gate", "streams"): EntranceSettings,
    ("gate", "producers"): ProducerSettings,
}
"""Tables of named tables."""
_SECRET_KEYS: Final = frozenset({*SECRETS, *LoginSettings.SECRET_CHECKS, "tokens"})
_RULES_KEY: Final = ("alerts", "rules")
_CHANNELS_KEY: Final = ("alerts", "channels")
_KINDS: Final[Mapping[Key, tuple[str, Mapping[str, type[BaseModel]]]]] = {
    _RULES_KEY: ("rule", KINDS),
    _CHANNELS_KEY: ("channel", channels.KINDS),
    ("gate", "rules"): ("rule", gate.KINDS),
}
"""Tables with a kind: the noun for messages, and the model of each kind."""
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


_REQUIRED: Final = "this is required"
_MISSING_MESSAGES: Final[dict[str | int, str]] = {
    "streams": 'a stream has a path, such as path = "a -> b -> c"',
    "alerts": 'a window has all four of these: { rate = 14.4, long = "1h", short = "5m", severity = "page" }',
}


def build_problems(error: ValidationError, layers: Sequence[Layer]) -> list[Problem]:
    """Build the problems of a validation error, sorted by line; ``layers`` are the layers that were merged."""
    found = [_build_problem(details, layers) for details in error.errors()]
    return sorted(found, key=lambda problem: (problem.line or 0, problem.source, problem.key))


def _build_problem(details: ErrorDetails, layers: Sequence[Layer]) -> Problem:
    # pydantic marks a key that is itself at fault with "[key]" behind it.
    loc: Key = tuple(part for part in details["loc"] if part != "[key]")
    key = _without_kind(loc)
    source, line = _find_source(key, layers)
    return Problem(_format_message(loc, details), _format_key(key), source, line)


def _without_kind(key: Key) -> Key:
    """Return the key as written: pydantic inserts the kind after the number of a rule and the name of a channel."""
    return key[:3] + key[4:] if key[:2] in _KINDS else key


def _find_source(key: Key, layers: Sequence[Layer]) -> tuple[str, int | None]:
    """Return the source of a key: its own, else that of the nearest table around it, or of a key in that table."""
    for end in range(len(key), 0, -1):
        around = key[:end]
        for layer in layers:
            if around in layer.sources:
                return layer.sources[around]
        below = [source for layer in layers for said, source in layer.sources.items() if said[:end] == around]
        if below:
            return below[0]
    return "", None


def _format_message(key: Key, details: ErrorDetails) -> str:
    got = f"got {'***' if _is_secret(key) else redact_value(details['input'])}"
    match details["type"]:
        case "value_error":
            return str(details["ctx"]["error"])
        case "extra_forbidden":
            return _unknown_key_message(key)
        case "missing":
            return _REQUIRED if key[:2] == _CHANNELS_KEY else _MISSING_MESSAGES.get(key[0], _REQUIRED)
        case "union_tag_not_found" | "union_tag_invalid":
            return _unknown_kind_message(key, details)
        case "model_type" | "dict_type" | "mapping_type" | "model_attributes_type":
            return f"this is a table, {got}"
        case _:
            return f"{validation.describe_error(details['type'], details.get('ctx', {}), details['msg'])}, {got}"


def _unknown_key_message(key: Key) -> str:
    known = [field.alias or name for name, field in _find_table(key).model_fields.items()]
    return f"there is no such key; did you mean {_suggest(str(key[-1]), known)}"


def _is_secret(key: Key) -> bool:
    """Return whether the value of a key is or contains a secret; a whole channel does, and a whole delivery."""
    if key[:2] == _CHANNELS_KEY:
        return len(key) <= len(_CHANNELS_KEY) + 2 or bool(set(key[4:]) & channels.SECRET_KEYS)
    if key[0] == "deliver":
        return len(key) <= 2 or bool(set(key[2:]) & deliver.SECRET_KEYS)  # noqa: PLR2004 - table and name
    return bool(set(key) & _SECRET_KEYS) or key == ("dashboard", "login")


def _unknown_kind_message(key: Key, details: ErrorDetails) -> str:
    what, kinds = _KINDS[key[:2]]
    if details["type"] == "union_tag_not_found":
        return f"a {what} has a kind, one of {', '.join(kinds)}"
    kind = str(details["ctx"]["tag"])
    return f"there is no such kind of {what} as {redact_value(kind)}; did you mean {_suggest(kind, list(kinds))}"


def _find_table(key: Key) -> type[BaseModel]:
    """Return the model of the table that contains a key."""
    if len(key) == 1:
        return Settings
    if key[:2] not in _KINDS:
        return _NESTED_MODELS.get(key[:-1]) or (_NAMED_MODELS.get(key[:2]) if len(key) > 3 else None) or _MODELS[key[0]]  # noqa: PLR2004 - table, tables, name, key
    return BurnWindow if "windows" in key else _KINDS[key[:2]][1][str(key[3])]


def _suggest(name: str, known: Sequence[str]) -> str:
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0)[0]
    return f"{nearest!r}? Known here: {', '.join(known)}"


def _format_key(key: Key) -> str:
    """Write the key as TOML does; indices of arrays are left out, since the line shows the place."""
    parts = [part for part in key if isinstance(part, str)]
    return ".".join(part if _BARE_KEY.fullmatch(part) else json.dumps(part, ensure_ascii=False) for part in parts)
