"""``hopwatch pathway``: check pathways, show their versions, find nodes that they lack, and learn deadlines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hopwatch.cli import pathway_deadlines, pathway_discovery
from hopwatch.cli.configuration import DEFAULT_CONFIG, AsJson, Config, load_settings, load_streams
from hopwatch.cli.console import emit_json, stderr, stdout
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError, SettingsError, StoreError
from hopwatch.monitor.pathway import COUNT, Pathway
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import dialect, pathway_versions, schema
from hopwatch.monitor.store.pathway_versions import RegisteredVersion
from hopwatch.monitor.version_changes import describe_changes

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings
    from hopwatch.monitor.stream_config import StreamConfig


command = typer.Typer(help="Check pathways, show their versions, find what they lack.", no_args_is_help=True)


@command.callback()
def _pathway() -> None:
    """Check pathways, show their versions, find what they lack."""


@command.command()
def check(
    file: Annotated[Path, typer.Argument(help="The configuration, hopwatch.toml.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Say what is wrong with a configuration, or draw its pathways.

    Each thing that is wrong with its file, line and key. Exits with 2 when something is wrong. Where there is a store,
    what the file says otherwise than the store is a new version, and from when it would be valid is said.
    """
    try:
        settings = load_streams(file, named_by="")
    except SettingsError as error:
        if as_json:
            problems = [asdict(problem) for problem in error.problems]
            emit_json({"file": str(file), "problems": problems, "streams": []})
        raise
    if as_json:
        streams = [_to_json(name, stream.pathway) for name, stream in settings.streams.items()]
        emit_json({"file": str(file), "problems": [], "streams": streams})
        return
    for name, stream in settings.streams.items():
        for line in draw_pathway(name, stream.pathway):
            stdout().print(line, soft_wrap=True)
    try:
        changes = find_changes(settings) if schema.has_store(settings.store.url) else []
    except StoreError as error:
        stderr().print(f"hopwatch: what would change is not known: {error}")
        return
    for one in changes:
        stdout().print(one.describe(), soft_wrap=True)


@command.command()
def diff(
    config: Config = DEFAULT_CONFIG,
    *,
    as_json: AsJson = False,
) -> None:
    """Say what a configuration would change in its store, and when.

    A change becomes valid in the first whole minute that has not begun and of which nothing has come.
    """
    settings = load_streams(config)
    schema.require_store(settings.store.url)
    changes = find_changes(settings)
    if as_json:
        emit_json({"changes": [one.to_json() for one in changes]})
        return
    for one in changes:
        stdout().print(one.describe(), soft_wrap=True)
    if not changes:
        stdout().print("nothing would change: each stream is configured as its store has it")


