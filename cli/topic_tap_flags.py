"""Flags of ``hopwatch tap kafka`` that go together, or do not."""

from __future__ import annotations

from typing import Final

import typer

from hopwatch.monitor.errors import ConfigurationError
from hopwatch.probes.taps.avro import AvroFraming
from hopwatch.probes.taps.framing import RecordFraming
from hopwatch.probes.taps.unknown_schemas import UnknownSchema

_FIELD_FLAGS: Final = {
    "id": ("id_header", "id_json", "id_avro"),
    "event time": ("time_header", "time_json", "time_avro", "time_record"),
}
"""Alternative parameters for the place of the id and of the event time in a Kafka message."""
_FORMAT_FLAGS: Final = ("id_as", "time_unit")


def check_topic_flags(context: typer.Context) -> None:
    """Check that no two flags of ``tap kafka`` contradict each other.

    Raises:
        ConfigurationError: two of them do; it names both.
    """
    given = {name for name in context.params if _is_given(context, name)}
    if context.params["framing"] is RecordFraming.DEBEZIUM:
        _check_change_flags(given)
    for what, names in _FIELD_FLAGS.items():
        asked = [_format_flag(name) for name in names if name in given]
        if len(asked) > 1:
            raise ConfigurationError(f"the {what} stands in one place, got {' and '.join(asked)}: name one of them")
    if {"time_record", "time_unit"} <= given:
        what = "--time-unit is how an event time is written, and --time-record reads none"
        raise ConfigurationError(f"{what}: name one of them")
    _check_schema_flags(context, given)


def _check_change_flags(given: set[str]) -> None:
    every = (*(name for names in _FIELD_FLAGS.values() for name in names), *_FORMAT_FLAGS)
    asked = [_format_flag(name) for name in every if name in given]
    if asked:
        what = "--framing debezium knows where id and event time of a change are"
        raise ConfigurationError(f"{what}, got {' and '.join(asked)}: leave it out")
    if "take" in given:
        raise ConfigurationError("--framing debezium takes all changes of a topic, got --take: leave it out")


def _check_schema_flags(context: typer.Context, given: set[str]) -> None:
    schemas = [_format_flag(name) for name in ("avro_schema", "registry") if name in given]
    if len(schemas) > 1:
        raise ConfigurationError("a schema is that of a file or of a registry: name --avro-schema or --registry")
    if "avro_framing" in given and not schemas:
        told = "--avro-framing is for Avro values: name their schema with --avro-schema or --registry, or leave it out"
        raise ConfigurationError(told)
    if "registry" in given and context.params["avro_framing"] is AvroFraming.RAW:
        told = "--avro-framing raw names no schema, so that none can be asked for: name --avro-schema"
        raise ConfigurationError(told)
    for name, needed in (("unknown_schema", "registry"), ("hold", "unknown_schema")):
        if name in given and needed not in given:
            raise ConfigurationError(f"{_format_flag(name)} goes with {_format_flag(needed)}: name both, or neither")
    if "hold" in given and context.params["unknown_schema"] is not UnknownSchema.HOLD:
        raise ConfigurationError("--hold goes with --unknown-schema hold: what is rejected does not wait")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _format_flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
