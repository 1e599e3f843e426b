"""``hopwatch find --ids-from``: the fate of each message in a list of ids, one per line."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

import typer
from rich.progress import Progress

from hopwatch.cli import console
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.lookup import journey, search
from hopwatch.monitor.lookup.fates import MAX_IDS, MAX_MESSAGES, Fate, WantedIds
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.settings import Settings

STANDARD_INPUT: Final = "-"
NOT_FOUND: Final = "nothing is kept of it"
_FINDING_EXIT_CODE: Final = 1
_MAX_BYTES: Final = 64 * 1024 * 1024


def find_ids(chosen: Settings, ids_from: str, stream: str | None, *, as_json: bool) -> None:
    """Print the fate of each id in a file; exit 1 if one is unknown."""
    given = read_ids(ids_from)
    meant = {text: journey.parse_ids(text) for text in given}
    words = console.stderr()
    with Progress(console=words, transient=True, disable=not words.is_terminal) as progress:
        searching = partial(progress.track, description=f"searching for {len(given):,} ids")
        wanted = WantedIds(one for ids in meant.values() for one in ids)
        found, is_cut = search.find_fates(chosen, wanted, stream, searching)
    told = {text: [fate for one in ids for fate in found.get(one, ())] for text, ids in meant.items()}
    if as_json:
        console.emit_json({"ids": [{"id": text, "messages": list(map(_to_json, told[text]))} for text in given]})
    else:
        for text in given:
            for line in map(_format_line, told[text]) if told[text] else [NOT_FOUND]:
                console.stdout().print(f"{text}  {line}", soft_wrap=True)
    if is_cut:
        words.print(f"only {MAX_MESSAGES:,} messages were kept in memory: ask for fewer ids at once")
    if not all(told.values()):
        raise typer.Exit(_FINDING_EXIT_CODE)


def _format_line(fate: Fate) -> str:
    where = fate.message
    return f"{fate.description} ({where.stream}, window {format_iso(where.window_start_us)})"


def _to_json(fate: Fate) -> dict[str, Any]:
    where = fate.message
    told = {"stream": where.stream, "window_start": format_iso(where.window_start_us), "fate": fate.fate}
    return told | {"node": fate.node, "reason": fate.reason}


def read_ids(ids_from: str) -> list[str]:
    """Read the ids of a file, in order and without duplicates; blanks around an id are dropped."""
    try:
        if ids_from == STANDARD_INPUT:
            data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with Path(ids_from).open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
        lines = data.decode("utf-8-sig").splitlines()
    except OSError as error:
        raise ConfigurationError(f"--ids-from {ids_from} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"--ids-from {ids_from} is a text in UTF-8, got bytes at {error.start}") from None
    given = list(dict.fromkeys(line.strip() for line in lines))
    if len(given) > MAX_IDS or len(data) > _MAX_BYTES:
        told = f"--ids-from takes {MAX_IDS:,} ids, of {_MAX_BYTES // 2**20} MiB in all, at once"
        raise ConfigurationError(f"{told}, got {len(given):,} or more: cut the file up")
    if not given:
        raise ConfigurationError(f"--ids-from {ids_from} has no id: there is one on each line")
    if "" in given:
        number = next(place for place, line in enumerate(lines, 1) if not line.strip())
        raise ConfigurationError(f"--ids-from {ids_from} has no id on line {number}: there is one on each line")
    return given
