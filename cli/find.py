"""``hopwatch find``: the journey of one message, or the fate of many, from stored data."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any

import typer
from rich import box
from rich.progress import Progress
from rich.table import Table

from hopwatch.cli import console, find_batch
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings
from hopwatch.cli.wide_tables import print_wide_table
from hopwatch.display.texts import format_lag
from hopwatch.monitor import settings
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.lookup import journey, missing_messages, search
from hopwatch.monitor.lookup.journey_json import journey_to_json
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.texts import loss_bounds
from hopwatch.monitor.texts.trace_url import build_trace_url
from hopwatch.probes.contract.limits import WINDOW_US

FINDING_EXIT_CODE = 1


def command(
    message_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="A UUID, 32 hexadecimal digits, a number or a text.")
    ] = None,
    config: Config = DEFAULT_CONFIG,
    stream: Annotated[str | None, typer.Option("--stream", help="Only this stream.")] = None,
    ids_from: Annotated[
        str | None,
        typer.Option("--ids-from", metavar="FILE", help="Look up many ids, one per line; - is stdin."),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show the journey of a message from stored data. Exit 1 when a message is unknown."""
    if (message_id is None) == (ids_from is None):
        raise ConfigurationError("one id is looked for, or those of --ids-from FILE: name one of the two")
    if not message_id and ids_from is None:
        raise ConfigurationError("the id is empty: name one, as the message was given it")
    chosen = load_settings(config)
    chosen.check_stream(stream, with_selftest=True)
    if message_id is None:
        find_batch.find_ids(chosen, str(ids_from), stream, as_json=as_json)
        return
    wanted = journey.parse_ids(message_id)
    words = console.stderr()
    with Progress(console=words, transient=True, disable=not words.is_terminal) as progress:
        searching = partial(progress.track, description="searching")
        stamps = search.find_stamps(chosen, wanted, stream, searching)
    lost = missing_messages.find_losses(chosen.store.url, wanted, stream)
    every = journey.unite_stamps(stamps, *(one.stamps for one in lost))
    told = journey_to_json(message_id, every, lost)
    told["trace_url"] = _find_trace_url(chosen.dashboard.trace_url, told)
    if as_json:
        console.emit_json(told)
    elif told["stamps"] or told["lost"]:
        _print_journey(told, [_describe_missing(chosen, one, every) for one in lost])
    else:
        where = "not among the segments that are kept, not among the lost ids"
        words.print(f"nothing is kept of {message_id!r:.80}: {where}")
    if not told["stamps"] and not told["lost"]:
        raise typer.Exit(FINDING_EXIT_CODE)


def _describe_missing(
    chosen: settings.Settings, lost: missing_messages.MissingMessage, every: Iterable[journey.MessageStamp]
) -> list[str]:
    """Describe the loss of a message at a node, and how many of its stamps are stored."""
    of_it = [one for one in every if _window(one) == (lost.stream, lost.window_start_us)]
    of_stream = chosen.streams.get(lost.stream)
    sides = dict(zip(of_stream.pathway.nodes, of_stream.pathway.stamps, strict=True)) if of_stream else {}
    count = lost.stamp_count or 0
    # A missing stamp may be the one that shows where.
    is_whole = len(of_it) >= count
    part = (
        journey.find_part_at(lost.node, of_it, sides.get(lost.node, "both"))
        if is_whole
        else loss_bounds.LossPart.SOMEWHERE
    )
    where = f"{lost.node} of {lost.stream}, window {format_iso(lost.window_start_us)}"
    said = [loss_bounds.describe_missing(where, lost.loss, lost.loss_lower, part)]
    return said if is_whole else [*said, f"{len(of_it):,} of its {count:,} stamps are kept"]


def _find_trace_url(template: str, told: dict[str, Any]) -> str | None:
    """Return the URL of the trace of a message; None where it has none that is known."""
    ids = (told["id"], *(one["message_id"] for one in (*told["stamps"], *told["lost"])))
    return next((url for url in (build_trace_url(template, one) for one in ids) if url), None)


def _window(stamp: journey.MessageStamp) -> tuple[str, int]:
    return stamp.stream, stamp.event_time_us // WINDOW_US * WINDOW_US


def _print_journey(told: dict[str, Any], missing: Iterable[list[str]]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("event time", "stream", "node", "probe", "lag in", "lag out", "outcome", "reason"):
        table.add_column(name, no_wrap=True)
    for stamp in told["stamps"]:
        lags = (format_lag(stamp["lag_in_us"]), format_lag(stamp["lag_out_us"]))
        before, behind = ("event_time", "stream", "node", "probe"), ("outcome", "reason")
        table.add_row(*(stamp[name] for name in before), *lags, *(stamp[name] for name in behind))
    data = console.stdout()
    print_wide_table(data, table)
    for lines in missing:
        for line in lines:
            data.print(line)
    if told["trace_url"]:
        data.print(f"trace: {told['trace_url']}", soft_wrap=True)
