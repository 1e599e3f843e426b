"""``hopwatch pathway discover`` and ``adopt``: nodes and edges that no path has, and the way of a node into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hopwatch.cli.config_edit import diff_texts, replace_file
from hopwatch.cli.configuration import DEFAULT_CONFIG, AsJson, Config, load_streams
from hopwatch.cli.console import emit_json, stderr, stdout
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.kernel.placement import (
    NeighbourCounts,
    NodePlacement,
    PathEdit,
    PlacementError,
    find_placement,
    plan_edit,
)
from hopwatch.monitor.kernel.shortcuts import Shortcut, find_shortcuts
from hopwatch.monitor.pathway import PathwayError
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.settings import path_edit
from hopwatch.monitor.store import schema
from hopwatch.monitor.texts.escaping import escape_line

if TYPE_CHECKING:
    from hopwatch.monitor.accounting.undeclared_names import UndeclaredName
    from hopwatch.monitor.settings import Settings


class DiscoveredNode(NamedTuple):
    """Undeclared node of a stream: its place, and the change of the path that declares it, or why there is none.

    ``sides`` are those that it stamps. The place is None of a node of which no message was found.
    """

    stream: str
    node: str
    placement: NodePlacement | None
    edit: PathEdit | None
    sides: str
    obstacle: str

    def describe(self) -> list[str]:
        """Return it in lines."""
        lines = [f"{self.stream}: {escape_line(self.node)} is not declared"]
        if (place := self.placement) is not None:
            since = f", since {format_iso(place.since_us)}" if place.since_us is not None else ""
            lines.append(f"  {place.messages:,} messages{since}")
            if place.before:
                lines.append(f"  before it: {_format_neighbours(place.before)}")
            if place.behind:
                lines.append(f"  behind it: {_format_neighbours(place.behind)}")
        if self.edit is not None:
            lines.append(_describe_edit(self.edit))
            lines += [f"  {warning}" for warning in self.list_warnings()]
            lines.append(f"  hopwatch pathway adopt {escape_line(self.node)} --stream {self.stream} edits the file")
        else:
            lines.append(f"  {self.obstacle}; ignore_nodes leaves it out")
        return lines

    def list_warnings(self) -> list[str]:
        """Return what is to be known before the node is declared."""
        edit = self.edit
        if edit is None or not edit.unseen:
            return []
        told = f"{edit.unseen:,} of {edit.passing:,} messages that passed there were not seen at {self.node}"
        return [f"{escape_line(told)}: such messages will count as lost"]

    def to_json(self) -> dict[str, Any]:
        """Return it as ``--json`` shows it."""
        place, edit = self.placement, self.edit
        since_us = place.since_us if place is not None else None
        return {
            "stream": self.stream,
            "node": self.node,
            "messages": place.messages if place is not None else 0,
            "since": None if since_us is None else format_iso(since_us),
            "before": [one._asdict() for one in place.before] if place is not None else [],
            "behind": [one._asdict() for one in place.behind] if place is not None else [],
            "stamps": self.sides,
            "removed": [_format_arrow(arrow) for arrow in edit.removed] if edit is not None else [],
            "added": [_format_arrow(arrow) for arrow in edit.added] if edit is not None else [],
            "unseen": edit.unseen if edit is not None else 0,
            "obstacle": self.obstacle,
        }


class DiscoveredEdge(NamedTuple):
    """Undeclared edge of a stream between declared nodes."""

    stream: str
    shortcut: Shortcut

    def describe(self) -> list[str]:
        """Return it in lines."""
        (source, targets), target, messages, sent = self.shortcut
        return [
            f"{self.stream}: messages go from {source} to {target} past {' and '.join(targets)}",
            f"  {messages:,} of {sent:,} that {source} saw, unless the probes of {' and '.join(targets)} missed them",
            _describe_edit(PathEdit((self.shortcut.arrow,), (self.shortcut.edited_arrow,))),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return it as ``--json`` shows it."""
        one = self.shortcut
        return {
            "stream": self.stream,
            "source": one.arrow[0],
            "past": list(one.arrow[1]),
            "target": one.target,
            "messages": one.messages,
            "sent": one.sent,
            "removed": [_format_arrow(one.arrow)],
            "added": [_format_arrow(one.edited_arrow)],
        }


