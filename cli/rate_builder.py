"""Builds a rating and its parts from flags and settings, and runs it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

import numpy as np
import uvloop

from hopwatch.cli.configuration import parse_span_us
from hopwatch.deliver.http_client import HttpReceiver
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.probes.contract.addresses import ListenAddress, parse_listen_address
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.rate import observation_reader
from hopwatch.rate.arrival_log import ArrivalLog
from hopwatch.rate.entrance import MAX_CONNECTIONS, TIMEOUT_S, Entrance
from hopwatch.rate.http_receiver import HttpArrivals
from hopwatch.rate.message_ids import RUN_BITS
from hopwatch.rate.observation_reader import ObservationReader
from hopwatch.rate.ownership import find_strangers
from hopwatch.rate.point_log import PointLog
from hopwatch.rate.processors import ProcessorMeter, find_probe_processes
from hopwatch.rate.receiver import RatingReceiver
from hopwatch.rate.results import ConsumersResult, RatingResult, RepeatResult, RunEnd, StepResult
from hopwatch.rate.runner import LoadShape, RatingParts, RatingRun, find_run_saturation
from hopwatch.rate.schedule import Arrivals
from hopwatch.rate.search import SearchPlan, plan_repeat
from hopwatch.rate.target import Target, TargetError, parse_target
from hopwatch.rate.topic_receiver import TopicReceiver
from hopwatch.scale.supervisor import Supervisor

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

MIN_RATE_PER_S: Final = 1.0
MAX_RATE_PER_S: Final = 1_000_000.0
"""Highest rate that may be asked for: beyond what one sender can send, within what its memory holds."""
READY_S: Final = 60.0
"""Time that the stream has until the first message arrives."""
MAX_EVENT_BYTES: Final = 256 * 1024
MAX_CONSUMERS: Final = 1_000
US_PER_S: Final = 1_000_000
OWN: Final = "hopwatch rate"
"""Name of this process among the processor shares."""
CONSUMERS: Final = "consumers"


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingFlags:
    """Flags of the command, as they were given."""

    stream: str
    until: str
    events: Path
    topic: str | None
    receiver: str | None
    entrance: str
    token_file: Path | None
    arrivals: Arrivals
    batch: int
    linger: str
    start: float
    max_rate: float
    tolerance: float
    at: Sequence[float]
    hold: str
    repeats: int
    time_limit: str
    patience: str
    processes: Sequence[str]
    consumers: str | None
    consumer: Sequence[str]
    seed: int
    is_owned: bool


@dataclass(frozen=True, slots=True)
class RatingPlan:
    """Checked flags."""

    flags: RatingFlags
    settings: Settings
    target: Target
    search: SearchPlan
    shape: LoadShape
    hold_s: float
    time_limit_s: float
    url: str
    headers: Mapping[str, str]
    events: tuple[bytes, ...]
    topic: KafkaPlace | None
    listen: ListenAddress | None
    processes: Mapping[str, frozenset[int]]
    consumers: tuple[int, ...]


def build_plan(chosen: Settings, flags: RatingFlags) -> RatingPlan:
    """Check all flags, before anything is sent.

    Raises:
        ConfigurationError: one is invalid, or the load would meet another machine and ``--i-own-this`` is missing.
    """
    chosen.check_stream(flags.stream)
    try:
        target = parse_target(flags.until)
    except TargetError as error:
        raise ConfigurationError(f"--until: {error}") from None
    try:
        search = SearchPlan(flags.start, min(MIN_RATE_PER_S, flags.start), flags.max_rate, flags.tolerance)
    except ValueError as error:
        raise ConfigurationError(f"--start, --max-rate and --tolerance: {error}") from None
    if flags.max_rate > MAX_RATE_PER_S:
        raise ConfigurationError(
            f"--max-rate is at most {MAX_RATE_PER_S:,.0f} messages a second, got {flags.max_rate:g}"
        )
    if wrong := [rate for rate in flags.at if not 0 < rate <= flags.max_rate]:
        raise ConfigurationError(f"--at is above 0 and at most --max-rate {flags.max_rate:g}, got {wrong[0]:g}")
    shape = LoadShape(
        flags.arrivals,
        flags.batch,
        parse_span_us("--linger", flags.linger, may_be_zero=True) / US_PER_S,
        parse_span_us("--patience", flags.patience) / US_PER_S,
    )
    topic, listen = _parse_end(flags)
    plan = RatingPlan(
        flags=flags,
        settings=chosen,
        target=target,
        search=search,
        shape=shape,
        hold_s=parse_span_us("--hold", flags.hold) / US_PER_S,
        time_limit_s=parse_span_us("--for", flags.time_limit) / US_PER_S,
        url=_build_url(flags),
        headers=_build_headers(flags.token_file),
        events=_read_events(flags.events),
        topic=topic,
        listen=listen,
        processes=_parse_processes(flags.processes),
        consumers=_parse_consumers(flags),
    )
    _check_owner(plan)
    return plan


def run_plan(
    plan: RatingPlan,
    stop: Event,
    report: Callable[[str], None],
    report_step: Callable[[StepResult], object],
    report_progress: Callable[[float, float, float], object],
) -> RatingResult:
    """Run a rating.

    Raises:
        EntranceError: the entrance refuses the events for good.
        NothingArrivedError: no message arrives at the receiver.
        ObservationsError: the topic of observations cannot be read.
        ReceiverError: the receiver cannot receive.
    """
    work = _run(plan, stop, report, report_step, report_progress)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


async def _run(
    plan: RatingPlan,
    stop: Event,
    report: Callable[[str], None],
    report_step: Callable[[StepResult], object],
    report_progress: Callable[[float, float, float], object],
) -> RatingResult:
    flags, chosen, started_us = plan.flags, plan.settings, time.time_ns() // 1_000
    run, log = secrets.randbits(RUN_BITS), ArrivalLog()
    points = PointLog(flags.stream, run)
    supervisor = Supervisor(flags.consumer, time.monotonic, report) if plan.consumers else None
    pathway, deadline_s = chosen.streams[flags.stream].pathway, time.monotonic() + plan.time_limit_s
    async with AsyncExitStack() as stack:
        if supervisor is not None:
            stack.callback(supervisor.close, time.sleep)
        stack.enter_context(_open_observations(chosen, points))
        received = _build_receiver(plan, run, log)
        await stack.enter_async_context(received)
        poster = await stack.enter_async_context(HttpReceiver(plan.url, TIMEOUT_S, MAX_CONNECTIONS))
        rating = RatingRun(
            RatingParts(
                Entrance(poster, run, plan.events, plan.headers),
                received,
                log,
                ProcessorMeter(lambda: _find_processes(plan, points, supervisor)),
                plan.target,
                plan.shape,
                points,
                pathway.nodes,
                stop,
                deadline_s,
                np.random.default_rng(flags.seed),
                report_step,
                report_progress,
                supervisor.look_after if supervisor is not None else lambda: None,
            )
        )
        found: list[ConsumersResult] = []
        for count in plan.consumers or (None,):
            if count is not None and supervisor is not None:
                report(f"{count} of {flags.consumer[0]}")
                supervisor.resize(count)
            await rating.await_stream(READY_S)
            found.append(await _rate_consumers(plan, rating, count, stop))
            if stop.is_set():
                break
    notes = [] if any(points.probes.values()) else ["no probe of the stream was heard: what saturates is UNKNOWN"]
    wanted = len(plan.flags.at) if plan.flags.at else plan.flags.repeats
    is_complete = len(found) == len(plan.consumers or (None,)) and all(_count_done(one) == wanted for one in found)
    end = RunEnd.INTERRUPTED if stop.is_set() else RunEnd.COMPLETE if is_complete else RunEnd.TIME
    return RatingResult(
        flags.stream, plan.target, flags.arrivals, flags.batch, started_us, tuple(found), end, tuple(notes)
    )


def _build_receiver(plan: RatingPlan, run: int, log: ArrivalLog) -> RatingReceiver:
    if plan.listen is not None:
        return HttpArrivals(plan.listen, run, log)
    if plan.topic is None:
        raise ConfigurationError("messages arrive at --topic or at --receiver: name one of them")
    return TopicReceiver(plan.topic, plan.settings.transport.access, run, log)


def _count_done(run: ConsumersResult) -> int:
    """Return how many searches were finished or, of given rates, how many were judged."""
    return sum(1 if one.end is not None else 0 for one in run.repeats) or sum(
        len(one.steps) for one in run.repeats if one.held_per_s is None and one.end is None
    )


async def _rate_consumers(plan: RatingPlan, rating: RatingRun, count: int | None, stop: Event) -> ConsumersResult:
    first_step, repeats = rating.steps, list[RepeatResult]()
    if plan.flags.at:
        repeats.append(await rating.hold(plan.flags.at, plan.hold_s))
    held_per_s: float | None = None
    for number in range(0 if plan.flags.at else plan.flags.repeats):
        repeats.append(await rating.search(plan_repeat(plan.search, held_per_s, number)))
        held_per_s = repeats[-1].held_per_s
        if repeats[-1].end is None or stop.is_set():
            break
    measured = await rating.find_points(repeats, first_step)
    return ConsumersResult(count, tuple(measured), find_run_saturation(measured))


def _open_observations(chosen: Settings, points: PointLog) -> ObservationReader:
    place = chosen.transport.kafka_place
    if place is None:
        return observation_reader.open_spool(chosen.transport.spool, points)
    return observation_reader.open_topic(place, chosen.transport.access, points)


def _find_processes(
    plan: RatingPlan, points: PointLog, supervisor: Supervisor | None
) -> dict[str, set[int] | frozenset[int]]:
    """Return the processes by node: those of probes on this machine, those that were named, consumers, and this one."""
    found: dict[str, set[int] | frozenset[int]] = dict(find_probe_processes(points.probes, socket.gethostname()))
    found |= plan.processes
    if supervisor is not None:
        found[CONSUMERS] = set(supervisor.running)
    return found | {OWN: {os.getpid()}}


def _parse_end(flags: RatingFlags) -> tuple[KafkaPlace | None, ListenAddress | None]:
    if (flags.topic is None) == (flags.receiver is None):
        got = "neither" if flags.topic is None else "both"
        raise ConfigurationError(f"messages arrive at --topic or at --receiver, got {got}: name one of them")
    try:
        if flags.receiver is not None:
            return None, parse_listen_address(flags.receiver)
        place = KafkaPlace.parse(flags.topic or "")
    except ValueError as error:
        raise ConfigurationError(f"{'--receiver' if flags.receiver else '--topic'}: {error}") from None
    if (flags.topic or "").removeprefix(KAFKA).rstrip("/") == place.brokers:
        raise ConfigurationError(f"--topic: it names no topic, got {flags.topic!r:.80}")
    return place, None


def _build_url(flags: RatingFlags) -> str:
    if not _is_plain_url(flags.entrance):
        raise ConfigurationError(
            f"--entrance is the URL of a gate, such as http://127.0.0.1:8081, got {flags.entrance!r:.80}"
        )
    return f"{flags.entrance.rstrip('/')}/streams/{quote(flags.stream, safe='')}/events"


def _is_plain_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_address and not (parts.query or parts.fragment or parts.username)


def _build_headers(token_file: Path | None) -> dict[str, str]:
    if token_file is None:
        return {}
    try:
        token = token_file.read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"--token-file {token_file} cannot be read: {_describe(error)}") from None
    if not re.fullmatch(r"[!-~]{1,1000}", token):
        raise ConfigurationError(f"--token-file {token_file} holds no token: one line of printable ASCII is one")
    return {"Authorization": f"Bearer {token}"}


def _read_events(file: Path) -> tuple[bytes, ...]:
    """Read the data of events, as compact JSON."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"--events {file} cannot be read: {_describe(error)}") from None
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"--events {file}, line {number}: it is no JSON: {error!s:.80}") from None
        found.append(json.dumps(data, separators=(",", ":")).encode())
        if len(found[-1]) > MAX_EVENT_BYTES:
            told = f"an event has at most {MAX_EVENT_BYTES:,} bytes, got {len(found[-1]):,}"
            raise ConfigurationError(f"--events {file}, line {number}: {told}")
    if not found:
        raise ConfigurationError(f"--events {file} is empty: write the data of an event as JSON, one a line")
    return tuple(found)


