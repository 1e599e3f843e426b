"""Pathways as the store keeps them: those that its windows were tallied by, whatever is configured now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from hopwatch.monitor.pathway import CountingNode, Group, Pathway
from hopwatch.monitor.stream_config import StreamConfig


@dataclass(frozen=True, slots=True)
class StoredPathway:
    """Pathway of a stream and the number of shards that a window is split over: its tallies depend on both."""

    pathway: Pathway
    shards: int

    @classmethod
    def from_config(cls, config: StreamConfig) -> StoredPathway:
        """Return what the store keeps of a stream's configuration."""
        return cls(config.pathway, config.shards)

    @classmethod
    def from_json(cls, stored: list[Any]) -> StoredPathway:
        """Read ``[nodes, [[source, target, …], …], stamps, shards]``, where arrows name nodes by their places.

        Behind that, if any node only counts, ``[[name, before, behind, is_alone], …]`` of these.
        """
        nodes, arrows, stamps, shards, *counting = stored
        groups = tuple(Group(source, tuple(targets)) for source, *targets in arrows)
        counts = tuple(CountingNode(*node) for node in (counting[0] if counting else ()))
        return cls(Pathway(tuple(nodes), groups, tuple(stamps), counts), shards)

    def to_json(self) -> list[Any]:
        """Return what :meth:`from_json` reads."""
        arrows = [[group.source, *group.targets] for group in self.pathway.groups]
        counting = [list(astuple(node)) for node in self.pathway.counting]
        behind = [counting] if counting else []
        return [list(self.pathway.nodes), arrows, list(self.pathway.stamps), self.shards, *behind]


def encode_pathways(pathways: Mapping[str, StoredPathway]) -> str:
    """Return the text that the store keeps of the pathways of all streams."""
    return json.dumps({stream: stored.to_json() for stream, stored in pathways.items()}, sort_keys=True)


def decode_pathways(text: str | None) -> dict[str, StoredPathway]:
    """Return the pathways by stream; none of a store that no monitor has written to."""
    return {stream: StoredPathway.from_json(stored) for stream, stored in json.loads(text or "{}").items()}
