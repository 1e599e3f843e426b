"""``[completeness.NAME]``: contracts, by which a consumer asks whether a span of a stream is complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import AfterValidator, Field
from pydantic_core import InitErrorDetails

from hopwatch.monitor.kernel.completeness import HOUR_US, CompletenessContract, EarlierNodes
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.settings import error_details
from hopwatch.monitor.settings.fields import Names, PositiveDuration, Ratio, name_validator
from hopwatch.monitor.settings.table import SettingsTable
from hopwatch.probes.contract.limits import WINDOW_US

MAX_OVER_US: Final = 7 * 24 * HOUR_US
"""Longest span of a contract: an answer reads each of its minutes."""


def _check_span(span_us: int) -> int:
    if span_us % WINDOW_US or span_us > MAX_OVER_US:
        msg = f'a contract is over whole minutes, such as "1h" or "1d", of 7d at most; got {span_us // 1_000:,} ms'
        raise ValueError(msg)
    return span_us


class CompletenessSettings(SettingsTable):
    """``[completeness.NAME]``: the stream of a contract, up to which nodes, over which span, and its bounds."""

    stream: str
    nodes: Names = ()
    over_us: Annotated[PositiveDuration, AfterValidator(_check_span)] = Field(HOUR_US, alias="over")
    lost_below: Ratio = 0.0
    upper_below: Ratio | None = None
    unknown: Literal["block", "ignore"] = "block"
    deferred: Literal["block", "lost"] = "block"
    webhook: str = ""
    webhook_format: Literal["hopwatch", "openlineage"] = "hopwatch"

    def list_nodes(self, pathway: Pathway) -> tuple[str, ...]:
        """Return the nodes with all before them in a path, as what is lost there never comes to them."""
        if not self.nodes:
            return ()
        own = [pathway.nodes.index(node) for node in self.nodes]
        reach = pathway.downstream | np.eye(len(pathway.nodes), dtype=bool)
        return tuple(pathway.nodes[place] for place in np.flatnonzero(reach[:, own].any(axis=1)).tolist())

    def build_contract(self, pathway: Pathway, earlier: tuple[EarlierNodes, ...] = ()) -> CompletenessContract:
        """Return the contract over a path, and over earlier versions of it."""
        return CompletenessContract(
            self.stream,
            self.list_nodes(pathway),
            self.over_us,
            self.lost_below,
            self.upper_below,
            blocks_unknown=self.unknown == "block",
            blocks_deferred=self.deferred == "block",
            earlier=earlier,
        )


ContractName = Annotated[str, AfterValidator(name_validator("a contract"))]


def check_contracts(
    contracts: Mapping[str, CompletenessSettings],
    nodes: Mapping[str, Sequence[str] | None],
    kinds: Mapping[str, object],
) -> list[InitErrorDetails]:
    """Check the streams, nodes and webhooks of contracts.

    The nodes of a stream are None where its path is wrong; ``kinds`` are those of the notification channels.
    """
    found: list[InitErrorDetails] = []
    for name, contract in contracts.items():
        if contract.stream not in nodes:
            nearest = error_details.suggest_names(contract.stream, list(nodes))
            told = f"there is no [streams.{contract.stream}]{nearest}"
            found.append(error_details.error_at((name, "stream"), contract.stream, told))
        elif (known := nodes[contract.stream]) is not None:
            found += error_details.find_unknown_names(
                (name, "nodes"), contract.nodes, known, f"node in the path of {contract.stream}"
            )
        if contract.webhook and kinds.get(contract.webhook) != "webhook":
            nearest = error_details.suggest_names(contract.webhook, [one for one in kinds if kinds[one] == "webhook"])
            told = f'there is no [alerts.channels.{contract.webhook:.80}] with kind = "webhook"{nearest}'
            found.append(error_details.error_at((name, "webhook"), contract.webhook, told))
    return found
