"""Tests of the load: what is sent, what is counted, what is timed, and what may not be answered."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bench.contestant import Json
from bench.gate import bomb, load, orders, slow
from bench.gate.client import HttpReply
from bench.truth import WrongResultError
from tests.bench.gate.entrance import entrance


def test_batches_are_sent_and_counted(tmp_path: Path) -> None:
    """Each event has an id of its own, and all that was answered counts as acknowledged."""
    with entrance() as asked:
        told = load.batches(tmp_path, port=asked.port, process=os.getpid(), warm_s=0.1, seconds=0.2, connections=2)
    sent = [json.loads(body) for _, _, _, body in asked.requests]
    assert told["acknowledged"] == orders.BATCH * len(sent) > 0
    assert len({one["id"] for batch in sent for one in batch}) == orders.BATCH * len(sent)
    assert told["rate"] > 0
    assert told["cpu_us"] > 0


def test_single_events_are_sent_on_time(tmp_path: Path) -> None:
    """So many a second with those of the warm-up, and meanwhile the server is asked how it is."""
    with entrance() as asked:
        told = load.singles(
            tmp_path, port=asked.port, process=os.getpid(), warm_s=0.2, seconds=0.4, connections=4, rate=100
        )
    puts = [(path, body) for method, path, _, body in asked.requests if method == "PUT"]
    assert told["acknowledged"] == len(puts) == len(set(puts)) == 60
    assert puts[0][0].startswith("/streams/orders/events/")
    assert json.loads(puts[0][1])["items"]
    assert ("GET", "/healthz") in {request[:2] for request in asked.requests}
    assert 0 < told["p50_ms"] <= told["p99_ms"] <= told["most_ms"]
    assert told["health_most_ms"] > 0


def test_a_span_begins_when_its_event_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One connection for more than it can take: those that wait for it are late, and the last ones are the latest."""
    kept: list[float] = []

    def keep(spans_s: list[float]) -> Json:
        kept.extend(spans_s)
        return {}

    monkeypatch.setattr(load, "figures", keep)
    with entrance() as asked:
        load.singles(
            tmp_path, port=asked.port, process=os.getpid(), warm_s=0.0, seconds=0.01, connections=1, rate=50_000
        )
    assert len(kept) == 500
    assert sum(kept[:50]) < sum(kept[-50:])
    assert kept[-1] > 0.01


def test_spans_are_told_in_ms() -> None:
    """Their middle, the 99th of a hundred, and the longest."""
    assert load.figures([0.001 * number for number in range(101)]) == pytest.approx(
        {"p50_ms": 50.0, "p99_ms": 99.0, "most_ms": 100.0}
    )


def test_an_answer_that_is_not_success_ends_the_load() -> None:
    """With what was got."""
    load.check(HttpReply(201, b""), 201)
    with pytest.raises(WrongResultError, match=r"every answer has to be 201, got 503: b'busy'"):
        load.check(HttpReply(503, b"busy"), 201)


def test_a_load_that_is_refused_fails(tmp_path: Path) -> None:
    """Also in a group of tasks."""
    with entrance(status=503) as asked, pytest.raises(ExceptionGroup) as caught:
        load.batches(tmp_path, port=asked.port, process=os.getpid(), warm_s=0.0, seconds=0.1, connections=1)
    assert caught.group_contains(WrongResultError, match="got 503")


def test_slow_clients_that_are_answered_count_as_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody cuts those here: they trickle until all is over; a head that is ended is answered, and that ends them."""
    monkeypatch.setattr(slow, "EVERY_S", 0.02)
    monkeypatch.setattr(slow, "SPREAD_S", 0.05)
    with entrance() as asked:
        told = slow.trickle(tmp_path, port=asked.port, clients=4, seconds=0.3)
        assert told == {"clients": 4, "cut": 0, "lived_most_s": None}
    monkeypatch.setattr(slow, "_HEAD", b"GET /x HTTP/1.1\r\n\r\n")
    with entrance() as asked:
        told = slow.trickle(tmp_path, port=asked.port, clients=4, seconds=0.3)
    assert told["cut"] > 0
    assert 0 < told["lived_most_s"] < 0.3


def test_a_bomb_is_small_until_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousandth of its size; it has to be refused, and whoever takes it is told on."""
    assert 190_000 < len(bomb.pack_body()) < 210_000
    monkeypatch.setattr(bomb, "UNPACKED_BYTES", 3_000_000)
    with entrance(status=413) as asked:
        told = bomb.throw_bombs(tmp_path, port=asked.port, process=os.getpid(), times=2)
    assert len(asked.requests) == 3
    assert asked.requests[0][2]["content-encoding"] == "gzip"
    assert told["packed_bytes"] == len(asked.requests[0][3])
    assert told["most_ms"] > 0
    with (
        entrance() as asked,
        pytest.raises(WrongResultError, match=r"a bomb is refused with 413, got b'HTTP/1.1 201 '"),
    ):
        bomb.throw_bombs(tmp_path, port=asked.port, process=os.getpid(), times=1)
