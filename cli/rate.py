"""``hopwatch rate``: find the highest rate at which a stream keeps a target, by open-loop load."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from hopwatch import __version__
from hopwatch.cli import console, signals
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_streams
from hopwatch.cli.entry import INTERRUPTED_EXIT_CODE
from hopwatch.monitor.errors import ConfigurationError, DependencyError
from hopwatch.rate.schedule import Arrivals

if TYPE_CHECKING:
    from hopwatch.rate.results import RatingResult, StepResult

FINDING_EXIT_CODE: Final = 1


def command(  # noqa: PLR0913 - one parameter a flag
    consumer: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND", help="With --consumers: a consumer of the stream.")
    ] = None,
    *,
    stream: Annotated[str, typer.Option("--stream", help="The stream to rate.")],
    until: Annotated[str, typer.Option("--until", help='The target: "e2e p95 <= 500 ms and loss = 0".')],
    events: Annotated[Path, typer.Option("--events", help="Data of events, one JSON object a line, sent in turn.")],
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="URL", help="The last topic: kafka://HOST:PORT/TOPIC.")
    ] = None,
    receiver: Annotated[
        str | None, typer.Option("--receiver", metavar="HOST:PORT", help="Receive here what is delivered by HTTP.")
    ] = None,
    config: Config = DEFAULT_CONFIG,
    entrance: Annotated[str, typer.Option("--entrance", metavar="URL", help="The gate.")] = "http://127.0.0.1:8081",
    token_file: Annotated[Path | None, typer.Option("--token-file", help="A file with the gate's token.")] = None,
    arrivals: Annotated[Arrivals, typer.Option("--arrivals", help="Spans between messages.")] = Arrivals.CONSTANT,
    batch: Annotated[int, typer.Option("--batch", min=1, max=1_000, help="Messages of one request at most.")] = 100,
    linger: Annotated[
        str, typer.Option("--linger", help="A request is sent so long after its first message.")
    ] = "20ms",
    start: Annotated[float, typer.Option("--start", help="The first rate, messages a second.")] = 100.0,
    max_rate: Annotated[float, typer.Option("--max-rate", help="The highest rate to try.")] = 50_000.0,
    tolerance: Annotated[float, typer.Option("--tolerance", help="The search ends at rates so near.")] = 0.05,
    at: Annotated[
        list[float] | None, typer.Option("--at", metavar="RATE", help="Judge this rate, and search for none.")
    ] = None,
    hold: Annotated[str, typer.Option("--hold", help="With --at: how long each rate is held.")] = "60s",
    repeats: Annotated[int, typer.Option("--repeats", min=1, max=100, help="Searches.")] = 3,
    time_limit: Annotated[str, typer.Option("--for", help="The run ends after so long.")] = "30m",
    patience: Annotated[
        str, typer.Option("--patience", help="What is missing so long after the last arrival is lost.")
    ] = "5s",
    process: Annotated[
        list[str] | None, typer.Option("--process", metavar="NODE=PID", help="A process of a node, for its share.")
    ] = None,
    consumers: Annotated[
        str | None, typer.Option("--consumers", metavar="N,N,...", help="Rate with so many processes of COMMAND.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of Poisson arrivals.")] = 0,
    i_own_this: Annotated[bool, typer.Option("--i-own-this", help="Load machines other than this one.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page with curves.")] = None,
) -> None:
    """Find the highest rate at which a stream keeps a target, and what saturates beyond it.

    Sends messages to the gate at growing rates, then bisects. It loads the whole stream.
    """
    from hopwatch.cli import rate_builder
    from hopwatch.cli.rate_builder import RatingFlags
    from hopwatch.rate.entrance import EntranceError
    from hopwatch.rate.observation_reader import ObservationsError
    from hopwatch.rate.receiver import ReceiverError
    from hopwatch.rate.results import RunEnd, build_json
    from hopwatch.rate.runner import NothingArrivedError

    flags = RatingFlags(
        stream=stream,
        until=until,
        events=events,
        topic=topic,
        receiver=receiver,
        entrance=entrance,
        token_file=token_file,
        arrivals=arrivals,
        batch=batch,
        linger=linger,
        start=start,
        max_rate=max_rate,
        tolerance=tolerance,
        at=at or [],
        hold=hold,
        repeats=repeats,
        time_limit=time_limit,
        patience=patience,
        processes=process or [],
        consumers=consumers,
        consumer=consumer or [],
        seed=seed,
        is_owned=i_own_this,
    )
    plan = rate_builder.build_plan(load_streams(config), flags)
    if html is not None:
        _check_writable(html)
    words, stop = console.stderr(), Event()
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    bar = Progress(*columns, console=words, transient=True, disable=not words.is_terminal)
    task = bar.add_task("waiting for the stream", total=None)
    with signals.stop_on_signals(stop), bar:
        try:
            result = rate_builder.run_plan(
                plan,
                stop,
                lambda line: words.print(f"hopwatch rate: {line}"),
                _print_step,
                lambda rate, passed_s, length_s: bar.update(
                    task, description=f"{rate:,.0f} messages/s", completed=passed_s, total=length_s
                ),
            )
        except EntranceError as error:
            raise ConfigurationError(str(error)) from None
        except (ReceiverError, NothingArrivedError, ObservationsError) as error:
            raise DependencyError(str(error)) from None
    if html is not None:
        _write_page(html, result)
    if as_json:
        console.emit_json(build_json(result))
    else:
        _print_result(result)
    if result.end is RunEnd.INTERRUPTED:
        raise typer.Exit(INTERRUPTED_EXIT_CODE)
    if not result.has_held:
        raise typer.Exit(FINDING_EXIT_CODE)


def _print_step(step: StepResult) -> None:
    from hopwatch.rate.texts import format_rate, format_span

    lag, why = step.verdict.lags[1].lag_s, "; ".join(step.verdict.reasons)
    told = f"{format_rate(step.rate_per_s)} messages/s {step.verdict.state}, p95 {format_span(lag)}"
    console.stderr().print(f"hopwatch rate: {told}{': ' if why else ''}{why}")


def _print_result(result: RatingResult) -> None:
    from rich import box
    from rich.table import Table

    from hopwatch.cli.wide_tables import print_wide_table
    from hopwatch.rate.texts import COLUMNS, describe_rating, describe_saturation, format_step

    out = console.stdout()
    out.print(f"stream {result.stream}, target {result.target}")
    for run in result.runs:
        for number, repeat in enumerate(run.repeats, 1):
            table = Table(title=f"search {number}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
            for head in COLUMNS:
                table.add_column(head, justify="left" if head == "outcome" else "right", no_wrap=True)
            for step in repeat.steps:
                table.add_row(*format_step(step))
            print_wide_table(out, table)
        out.print(describe_rating(run))
        out.print(describe_saturation(run.saturation))
    for note in result.notes:
        out.print(note)
    if result.end != "complete":
        out.print(f"the run is not complete: {result.end}")


def _check_writable(file: Path) -> None:
    """Check that a file can be written before the run.

    Raises:
        ConfigurationError: it cannot.
    """
    try:
        with file.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise ConfigurationError(f"--html cannot write {file}: {error.strerror or error}") from None


def _write_page(file: Path, result: RatingResult) -> None:
    from hopwatch.rate.page import render_page

    try:
        file.write_text(render_page(result, __version__), "utf-8", errors="replace")
    except OSError as error:
        console.stderr().print(f"hopwatch rate: --html cannot write {file}: {error.strerror or error}")
    else:
        console.stderr().print(f"hopwatch rate: the page is in {file}")
