"""Streams of Redis, whose client no integration knows: the example of the page on taps, on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from hopwatch import Probe
from hopwatch.integrations.message_marker import MessageMarker
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.testing import batch_observations
from hopwatch.testing import MemorySink
from servers.redis import Redis
from tests.support import page_blocks

PAGE: Final = page_blocks.page("docs/TAPS.md")
MESSAGES: Final = 20


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    """Yield a client of a server of the test's own."""
    server = Redis(tmp_path)
    server.start()
    try:
        yield redis.Redis(port=server.port)
    finally:
        server.stop()


def test_any_client_may_mark_and_stamp(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401 - its types allow answers that this server has not
    """The router of the page passes on what a service with marks has sent; each message is stamped at both."""
    sinks: dict[str, MemorySink] = {"shop": MemorySink(), "router": MemorySink()}
    shop = MessageMarker(Probe("orders", "shop", sinks["shop"]), "redis")
    for number in range(MESSAGES):
        message, marked = shop.mark({"number": number})
        client.xadd("orders", dict(marked or {}))
        assert message is not None
        shop.probe.departed(*message)
    shop.probe.close()

    def build_probe(**names: str) -> Probe:
        return Probe(names["stream"], names["node"], sinks["router"])

    monkeypatch.setattr("hopwatch.Probe", build_probe)
    monkeypatch.setattr(redis, "Redis", lambda: client)
    (text,) = [text for text in page_blocks.of(PAGE, "python") if "client.xadd" in text]
    names: dict[str, Any] = {}
    exec(text, names)  # noqa: S102 - what the page shows
    names["marker"].probe.close()
    sent, routed = (
        [seen for record in sinks[name].records for seen in batch_observations(decode(record))] for name in sinks
    )
    assert len(sent) == MESSAGES
    assert sorted(one.message_id for one in routed) == sorted(one.message_id for one in sent)
    assert all(one.in_us is not None and one.out_us is not None for one in routed)
    assert [int(fields[b"number"]) for _, fields in client.xrange("routed")] == list(range(MESSAGES))
