"""Completeness of a contract of the configuration, asked of the store: for the API and for ``hopwatch ready``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine

from hopwatch.monitor.accounting.completeness_answer import Json, answer_to_json
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.kernel.completeness import CompletenessState, EarlierNodes
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import pathway_versions, schema
from hopwatch.monitor.store.completeness import read_completeness
from hopwatch.probes.contract.limits import WINDOW_US

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings
    from hopwatch.monitor.settings.completeness import CompletenessSettings
    from hopwatch.monitor.stream_config import StreamConfig


def check_until(until_us: int, now_us: int) -> None:
    """Check a moment that is asked for.

    Raises:
        ConfigurationError: it is no whole minute, or in the future.
    """
    if until_us % WINDOW_US:
        raise ConfigurationError(f"until is a whole UTC minute, as windows end, got {format_iso(until_us)}")
    if until_us > now_us:
        raise ConfigurationError(
            f"until is in the future: {format_iso(until_us)}, and it is {format_iso(now_us)}; ask when it has passed"
        )


def ask_completeness(engine: Engine, settings: Settings, name: str, until_us: int, now_us: int) -> Json:
    """Return the answer of a contract for the span that ends at a moment.

    Raises:
        ConfigurationError: there is no such contract, or the moment is no whole minute or in the future, or the path
            that the store was made by has no such node.
        StoreError: the store cannot be read.
    """
    settings.require_contract(name)
    check_until(until_us, now_us)
    with schema.open_snapshot(engine) as connection:
        return answer_contract(connection, settings, name, until_us)


def answer_contract(connection: Connection, settings: Settings, name: str, until_us: int) -> Json:
    """Return the answer of a contract for the span that ends at a whole minute of the past, from an open snapshot.

    Raises:
        ConfigurationError: the path that the store was made by has no such node.
        StoreError: the store cannot be read.
    """
    said = settings.require_contract(name)
    # What is before a node is a matter of the paths that the windows were judged by.
    config = pathway_versions.read_stream(connection, said.stream) or settings.streams[said.stream].rules
    pathway = config.pathway
    if unknown := [node for node in said.nodes if node not in pathway.nodes]:
        told = f"completeness.{name}.nodes: the path that the store of {said.stream} was made by has no node"
        raise ConfigurationError(f"{told} {', '.join(unknown)}; it has {', '.join(pathway.nodes)}")
    contract = said.build_contract(pathway, _find_earlier_nodes(said, config))
    terms = config.find_longest_terms(until_us - contract.over_us, until_us)
    return answer_to_json(name, contract, said.nodes, read_completeness(connection, contract, terms, until_us))


def _find_earlier_nodes(said: CompletenessSettings, config: StreamConfig) -> tuple[EarlierNodes, ...]:
    """Return the nodes of a contract by the earlier versions of its path, the oldest first."""
    return tuple(
        EarlierNodes(
            end_us, said.list_nodes(version.pathway) if set(said.nodes) <= set(version.pathway.nodes) else None
        )
        for version, end_us in reversed(config.ends)
    )


def find_last_end_us(over_us: int, now_us: int) -> int:
    """Return the end of the last whole span, such as an hour or a day of UTC, that is over."""
    return now_us // over_us * over_us


def is_decided(answer: Json) -> bool:
    """Return whether waiting changes nothing: the contract is met, or will not be."""
    return str(answer["state"]) != CompletenessState.PENDING
