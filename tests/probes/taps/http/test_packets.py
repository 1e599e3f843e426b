"""Tests of packets by HTTP: each is a record of its server, by its own number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopwatch.probes.contract.batch import Batch, BatchKind, Metrics, MetricsStamp
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.testing import EPOCH_US
from tests.model.counts import fingerprint
from tests.model.lag_histogram import histogram, write
from tests.support.tap_client import Asked, told

PATH = "/v1/metrics"
PACKET: dict[str, Any] = {
    "stream": "orders",
    "node": "packets",
    "server": "server-7",
    "started": EPOCH_US - 120_000_000,
    "number": 3,
    "window_start": EPOCH_US - 60_000_000,
    "counts": [{"count": 10_412}],
}


@pytest.fixture
def tap(tmp_path: Path) -> Iterator[Asked]:
    """Yield an app on a spool."""
    asked = Asked(tmp_path)
    yield asked
    asked.intake.close(bye=False)


def _post(tap: Asked, **more: object) -> list[Batch]:
    """Return the records that a packet became."""
    answer = tap.ask("POST", PATH, json=PACKET | more)
    assert answer.status_code == 202, answer.text
    return [batch for batches in tap.batches().values() for batch in batches]


def test_a_packet_is_a_record_of_its_server(tap: Asked) -> None:
    """With the server's own name, start and number, so that one that comes twice is a duplicate; nothing beside it."""
    (batch,) = _post(tap)
    assert (batch.kind, batch.probe, batch.epoch_us, batch.seq) == (
        BatchKind.METRICS,
        "server-7",
        EPOCH_US - 120_000_000,
        3,
    )
    assert (batch.stream, batch.node, batch.window_start_ms) == ("orders", "packets", (EPOCH_US - 60_000_000) // 1_000)
    assert (batch.sent_at_us, batch.complete_through_us) == (EPOCH_US, EPOCH_US)
    assert batch.metrics == (Metrics(MetricsStamp.IN, 10_412),)


def test_a_packet_completes_what_it_says_and_no_more_than_now(tap: Asked) -> None:
    """The end of its minute unless it says another moment."""
    (batch,) = _post(tap, complete_through=EPOCH_US - 5)
    assert batch.complete_through_us == EPOCH_US - 5


def test_ids_and_fingerprints_are_told_alike(tap: Asked) -> None:
    """Those of ids are taken here; a server that knows them tells 16 hexadecimal digits each."""
    ids = ["order-17", 18]
    xor, total = fingerprint([id_bytes("order-17"), id_bytes(18)])
    halves = {"xor": f"{xor % 2**64:016x}", "sum": f"{total % 2**64:016x}"}
    (batch,) = _post(
        tap, counts=[{"ids": ids, "bytes": 9}, {"stamp": "out", "count": 2, "bytes": 9, "fingerprint": halves}]
    )
    assert batch.metrics == tuple(Metrics(MetricsStamp[stamp], 2, xor, total, 9) for stamp in ("IN", "OUT"))


def test_lags_are_told_one_by_one_or_as_a_histogram(tap: Asked) -> None:
    """Of each stamp; in whole or broken milliseconds, negative ones as they are."""
    one_by_one = {"count": 3, "lags_ms": [250, 0.5, 250]}
    ready = {"stamp": "out", "count": 1_000, "lags_ms": [-5, 1_250.0], "lag_counts": [1, 999]}
    (batch,) = _post(tap, counts=[one_by_one, ready, {"stamp": "rejected", "count": 0, "lags_ms": []}])
    expected: tuple[list[int], ...] = ([500, 250_000, 250_000], [-5_000, *[1_250_000] * 999], [])
    assert [one.lag_histogram for one in batch.metrics] == [write(histogram(lags)) for lags in expected]


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no number": ({"number": None}, "/number", "valid integer"),
    "a number below 0": ({"number": -1}, "/number", "greater than or equal to 0"),
    "a count of 2^63": ({"counts": [{"count": 2**63}]}, "/counts/0/count", "less than or equal to"),
    "a text as a count": ({"counts": [{"count": "7"}]}, "/counts/0/count", "valid integer"),
    "neither": ({"counts": [{}]}, "/counts/0", "a number, or the ids of the messages: one of both"),
    "both": ({"counts": [{"count": 1, "ids": [1]}]}, "/counts/0", "a number, or the ids of the messages: one of both"),
    "a fingerprint of ids": (
        {"counts": [{"ids": [1], "fingerprint": {"xor": "0" * 16, "sum": "0" * 16}}]},
        "/counts/0",
        "a fingerprint goes with a number: that of ids is taken here",
    ),
    "half a fingerprint": (
        {"counts": [{"count": 1, "fingerprint": {"xor": "0" * 16}}]},
        "/counts/0/fingerprint/sum",
        "Field required",
    ),
    "a lag that is no number": (
        {"counts": [{"count": 1, "lags_ms": [float("nan")]}]},
        "/counts/0",
        "lags are finite numbers of milliseconds, got nan",
    ),
    "a text as a lag": ({"counts": [{"count": 1, "lags_ms": ["x"]}]}, "/counts/0/lags_ms/0", "a valid number"),
    "a lag of ages": ({"counts": [{"count": 1, "lags_ms": [1e300]}]}, "/counts/0", "lags lie in -2^53 … 2^53 ms"),
    "a lag too few": ({"counts": [{"count": 2, "lags_ms": [1]}]}, "/counts/0", "of the 2 messages, or of none, got 1"),
    "a negative count of a lag": (
        {"counts": [{"count": 1, "lags_ms": [1], "lag_counts": [-1]}]},
        "/counts/0/lag_counts/0",
        "greater than or equal to 0",
    ),
    "other counts of lags": (
        {"counts": [{"count": 5, "lags_ms": [1, 2], "lag_counts": [2, 2]}]},
        "/counts/0",
        "a lag of each of the 5 messages, or of none, got 4",
    ),
    "a count too many": (
        {"counts": [{"count": 5, "lags_ms": [1, 2], "lag_counts": [2, 2, 1]}]},
        "/counts/0",
        "a count of each of the 2 lags, got 3",
    ),
    "counts of no lags": (
        {"counts": [{"count": 1, "lag_counts": [1]}]},
        "/counts/0",
        "lag_counts are of lags_ms, got none of these",
    ),
    "too many lags": (
        {"counts": [{"count": 65_537, "lags_ms": [1] * 65_537}]},
        "/counts/0/lags_ms",
        "at most 65536 items",
    ),
    "nine counts": ({"counts": [{"count": 1}] * 9}, "/counts", "at most 8 items"),
    "seconds": ({"window_start": EPOCH_US // 1_000_000}, "/window_start", "is it in seconds or milliseconds?"),
    "no server": ({"server": ""}, "/server", "at least 1 character"),
    "another field": ({"windows": 1}, "/windows", "Extra inputs are not permitted"),
}


@pytest.mark.parametrize(("more", "place", "detail"), BAD.values(), ids=BAD)
def test_what_is_no_packet_is_refused_and_counts_nowhere(
    more: dict[str, Any], place: str, detail: str, tap: Asked
) -> None:
    """With the place of the error; its number is missing until it comes, so nothing else need tell of it."""
    answer = tap.ask("POST", PATH, content=json.dumps(PACKET | more), headers={"content-type": "application/json"})
    assert told(answer) == (422, "bad-packet", [place])
    assert detail in answer.json()["errors"][0]["detail"]
    assert tap.batches() == {}


def test_a_body_of_another_type_is_refused(tap: Asked) -> None:
    """A record of the wire goes to the other path."""
    answer = tap.ask("POST", PATH, content=b"x", headers={"content-type": "application/octet-stream"})
    assert told(answer)[:2] == (415, "unknown-type")
    assert "a body is application/json, as it is or by gzip" in answer.json()["detail"]


def test_the_monitors_own_stream_is_not_counted(tap: Asked) -> None:
    """As nothing else is that is posted of it."""
    assert told(tap.ask("POST", PATH, json=PACKET | {"stream": "_hopwatch"}))[:2] == (422, "record-bad_name")
