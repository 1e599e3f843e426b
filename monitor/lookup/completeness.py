"""Completeness of a contract of the configuration, asked of the store: for the API and for ``hopwatch ready``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Engine

from hopwatch.monitor.accounting.completeness_answer import Json, answer_to_json
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.kernel.completeness import CompletenessState
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import reader, schema
from hopwatch.monitor.store.completeness import read_completeness
from hopwatch.probes.contract.limits import WINDOW_US

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings


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
    said = settings.require_contract(name)
    check_until(until_us, now_us)
    rules = settings.streams[said.stream].rules
    with schema.open_snapshot(engine) as connection:
        # What is before a node is a matter of the path that the windows were judged by.
        stored = reader.read_stored_pathways(connection).get(said.stream)
        pathway = rules.pathway if stored is None else stored.pathway
        if unknown := [node for node in said.nodes if node not in pathway.nodes]:
            told = f"completeness.{name}.nodes: the path that the store of {said.stream} was made by has no node"
            raise ConfigurationError(f"{told} {', '.join(unknown)}; it has {', '.join(pathway.nodes)}")
        contract = said.build_contract(pathway)
        answer = read_completeness(connection, contract, rules.terms, until_us)
    return answer_to_json(name, contract, said.nodes, answer)


def is_decided(answer: Json) -> bool:
    """Return whether waiting changes nothing: the contract is met, or will not be."""
    return str(answer["state"]) != CompletenessState.PENDING
