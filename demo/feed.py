"""The pipeline alone, for a monitor that runs elsewhere: its probes write where that one reads."""

from __future__ import annotations

from typing import Final

from rich.console import Console

from hopwatch.demo.interrupts import Interrupts
from hopwatch.demo.layout import create_layout
from hopwatch.demo.links.run_links import build_links, check_observations
from hopwatch.demo.measurements import Json, Measurements
from hopwatch.demo.options import RunOptions
from hopwatch.demo.pipeline import Pipeline
from hopwatch.demo.records import find_archive
from hopwatch.demo.run import DemoRun, open_links
from hopwatch.demo.screen import Screen

MAX_SIGNALS: Final = 3
"""Number of signals that end the run although messages are on their way; SIGTERM alone counts as two."""


class RemoteMonitor:
    """A monitor and its results, as far as they are seen from here: not at all."""

    def check(self) -> None:
        """Nothing is known of it."""

    def stop(self) -> None:
        """It is not ours to end."""

    def report(self) -> Json | None:
        """Return none."""
        return None

    def measured(self) -> Measurements | None:
        """Return none."""
        return None


def run_feed(wishes: RunOptions, console: Console) -> int:
    """Run the pipeline until its time is over or a signal comes, and let it drain; return 0 if it did.

    Raises:
        RecordsMissingError: there are no flights to move.
        TransportError: no broker answers, or the topic of the observations will not do.
        WorkdirError: the folder is not empty or cannot be written.
        NodeDiedError: a node ended by itself.
    """
    find_archive()
    links = build_links(wishes.brokers, is_watched_here=False, gate_folder=wishes.gate_folder)
    links.check()
    check_observations(wishes.sink_url)
    layout = create_layout(wishes.folder, wishes.sink_url, gate=links.gate)
    with Interrupts() as interrupts, Screen(console) as screen:
        screen.print_line(f"files of this run: {layout.folder}")
        screen.print_line(f"the probes write to {wishes.sink_url}, for a monitor that runs elsewhere")
        with open_links(links, screen), Pipeline(layout, links, wishes.faults, wishes.rate_per_s) as pipeline:
            demo = DemoRun(wishes, layout, pipeline, RemoteMonitor(), RemoteMonitor(), screen, interrupts)
            demo.produce()
            return int(not demo.drain(MAX_SIGNALS))