def discover(
    config: Config = DEFAULT_CONFIG,
    stream: Annotated[str | None, typer.Option("--stream", help="Only nodes of this stream.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Find nodes and edges that no path has.

    Messages of the last minutes are compared: those of nodes that probes report and no path has with those of the
    declared ones, and of declared nodes those that went past the next one.
    """
    settings = load_streams(config)
    settings.check_stream(stream)
    found = [_discover_node(settings, name) for name in _list_names(settings, stream)]
    edges = list(_discover_edges(settings, stream, without={one.stream for one in found}))
    if as_json:
        emit_json({"nodes": [one.to_json() for one in found], "edges": [one.to_json() for one in edges]})
        return
    told: list[DiscoveredNode | DiscoveredEdge] = [*found, *edges]
    for line in [line for one in told for line in one.describe()]:
        stdout().print(line, soft_wrap=True)
    if not told:
        stdout().print("no probe reports a node or an edge that its path does not have")


def adopt(
    node: Annotated[str, typer.Argument(help="The node, as discover names it.")],
    stream: Annotated[str, typer.Option("--stream", help="The stream of the node.")],
    config: Config = DEFAULT_CONFIG,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the change, and write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add a discovered node to its path in the file.

    Comments stay as they are. A running monitor takes the change up with the next minute.
    """
    settings = load_streams(config)
    settings.check_stream(stream)
    name = next((one for one in _list_names(settings, stream) if one.node == node), None)
    if name is None:
        raise ConfigurationError(
            f"no probe reports an undeclared node {node!r:.80} of {stream!r}: see pathway discover"
        )
    found = _discover_node(settings, name)
    if found.edit is None:
        raise ConfigurationError(f"{found.obstacle}: edit the path by hand")
    before = config.read_bytes().decode()
    try:
        after = path_edit.edit_path(before, stream, found.edit, found.sides, node)
    except PathwayError as error:
        raise ConfigurationError(f"the path cannot be edited: {error}; edit it by hand") from None
    changes = diff_texts(config, before, after)
    if not dry_run:
        replace_file(config, after)
    if as_json:
        emit_json({"file": str(config), "is_written": not dry_run, **found.to_json(), "diff": changes})
        return
    for line in changes:
        stdout().print(escape_line(line), soft_wrap=True)
    for warning in found.list_warnings():
        stderr().print(f"hopwatch: {warning}", soft_wrap=True)


def _list_names(settings: Settings, stream: str | None) -> list[UndeclaredName]:
    from hopwatch.monitor.lookup import discovery

    schema.require_store(settings.store.url)
    return discovery.find_undeclared_nodes(settings, stream)


def _discover_edges(settings: Settings, stream: str | None, without: set[str]) -> Iterator[DiscoveredEdge]:
    """Yield the edges of streams; those with an undeclared node are left out, as messages may have gone there."""
    from hopwatch.monitor.lookup import discovery

    for name, end_us in discovery.find_unobserved_streams(settings, stream).items():
        if name not in without:
            sightings = discovery.read_declared_sightings(settings, name, end_us)
            shortcuts = find_shortcuts(sightings, settings.streams[name].pathway)
            yield from (DiscoveredEdge(name, one) for one in shortcuts)


def _discover_node(settings: Settings, name: UndeclaredName) -> DiscoveredNode:
    from hopwatch.monitor.lookup import discovery

    sightings = discovery.read_sightings(settings, name)
    own = sightings.get(name.node)
    if own is None:
        told = f"no message of {name.node} is old enough yet, or it only counts, or its records are gone"
        return DiscoveredNode(name.stream, name.node, None, None, "both", told)
    sides = "both" if own.has_in and own.has_out else "in" if own.has_in else "out"
    placement = find_placement(name.node, sightings)
    try:
        edit = plan_edit(placement, sightings, settings.streams[name.stream].pathway)
    except PlacementError as error:
        return DiscoveredNode(name.stream, name.node, placement, None, sides, str(error))
    return DiscoveredNode(name.stream, name.node, placement, edit, sides, "")


def _format_neighbours(neighbours: Sequence[NeighbourCounts]) -> str:
    return ", ".join(f"{escape_line(one.node)} ({one.messages:,})" for one in neighbours)


def _describe_edit(edit: PathEdit) -> str:
    removed, added = (map(_format_arrow, arrows) for arrows in (edit.removed, edit.added))
    changes = [*(f"-{arrow}" for arrow in removed), *(f"+{arrow}" for arrow in added)]
    return f"  as a part of the path: {', '.join(changes)}"


def _format_arrow(arrow: tuple[str, tuple[str, ...]]) -> str:
    source, targets = arrow
    return escape_line(f"{source} -> {' | '.join(targets)}")
