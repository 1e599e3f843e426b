"""``hopwatch redrive``: send again the messages that are proven lost at a node."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hopwatch.cli import console, find_batch, redrive_report, signals
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings
from hopwatch.cli.redrive_report import RedriveReport
from hopwatch.cli.tap import IdAs, Unit
from hopwatch.cli.tap_errors import translate_tap_errors
from hopwatch.monitor.errors import ConfigurationError, TransportError
from hopwatch.monitor.lookup import journey, proven_losses
from hopwatch.monitor.lookup.fates import MAX_MESSAGES, WantedIds
from hopwatch.monitor.lookup.proven_losses import LossQuestion, NodeLosses, UnprovenLoss
from hopwatch.monitor.settings.deliver import parse_topic_url
from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.texts.moments import parse_moment_us, parse_range_us
from hopwatch.probes.contract.limits import WINDOW_US
from hopwatch.probes.message_headers import ID_HEADER, TIME_HEADER
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.values import IdFormat, TimeUnit

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

FINDING_EXIT_CODE: Final = 1


def command(  # noqa: PLR0913 - one a flag
    *,
    config: Config = DEFAULT_CONFIG,
    stream: Annotated[str, typer.Option("--stream", help="The stream.")],
    node: Annotated[str, typer.Option("--node", help="The node at which the messages are lost.")],
    window: Annotated[
        str | None, typer.Option("--window", metavar="TIME", help="What is lost in the window that starts then.")
    ] = None,
    from_time: Annotated[
        str | None, typer.Option("--from", help="What is lost in windows from this moment on.")
    ] = None,
    to_time: Annotated[str | None, typer.Option("--to", help="And in windows that start before this moment.")] = None,
    ids_from: Annotated[
        str | None, typer.Option("--ids-from", metavar="FILE", help="These messages alone, an id a line; - is stdin.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", metavar="N", min=0.001, help="Messages that are sent a second.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Find the messages, and send nothing.")] = False,
    to_topic: Annotated[
        str | None,
        typer.Option("--to-topic", metavar="URL", help="Send them to this topic, not to the one that they are in."),
    ] = None,
    state: Annotated[
        Path | None, typer.Option("--state", help="Keeps what was sent, and by whom: a restart goes on from there.")
    ] = None,
    wait_s: Annotated[
        float,
        typer.Option("--wait", metavar="SECONDS", min=0, help="Wait so long until the store has them as recovered."),
    ] = 0.0,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for the record in the state.")] = "",
    margin_s: Annotated[
        float,
        typer.Option("--margin", metavar="SECONDS", min=0, help="How long before a window its records may be written."),
    ] = 600.0,
    id_header: Annotated[str, typer.Option(help="The header that the id stands in.")] = ID_HEADER,
    time_header: Annotated[str, typer.Option(help="The header that the event time stands in.")] = TIME_HEADER,
    id_json: Annotated[str | None, typer.Option(metavar="PATH", help="The id stands in a JSON value.")] = None,
    time_json: Annotated[str | None, typer.Option(metavar="PATH", help="The event time stands in it.")] = None,
    time_record: Annotated[
        bool, typer.Option("--time-record", help="The record's own time is the event time.")
    ] = False,
    id_as: IdAs = IdFormat.AUTO,
    time_unit: Unit = TimeUnit.US,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Send again the messages that are proven lost at a node. Exit 1 when one of them was not.

    What may be lost is never sent. Messages are taken from the topics that [streams.NAME] topics names.
    """
    chosen = load_settings(config)
    _check_flags(chosen, stream, node, (window, from_time, to_time), ids_from)
    if not dry_run and (rate is None or state is None):
        raise ConfigurationError("to send messages takes --rate and --state; --dry-run finds them, and sends nothing")
    target = None if to_topic is None else _parse_target(chosen, to_topic)
    question = _build_question(stream, node, (window, from_time, to_time))
    around = RunContext(_print_message)
    with signals.stop_on_signals(around.stop), translate_tap_errors(TransportError):
        from hopwatch.cli.redrive_run import RedrivePlan, open_state, redrive_losses, wait_for_recovery
        from hopwatch.probes.taps.messages import MessageReader, choose_field

        reader = MessageReader(
            choose_field("id", id_header, id_json, None),
            choose_field("time", time_header, time_json, None, is_record=time_record),
            id_kind=id_as,
            unit=time_unit,
        )
        kept = None if dry_run or state is None else open_state(state, stream, node, target)
        with kept.lock() if kept else nullcontext():
            losses = _find_losses(chosen, question, None if ids_from is None else find_batch.read_ids(ids_from))
            report = RedriveReport(stream, node, target, losses, is_dry_run=dry_run)
            plan = RedrivePlan(chosen, reader, round(margin_s * 1e6), rate or 0.0, why)
            try:
                redrive_losses(plan, report, kept, around)
            except TapSourceError:
                redrive_report.print_report(report, as_json=as_json)
                raise
            if kept is not None:
                wait_for_recovery(chosen.store.url, report, kept, wait_s, around)
            redrive_report.print_report(report, as_json=as_json)
    report.raise_failures()
    if not report.is_whole:
        raise typer.Exit(FINDING_EXIT_CODE)


