"""Simulated messages that take a path, and what each node saw of them."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import numpy as np

from hopwatch.monitor.kernel.placement import NodeSightings
from hopwatch.monitor.pathway import Pathway

STEP_US: Final = 10_000


def travel(path: list[str], count: int, seed: int, *, loss: float = 0.0) -> dict[str, NodeSightings]:
    """Return what each node saw of messages that take a path; some are lost on each arrow."""
    pathway, chance = Pathway.parse(path), np.random.default_rng(seed)
    seen: dict[str, dict[int, int]] = defaultdict(dict)
    origins = np.flatnonzero(pathway.origins).tolist()
    for number in range(count):
        key = int(chance.integers(0, 2**64 - 1, dtype=np.uint64))
        at = [(int(chance.choice(origins)), number * 1_000)]
        while at:
            node, moment_us = at.pop()
            name = pathway.nodes[node]
            seen[name][key] = min(moment_us, seen[name].get(key, moment_us))
            onward = [group for group in pathway.groups if group.source == node and chance.random() >= loss]
            at += [(int(chance.choice(one.targets)), moment_us + int(chance.integers(1, STEP_US))) for one in onward]
    return {name: build_sightings(of_node) for name, of_node in seen.items()}


def build_sightings(seen: dict[int, int]) -> NodeSightings:
    """Return the sightings of a node from moments by id."""
    ids = np.array(sorted(seen), np.uint64)
    return NodeSightings(ids, np.array([seen[key] for key in ids.tolist()], np.int64))
