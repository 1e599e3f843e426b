"""A place where the monitor has worked: a configuration, a spool, and a store that was made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hopwatch.cli.main import main
from hopwatch.monitor import settings
from hopwatch.monitor.store import dialect, schema
from hopwatch.probes.contract.batch import Batch, BatchKind
from tests.support.micro_batches import run_once
from tests.support.spool import at_us, make_batch, observation_batch, write_segment

CONFIGURATION: Final = """
[transport]
url = "spool:./spool"
[store]
url = "sqlite:///./store.db"
[monitor]
workdir = "./work"
[streams.orders]
path = "a -> b"
"""
CONTRACTS: Final = """
[completeness.strict]
stream = "orders"
over = "1m"
[completeness.loose]
stream = "orders"
over = "1m"
lost_below = 0.5
"""
"""Contracts of a minute: one that allows no loss, and one that allows a half."""


@dataclass(frozen=True)
class Workspace:
    """A folder with a configuration in it."""

    folder: Path

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.folder / "hopwatch.toml"

    @property
    def store_url(self) -> str:
        """The URL of the store that the default configuration names."""
        return f"sqlite:///{self.folder}/store.db"

    def configure(self, text: str = CONFIGURATION) -> Workspace:
        """Write the configuration."""
        self.config.write_text(text)
        return self

    def watch(self, *records: Batch | bytes, arrival_us: int = at_us(400), more: Sequence[Path] = ()) -> Workspace:
        """Let records arrive in the spool, and make every window of them final, as ``run --once`` does."""
        path = write_segment(self.folder / "spool" / "0" / "0000000000.seg", *records, arrival_us=arrival_us)
        chosen = settings.load(self.config, flags={}, environ={})
        engine = dialect.create_engine(chosen.store.url)
        schema.prepare_store(engine)
        run_once(engine, chosen.stream_configs(), [path, *more])
        engine.dispose()
        return self

    def run(self, command: str, *arguments: str) -> int:
        """Run a command with this configuration, and return its exit code."""
        return main([command, "--config", str(self.config), *arguments])


def closing_batches(seq: int, nodes: Sequence[str] = ("a", "b")) -> list[Batch]:
    """Return the last words of the probes, so that their accounts are complete."""
    return [make_batch(BatchKind.BYE, node, seq=seq, complete_through_us=at_us(400)) for node in nodes]


def one_of_ten_lost() -> list[Batch]:
    """Return what two probes say of ten messages, of which the last is lost between them."""
    return [observation_batch(range(10)), observation_batch(range(9), "b"), *closing_batches(seq=1)]
