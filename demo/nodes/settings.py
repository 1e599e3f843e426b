"""Settings of a node's process: one JSON object, its only argument."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from hopwatch.demo.faults import NodeFaults
from hopwatch.demo.links.ends import Ends, parse_ends


class StepSettings(Protocol):
    """Settings of whatever process has one step of a service."""

    @property
    def node(self) -> str:
        """Return the node."""

    @property
    def path(self) -> Path:
        """Return the folder of the run."""

    @property
    def sink(self) -> str:
        """Return the URL that its probe sends to."""

    @property
    def seed(self) -> int:
        """Return the seed of the faults."""

    @property
    def faults(self) -> NodeFaults:
        """Return what is to go wrong here."""


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """One node of the pipeline."""

    node: str
    folder: str
    """The folder of the run, laid out as ``demo.layout.Layout`` says."""
    ends: Ends
    """Its links."""
    sink: str
    """URL that its probe sends to."""
    rate_per_s: float
    seed: int
    faults: NodeFaults

    @property
    def path(self) -> Path:
        """Return ``folder`` as a path."""
        return Path(self.folder)

    def to_json(self) -> str:
        """Return the settings as the argument of a process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> NodeSettings:
        """Return the settings that ``to_json`` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "ends": parse_ends(fields["ends"]), "faults": NodeFaults(**fields["faults"])})
