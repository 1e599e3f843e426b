"""Checks between tables of the settings, reported together with the errors of single values.

A rule refers to streams, a channel to another one, an entrance to a node. If one of them is wrong itself, only that is
reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails

from hopwatch.monitor.pathway import COUNT, Pathway, PathwayError
from hopwatch.monitor.settings import alerting, api, channels, completeness, deliver, gate, locations, results
from hopwatch.monitor.settings.toml_lines import Key

Part = TypeVar("Part")

_RULE: Final[TypeAdapter[alerting.AnyRule]] = TypeAdapter(Annotated[alerting.AnyRule, Field(discriminator="kind")])
_LABELS: Final[TypeAdapter[tuple[str, ...]]] = TypeAdapter(alerting.LabelNames)
_CHANNEL: Final[TypeAdapter[channels.AnyChannel]] = TypeAdapter(
    Annotated[channels.AnyChannel, Field(discriminator="kind")]
)
_ENTRANCE: Final = TypeAdapter(gate.EntranceSettings)
_GATE_RULE: Final[TypeAdapter[gate.AnyRule]] = TypeAdapter(Annotated[gate.AnyRule, Field(discriminator="kind")])
_PRODUCER: Final = TypeAdapter(gate.ProducerSettings)
_DELIVERY: Final = TypeAdapter(deliver.DeliverySettings)
_READER: Final = TypeAdapter(api.ReaderSettings)
_CONTRACT: Final = TypeAdapter(completeness.CompletenessSettings)


def find_mismatches(values: Mapping[str, Any]) -> list[InitErrorDetails]:
    """Find mismatches between tables in merged raw settings, valid or not."""
    streams = {name: _parse_nodes(said) for name, said in _get_table(values, "streams").items()}
    found = [*_check_alerts(_get_table(values, "alerts"), streams, list(_get_table(values, "deliver")))]
    url = _parse_transport(_get_table(values, "transport").get("url"))
    found += _check_gate(_get_table(values, "gate"), streams, url)
    deliveries = _validate_each(_DELIVERY, _get_table(values, "deliver"))
    found += _prefix_keys("deliver", deliver.check_deliveries(deliveries, streams, url))
    readers = _validate_each(_READER, _get_table(_get_table(values, "api"), "readers"))
    found += _prefix_keys("api", api.check_readers(readers, list(streams)))
    with_ids = {name: _parse_id_nodes(said) for name, said in _get_table(values, "streams").items()}
    every = _get_table(_get_table(values, "alerts"), "channels")
    kinds = {name: of.get("kind") for name, of in every.items() if isinstance(of, Mapping)}
    contracts = _validate_each(_CONTRACT, _get_table(values, "completeness"))
    found += _prefix_keys("completeness", completeness.check_contracts(contracts, with_ids, kinds))
    return [*found, *_prefix_keys("results", results.check_topic(_get_table(values, "results"), url))]


def _check_alerts(
    alerts: Mapping[str, Any], streams: Mapping[str, tuple[str, ...] | None], deliveries: Sequence[str]
) -> Iterator[InitErrorDetails]:
    every = _get_table(alerts, "channels")
    labels = _validate_each(_LABELS, {"labels": alerts.get("labels", alerting.LABELS)}).get("labels")
    rules = _validate_list(_RULE, alerts.get("rules"))
    yield from _prefix_keys("alerts", alerting.check_rules(rules, labels, streams))
    named = [*(rule.display_name for rule in rules.values()), *alerting.KINDS]
    known = channels.ChannelNames(list(every), list(streams), named, deliveries)
    yield from _prefix_keys("alerts", channels.check_channels(_validate_each(_CHANNEL, every), known))


def _check_gate(
    said: Mapping[str, Any], streams: Mapping[str, tuple[str, ...] | None], transport: str | None
) -> Iterator[InitErrorDetails]:
    every = _get_table(said, "streams")
    subjects = [of.get("subject") or name if isinstance(of, Mapping) else name for name, of in every.items()]
    entrances = _validate_each(_ENTRANCE, every)
    yield from _prefix_keys("gate", gate.check_entrances(entrances, streams, transport))
    yield from _prefix_keys("gate", gate.check_gate_rules(_validate_list(_GATE_RULE, said.get("rules")), subjects))
    yield from _prefix_keys(
        "gate", gate.check_producers(_validate_each(_PRODUCER, _get_table(said, "producers")), list(every))
    )


def _parse_transport(said: object) -> str | None:
    try:
        return locations.parse_transport_url(said)
    except ValueError:
        return None


def _prefix_keys(table: str, found: list[InitErrorDetails]) -> Iterator[InitErrorDetails]:
    for one in found:
        key: Key = (table, *one.get("loc", ()))
        yield {**one, "loc": key}


def _parse_nodes(said: object) -> tuple[str, ...] | None:
    """Parse the nodes of a stream; None if its path is wrong."""
    path = said.get("path") if isinstance(said, Mapping) else None
    try:
        return Pathway.parse(path if isinstance(path, str) else list(path or ())).nodes
    except (PathwayError, TypeError, AttributeError):
        return None


def _parse_id_nodes(said: object) -> tuple[str, ...] | None:
    """Parse the nodes of a stream that know ids; None if its path is wrong."""
    nodes = _parse_nodes(said)
    stamps = _get_table(said, "stamps") if isinstance(said, Mapping) else {}
    return None if nodes is None else tuple(node for node in nodes if stamps.get(node) != COUNT)


def _get_table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}


def _validate_list(of: TypeAdapter[Part], said: object) -> dict[int, Part]:
    """Return the valid entries of a list, by their places."""
    return _validate_each(of, dict(enumerate(said))) if isinstance(said, list | tuple) else {}


Name = TypeVar("Name", str, int)


def _validate_each(of: TypeAdapter[Part], said: Mapping[Name, Any]) -> dict[Name, Part]:
    """Return the valid entries of a table, without their invalid keys."""
    found: dict[Name, Part] = {}
    for name, one in said.items():
        try:
            found[name] = of.validate_python(one)
        except ValidationError as error:
            # The other keys of a wrong entry still count, unless a wrong key is required.
            wrong = {part for details in error.errors() for part in details["loc"]}
            with suppress(ValidationError, AttributeError):
                found[name] = of.validate_python({key: said for key, said in one.items() if key not in wrong})
    return found
