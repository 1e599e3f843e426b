"""Settings of the processes of the service: one JSON object each, the only argument."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from hopwatch.demo.faults import NodeFaults
from hopwatch.demo.links.ends import TransactionalEnds


@dataclass(frozen=True, slots=True)
class TransactionalSettings:
    """One node between two topics."""

    node: str
    folder: str
    """The folder of the run, laid out as ``demo.layout.Layout`` says."""
    ends: TransactionalEnds
    """Its links."""
    sink: str
    """URL that its probe sends to."""
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
    def from_json(cls, text: str) -> TransactionalSettings:
        """Return the settings that ``to_json`` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "ends": TransactionalEnds(**fields["ends"]), "faults": NodeFaults(**fields["faults"])})


@dataclass(frozen=True, slots=True)
class ReceiverSettings:
    """One receiver; ``down_after_s`` counts from its first request."""

    name: str
    log: str
    """The file that takes what became of each message."""
    port: int
    seed: int
    fail_ratio: float
    """Share of the requests that fail."""
    down_after_s: float = 0.0
    down_s: float = 0.0
    """Time for which it is down, once; 0 if it never is."""

    def to_json(self) -> str:
        """Return the settings as the argument of a process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ReceiverSettings:
        """Return the settings that ``to_json`` wrote."""
        return cls(**json.loads(text))
