"""A run of the service: brokers, topics, processes, and at the end the account against Hopwatch's report."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Final

from rich.console import Console

from hopwatch.demo.broker_cluster import BrokerCluster
from hopwatch.demo.comparison_line import ComparisonLine
from hopwatch.demo.dashboard_process import Dashboard
from hopwatch.demo.entrance import rejections
from hopwatch.demo.faults import Faults, Kill
from hopwatch.demo.interrupts import Interrupts
from hopwatch.demo.layout import Layout, check_store, create_layout
from hopwatch.demo.measurements import Measurements
from hopwatch.demo.monitor_process import MonitorDiedError, MonitorProcess, StoredResults
from hopwatch.demo.options import RunOptions, ServiceOptions
from hopwatch.demo.ports import hold_port
from hopwatch.demo.processes import PACKAGES, read_last_line
from hopwatch.demo.records import find_archive
from hopwatch.demo.run import DemoRun, MonitorLike, plan_brokers, run_brokers, write_comparison
from hopwatch.demo.screen import Screen
from hopwatch.demo.service.account import ServiceAccount, build_account, read_receiver, read_reported
from hopwatch.demo.service.comparison import compare_account
from hopwatch.demo.service.kills import KILLABLE, NODES_OF, draw_kills, name_brokers
from hopwatch.demo.service.pipeline import ServicePipeline
from hopwatch.demo.service.topics import ServiceTopics, read_topic_ids
from hopwatch.demo.stream import RECEIVERS, STREAM
from hopwatch.demo.truth import Truth

UNDER_WAY_PER_KILL: Final = len(RECEIVERS) * 16 * 100
"""Messages under way in one process of the deliveries: the parallel requests of each, every one with a full batch."""


class LateMonitor:
    """Monitor that reads all that the probes wrote once, at the end, and takes no processor from the run before."""

    def __init__(self, layout: Layout) -> None:
        """Take the files of the run."""
        self._layout = layout

    def check(self) -> None:
        """Do nothing: it does not run yet."""

    def stop(self) -> None:
        """Judge the whole run.

        Raises:
            MonitorDiedError: it could not.
        """
        layout, log = self._layout, self._layout.log("monitor")
        asked = ["--once", "--config", str(layout.config), "--workdir", str(layout.checkpoints)]
        with log.open("ab") as said:
            done = subprocess.run(  # noqa: S603 - our own program, our own arguments
                [sys.executable, "-m", "hopwatch", "run", *asked],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=PACKAGES,
                check=False,
            )
        if done.returncode:
            words = read_last_line(log)
            text = f"the monitor ended with exit code {done.returncode}; {words} ({log})"
            raise MonitorDiedError(text, done.returncode)


def run_service(wishes: RunOptions, console: Console) -> int:
    """Run the service; return 0 if the account, and what Hopwatch measured, agree, 1 if not or not compared.

    Raises:
        RecordsMissingError: there are no flights to move.
        ServerError: a broker does not start, or its jars are missing.
        TransportError: no broker answers.
        StoreInUseError: the store that was named is not empty.
        StoreError: it cannot be reached.
        WorkdirError: the folder is not empty or cannot be written.
        NodeDiedError: a process ended by itself.
        MonitorDiedError: the monitor did.
    """
    find_archive()
    check_store(wishes.store_url)
    asked = wishes.service or ServiceOptions()
    with ExitStack() as stack:
        cluster = plan_brokers(wishes)
        brokers, replication = (cluster.bootstrap, cluster.size) if cluster else (wishes.brokers, 1)
        topics = ServiceTopics(brokers, replication=replication)
        if cluster is None:
            topics.check()
        ports = [_hold_port(stack) for _ in RECEIVERS]
        layout = create_layout(
            wishes.folder,
            store_url=wishes.store_url,
            alertmanager_url=wishes.alertmanager_url,
            gate=topics.gate,
            deliveries=topics.plan_deliveries(ports),
            down_s=asked.down_s,
        )
        interrupts = stack.enter_context(Interrupts())
        screen = stack.enter_context(Screen(console, nodes=layout.nodes))
        screen.print_line(f"files of this run: {layout.folder}")
        stack.enter_context(run_brokers(cluster, screen))
        stack.enter_context(_open_topics(topics, screen, are_deleted=cluster is None))
        return _run_processes(wishes, layout, topics, cluster, interrupts, screen)


def _run_processes(  # noqa: PLR0913, PLR0917 - the parts of a run
    wishes: RunOptions,
    layout: Layout,
    topics: ServiceTopics,
    cluster: BrokerCluster | None,
    interrupts: Interrupts,
    screen: Screen,
) -> int:
    asked = wishes.service or ServiceOptions()
    is_counted = bool(asked.message_count)
    killable = (*KILLABLE, *(name_brokers(cluster.size) if cluster and cluster.size > 1 else ()))
    kills = draw_kills(wishes.faults.seed, asked.kill_count, killable)
    with ExitStack() as stack:
        pipeline = stack.enter_context(ServicePipeline(layout, topics, wishes, cluster=cluster, random_kills=kills))
        monitor: MonitorLike = LateMonitor(layout) if is_counted else stack.enter_context(MonitorProcess(layout))
        dashboard = stack.enter_context(Dashboard(layout, None if is_counted else wishes.dashboard_port))
        results = StoredResults(layout.store_url, layout.nodes)
        demo = DemoRun(
            wishes,
            layout,
            pipeline,
            monitor,
            results,
            screen,
            interrupts,
            dashboard.news,
            describe_progress=lambda: describe_progress(pipeline, asked),
        )
        demo.produce()
        is_drained = demo.drain()
        truth = Truth(layout.truth_logs(), layout.receivers) if is_drained else None
        account = None if truth is None else read_account(layout, truth)
        finished = truth is not None and (is_counted or demo.await_final(truth.last_window_us))
        screen.print_line("judging what the probes wrote" if is_counted else "stopping the monitor")
        if not is_counted or is_drained:
            monitor.stop()
        faults = add_interruptions(wishes.faults, pipeline.interrupted)
    reported = read_reported([layout.log("deliver"), layout.log("retrier")], STREAM).get("deferred", 0)

    def compare_more(measured: Measurements) -> Iterable[ComparisonLine]:
        if account is None:
            return ()
        under_way = UNDER_WAY_PER_KILL * pipeline.delivery_kill_count
        return compare_account(account, measured, faults, reported, under_way)

    return write_comparison(
        replace(wishes, faults=faults, brokers=topics.brokers),
        truth if finished else None,
        results,
        screen,
        rejected=rejections.read_rejections(layout.rejections),
        more=compare_more,
    )


def describe_progress(pipeline: ServicePipeline, asked: ServiceOptions) -> str:
    """Return the state of the service in words."""
    of_all = f" of {asked.message_count:,}" if asked.message_count else ""
    kills = f", {pipeline.kill_count} kills" if pipeline.kill_count else ""
    entered = f"{pipeline.acknowledged_count:,}{of_all} answered by the gate"
    return f"service: {entered}, {pipeline.settled_count:,} taken or refused by receivers{kills}"


def read_account(layout: Layout, truth: Truth) -> ServiceAccount:
    """Read the account of a run that has ended from the logs, and from the topics of the deliveries.

    Raises:
        TransportError: a topic cannot be read.
    """
    receivers = []
    for plan in layout.deliveries:
        deferrals = sum(len(read_topic_ids(url)) for url in plan.retry_urls)
        receivers.append(read_receiver(plan.name, truth, read_topic_ids(plan.rejected_url), deferrals))
    return build_account(truth, receivers)


def add_interruptions(faults: Faults, interrupted: Iterable[str]) -> Faults:
    """Return the faults with the nodes of killed processes as killed; a killed broker takes no stamp with it."""
    nodes = sorted({node for process in interrupted for node in NODES_OF[process]})
    return replace(faults, kills=tuple(Kill(node, 0.0) for node in nodes))


def _hold_port(stack: ExitStack) -> int:
    port, held = hold_port(0)
    stack.enter_context(held)
    return port


@contextmanager
def _open_topics(topics: ServiceTopics, screen: Screen, *, are_deleted: bool) -> Iterator[None]:
    """Make the topics; those of brokers that go with the run need not be deleted."""
    topics.create()
    try:
        if are_deleted:
            screen.print_line(topics.words)
        yield
    finally:
        if are_deleted:
            topics.delete()
        if topics.left_behind:
            screen.print_line(topics.left_behind)
