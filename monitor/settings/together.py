"""What of the settings does not fit together, told beside all that is wrong by itself.

A rule names streams, a channel another one, an entrance a node. Where one of them is wrong itself, that alone is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails

from hopwatch.monitor.pathway import Pathway, PathwayError
from hopwatch.monitor.settings import alerting, channels, gate, places
from hopwatch.monitor.settings.lines import Key

Part = TypeVar("Part")

_RULE: Final[TypeAdapter[alerting.AnyRule]] = TypeAdapter(Annotated[alerting.AnyRule, Field(discriminator="kind")])
_LABELS: Final[TypeAdapter[tuple[str, ...]]] = TypeAdapter(alerting.LabelNames)
_CHANNEL: Final[TypeAdapter[channels.AnyChannel]] = TypeAdapter(
    Annotated[channels.AnyChannel, Field(discriminator="kind")]
)
_ENTRANCE: Final = TypeAdapter(gate.EntranceSettings)
_GATE_RULE: Final[TypeAdapter[gate.AnyRule]] = TypeAdapter(Annotated[gate.AnyRule, Field(discriminator="kind")])
_PRODUCER: Final = TypeAdapter(gate.ProducerSettings)


def misfits(values: Mapping[str, Any]) -> list[InitErrorDetails]:
    """Return what does not fit together in settings as they were said, merged from their layers, right or wrong."""
    streams = {name: _nodes(said) for name, said in _table(values, "streams").items()}
    found = [*_of_alerts(_table(values, "alerts"), streams)]
    found += _of_the_gate(_table(values, "gate"), streams, _table(values, "transport").get("url"))
    return found


def _of_alerts(alerts: Mapping[str, Any], streams: Mapping[str, tuple[str, ...] | None]) -> Iterator[InitErrorDetails]:
    every = _table(alerts, "channels")
    labels = _right(_LABELS, {"labels": alerts.get("labels", alerting.LABELS)}).get("labels")
    yield from _below("alerts", alerting.rule_misfits(_listed(_RULE, alerts.get("rules")), labels, streams))
    yield from _below("alerts", channels.channel_misfits(_right(_CHANNEL, every), list(every), list(streams)))


def _of_the_gate(
    said: Mapping[str, Any], streams: Mapping[str, tuple[str, ...] | None], transport: object
) -> Iterator[InitErrorDetails]:
    every = _table(said, "streams")
    subjects = [of.get("subject") or name if isinstance(of, Mapping) else name for name, of in every.items()]
    try:
        url = places.transport_url(transport)
    except ValueError:
        url = None
    yield from _below("gate", gate.entrance_misfits(_right(_ENTRANCE, every), streams, url))
    yield from _below("gate", gate.gate_rule_misfits(_listed(_GATE_RULE, said.get("rules")), subjects))
    yield from _below("gate", gate.producer_misfits(_right(_PRODUCER, _table(said, "producers")), list(every)))


def _below(table: str, found: list[InitErrorDetails]) -> Iterator[InitErrorDetails]:
    for one in found:
        key: Key = (table, *one.get("loc", ()))
        yield {**one, "loc": key}


def _nodes(said: object) -> tuple[str, ...] | None:
    """Return the nodes of a stream; None where its path says none."""
    path = said.get("path") if isinstance(said, Mapping) else None
    try:
        return Pathway.parse(path if isinstance(path, str) else list(path or ())).nodes
    except (PathwayError, TypeError, AttributeError):
        return None


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}


def _listed(of: TypeAdapter[Part], said: object) -> dict[int, Part]:
    """Return those of a list that are right, by their places."""
    return _right(of, dict(enumerate(said))) if isinstance(said, list | tuple) else {}


Name = TypeVar("Name", str, int)


def _right(of: TypeAdapter[Part], said: Mapping[Name, Any]) -> dict[Name, Part]:
    """Return those of some parts that are right, by the keys of them that are."""
    found: dict[Name, Part] = {}
    for name, one in said.items():
        try:
            found[name] = of.validate_python(one)
        except ValidationError as error:
            # Of what is wrong by some keys the others count, unless it cannot do without these.
            wrong = {part for details in error.errors() for part in details["loc"]}
            with suppress(ValidationError, AttributeError):
                found[name] = of.validate_python({key: said for key, said in one.items() if key not in wrong})
    return found
