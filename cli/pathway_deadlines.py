"""``hopwatch pathway deadlines``: deadlines that are learnt from how long messages took, and their way into a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from hopwatch.cli.config_edit import diff_texts, replace_file
from hopwatch.cli.configuration import DEFAULT_CONFIG, AsJson, Config, load_streams, parse_span_us
from hopwatch.cli.console import emit_json, stdout
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.kernel.deadlines import LearntDeadline, SlowestPart, learn_deadlines
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.settings import path_edit
from hopwatch.monitor.settings.durations import format_duration_us
from hopwatch.monitor.store import dialect, path_times, schema
from hopwatch.monitor.store.path_times import TimedSpan
from hopwatch.monitor.texts.escaping import escape_line
from hopwatch.probes.contract.limits import WINDOW_US

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

MAX_SPAN_US: Final = 86_400_000_000
"""Longest span that is learnt from: of a path of 100 nodes it has some 300,000 rows."""


class StreamDeadlines(NamedTuple):
    """Deadlines of a stream: those of now, by node, and those that were learnt; the span is None without any times."""

    stream: str
    nodes: tuple[str, ...]
    now_us: Mapping[str, int]
    span: TimedSpan | None
    learnt: list[LearntDeadline]

    def merge(self) -> dict[str, int]:
        """Return the deadlines of now, those that were learnt in their place; µs by node, in the order of the path."""
        merged = {**self.now_us, **{one.node: one.deadline_us for one in self.learnt if one.deadline_us is not None}}
        return {node: merged[node] for node in self.nodes if node in merged}

    def describe(self) -> list[str]:
        """Return it in lines."""
        if self.span is None:
            return [f"{self.stream}: no window has times of messages yet"]
        minutes = f"{self.span.windows:,} window{'s' if self.span.windows > 1 else ''}"
        lines = [f"{self.stream}: {minutes} from {format_iso(self.span.from_us)} to {format_iso(self.span.to_us)}"]
        return lines + [f"  {_describe_deadline(one, self.now_us.get(one.node))}" for one in self.learnt]

    def to_json(self) -> dict[str, Any]:
        """Return it as ``--json`` shows it."""
        span = self.span
        return {
            "stream": self.stream,
            "from": None if span is None else format_iso(span.from_us),
            "to": None if span is None else format_iso(span.to_us),
            "windows": 0 if span is None else span.windows,
            "nodes": [
                {
                    "node": one.node,
                    "deadline_us": self.now_us.get(one.node),
                    "learnt_us": one.deadline_us,
                    "slowest": None if one.slowest is None else one.slowest._asdict(),
                    "obstacle": one.obstacle,
                }
                for one in self.learnt
            ],
        }


def deadlines(  # noqa: PLR0913 - one a flag
    config: Config = DEFAULT_CONFIG,
    stream: Annotated[str | None, typer.Option("--stream", help="Only nodes of this stream.")] = None,
    over: Annotated[str, typer.Option("--over", help="Learn from windows of this span; at most 24h.")] = "6h",
    floor: Annotated[str, typer.Option("--floor", help="No learnt deadline is shorter.")] = "5s",
    *,
    write: Annotated[bool, typer.Option("--write", help="Put them into the file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Learn deadlines from how long messages took.

    Of each part of the path 99.9 % of the messages took at most the deadline of its node. --write keeps the comments
    of the file, and deadlines of nodes for which none was learnt. A running monitor takes the change up with the next
    minute.
    """
    settings = load_streams(config)
    settings.check_stream(stream)
    limits_us = _parse_over_us(over), parse_span_us("--floor", floor)
    schema.require_store(settings.store.url)
    found = _learn(settings, [stream] if stream is not None else list(settings.streams), *limits_us)
    changes = _write(config, found) if write else []
    if as_json:
        streams = [one.to_json() for one in found]
        emit_json({"file": str(config), "is_written": bool(changes), "streams": streams, "diff": changes})
        return
    for line in [*(line for one in found for line in one.describe()), *map(escape_line, changes)]:
        stdout().print(line, soft_wrap=True)
    if write and not changes:
        stdout().print("the file has these deadlines already", soft_wrap=True)


def _write(config: Path, found: list[StreamDeadlines]) -> list[str]:
    """Put deadlines into the file, and return the lines that change.

    Raises:
        SettingsError: the edited file would be wrong.
        ConfigurationError: the file does not have a stream, or cannot be written.
    """
    before = after = config.read_bytes().decode()
    for one in found:
        if (merged := one.merge()) != one.now_us:
            after = path_edit.edit_deadlines(after, one.stream, merged)
    if after != before:
        replace_file(config, after)
    return diff_texts(config, before, after)


def _parse_over_us(text: str) -> int:
    """Return a span in whole windows.

    Raises:
        ConfigurationError: it is none, or too short or too long.
    """
    over_us = parse_span_us("--over", text)
    if not WINDOW_US <= over_us <= MAX_SPAN_US:
        raise ConfigurationError(f"--over is from 1m to 24h, got {text!r}")
    return over_us - over_us % WINDOW_US


def _learn(settings: Settings, streams: list[str], over_us: int, floor_us: int) -> list[StreamDeadlines]:
    found = []
    with schema.open_snapshot(dialect.create_engine(settings.store.url)) as connection:
        for name in streams:
            config = settings.streams[name]
            span = path_times.query_timed_span(connection, name, over_us)
            limits_us = floor_us, config.transit_us
            learnt = [] if span is None else list(learn_deadlines(config.pathway, span.times, *limits_us))
            found.append(StreamDeadlines(name, config.pathway.nodes, dict(config.deadlines), span, learnt))
    return found


def _describe_deadline(one: LearntDeadline, now_us: int | None) -> str:
    now = "none now" if now_us is None else f"{format_duration_us(now_us)} now"
    told = one.obstacle if one.deadline_us is None else format_duration_us(one.deadline_us)
    why = "" if one.slowest is None else f": 99.9 % of {_describe_part(one.slowest)}"
    return escape_line(f"{one.node}: {told} ({now}){why}")


def _describe_part(part: SlowestPart) -> str:
    where = f"inside {part.source}" if part.source == part.target else f"from {part.source} to {part.target}"
    return f"about {part.messages:,} messages {where} took at most {part.time_us / 1_000_000:,.3f} s"
