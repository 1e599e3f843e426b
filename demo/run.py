"""The demo from beginning to end: run the pipeline, drain it, wait for the last window, hold measure against truth."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Protocol

from rich.console import Console

from hopwatch.demo.broker_cluster import BrokerCluster
from hopwatch.demo.comparison import compare
from hopwatch.demo.comparison_line import ComparisonLine
from hopwatch.demo.configuration import SETTLE_S
from hopwatch.demo.dashboard_process import Dashboard
from hopwatch.demo.deploys import DeployMarkers
from hopwatch.demo.entrance import rejections
from hopwatch.demo.entrance.rejections import Rejection
from hopwatch.demo.faults import Faults
from hopwatch.demo.interrupts import Interrupts
from hopwatch.demo.layout import Layout, check_store, create_layout
from hopwatch.demo.links.run_links import Links, build_links
from hopwatch.demo.measurements import Json, Measurements, is_final, parse_start_us, select_windows
from hopwatch.demo.monitor_process import MonitorProcess, StoredResults
from hopwatch.demo.options import RunOptions
from hopwatch.demo.pipeline import Pipeline
from hopwatch.demo.progress import Progress
from hopwatch.demo.records import find_archive
from hopwatch.demo.screen import Screen
from hopwatch.demo.truth import WINDOW_US, Truth, count_entries

TICK_S: Final = 0.25
STATUS_EVERY_S: Final = 1.0
REPORT_EVERY_S: Final = 2.0
BROKERS_FOLDER: Final = "brokers"
MAX_BROKERS: Final = 3
OVERDUE_S: Final = 120.0
"""A last window that is so late to become final never will: the demo stops waiting for it."""


class PipelineLike(Protocol):
    """The pipeline as the demo sees it."""

    @property
    def has_finished(self) -> bool:
        """Return whether there will be no more messages."""

    def watch(self) -> list[str]:
        """Do what is due and say so."""

    def drain(self) -> str | None:
        """Let the first node that runs drain; return it, or ``None`` at the end."""


class MonitorLike(Protocol):
    """The monitor as the demo sees it."""

    def check(self) -> None:
        """Raise if it has ended."""

    def stop(self) -> None:
        """End it."""


class ResultsLike(Protocol):
    """The store as the demo sees it."""

    def report(self) -> Json | None:
        """Return what is there."""

    def measured(self) -> Measurements | None:
        """Return what is to be compared."""


@dataclass(slots=True)
class DemoRun:
    """One run, with everything that it looks at and acts on."""

    wishes: RunOptions
    layout: Layout
    pipeline: PipelineLike
    monitor: MonitorLike
    results: ResultsLike
    screen: Screen
    interrupts: Interrupts
    news: Callable[[], Iterable[str]] = tuple
    """News of the processes beside the pipeline, one line each."""
    describe_progress: Callable[[], str] | None = None
    """Return the state of the pipeline in words; by default how fast messages pass its last node."""
    now_s: Callable[[], float] = time.monotonic
    wall_s: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    _windows: list[Json] = field(default_factory=list)
    _status: str = ""
    _due_s: dict[str, float] = field(default_factory=dict)

    def produce(self) -> None:
        """Let the pipeline run until its time, which the first message begins, is over, it has finished, or Ctrl-C."""
        describe = self.describe_progress or Progress(self.layout, self.now_s).status
        self._due_s["status"] = self.now_s() + STATUS_EVERY_S
        end_s: float | None = None
        while not (
            self.interrupts.count or self.pipeline.has_finished or (end_s is not None and self.now_s() >= end_s)
        ):
            if end_s is None and self.wishes.run_s is not None and self._has_messages():
                end_s = self.now_s() + self.wishes.run_s
            for words in self.pipeline.watch():
                self.screen.print_line(words)
            if self._is_due("status", STATUS_EVERY_S):
                self._status = describe()
            self._tick(self._status)

    def drain(self, signals: int = 2) -> bool:
        """End the nodes one after the other, unless so many signals come; whether all have handed on what they had."""
        while (node := self.pipeline.drain()) is not None:
            if self.interrupts.count >= signals:
                return False
            self._tick(f"draining: {node}")
        return True

    def await_final(self, last_start_us: int | None) -> bool:
        """Wait until every window up to the last is final; return whether that is so, and not skipped or overdue."""
        if last_start_us is None:
            return True
        due_s = last_start_us / 1e6 + WINDOW_US / 1e6 + self.layout.transit_s + SETTLE_S
        while not self._all_final(last_start_us):
            left_s = due_s - self.wall_s()
            if self.interrupts.count > 1 or left_s < -OVERDUE_S:
                return False
            window = datetime.fromtimestamp(last_start_us / 1e6, UTC).strftime("%H:%M")
            when = f"is due in {left_s:.0f} s" if left_s > 0 else "is due"
            self._tick(f"waiting: the last window, {window}, {when} (Ctrl-C skips this, and the comparison)")
        return True

    def _all_final(self, last_start_us: int) -> bool:
        with_messages = [window for window in self._windows if parse_start_us(window) <= last_start_us]
        has_last = bool(with_messages) and parse_start_us(with_messages[-1]) == last_start_us
        return has_last and all(is_final(window) for window in with_messages)

    def _has_messages(self) -> bool:
        return count_entries(self.layout.truth_log(self.layout.nodes[0])) > 0

    def _tick(self, status: str) -> None:
        self.monitor.check()
        for words in self.news():
            self.screen.print_line(words)
        if self._is_due("report", REPORT_EVERY_S) and (report := self.results.report()) is not None:
            self._windows = select_windows(report)
        self.screen.show(status, self._windows)
        self.sleep(TICK_S)

    def _is_due(self, what: str, every_s: float) -> bool:
        if self.now_s() < self._due_s.get(what, 0.0):
            return False
        self._due_s[what] = self.now_s() + every_s
        return True


def run_demo(wishes: RunOptions, console: Console) -> int:
    """Run the demo; return 0 if measured is what was injected, 1 if it differs or could not be compared.

    Raises:
        RecordsMissingError: there are no flights to move.
        ServerError: a broker of the run's own does not start, or its jars are missing.
        TransportError: no broker answers.
        StoreInUseError: the store that was named is not empty.
        StoreError: it cannot be reached.
        WorkdirError: the folder is not empty or cannot be written.
        NodeDiedError: a node ended by itself.
        MonitorDiedError: the monitor did.
    """
    find_archive()
    cluster = plan_brokers(wishes)
    wishes = replace(wishes, brokers=cluster.bootstrap) if cluster else wishes
    links = build_links(wishes.brokers, gate_folder=wishes.gate_folder)
    if cluster is None:
        links.check()
    check_store(wishes.store_url)
    layout = create_layout(wishes.folder, links.observations_url, wishes.store_url, wishes.alertmanager_url, links.gate)
    results = StoredResults(layout.store_url, layout.nodes)
    with Interrupts() as interrupts, Screen(console, nodes=layout.nodes) as screen:
        screen.print_line(f"files of this run: {layout.folder}")
        screen.print_line(f"what the monitor says: {layout.log('monitor')}")
        with (
            run_brokers(cluster, screen),
            open_links(links, screen),
            Pipeline(layout, links, wishes.faults, wishes.rate_per_s) as pipeline,
            MonitorProcess(layout) as monitor,
            Dashboard(layout, wishes.dashboard_port) as dashboard,
        ):
            first_log = layout.truth_log(layout.nodes[0])
            # It says of each message that it was created, and that it was handed on.
            markers = DeployMarkers(wishes.faults, results.engine, lambda: count_entries(first_log) // 2)

            def tell_news() -> Iterator[str]:
                yield from dashboard.news()
                yield from markers.mark_due()

            demo = DemoRun(wishes, layout, pipeline, monitor, results, screen, interrupts, tell_news)
            demo.produce()
            truth = Truth(layout.truth_logs()) if demo.drain() else None
            finished = truth is not None and demo.await_final(truth.last_window_us)
            screen.print_line("stopping the monitor")
            monitor.stop()
    code = write_comparison(
        wishes, truth if finished else None, results, screen, rejected=rejections.read_rejections(layout.rejections)
    )
    if wishes.dashboard_port is not None:
        screen.print_line(dashboard.later)
    return code


def plan_brokers(wishes: RunOptions) -> BrokerCluster | None:
    """Return the brokers that a run is to start, none if it has some or needs none; they do not run yet.

    Raises:
        ServerError: their jars are missing.
    """
    if not wishes.own_broker_count:
        return None
    folder, count = wishes.folder.absolute() / BROKERS_FOLDER, wishes.own_broker_count
    return BrokerCluster(folder, count, {"min.insync.replicas": "2"} if count == MAX_BROKERS else None)


@contextmanager
def run_brokers(cluster: BrokerCluster | None, screen: Screen) -> Iterator[None]:
    """Run the brokers of a run, if there are any; what they kept goes with them.

    Raises:
        ServerError: a broker does not start.
    """
    if cluster is None:
        yield
        return
    screen.print_line(f"starting {cluster.size} Kafka broker{'s' if cluster.size > 1 else ''}: {cluster.bootstrap}")
    try:
        cluster.start()
        yield
    finally:
        cluster.stop()


@contextmanager
def open_links(links: Links, screen: Screen) -> Iterator[None]:
    """Lay the links, and say what of them is to be known."""
    try:
        with links:
            if links.words:
                screen.print_line(links.words)
            yield
    finally:
        if links.left_behind:
            screen.print_line(links.left_behind)


def write_comparison(  # noqa: PLR0913 - what is compared, and what shows it
    wishes: RunOptions,
    truth: Truth | None,
    results: ResultsLike,
    screen: Screen,
    *,
    rejected: Sequence[Rejection] = (),
    more: Callable[[Measurements], Iterable[ComparisonLine]] = lambda _: (),
) -> int:
    """Write the final table and the comparison; only the table where ``truth`` is ``None``: not all is final then.

    The lines of ``more`` come first.
    """
    measured = results.measured()
    if measured is None or truth is None:
        screen.conclude(measured.windows if measured else [], [])
        screen.print_line("not compared: not every window is final")
        return 1
    compared = compare(wishes.faults, truth, measured, is_reliable=bool(wishes.brokers), rejections=rejected)
    lines = [*more(measured), *compared]
    screen.conclude(measured.windows, lines)
    for words in rejections.describe_rejections(rejected):
        screen.print_line(words)
    differing = [line for line in lines if not line.holds]
    if differing:
        screen.print_line(f"injected and measured differ in {len(differing)} of {len(lines)} lines")
        return 1
    screen.print_line(_describe_agreement(wishes.faults))
    return 0


def _describe_agreement(faults: Faults) -> str:
    if not faults.blurred:
        return "injected = measured"
    nodes = ", ".join(sorted(faults.blurred))
    return f"injected = measured, as far as the probes could tell; of {nodes} nothing is claimed beyond the truth"
