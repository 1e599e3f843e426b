"""Arrows of a path by names, whatever the order and the chains in which they stand."""

from __future__ import annotations

from collections.abc import Sequence

from hopwatch.monitor.pathway import Pathway


def read_arrows(path: Sequence[str]) -> set[tuple[str, frozenset[str]]]:
    """Return source and targets of each arrow: of several targets each message takes one."""
    pathway = Pathway.parse(path)
    return {
        (pathway.nodes[group.source], frozenset(pathway.nodes[target] for target in group.targets))
        for group in pathway.groups
    }
