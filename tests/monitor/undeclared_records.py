"""Records that were set aside for their names."""

from __future__ import annotations

from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.payloads import SendingInstance, SetAside
from hopwatch.monitor.stream_config import StreamConfig
from tests.support.spool import STREAM_CONFIGS, WINDOW_POLICY, at_us

DECLARED = {
    "orders": StreamConfig(Pathway.parse("ingest -> router"), WINDOW_POLICY),
    "payments": STREAM_CONFIGS["orders"],
}


def aside(sender: SendingInstance, reason: str = "unknown_node", arrival_us: int = at_us(70)) -> SetAside:
    """Return a record that was set aside for its name."""
    return SetAside("s.seg", 6, 10, arrival_us, reason, "why", sender)