def _parse_processes(given: Sequence[str]) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for text in given:
        match = re.fullmatch(r"([A-Za-z0-9._-]{1,128})=([1-9][0-9]{0,9})", text)
        if match is None:
            raise ConfigurationError(f"--process is NODE=PID, such as router=4711, got {text!r:.80}")
        found[match[1]] = found.get(match[1], frozenset()) | {int(match[2])}
    return found


def _parse_consumers(flags: RatingFlags) -> tuple[int, ...]:
    if flags.consumers is None:
        if flags.consumer:
            raise ConfigurationError(
                f"a command needs --consumers, got {flags.consumer[0]!r:.80} without: --consumers 1,2,4"
            )
        return ()
    parts = flags.consumers.split(",")
    if not all(re.fullmatch(r"[1-9][0-9]{0,3}", part) for part in parts) or max(map(int, parts)) > MAX_CONSUMERS:
        told = f"--consumers are whole numbers from 1 to {MAX_CONSUMERS:,}, such as 1,2,4"
        raise ConfigurationError(f"{told}, got {flags.consumers!r:.80}")
    if not flags.consumer:
        raise ConfigurationError("--consumers needs the command of a consumer: name it after --")
    if shutil.which(flags.consumer[0]) is None:
        raise ConfigurationError(f"{flags.consumer[0]!r:.200} cannot be started: there is no such program")
    return tuple(map(int, parts))


