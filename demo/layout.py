"""Paths of a run's files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hopwatch.demo.configuration import find_transit_s, format_configuration
from hopwatch.demo.deliveries import DeliveryPlan
from hopwatch.demo.entrance.outlets import GateOutlets
from hopwatch.demo.stream import GATE, GATED_NODES, NODES, SERVICE_NODES
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.store import dialect, schema


class WorkdirError(ConfigurationError):
    """The demo cannot keep its files in the given folder."""


class StoreInUseError(ConfigurationError):
    """The given store is not empty."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths and addresses of one run; its files are all below one folder."""

    folder: Path
    observations_url: str = ""
    """URL that the probes write to; empty for a spool of the run's own."""
    named_store_url: str = ""
    """URL of the store for the results; empty for a file in the folder."""
    alertmanager_url: str = ""
    """Address of the Alertmanager that gets the alerts; empty for none."""
    gate: GateOutlets | None = None
    """Outlets of the gate, if the entrance is one."""
    deliveries: tuple[DeliveryPlan, ...] = ()
    """Deliveries at the end of the service; none where connector is the end."""
    down_s: float = 0.0
    """Time for which a receiver of the service is down."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the nodes of the stream, in the order in which a message passes them."""
        if self.deliveries:
            return SERVICE_NODES
        return GATED_NODES if self.gate else NODES

    @property
    def receivers(self) -> tuple[str, ...]:
        """Return the nodes whose logs are those of receivers."""
        return tuple(plan.name for plan in self.deliveries)

    @property
    def transit_s(self) -> int:
        """Return the transit of the stream."""
        return find_transit_s(self.deliveries, self.down_s)

    @property
    def config(self) -> Path:
        """Return the monitor's configuration."""
        return self.folder / "hopwatch.toml"

    @property
    def spool(self) -> Path:
        """Return the folder that the probes write into, and the monitor reads."""
        return self.folder / "spool"

    @property
    def sink_url(self) -> str:
        """Return where the probes write to."""
        return self.observations_url or f"spool:{self.spool}"

    @property
    def store_url(self) -> str:
        """Return the address of the monitor's results."""
        return self.named_store_url or f"sqlite:///{self.folder / 'hopwatch.db'}"

    @property
    def checkpoints(self) -> Path:
        """Return the folder in which the monitor keeps how far it has come."""
        return self.folder / "monitor"

    @property
    def logs(self) -> Path:
        """Return the folder of what the processes print."""
        return self.folder / "logs"

    @property
    def output(self) -> Path:
        """Return the folder that connector writes its flights to."""
        return self.folder / "flights"

    def log(self, process: str) -> Path:
        """Return the file that takes what ``process`` prints."""
        return self.logs / f"{process}.log"

    def truth_log(self, node: str) -> Path:
        """Return where ``node`` notes what it does to messages."""
        return self.folder / "truth" / f"{node}.truth"

    def untold_log(self, node: str) -> Path:
        """Return where ``node`` notes what the transport of its probe refused."""
        return self.folder / "truth" / f"{node}.untold"

    def truth_logs(self) -> dict[str, tuple[Path, Path]]:
        """Return the logs of each node; that of the gate is its sender's."""
        return {node: (self.truth_log(node), self.untold_log(node)) for node in self.nodes}

    @property
    def rejections(self) -> Path:
        """Return where the sender writes down which events it broke, and what the gate said of them."""
        return self.folder / "truth" / f"{GATE}.json"


def default_folder(now: datetime | None = None) -> Path:
    """Return a folder that no other run has: ``var/demo/`` and the time, below the current one."""
    return Path("var") / "demo" / (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H-%M-%SZ")


def check_store(url: str) -> None:
    """Check that the store at ``url`` is empty; none was named where that is empty.

    Raises:
        StoreInUseError: it holds something.
        StoreError: it cannot be reached.
    """
    if url and schema.has_store(url):
        name = dialect.redact_url(url)
        raise StoreInUseError(f"the store {name} is not empty: every run wants one of its own, name an empty database")


def create_layout(  # noqa: PLR0913 - the places of a run
    folder: Path,
    observations_url: str = "",
    store_url: str = "",
    alertmanager_url: str = "",
    gate: GateOutlets | None = None,
    *,
    deliveries: tuple[DeliveryPlan, ...] = (),
    down_s: float = 0.0,
) -> Layout:
    """Make the folders of a run and write the monitor's configuration; see ``Layout`` for the rest.

    Raises:
        WorkdirError: ``folder`` holds files already, or cannot be written.
    """
    layout = Layout(folder.absolute(), observations_url, store_url, alertmanager_url, gate, deliveries, down_s)
    try:
        layout.folder.mkdir(parents=True, exist_ok=True)
        if any(layout.folder.iterdir()):
            raise WorkdirError(f"{folder} is not empty: every run wants a folder of its own, name a new one")
        spool = () if layout.observations_url else (layout.spool,)
        for part in (*spool, layout.logs, layout.output, layout.folder / "truth"):
            part.mkdir()
        layout.config.touch(0o600)  # the URL of a store may hold a password
        told = format_configuration(
            layout.nodes,
            layout.observations_url,
            layout.named_store_url,
            layout.alertmanager_url,
            layout.gate,
            deliveries=layout.deliveries,
            down_s=layout.down_s,
        )
        layout.config.write_text(told, encoding="utf-8")
    except OSError as error:
        raise WorkdirError(f"the demo cannot write to {folder}: {error.strerror}; name another folder") from error
    return layout
