"""Edges between declared nodes that no path declares: messages that went past the nodes between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel.placement import MIN_SHARED, Arrow, NodeSightings
from hopwatch.monitor.pathway import Group, Pathway

MIN_MESSAGES: Final = 10
"""Fewer messages say nothing of an edge."""


class Shortcut(NamedTuple):
    """Edge that nobody declared: ``messages`` of the ``sent`` ones went from a source to a target past an arrow's ends.

    Or the probes of these ends missed them: of their messages nothing says which. ``arrow`` is as the path has it.
    """

    arrow: Arrow
    target: str
    messages: int
    sent: int

    @property
    def edited_arrow(self) -> Arrow:
        """Return the arrow that declares the edge: each message goes to one of the targets."""
        source, targets = self.arrow
        return source, (*targets, self.target)


def find_shortcuts(sightings: Mapping[str, NodeSightings], pathway: Pathway) -> list[Shortcut]:
    """Return the edges that messages took and no path has, in the order of the path.

    An edge is found by 2 % of the messages of its source, and 10 of them at least. No edge leads to a node that another
    arrow of the source leads to, as messages may have come by that.
    """
    return [found for group in pathway.groups for found in _find_past_arrow(sightings, pathway, group)]


def _find_past_arrow(sightings: Mapping[str, NodeSightings], pathway: Pathway, group: Group) -> Iterator[Shortcut]:
    source = pathway.nodes[group.source]
    targets = tuple(pathway.nodes[target] for target in group.targets)
    sent = sightings.get(source)
    if sent is None:
        return
    left = sent
    for name in targets:
        left = left.without(sightings[name].ids) if name in sightings else left
    least = max(MIN_MESSAGES, MIN_SHARED * len(sent.ids))
    for place in _list_onward(pathway, group):
        name = pathway.nodes[place]
        if name not in sightings or len(left.ids) < least:
            continue
        passed = _select_later(left, sightings[name])
        if len(passed) >= least:
            yield Shortcut((source, targets), name, len(passed), len(sent.ids))
        # What a node saw went on from there: no edge leads past it.
        left = left.without(passed)


def _list_onward(pathway: Pathway, group: Group) -> list[int]:
    """Return the nodes behind the ends of an arrow, nearest first, that no other arrow of its source leads to."""
    near, behind = set(group.targets), _list_behind(pathway, group)
    for other in pathway.groups:
        if other.source == group.source and other != group:
            near |= {*other.targets, *_list_behind(pathway, other)}
    return sorted(set(behind) - near)


def _list_behind(pathway: Pathway, group: Group) -> list[int]:
    return np.flatnonzero(pathway.downstream[list(group.targets)].any(axis=0)).tolist()


def _select_later(sent: NodeSightings, seen: NodeSightings) -> NDArray[np.uint64]:
    """Return the messages that a node saw after they were sent."""
    ids, before, after = np.intersect1d(sent.ids, seen.ids, assume_unique=True, return_indices=True)
    return np.asarray(ids[sent.moments_us[before] < seen.moments_us[after]])