@command.command()
def history(
    config: Config = DEFAULT_CONFIG,
    stream: Annotated[str | None, typer.Option("--stream", help="Only the versions of this stream.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List the versions of the streams, the oldest first.

    Each with the minute from which on it is valid, and what it changed.
    """
    settings = load_settings(config)
    schema.require_store(settings.store.url)
    with schema.open_snapshot(dialect.create_engine(settings.store.url)) as connection:
        found = pathway_versions.read_history(connection, stream)
    if stream is not None and stream not in found:
        raise ConfigurationError(f"--stream names {stream!r}, the store has no version of such a stream")
    if as_json:
        told = [{"stream": name, "versions": list(_list_versions(of_stream))} for name, of_stream in found.items()]
        emit_json({"streams": told})
        return
    for name, of_stream in found.items():
        stdout().print(name, soft_wrap=True)
        for version in _list_versions(of_stream):
            changes = "; ".join(version["changes"]) or "the first version"
            stdout().print(f"  {version['valid_from'] or 'from the beginning':20}  {changes}", soft_wrap=True)


command.command()(pathway_discovery.discover)
command.command()(pathway_discovery.adopt)
command.command()(pathway_deadlines.deadlines)


class VersionChange(NamedTuple):
    """Change of a stream that is not registered yet: what it is, and from when on it would be valid, µs.

    The moment is None of a stream that the store does not know: all of its windows are of that version.
    """

    stream: str
    valid_from_us: int | None
    changes: list[str]

    def describe(self) -> str:
        """Return it as one line."""
        if self.valid_from_us is None:
            return f"{self.stream}: the store does not know this stream yet"
        return (
            f"{self.stream}: from {format_iso(self.valid_from_us)} on, if it is taken up now: {'; '.join(self.changes)}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as ``--json`` shows it."""
        valid_from = None if self.valid_from_us is None else format_iso(self.valid_from_us)
        return {"stream": self.stream, "valid_from": valid_from, "changes": self.changes}


def find_changes(settings: Settings) -> list[VersionChange]:
    """Return what the settings would change of the streams of their store, if they were taken up now.

    Raises:
        StoreError: the store cannot be read.
    """
    with schema.open_snapshot(dialect.create_engine(settings.store.url)) as connection:
        known = pathway_versions.read_versions(connection)
        planned = pathway_versions.plan_versions(connection, settings.stream_configs(), SystemClock().now_us())
    found = []
    for stream, config in planned.items():
        if stream not in known:
            found.append(VersionChange(stream, None, []))
        elif config.differs_from(known[stream]) and known[stream].terms != pathway_versions.UNKNOWN_TERMS:
            found.append(VersionChange(stream, config.valid_from_us, describe_changes(known[stream], config)))
    return found


def _list_versions(versions: Sequence[RegisteredVersion]) -> Iterator[dict[str, Any]]:
    before: StreamConfig | None = None
    for config, registered_us in versions:
        yield {
            "valid_from": format_iso(config.valid_from_us) if config.valid_from_us else None,
            "registered": format_iso(registered_us) if registered_us else None,
            "changes": [] if before is None else describe_changes(before, config),
            **pathway_versions.encode_config(config),
        }
        before = config


def draw_pathway(stream: str, pathway: Pathway) -> list[str]:
    """Draw a pathway: a line for the stream and one for each arrow of a node, with one-sided stamps.

    A node that sends a message to several places is a fork, with a prong each.
    """
    width = max(map(len, pathway.declared))
    lines = [stream]
    for place, node in enumerate(pathway.nodes):
        first, *others = [f"-> {' | '.join(targets)}" for targets in _list_targets(pathway, place)] or ["(end)"]
        one_sided = "" if pathway.stamps[place] == "both" else f"   stamps {pathway.stamps[place]} only"
        stem, prong = ("-+", " +") if others else ("", "")
        lines.append(f"  {node.ljust(width)} {stem}{first}{one_sided}")
        lines += [f"  {' ' * width} {prong}{other}" for other in others]
    for counting in pathway.counting:
        sides = [pathway.nodes[place] for place in (counting.before, counting.behind) if place is not None]
        lines.append(f"  {counting.name.ljust(width)} counts only, beside {' and '.join(sides)}")
    return lines


def _to_json(stream: str, pathway: Pathway) -> dict[str, Any]:
    nodes = [
        {"node": node, "stamps": pathway.stamps[place], "targets": _list_targets(pathway, place)}
        for place, node in enumerate(pathway.nodes)
    ]
    counting = [
        {"node": one.name, "stamps": COUNT, "before": _name(pathway, one.before), "behind": _name(pathway, one.behind)}
        for one in pathway.counting
    ]
    return {"stream": stream, "nodes": nodes, "counting": counting}


def _name(pathway: Pathway, place: int | None) -> str | None:
    return None if place is None else pathway.nodes[place]


def _list_targets(pathway: Pathway, place: int) -> list[list[str]]:
    """Return the targets of each arrow of a node; an arrow with several targets sends a message to one of them."""
    groups = [group for group in pathway.groups if group.source == place]
    return [[pathway.nodes[target] for target in group.targets] for group in groups]
