"""Identity of a running probe on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProbeInstance:
    """One running probe: its stream, node, name and start (``epoch_us``, µs since 1970)."""

    stream: str
    node: str
    probe: str
    epoch_us: int
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the unique name of this instance."""
        return f"{self.stream}.{self.node}.{self.probe}.{self.epoch_us}"
