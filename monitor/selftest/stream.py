"""Stream of the self-test: its name, its four nodes, and the terms by which its windows are judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import MONITOR_STREAM

SELFTEST_STREAM: Final = "hopwatch-selftest"
"""Name of the stream; no other stream may have it."""
OWN_STREAMS: Final = (MONITOR_STREAM, SELFTEST_STREAM)
"""Streams of the monitor's own, its pulse and its self-test: in no list, and published nowhere."""
SOURCE, ROUTER, LEFT, RIGHT = "source", "router", "left", "right"
_TERMS: Final = WindowPolicy(
    transit_us=30_000_000, settle_us=30_000_000, amend_for_us=600_000_000, max_age_us=86_400_000_000
)
SELFTEST_CONFIG: Final = StreamConfig(
    Pathway.parse((f"{SOURCE} -> {ROUTER}", f"{ROUTER} -> {LEFT} | {RIGHT}"), {SOURCE: "out"}), _TERMS
)


def without_selftest(rules: Mapping[str, StreamConfig]) -> dict[str, StreamConfig]:
    """Return the configurations of all streams but that of the self-test: what is lost there was lost on purpose."""
    return {stream: config for stream, config in rules.items() if stream != SELFTEST_STREAM}
