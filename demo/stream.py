"""The stream of the demo: its nodes, in the order in which a message passes them."""

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


def format_path(nodes: Sequence[str]) -> str:
    """Return the path of the stream through these nodes."""
    return " -> ".join(nodes)


def next_node(node: str) -> str:
    """Return the node behind one of the four; nothing behind the last."""
    return dict(itertools.pairwise(NODES)).get(node, "")
