"""Options of a run of the demo."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hopwatch.demo.faults import Faults


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Options of a run of the service.

    ``message_count`` is 0 for messages at the rate of the run, else they are sent as fast as the gate takes them, and
    judged once at the end. ``kill_count`` processes are killed at random then.
    """

    fail_ratio: float = 0.05
    down_s: float = 60.0
    """Time for which one receiver is down; 0 if none ever is."""
    message_count: int = 0
    kill_count: int = 0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options from the command line; ``run_s`` is ``None`` for a run until Ctrl-C.

    ``brokers`` are those of Kafka, empty for sockets; ``store_url`` is empty for a file of the run's own; ``sink_url``
    is where the probes write to if another monitor is to watch, and empty for a monitor of the run's own, which
    notifies the Alertmanager at ``alertmanager_url``, if there is one. ``dashboard_port`` is ``None`` for no dashboard.
    """

    folder: Path
    faults: Faults = field(default_factory=Faults)
    rate_per_s: float = 2000.0
    run_s: float | None = None
    brokers: str = ""
    store_url: str = ""
    sink_url: str = ""
    alertmanager_url: str = ""
    dashboard_port: int | None = None
    has_gate: bool = False
    """True if the entrance is the gate."""
    own_broker_count: int = 0
    """Brokers that are started for the run; 0 where there are some, or none is needed."""
    service: ServiceOptions | None = None
    """Options of the service; none where the pipeline ends with connector."""

    @property
    def gate_folder(self) -> Path | None:
        """Return where a gate may spool; none without a gate."""
        return self.folder.absolute() if self.has_gate else None
