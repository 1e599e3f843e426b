"""``hopwatch run``: run the monitor, as a stream, or once over all records."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from uuid import uuid4

import stamina
import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hopwatch.cli import console, metrics_server, signals
from hopwatch.cli.checks import alerts as reach
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_streams
from hopwatch.cli.reload import ConfigReload
from hopwatch.monitor import java, rejudgement
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError, HopwatchError, StoreError
from hopwatch.monitor.garbage_collection import collect_rarely
from hopwatch.monitor.results import CommittedBatch, WindowResult, format_iso
from hopwatch.monitor.selftest.stream import SELFTEST_STREAM
from hopwatch.monitor.store import dialect, fencing, reader, schema
from hopwatch.monitor.texts import loss_bounds
from hopwatch.monitor.texts.moments import parse_range_us
from hopwatch.probes.contract.limits import WINDOW_US

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console
    from stamina.instrumentation import RetryDetails

    from hopwatch.alerts.channels.routing import Routing
    from hopwatch.api.publisher_thread import Publisher
    from hopwatch.api.results_topic.publisher import ResultsPublisher
    from hopwatch.monitor.settings import Settings
    from hopwatch.monitor.spark.job import JobContext

POLL_S: Final = 0.5
"""Interval between checks of the running stream."""
RETRIES_PER_MESSAGE: Final = 12
"""Failed attempts per message on the console: about one message per minute."""


def command(  # noqa: PLR0913 - one a flag
    config: Config = DEFAULT_CONFIG,
    *,
    once: Annotated[bool, typer.Option("--once", help="Read all that is there, make it final, and stop.")] = False,
    from_time: Annotated[
        str | None, typer.Option("--from", help="With --once: judge windows from this minute on again, ISO 8601.")
    ] = None,
    to_time: Annotated[str | None, typer.Option("--to", help="Windows that start before this minute.")] = None,
    workdir: Annotated[Path | None, typer.Option("--workdir", help="Folder for checkpoint, log and scratch.")] = None,
    master: Annotated[str | None, typer.Option("--master", help="Spark's master; local by default.")] = None,
    begin_anew: Annotated[
        bool, typer.Option("--begin-anew", help="Drop results and checkpoint; read all that the transport still has.")
    ] = False,
) -> None:
    """Run the monitor: read the records of the probes, and write loss and lag to the store."""
    if once and begin_anew:
        raise ConfigurationError("--once keeps no checkpoint and empties its own store: leave --begin-anew out")
    span = _parse_span(from_time, to_time, is_once=once)
    flags = {"monitor": {"workdir": None if workdir is None else str(workdir), "master": master}}
    chosen = load_streams(config, flags=flags)
    java.require_java()
    from hopwatch.alerts.channels import routing
    from hopwatch.cli import results_builder
    from hopwatch.monitor.spark import cluster, job
    from hopwatch.monitor.spark.sources import record_source

    read = record_source.build_source(chosen)
    transport = read.check(is_watched=not once)
    with dialect.translate_errors(chosen.store.url), dialect.lock_store(chosen.store.url) as hold:
        engine = dialect.create_engine(chosen.store.url)
        schema.prepare_store(engine)
        hold.renew()
        # A --once run sends no notifications.
        people = routing.Routing() if once else routing.open_routing(chosen)
        place = job.JobContext(
            read,
            engine,
            chosen.stream_configs(),
            chosen.monitor.workdir,
            hold,
            chosen.store.retry_for_us / 1e6,
            chosen.store.digests_for_us,
            transport,
            run=uuid4().hex,
        )
        cluster.check_master(chosen.monitor.master)
        if once:
            with engine.begin() as connection:
                if span is None:
                    fencing.check_once(connection)
                else:
                    place = replace(place, rules=fencing.read_span_rules(connection, place.rules))
                    rejudgement.require_span(connection, place.rules, span)
            with results_builder.open_publisher(chosen, hold, fencing.ONCE) as publisher:
                if publisher is not None:
                    publisher.check()
                _run_once(place, chosen, span)
                _publish_all(publisher)
        else:
            if begin_anew:
                _begin_anew(place)
            place = _claim_store(place, chosen, people)
            stop = threading.Event()
            # Spark replaces the handler of Ctrl-C when it starts; until then Ctrl-C ends the process at once.
            signals.set_on_signal(signal.SIGTERM, stop)
            with (
                results_builder.open_publisher(chosen, hold, place.run) as publisher,
                results_builder.open_exporter(chosen, hold, place.run) as exporter,
                results_builder.open_notifier(chosen, hold, place.run) as notifier,
                metrics_server.serve_metrics(place, chosen) as observed,
            ):
                publishers = (publisher, "results"), (exporter, "metrics"), (notifier, "answers to contracts")
                _run_stream(observed, ConfigReload(config, flags, chosen), people, stop, publishers)


def _claim_store(place: JobContext, chosen: Settings, people: Routing) -> JobContext:
    """Claim the store, and return the place with the versions of its streams and the rules of their alerts."""
    from hopwatch.alerts import rule_config
    from hopwatch.alerts.batch_hook import AlertHook
    from hopwatch.alerts.storage.objectives import list_objectives, save_objectives

    now_us = SystemClock().now_us()
    rules = fencing.claim_store(place.engine, place.checkpoint, place.rules, place.transport, place.run, now_us)
    for stream, config in rules.items():
        if config.valid_from_us > now_us:
            what = f"hopwatch: the configuration of {stream!r} has changed: its new version is valid"
            console.stderr().print(f"{what} from {format_iso(config.valid_from_us)} on, the one before it until then")
    alert_rules = rule_config.build_rules(chosen, rules)
    with schema.open_change(place.engine) as connection:
        save_objectives(connection, list_objectives(alert_rules.rules))
    return replace(place, rules=rules, follower=AlertHook(alert_rules, people.routes))


def _parse_span(from_time: str | None, to_time: str | None, *, is_once: bool) -> rejudgement.Span | None:
    """Return the span that is to be judged again; None for all that is there.

    Raises:
        ConfigurationError: it is no span of whole minutes that have passed, or nothing is to be read once.
    """
    if from_time is None and to_time is None:
        return None
    if not is_once:
        raise ConfigurationError("--from and --to say which windows --once judges again: add --once")
    from_us, to_us = parse_range_us(from_time, to_time)
    if from_us is None or to_us is None:
        flag = "--to" if to_us is None else "--from"
        raise ConfigurationError(f"a span to judge again has two ends: add {flag} with the start of a window")
    for flag, text, moment_us in (("--from", from_time, from_us), ("--to", to_time, to_us)):
        if moment_us % WINDOW_US:
            raise ConfigurationError(f"{flag} is the start of a window, a whole minute UTC, got {text}")
    if to_us > SystemClock().now_us():
        raise ConfigurationError(f"--to {to_time} is in the future: let it be no later than now")
    return rejudgement.Span(from_us, to_us)


def _begin_anew(place: JobContext) -> None:
    """Delete results and checkpoint, and print the consequences."""
    windows = fencing.begin_anew(place.engine, place.checkpoint)
    what = f"hopwatch: beginning anew, {windows:,} windows of results are dropped"
    console.stderr().print(f"{what}; those whose records {place.source} has no more will not come back")


def _run_once(place: JobContext, chosen: Settings, span: rejudgement.Span | None = None) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from hopwatch.monitor.spark import failures, job, session

    words = console.stderr()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    bar = Progress(*columns, console=words, transient=True, disable=not words.is_terminal)
    with _tell_interrupt(words), bar as progress:
        task = progress.add_task("starting Spark")
        spark = _start_session(place, chosen)
        judged, again = 0, None

        def say(results: Sequence[WindowResult]) -> None:
            nonlocal judged
            judged += len(results)
            progress.update(task, description=f"judged {judged:,} windows")

        progress.update(task, description=f"reading {place.source}")
        try:
            with (
                signals.interrupt_quietly(),
                session.report_progress(
                    spark, lambda told: progress.update(task, description=f"reading {place.source}: {told}")
                ),
            ):
                if span is None:
                    job.run_once(spark, place, say)
                else:
                    again = job.run_span(spark, place, span, say)
        except KeyboardInterrupt:
            session.stop_quietly(spark.stop)
            raise
        except PySparkException as error:
            # For an unknown failure its own traceback says most.
            raise failures.find_known_cause(error, place) or error from None
        except (Py4JError, ConnectionError):
            session.stop_quietly(spark.stop)
            raise failures.java_error(session.java_status(), session.log_file(place.workdir)) from None
        session.stop_quietly(spark.stop)
    if again is not None:
        _print_rejudged(again)
        return
    with place.engine.begin() as connection:
        set_aside = sum(reader.read_accounts(connection)["set_aside"].values())
    odd = f", records set aside: {set_aside:,}" if set_aside else ""
    words.print(f"windows that are final: {judged:,}{odd}; see hopwatch report")


@contextmanager
def _tell_interrupt(words: Console) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        words.print("hopwatch: interrupted; --once writes all of its windows or none")
        raise


def _publish_all(publisher: ResultsPublisher | None) -> None:
    """Publish the results of a --once run, where they have a topic.

    Raises:
        TransportError: the topic takes nothing; the store has them all.
    """
    if publisher is None:
        return
    from hopwatch.api import publisher_thread

    windows = publisher_thread.publish_all(publisher, SystemClock())
    console.stderr().print(f"windows that are published: {windows:,}")


def _print_rejudged(again: rejudgement.Rejudged) -> None:
    """Print how many windows were judged again, and what became of them."""
    left = f", left as they are because no record is there: {again.left:,}" if again.left else ""
    what = f"windows judged again: {again.judged:,}, with another result: {again.revised:,}{left}"
    console.stderr().print(f"{what}; see hopwatch report --revisions")


def _start_session(place: JobContext, chosen: Settings) -> SparkSession:
    from hopwatch.monitor.outliers import detector
    from hopwatch.monitor.spark import session

    # Java takes as long to start, and later it would be compiled within a transaction. What compiles cannot be
    # interrupted, so the process does not end before.
    threading.Thread(target=detector.warm_up, name="hopwatch-detector").start()
    asked = chosen.monitor
    more = {**place.source.spark_settings, **asked.spark}
    collect_rarely()
    return session.start_session(place.workdir, master=asked.master, cores=asked.tasks, more=more)


def _run_stream(
    place: JobContext,
    reload: ConfigReload,
    people: Routing,
    stop: threading.Event,
    publishers: Iterable[tuple[Publisher | None, str]],
) -> None:
    """Run a monitor, and all that runs beside it; publishers have the plural of what they publish."""
    from py4j.protocol import Py4JError

    from hopwatch.alerts.delivery import threads
    from hopwatch.api.publisher_thread import run_publisher

    console.configure_log()
    words = console.stderr()
    try:
        with (
            threads.run_dispatcher(reload.settings.store.url, people, place.hold) as dispatcher,
            ExitStack() as beside,
        ):
            wakes = [
                beside.enter_context(run_publisher(publisher, SystemClock(), what)) for publisher, what in publishers
            ]
            _watch_stream(place, reload, people, stop, (dispatcher.wake, *wakes))
    except (HopwatchError, Py4JError, OSError):
        # A signal to the whole process group ends Spark too, sometimes before this process.
        if not stop.wait(POLL_S):
            raise
        words.print("hopwatch: stopping")
    except KeyboardInterrupt:
        _record_stop(place)
        raise
    _record_stop(place)


def _record_stop(place: JobContext) -> None:
    with suppress(StoreError):
        # Without the record, pages only do not show that the stop was intended.
        fencing.record_stop(place.engine, place.run, SystemClock().now_us())


def _watch_stream(
    place: JobContext,
    reload: ConfigReload,
    people: Routing,
    stop: threading.Event,
    wakes: Sequence[Callable[[], None]],
) -> None:
    from hopwatch.cli.running_query import RunningQuery
    from hopwatch.monitor import pulse
    from hopwatch.monitor.spark import job, session

    words, chosen = console.stderr(), reload.settings
    with place.engine.begin() as connection:
        place.source.tidy(reader.read_segments(connection), place.checkpoint)
    _print_start(place, chosen)
    words.print(f"hopwatch: starting Spark, its log is {session.log_file(place.workdir)}")
    spark = _start_session(place, chosen)
    signals.set_on_signal(signal.SIGINT, stop)
    signals.call_on_hangup(reload.watch.request, stop)
    stamina.instrumentation.set_on_retry_hooks([_print_retry])
    beat = pulse.start_pulse(chosen.transport.url, chosen.transport.access, chosen.monitor.pulse_us / 1e6)
    ending = ExitStack()
    try:
        ending.callback(_start_selftest(place, chosen))
        trigger = f"{chosen.monitor.trigger_us // 1_000} milliseconds"
        place, committed = _record_last_batch(place)
        start = partial(job.start_stream, spark, trigger=trigger, report=partial(_on_commit, wakes), stop=stop)
        running = RunningQuery(start, place)
        words.print(f"hopwatch: watching {place.source}, streams: {len(chosen.streams)}; Ctrl-C stops")
        while not stop.wait(POLL_S):
            running.require_alive()
            wider = place.source.widen(committed.pop(), chosen.monitor.trigger_us) if committed else None
            if wider is not None:
                running.end()
                place = running.begin(replace(place, source=wider))
            is_accepted = reload.read_changes()
            if is_accepted is None:
                continue
            if not is_accepted or reload.settings.streams == chosen.streams:
                _tell_config(place, reload)
                continue
            if not _is_store_up(place, reload):
                reload.postpone(chosen)
                continue
            chosen = reload.settings
            running.end()
            place = running.begin(_claim_store(replace(place, rules=chosen.stream_configs()), chosen, people))
            place.config_observer(place.rules)
            words.print(f"hopwatch: {reload.config} is in force, streams: {len(chosen.streams)}")
        words.print("hopwatch: stopping")
        running.stop()
    finally:
        ending.close()
        beat.close()
        session.stop_quietly(spark.stop)


def _print_start(place: JobContext, chosen: Settings) -> None:
    """Print what the user should know of a spool without probes, and of alerts that nobody receives."""
    words = console.stderr()
    if place.source.awaits_probe():
        what = f"hopwatch: no probe has written to the spool {place.source} yet"
        words.print(f"{what}; the monitor waits for one with the sink spool:{place.source}")
        words.print(f"hopwatch: who may write to the spool: {place.source.rights()}")
    if told := reach.explain_unheard(chosen.alerts):
        words.print(f"hopwatch: {told}; {reach.ADVICE}")


def _record_last_batch(place: JobContext) -> tuple[JobContext, deque[CommittedBatch]]:
    """Return the place with an observer that also keeps the last micro-batch in what is returned beside it."""
    committed: deque[CommittedBatch] = deque(maxlen=1)
    observe = place.observer

    def observe_and_keep(batch: CommittedBatch) -> None:
        observe(batch)
        committed.append(batch)

    return replace(place, observer=observe_and_keep), committed


def _start_selftest(place: JobContext, chosen: Settings) -> Callable[[], None]:
    """Start to inject the messages of the self-test, if there is one; return how to stop it.

    Raises:
        StoreError: the store cannot be written.
    """
    from hopwatch.monitor import pulse
    from hopwatch.monitor.selftest import injector
    from hopwatch.monitor.store import selftest

    if chosen.selftest is None:
        selftest.record_end(place.engine)
        return lambda: None
    selftest.record_start(place.engine, SystemClock().now_us())
    sink = partial(pulse.open_monitor_sink, chosen.transport.url, chosen.transport.access)
    record = partial(selftest.record_minute, place.engine)
    return injector.start_injector(sink, record, chosen.selftest.messages_per_minute, place.run)


def _is_store_up(place: JobContext, reload: ConfigReload) -> bool:
    """Return whether the store takes a change; say once that it does not, and that one waits for it."""
    try:
        fencing.record_config_problem(place.engine, place.run, "")
    except StoreError as error:
        if not reload.is_postponed:
            what = f"hopwatch: the change of {reload.config} is taken up once the store can be written"
            console.stderr().print(f"{what}: {error}")
        return False
    return True


def _tell_config(place: JobContext, reload: ConfigReload) -> None:
    """Tell on the console, in the store and in metrics whether the configuration is in force."""
    place.config_observer(None if reload.problem else place.rules)
    with suppress(StoreError):
        # The next change tells it again; a store that is down is told of by the batches.
        fencing.record_config_problem(place.engine, place.run, " ".join(reload.problem.split()))
    if reload.problem:
        told = f"hopwatch: the change of {reload.config} is not in force, what was before goes on: {reload.problem}"
        console.stderr().print(told)
    else:
        console.stderr().print(f"hopwatch: {reload.config} is in force, and says of streams what it said before")


def _on_commit(wakes: Sequence[Callable[[], None]], results: Sequence[WindowResult]) -> None:
    """Wake the delivery of notifications and results after a commit, and print the judged windows."""
    for wake in wakes:
        wake()
    _print_results(results)


def _print_results(results: Sequence[WindowResult]) -> None:
    """Print each judged window in a line on stderr."""
    for result in results:
        # What is lost in the self-test was lost on purpose.
        if result.status.is_final and result.stream != SELFTEST_STREAM:
            console.stderr().print(
                f"{format_iso(result.window_start_us)} {result.stream} {result.status} {result.verdict}: "
                f"{result.known:,} known, {result.delivered:,} delivered, "
                f"{loss_bounds.format_bounds(result.lost, result.lost_lower, result.lost_upper)} lost"
            )


def _print_retry(details: RetryDetails) -> None:
    """Print the reason of a retry, at most about once per minute."""
    if details.retry_num % RETRIES_PER_MESSAGE == 1:
        told = " ".join(str(getattr(details.caused_by, "orig", None) or details.caused_by).split())
        console.stderr().print(f"hopwatch: the store fails, the batch is tried again whole: {told}")