def _check_owner(plan: RatingPlan) -> None:
    if plan.flags.is_owned:
        return
    loaded = _list_hosts(plan)
    if strangers := find_strangers(loaded):
        host, where = strangers[0], loaded[strangers[0]]
        raise ConfigurationError(
            f"{host}{where} is not this machine, and a rating loads it until it fails: give --i-own-this if it may be"
        )


def _list_hosts(plan: RatingPlan) -> dict[str, str]:
    """Return the hosts that a rating loads as far as flags and configuration tell, and where each is named.

    Behind a gate and a delivery of this machine others may stand.
    """
    chosen, stream = plan.settings, plan.flags.stream
    loaded = {urlsplit(plan.url).hostname or "": ""}
    topics = [(plan.topic, "")] if plan.topic is not None else []
    entrance = chosen.gate.streams.get(stream)
    outlets = (entrance.to, entrance.rejected_url(stream)) if entrance is not None else ()
    topics += [(KafkaPlace.parse(url), f" of [gate.streams.{stream}]") for url in outlets if url.startswith(KAFKA)]
    for name, delivery in chosen.deliver.items():
        if delivery.stream == stream:
            loaded.setdefault(urlsplit(delivery.url).hostname or "", f" of [deliver.{name}]")
            topics.append((delivery.place, f" of [deliver.{name}]"))
    for place, where in topics:
        for broker in place.brokers.split(","):
            loaded.setdefault(broker.rpartition(":")[0].strip("[]"), where)
    return loaded


def _describe(error: OSError | UnicodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or "it is no UTF-8"
