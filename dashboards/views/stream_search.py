"""Search for streams: by words that are in their names, in those of their nodes, or in their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hopwatch.dashboards.queries.models import StreamsOverview


def format_labels(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the labels of a stream as they are shown and searched for, such as ``team=payments``."""
    return tuple(f"{name}={value}" for name, value in labels.items())


def find_streams(standing: StreamsOverview, names: Mapping[str, Iterable[str]], search: str) -> StreamsOverview:
    """Return the overview of those streams that have each word of a search in their name, a node's or another one.

    ``names`` are the other ones, by stream: its labels, and nodes of which no window is final. A word with a value,
    such as ``tier=1``, is a whole label: ``tier=10`` is another one.
    """
    words = search.casefold().split()
    found = []
    for one in standing.streams:
        nodes = [node.node for node in one.newest.nodes] if one.newest else []
        folded = [name.casefold() for name in (one.stream, *nodes, *names.get(one.stream, ()))]
        if all(any(_is_found(word, name) for name in folded) for word in words):
            found.append(one)
    return replace(standing, streams=tuple(found))


def _is_found(word: str, name: str) -> bool:
    _, _, value = word.partition("=")
    return word == name if value else word in name
