"""Edits of a stream in ``hopwatch.toml``: chains of its path, and deadlines; all else and all comments stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import tomlkit
from tomlkit.items import Array, InlineTable, Table

from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.settings.durations import format_duration_us

if TYPE_CHECKING:
    from hopwatch.monitor.kernel.placement import Arrow, PathEdit

_ARROW: Final = " -> "


class _Hop(NamedTuple):
    """Names between two arrows, joined by ``|`` or ``&``."""

    names: tuple[str, ...]
    joint: str = ""

    def __str__(self) -> str:
        return f" {self.joint} ".join(self.names)


def edit_chains(chains: Sequence[str], edit: PathEdit) -> list[list[str]]:
    """Return, for each chain, the chains that take its place; what fits into none comes behind the last one.

    Raises:
        PathwayError: the edited path is none.
    """
    added = list(edit.added)
    edited = [list(_edit_chain(chain, edit.removed, added)) for chain in chains]
    for source, targets in added:
        edited[-1].append(f"{source}{_ARROW}{' | '.join(targets)}")
    Pathway.parse([chain for of_chain in edited for chain in of_chain])
    return edited


def _edit_chain(chain: str, removed: Sequence[Arrow], added: list[Arrow]) -> Iterator[str]:
    """Yield the chains that take the place of one; arrows that are added here are taken out of the list."""
    hops = [_parse_hop(text) for text in chain.split("->")]
    for place, (sources, targets) in enumerate(pairwise(hops)):
        met = next((arrow for arrow in removed if _has_arrow(sources, targets, arrow)), None)
        if met is None:
            continue
        source = met[0]
        instead = [arrow for arrow in added if arrow[0] == source]
        onward = [arrow for arrow in added if any(arrow[0] in one[1] for one in instead)]
        for arrow in (*instead, *onward):
            added.remove(arrow)
        if sources.names == (source,) and _is_between(instead, onward, targets):
            # All goes by the new node: it is one more hop of the chain.
            longer = [*hops[: place + 1], _Hop(instead[0][1]), *hops[place + 1 :]]
            yield from _edit_chain(_ARROW.join(map(str, longer)), removed, added)
            return
        if place:
            yield _ARROW.join(map(str, hops[: place + 1]))
        for name in sources.names:
            kept = [one for one in _list_arrows(targets) if name != source or set(one) != set(met[1])]
            # The targets joined by & are arrows of their own.
            if kept and all(len(one) == 1 for one in kept):
                yield from _edit_chain(f"{name}{_ARROW}{' & '.join(one[0] for one in kept)}", removed, added)
            else:
                for one in kept:
                    yield from _edit_chain(f"{name}{_ARROW}{' | '.join(one)}", removed, added)
        yield from (f"{one}{_ARROW}{' | '.join(names)}" for one, names in (*instead, *onward))
        if place + 2 < len(hops):
            yield from _edit_chain(_ARROW.join(map(str, hops[place + 1 :])), removed, added)
        return
    yield chain


def _is_between(instead: Sequence[Arrow], onward: Sequence[Arrow], targets: _Hop) -> bool:
    """Return whether one arrow leads to one new node, and one from there to a whole hop."""
    if len(instead) != 1 or len(onward) != 1:
        return False
    is_new = instead[0][1] == (onward[0][0],)
    return is_new and _list_arrows(targets) == [onward[0][1]]


def _parse_hop(text: str) -> _Hop:
    joint = "|" if "|" in text else "&" if "&" in text else ""
    names = text.split(joint) if joint else [text]
    return _Hop(tuple(name.strip() for name in names), joint)


def _list_arrows(targets: _Hop) -> list[tuple[str, ...]]:
    """Return the targets of each arrow that leads to a hop from any of its sources."""
    return [targets.names] if targets.joint == "|" else [(name,) for name in targets.names]


def _has_arrow(sources: _Hop, targets: _Hop, arrow: Arrow) -> bool:
    wanted = frozenset(arrow[1])
    return arrow[0] in sources.names and any(frozenset(one) == wanted for one in _list_arrows(targets))


def edit_path(text: str, stream: str, edit: PathEdit, sides: str, node: str) -> str:
    """Return a configuration in which a stream's path is edited; ``sides`` are what the new node stamps.

    Raises:
        ConfigurationError: the text has no path of the stream, which environment or flags may have.
        PathwayError: the edited path is none.
    """
    document = tomlkit.parse(text)
    table = _find_stream(document, stream)
    path = table["path"]
    if isinstance(path, Array):
        _edit_array(path, edit_chains([str(chain) for chain in path], edit))
    else:
        (chains,) = edit_chains([str(path)], edit)
        table["path"] = chains[0] if len(chains) == 1 else chains
    if sides != "both":
        _set_table(table, "stamps", {**table.get("stamps", {}), node: sides})
    return tomlkit.dumps(document)


def edit_deadlines(text: str, stream: str, deadlines_us: Mapping[str, int]) -> str:
    """Return a configuration in which a stream has these deadlines of nodes, and no other ones.

    Raises:
        ConfigurationError: the text has no path of the stream, which environment or flags may have.
    """
    document = tomlkit.parse(text)
    named = {node: format_duration_us(span_us) for node, span_us in deadlines_us.items()}
    _set_table(_find_stream(document, stream), "deadline", named)
    return tomlkit.dumps(document)


def _find_stream(document: tomlkit.TOMLDocument, stream: str) -> Table | InlineTable:
    table = document.get("streams", {}).get(stream)
    if not isinstance(table, Table | InlineTable) or "path" not in table:
        raise ConfigurationError(f"the configuration has no path of {stream!r}: it is set elsewhere, edit it there")
    return table


def _set_table(table: Table | InlineTable, key: str, values: Mapping[str, str]) -> None:
    """Set all values of an inner table; a new one follows the path, as comments at the end may be about what comes."""
    known = table.get(key)
    if isinstance(known, Table):
        known.update(values)
        for name in known.keys() - values.keys():
            del known[name]
        return
    inline = tomlkit.inline_table()
    inline.update(values)
    if key in table or isinstance(table, InlineTable) or table.display_name is None:
        table[key] = inline
    else:
        trivia = table["path"].trivia
        trivia.trail = (trivia.trail or "\n") + f"{key} = {inline.as_string()}{trivia.trail}"


def _edit_array(path: Array, edited: Sequence[Sequence[str]]) -> None:
    """Put chains in the place of those of an array; comments stay with the lines that they follow."""
    place = 0
    for chains in edited:
        if not chains:
            del path[place]
        elif str(path[place]) != chains[0]:
            path[place] = chains[0]
        for offset, chain in enumerate(chains[1:], 1):
            path.insert(place + offset, chain)
        place += len(chains)
