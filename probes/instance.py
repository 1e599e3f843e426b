"""A probe instance: one running probe, as it names itself on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProbeInstance:
    """Who sends: one running probe."""

    stream: str
    node: str
    probe: str
    epoch_us: int
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return what tells this instance from all others."""
        return f"{self.stream}.{self.node}.{self.probe}.{self.epoch_us}"
