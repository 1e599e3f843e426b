"""The four processes of the demo, in the order in which a message passes them."""

from __future__ import annotations

from typing import Final

STREAM: Final = "flights"
NODES: Final = ("ingest", "router", "norm", "connector")
PATH: Final = " -> ".join(NODES)
