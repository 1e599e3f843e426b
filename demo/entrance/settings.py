"""Settings of the sender's process: one JSON object, its only argument."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from hopwatch.demo.faults import NodeFaults


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """Settings of the process that sends events to the gate."""

    folder: str
    """The folder of the run, laid out as ``demo.layout.Layout`` says."""
    port: int
    """Port of the gate on this machine."""
    rate_per_s: float
    seed: int
    faults: NodeFaults
    """Those of the gate: its rejects are the events that are broken."""
    count: int = 0
    """Messages in all, sent as fast as the gate takes them; 0 for messages at the rate until a stop is requested."""
    patience_s: float = 30.0
    """Time after which the sender gives up a gate that answers for nothing."""

    @property
    def path(self) -> Path:
        """Return ``folder`` as a path."""
        return Path(self.folder)

    def to_json(self) -> str:
        """Return the settings as the argument of a process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SenderSettings:
        """Return the settings that ``to_json`` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "faults": NodeFaults(**fields["faults"])})
