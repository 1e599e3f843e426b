"""Run of ``hopwatch redrive``: the topics that the lost messages are in, one after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.progress import Progress

from hopwatch.cli import console
from hopwatch.cli.configuration import read_user_name
from hopwatch.deliver.redrive.messages import RedriveKey
from hopwatch.deliver.redrive.run import RedriveOutcome, SendingTerms, redrive_messages
from hopwatch.deliver.redrive.sender import RedriveSender
from hopwatch.deliver.redrive.state import RedriveState
from hopwatch.deliver.redrive.topic_search import TopicSearch
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.lookup import proven_losses
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import dialect
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.taps.topic import SourceTopic

if TYPE_CHECKING:
    from hopwatch.cli.redrive_report import RedriveReport
    from hopwatch.monitor.lookup.proven_losses import ProvenLoss
    from hopwatch.monitor.settings import Settings
    from hopwatch.probes.taps.context import RunContext
    from hopwatch.probes.taps.messages import RecordReader

GROUP: Final = "hopwatch-redrive"
"""Name under which topics are read: brokers ask for one, and nothing is committed for it."""
_LOOK_S: Final = 1.0
"""Time between two looks into the store for what was recovered."""


class RedrivePlan(NamedTuple):
    """Plan of a redrive: what the flags say of reading and sending."""

    settings: Settings
    reader: RecordReader
    margin_us: int
    rate_per_s: float
    why: str


def open_state(path: Path, stream: str, node: str, target: str | None) -> RedriveState:
    """Return the state of the redrives at a node; no file is touched yet."""
    return RedriveState(path, {"stream": stream, "node": node, "to": target or ""})


def redrive_losses(plan: RedrivePlan, report: RedriveReport, state: RedriveState | None, around: RunContext) -> None:
    """Find what a report says is lost, and send it again; without a state it is only found.

    Raises:
        ConfigurationError: the settings do not name the topic of a node.
        TapSourceError: a topic cannot be read or written, or the state cannot be written.
    """
    topics = _group_by_topic(plan.settings, report)
    run = {"who": read_user_name(), "why": plan.why, "began": format_iso(around.wall_us())}
    if state is not None:
        # A run that is killed has this line alone.
        state.note_run(run | {"lost": len(report.losses.proven)})
    try:
        for url, lost in topics.items():
            if not around.stop.is_set():
                _redrive_topic(plan, (url, lost), report, state, around)
    finally:
        report.is_stopped = report.is_stopped or around.stop.is_set()
        if state is not None:
            report.note_repeated(state.repeated & state.sent)
            ended = {"ended": format_iso(around.wall_us()), "stopped": report.is_stopped}
            state.note_run(run | ended | report.count_outcomes())


def wait_for_recovery(
    store_url: str, report: RedriveReport, state: RedriveState, wait_s: float, around: RunContext
) -> None:
    """Note how many of the messages that a state has as sent arrived at the node after all; wait until all have.

    Raises:
        StoreError: the store cannot be read.
    """
    sent: dict[int, set[bytes]] = defaultdict(set)
    for key in state.sent:
        sent[key.window_start_us].add(key.message_id)
    until_s = around.monotonic_s() + wait_s
    engine = dialect.create_engine(store_url)
    try:
        while True:
            report.recovered = proven_losses.count_recovered(engine, report.stream, report.node, sent)
            left_s = until_s - around.monotonic_s()
            if report.recovered == len(state.sent) or left_s <= 0 or around.stop.wait(min(_LOOK_S, left_s)):
                return
    finally:
        engine.dispose()


def _redrive_topic(
    plan: RedrivePlan,
    lost_in: tuple[str, dict[RedriveKey, ProvenLoss]],
    report: RedriveReport,
    state: RedriveState | None,
    around: RunContext,
) -> None:
    (url, lost), access = lost_in, plan.settings.transport.access
    topic = SourceTopic(url, GROUP, around, from_start=True, access=access)
    try:
        topic.check()
        target = KafkaPlace.parse(report.target or url)
        sender = None
        if state is not None:
            sender = RedriveSender(target, access, state, around, is_source=target == topic.place)
            sender.check()
        around.report(f"looking for {len(lost):,} lost messages in {topic.place}")
        with _show_progress(len(lost)) as (note_read, note_sent):
            search = TopicSearch(topic, plan.reader, around, note_read)
            sending = SendingTerms(sender, state, plan.rate_per_s, note_sent) if sender and state else None
            outcome = RedriveOutcome()
            try:
                redrive_messages(search, lost, plan.margin_us, sending, outcome)
            finally:
                report.add_topic(url, lost, outcome)
    finally:
        topic.consumer.close()


def _group_by_topic(settings: Settings, report: RedriveReport) -> dict[str, dict[RedriveKey, ProvenLoss]]:
    topics = settings.streams[report.stream].topics
    found: dict[str, dict[RedriveKey, ProvenLoss]] = defaultdict(dict)
    for one in report.losses.proven:
        if one.source not in topics:
            told = f"messages that are lost at {report.node} are in the topic that {one.source} writes"
            advice = f'say in [streams.{report.stream}]: topics = {{ {one.source} = "kafka://HOST:PORT/TOPIC" }}'
            raise ConfigurationError(f"{told}, and the configuration does not name it: {advice}")
        found[topics[one.source]][RedriveKey(one.window_start_us, one.message_id)] = one
    return found


@contextmanager
def _show_progress(lost: int) -> Iterator[tuple[Any, Any]]:
    """Show how many records were read and sent, on a terminal; yield what is told of each."""
    words = console.stderr()
    with Progress(console=words, transient=True, disable=not words.is_terminal) as progress:
        reading = progress.add_task("records read", total=None)
        sending = progress.add_task("messages sent", total=lost)
        yield (lambda count: progress.advance(reading, count)), (lambda count: progress.advance(sending, count))
