"""Laws of the verdict: no false loss, whatever the monitor was not told."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from monitor.kernel.masks import Ids
from monitor.kernel.sets import classify
from monitor.kernel.tally import NEVER_US, take
from monitor.kernel.verdict import NodeBooks, Standing, conclude
from monitor.pathway import Pathway
from monitor.results import Status, Verdict, WindowResult
from tests.laws.drawn import Drawn, Seen, pathways
from tests.model.record import FILTERED, Observation
from tests.monitor.kernel.batched import batch, books, messages

NOTHING_ID: Final = b""


class Truth(NamedTuple):
    """What happened to one message: the nodes that stamped it, and where it was truly lost, node by node."""

    stamps: list[tuple[int, str]]
    lost_at: set[int]
    is_delivered: bool


@st.composite
def walks(draw: st.DrawFn, pathway: Pathway) -> Truth:
    """Let one message go its ways from an origin: at each node and on each edge it may be lost, or stopped at a node."""
    truth = Truth([], set(), is_delivered=False)
    waiting = [draw(st.sampled_from(np.flatnonzero(pathway.origins).tolist()))]
    come: set[int] = set()
    while waiting:
        node = waiting.pop()
        if node in come:
            continue
        come.add(node)
        fate = draw(st.sampled_from(["io"] * 6 + ["i", "if"]))
        truth.stamps.append((node, fate))
        if fate == "i":
            truth.lost_at.add(node)
        if fate != "io":
            continue
        truth = truth._replace(is_delivered=truth.is_delivered or bool(pathway.terminals[node]))
        for group in pathway.groups:
            if group.source == node:
                target = draw(st.sampled_from(group.targets))
                if draw(st.integers(0, 5)):
                    waiting.append(target)
                else:
                    truth.lost_at.add(target if group.is_must else node)
    return truth


class Window(NamedTuple):
    """A pathway, what happened, what the monitor was told of it, and what its books therefore say, node by node."""

    pathway: Pathway
    truths: list[Truth]
    told: list[str]
    books: NodeBooks

    def concluded(self) -> WindowResult:
        """Judge what was told."""
        standing = Standing("s", 0, Status.FINAL)
        return conclude(self.pathway, standing, take(self.pathway, messages(*self.told), NEVER_US), self.books)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    """Draw what happened, and hide observations: at a node with a hole or with drops any of them may be missing."""
    pathway = draw(pathways()).product
    pathway = replace(pathway, stamps=("both",) * len(pathway.nodes))
    truths = draw(st.lists(walks(pathway), max_size=5))
    accounts = draw(st.lists(st.sampled_from(["c", "c", "c", "h", "d", "s", "-"]), min_size=len(pathway.nodes), max_size=len(pathway.nodes)))
    told = []
    for truth in truths:
        words = ["-"] * len(pathway.nodes)
        for node, fate in truth.stamps:
            if accounts[node] == "c" or (accounts[node] in "hd" and draw(st.booleans())):
                words[node] = fate
        told.append(" ".join(words))
    return Window(pathway, truths, told, books(*accounts))
