"""``hopwatch scale``: run as many processes of a command as their lag asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from hopwatch.cli import console, metrics_server, signals
from hopwatch.cli.configuration import parse_span_us
from hopwatch.cli.metrics_server import MetricsListen
from hopwatch.cli.program_argument import check_program
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.results import format_iso
from hopwatch.scale.policy import (
    SCALE_DOWN,
    SCALE_UP,
    MetricKind,
    RateLimit,
    RateUnit,
    ScalingBehaviour,
    ScalingPolicy,
)

if TYPE_CHECKING:
    from hopwatch.monitor.clock import Clock
    from hopwatch.scale.metric import MetricSource
    from hopwatch.scale.scaler import ScalingStep
    from hopwatch.scale.supervisor import Supervisor

STEP_S: Final = 0.1
US_PER_S: Final = 1_000_000
_RATE: Final = re.compile(r"([0-9]{1,6})(%?)/([0-9a-z]+)")


class Policy(StrEnum):
    """Policies of scaling."""

    LAG = "lag"
    CPU = "cpu"


def command(  # noqa: PLR0913 - one parameter a flag
    program: Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="The command, with its arguments.")],
    *,
    policy: Annotated[
        Policy, typer.Option("--policy", help="lag: messages that wait, or a lag; cpu: processor share.")
    ],
    target: Annotated[
        float, typer.Option("--target", help="Messages that wait for each process, the value of --metric, or a share.")
    ],
    most: Annotated[int, typer.Option("--max", min=1, help="The most processes.")],
    least: Annotated[int, typer.Option("--min", min=1, help="The least processes.")] = 1,
    group: Annotated[str | None, typer.Option("--group", help="The consumer group whose backlog counts.")] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="URL", help="Its topic: kafka://HOST:PORT/TOPIC.")
    ] = None,
    metric: Annotated[
        tuple[str, str] | None,
        typer.Option("--metric", metavar="URL NAME", help="A page for Prometheus, and a metric with its labels."),
    ] = None,
    every: Annotated[str, typer.Option("--every", help="How often the metric is read.")] = "15s",
    tolerance: Annotated[float, typer.Option("--tolerance", help="A ratio so near to 1 changes nothing.")] = 0.1,
    up_window: Annotated[str, typer.Option("--up-window", help="Stabilisation of starting.")] = "0s",
    down_window: Annotated[str, typer.Option("--down-window", help="Stabilisation of ending.")] = "300s",
    up_rate: Annotated[
        list[str] | None, typer.Option("--up-rate", metavar="N/TIME", help="Starts in a time at most: 4/15s, 100%/15s.")
    ] = None,
    down_rate: Annotated[
        list[str] | None, typer.Option("--down-rate", metavar="N/TIME", help="Ends in a time at most: 1/1m, 100%/15s.")
    ] = None,
    patience: Annotated[str, typer.Option("--patience", help="From SIGTERM to SIGKILL.")] = "30s",
    metrics_listen: MetricsListen = None,
    as_json: Annotated[bool, typer.Option("--json", help="Each decision as a line of JSON on stdout.")] = False,
) -> None:
    """Run as many processes of a command as their lag asks for, as a HorizontalPodAutoscaler would.

    A process that ends by itself is started again. Ctrl-C or SIGTERM ends all, and waits until they have ended.
    """
    from hopwatch.scale.metrics import SCALING_METRICS, ScalingAccount
    from hopwatch.scale.scaler import Scaler
    from hopwatch.scale.supervisor import Supervisor

    kind = MetricKind.TOTAL if policy is Policy.LAG and metric is None else MetricKind.VALUE
    try:
        rules = ScalingPolicy(
            target,
            least,
            most,
            kind,
            tolerance,
            _build_behaviour(SCALE_UP, "--up", up_window, up_rate),
            _build_behaviour(SCALE_DOWN, "--down", down_window, down_rate),
        )
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    every_s = parse_span_us("--every", every) / US_PER_S
    patience_s = parse_span_us("--patience", patience, may_be_zero=True) / US_PER_S
    check_program(program)
    clock, stop, account = SystemClock(), Event(), ScalingAccount(policy, rules)
    supervisor = Supervisor(program, clock.monotonic_s, _print_message, patience_s)
    read_from = _open_source(policy, LagSource(group, source, metric), supervisor, target, clock)
    tell = partial(_tell_step, as_json=as_json, policy=policy, target=target, clock=clock)
    metrics = metrics_server.serve_samples(metrics_listen, SCALING_METRICS, account.build_samples, _print_message)
    with signals.stop_on_signals(stop), metrics, ThreadPoolExecutor(1, "metric") as reader:
        scaler = Scaler(supervisor, rules, read_from, clock_s=clock.monotonic_s, submit=reader.submit, every_s=every_s)
        try:
            scaler.start()
            _print_message(f"{least} to {most} of {program[0]}, by {policy}: the target is {target:g}; Ctrl-C ends all")
            while not clock.wait(STEP_S, stop):
                if (step := scaler.step()) is not None:
                    account.note_step(step)
                    tell(step)
        finally:
            _print_message(f"ending all processes, {len(supervisor.running)} of which run")
            supervisor.close(clock.wait)
    ended = f"{supervisor.restarts} had ended by themselves before, {supervisor.kills} had to be killed"
    _print_message(f"all processes have ended; {ended}")


class LagSource(NamedTuple):
    """Flags that say where a lag is read."""

    group: str | None
    topic_url: str | None
    metric: tuple[str, str] | None


def _open_source(policy: Policy, flags: LagSource, supervisor: Supervisor, target: float, clock: Clock) -> MetricSource:
    """Open the source of the metric.

    Raises:
        ConfigurationError: flags are missing or contradict each other, or one is invalid.
    """
    is_backlog = flags.group is not None or flags.topic_url is not None
    if policy is Policy.CPU:
        if is_backlog or flags.metric is not None:
            raise ConfigurationError("--policy cpu reads its own processes: leave out --group, --from and --metric")
        return _open_processor_share(supervisor, target, clock)
    if is_backlog == (flags.metric is not None):
        got = "both" if is_backlog else "neither"
        raise ConfigurationError(f"--policy lag needs --group and --from, or --metric, got {got}: name one of them")
    try:
        if flags.metric is not None:
            from hopwatch.scale.metric_page import MetricPage, parse_selector

            url, name = flags.metric
            return MetricPage(url, parse_selector(name))
        if flags.group is None or flags.topic_url is None:
            missing = "--group" if flags.group is None else "--from"
            raise ConfigurationError(f"the backlog of a group needs --group and --from, {missing} is missing")
        return _open_backlog(flags.group, flags.topic_url)
    except ValueError as error:
        raise ConfigurationError(f"{'--metric' if flags.metric else '--from'}: {error}") from None


def _open_processor_share(supervisor: Supervisor, target: float, clock: Clock) -> MetricSource:
    from hopwatch.scale.processor_share import PROC, ProcessorShare

    if not (PROC / "self" / "stat").exists():
        raise ConfigurationError("--policy cpu reads /proc of Linux, which is not here: scale by --policy lag")
    return ProcessorShare(lambda: supervisor.running, target, clock.monotonic_s)


def _open_backlog(group: str, url: str) -> MetricSource:
    from hopwatch.probes.contract.kafka import SCHEME, KafkaPlace
    from hopwatch.probes.environment import read_variables
    from hopwatch.probes.kafka.client import read_access
    from hopwatch.scale.group_backlog import GroupBacklog

    place = KafkaPlace.parse(url)
    if url.removeprefix(SCHEME).rstrip("/") == place.brokers:
        raise ValueError(f"it names no topic, got {url!r:.80}")
    return GroupBacklog(place, group, read_access(read_variables()))


def _build_behaviour(
    default: ScalingBehaviour, flag: str, window: str, rates: Sequence[str] | None
) -> ScalingBehaviour:
    limits = default.limits if rates is None else tuple(parse_rate(f"{flag}-rate", rate) for rate in rates)
    return ScalingBehaviour(parse_span_us(f"{flag}-window", window, may_be_zero=True) / US_PER_S, limits)


def parse_rate(flag: str, text: str) -> RateLimit:
    """Parse a limit, such as ``4/15s`` or ``100%/15s``.

    Raises:
        ConfigurationError: it is none.
    """
    found = _RATE.fullmatch(text)
    if found is None or not int(found[1]):
        raise ConfigurationError(f"{flag} is N/TIME or N%/TIME with N above 0, such as 4/15s, got {text!r:.80}")
    unit = RateUnit.PERCENT if found[2] else RateUnit.PROCESSES
    return RateLimit(unit, int(found[1]), parse_span_us(flag, found[3]) / US_PER_S)


def _tell_step(step: ScalingStep, *, as_json: bool, policy: Policy, target: float, clock: Clock) -> None:
    """Print a decision: as a line of JSON each one, in words those that change something or lack a metric."""
    decision = step.decision
    if as_json:
        told = {
            "at": format_iso(clock.now_us()),
            "policy": policy,
            "metric": step.metric,
            "target": target,
            "before": step.before,
            "recommended": decision.recommended,
            "processes": decision.processes,
            "reason": decision.reason,
            "running": step.running,
            "ending": step.ending,
            "restarts": step.restarts,
            "fault": step.fault,
        }
        console.emit_json_line(told)
    if step.fault:
        _print_message(f"no metric, {_format_count(decision.processes)} as before: {step.fault}")
    elif decision.processes != step.before:
        why = f"{policy} is {step.metric:g} of {target:g}"
        _print_message(f"{_format_count(decision.processes)} instead of {step.before}: {why}")


def _format_count(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def _print_message(what: str) -> None:
    console.stderr().print(f"hopwatch scale: {what}")