def _check_flags(
    chosen: Settings, stream: str, node: str, span: tuple[str | None, str | None, str | None], ids_from: str | None
) -> None:
    """Check the stream, the node, and that the messages are named in one way.

    Raises:
        ConfigurationError: one of them is not there, or flags contradict each other.
    """
    chosen.check_stream(stream)
    nodes = chosen.streams[stream].pathway.nodes
    if node not in nodes:
        raise ConfigurationError(f"--node names {node!r:.80}, the nodes of {stream} with ids are: {', '.join(nodes)}")
    window, from_time, to_time = span
    ways = [window is not None, from_time is not None or to_time is not None, ids_from is not None]
    if sum(ways) != 1:
        raise ConfigurationError("name the messages: --window, --from and --to, or --ids-from, one of these")


def _build_question(stream: str, node: str, span: tuple[str | None, str | None, str | None]) -> LossQuestion:
    """Build the question of what is lost.

    Raises:
        ConfigurationError: a time cannot be read, or is none of a window.
    """
    window, from_time, to_time = span
    from_us, to_us = parse_range_us(from_time, to_time)
    start_us = parse_moment_us("--window", window)
    if start_us is not None:
        if start_us % WINDOW_US:
            raise ConfigurationError(f"--window is a whole UTC minute, as windows start, got {window:.60}")
        from_us, to_us = start_us, start_us + WINDOW_US
    return LossQuestion(stream, node, from_us, to_us)


def _parse_target(chosen: Settings, to_topic: str) -> str:
    try:
        target = parse_topic_url(to_topic)
    except ValueError as error:
        raise ConfigurationError(f"--to-topic: {error}") from None
    if target == chosen.transport.url:
        raise ConfigurationError(f"--to-topic is {target}, where probes report to: name a topic of messages")
    return target


def _find_losses(chosen: Settings, question: LossQuestion, given: Sequence[str] | None) -> NodeLosses:
    """Find the proven losses of a question, of all messages or of given ids.

    Raises:
        ConfigurationError: there are too many.
        StoreError: the store cannot be read.
    """
    schema.require_store(chosen.store.url)
    engine = dialect.create_engine(chosen.store.url)
    try:
        if given is None:
            found = proven_losses.find_proven_losses(engine, question, MAX_MESSAGES)
            is_window = question.from_us is not None and question.to_us == question.from_us + WINDOW_US
            if is_window and (why := proven_losses.find_window_gap(engine, question.stream, question.from_us or 0)):
                found.unproven.append(UnprovenLoss(question.from_us or 0, 0, why))
        else:
            meant = {text: journey.parse_ids(text) for text in given}
            wanted = WantedIds(one for ids in meant.values() for one in ids)
            found = proven_losses.find_proven_losses(engine, question._replace(wanted=wanted), MAX_MESSAGES)
            why = f"the store does not list it as missing at {question.node}"
            unlisted = [text for text, ids in meant.items() if found.listed.isdisjoint(ids)]
            found.unproven += [UnprovenLoss(None, 1, why, text) for text in unlisted]
    finally:
        engine.dispose()
    if len(found.proven) > MAX_MESSAGES:
        told = f"more than {MAX_MESSAGES:,} messages are lost there, and so many are sent again at once"
        raise ConfigurationError(f"{told}: let --from and --to be nearer to each other")
    return found


def _print_message(what: str) -> None:
    console.stderr().print(f"hopwatch redrive: {what}")
