"""Fixtures of tests of integrations: a clock, a sink in memory, and a probe between them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hopwatch.probes import Probe
from hopwatch.probes.integrations import message_marker
from hopwatch.testing import ManualClock, MemorySink


@pytest.fixture(autouse=True)
def _no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no consumer of another test decide who makes messages."""
    monkeypatch.setattr(message_marker, "_consuming", set())


@pytest.fixture
def probe(clock: ManualClock, sink: MemorySink) -> Iterator[Probe]:
    """Yield a probe whose thread finds nothing due."""
    with Probe("orders", "router", sink, clock=clock, flush_every_s=1e6, heartbeat_every_s=1e6) as opened:
        yield opened
