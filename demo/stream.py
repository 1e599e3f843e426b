"""The streams of the demo: their nodes, in the order in which a message passes them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

STREAM: Final = "flights"
NODES: Final = ("ingest", "router", "norm", "connector")
GATE: Final = "gate"
GATED_NODES: Final = (GATE, *NODES)
"""The nodes where the entrance is the gate."""
SENDER: Final = "sender"
"""The process that sends events to the gate; it is no node."""
RECEIVERS: Final = ("mainline", "others")
"""Deliveries of the service, and the nodes that they stamp: a message goes to one of the two."""
SERVICE_STEPS: Final = ("router", "norm")
SERVICE_NODES: Final = (GATE, *SERVICE_STEPS, *RECEIVERS)
"""The nodes of the service."""


def format_path(nodes: Sequence[str]) -> str:
    """Return the path of the stream through these nodes; receivers are two ends of which a message takes one."""
    chain = [node for node in nodes if node not in RECEIVERS]
    ends = [node for node in nodes if node in RECEIVERS]
    return " -> ".join([*chain, *([" | ".join(ends)] if ends else [])])


def next_node(node: str) -> str:
    """Return the node behind one of the four; nothing behind the last."""
    return dict(itertools.pairwise(NODES)).get(node, "")
