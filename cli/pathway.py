"""``hopwatch pathway check FILE``: report all errors of a configuration, or draw its pathways."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from hopwatch.cli.configuration import load_streams
from hopwatch.cli.console import emit_json, stdout
from hopwatch.monitor.errors import SettingsError
from hopwatch.monitor.pathway import COUNT, Pathway

command = typer.Typer(help="Check a configuration, and draw its pathways.", no_args_is_help=True)


@command.callback()
def _pathway() -> None:
    """Check a configuration, and draw its pathways."""


@command.command()
def check(
    file: Annotated[Path, typer.Argument(help="The configuration, hopwatch.toml.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say what is wrong with a configuration, or draw its pathways.

    Each thing that is wrong with its file, line and key. Exits with 2 when something is wrong.
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
