"""Tests of what the tap by HTTP refuses: it counts, so that nobody vouches for what was never stamped."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract.batch import Batch, BatchKind, Drop
from hopwatch.probes.contract.envelope import encode
from hopwatch.probes.http.limits import Limits
from hopwatch.probes.sinks.spool import SpoolSink
from hopwatch.probes.taps.http import books, pending_resends, unstamped_nodes
from hopwatch.probes.taps.http.refusals import WINDOWS_BACK, RefusedObservations
from hopwatch.probes.testing import batch_observations
from hopwatch.testing import EPOCH_US
from tests.probes.taps.http.bodies import JSON, trickle
from tests.support.batches import HEARTBEAT, TWO_PASSED, record_of
from tests.support.tap_client import GOOD, ONE, PATH, Asked

RECORD = {"content-type": "application/octet-stream"}
MINUTE_MS = 60_000
NOW_MS = EPOCH_US // 1_000
UNTIMED_MS = [NOW_MS - back * MINUTE_MS for back in reversed(range(WINDOWS_BACK))]
"""The minutes that what has no event time may be of."""


@pytest.fixture
def tap(tmp_path: Path) -> Iterator[Asked]:
    """Yield an app on a spool that has taken one observation of a node."""
    asked = Asked(tmp_path)
    assert asked.ask("POST", json=GOOD).status_code == 202
    yield asked
    asked.intake.close(bye=False)


def dropped(tap: Asked, node: str = "router") -> Counter[int]:
    """Return what was dropped of a node, by window, by all instances."""
    found: Counter[int] = Counter()
    for batches in tap.batches().values():
        for batch in batches:
            if batch.node == node:
                for drop in batch.drops:
                    assert drop.cause.startswith(("http: ", "undelivered"))
                    found[drop.window_start_ms] += drop.count
    return found


def spread(count: int) -> dict[int, int]:
    """Return so many drops in each minute that may be theirs."""
    return dict.fromkeys(UNTIMED_MS, count)


def test_the_good_ones_of_a_bad_body_are_taken(tap: Asked) -> None:
    """With a status for each; the others count as drops of the minutes that they were of, or may have been of."""
    items = [ONE | {"id": "b"}, 7, ONE | {"id": ""}, ONE | {"id": True, "event_time": EPOCH_US - 600_000_000}]
    answer = tap.ask("POST", json=GOOD | {"observations": items})
    assert answer.status_code == 207
    told = answer.json()
    assert (told["observations"], told["refused"]) == (1, 3)
    assert [one["status"] for one in told["items"]] == [202, 422, 422, 422]
    assert [[error["place"] for error in one["errors"]] for one in told["items"][1:]] == [
        ["/observations/1"], ["/observations/2/id"], ["/observations/3/id"],
    ]  # fmt: skip
    assert dropped(tap) == Counter(spread(1)) + Counter({NOW_MS: 1, NOW_MS - 10 * MINUTE_MS: 1})
    assert len(tap.said()) == 2


def test_a_body_that_is_bad_throughout_is_answered_at_a_bounded_length(tap: Asked) -> None:
    """A status each, and reasons of the first few."""
    items = [ONE] + [ONE | {"stamp": "no"}] * 1_000
    told = tap.ask("POST", json=GOOD | {"observations": items}).json()
    assert len(told["items"]) == 1_001
    assert sum("errors" in one for one in told["items"]) == 20


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (GOOD | {"observations": [ONE | {"stamp": "no"}] * 200}, {NOW_MS: 200}),
        (GOOD | {"more": 1, "observations": [ONE] * 3}, {NOW_MS: 3}),
        (GOOD | {"observations": [{"id": 1}] * 3}, spread(3)),
        (GOOD | {"observations": [ONE | {"event_time": EPOCH_US // 1_000}]}, spread(1)),
        (GOOD | {"observations": [ONE | {"event_time": 10**400}]}, spread(1)),
        (GOOD | {"observations": [ONE] * 65_537}, {NOW_MS: 65_537}),
        (GOOD | {"stream": "or ders", "observations": [ONE] * 2}, {NOW_MS: 2}),
        ({"observations": [1, 2, 3]}, spread(3)),
        (GOOD | {"node": "none", "observations": [7]}, {}),
        (GOOD | {"stream": "_hopwatch"}, {}),
    ],
)  # fmt: skip
def test_what_is_refused_counts_in_its_windows(tap: Asked, body: dict[str, Any], expected: dict[int, int]) -> None:
    """Of the node that is named; of every node, where none is; of no other."""
    assert tap.ask("POST", json=body).status_code == 422
    assert dropped(tap) == expected


@pytest.mark.parametrize(
    ("request_", "status", "most"),
    [
        ({"content": b"{" * 160, "headers": JSON}, 400, 11),
        ({"content": b"", "headers": JSON}, 400, 1),
        ({"content": b"x" * 160, "headers": {"content-type": "text/plain"}}, 415, 11),
        ({"content": b"x" * 160, "headers": RECORD}, 422, 11),
        ({"content": b"x" * 160, "headers": JSON, "path": "/v1/observation"}, 404, 11),
        ({"content": b"x" * 160, "headers": JSON, "method": "PUT"}, 405, 11),
        ({"content": b"x" * 5 * 2**20, "headers": JSON}, 413, 5 * 2**16 + 1),
    ],
)  # fmt: skip
def test_what_cannot_be_read_counts_for_every_node_as_often_as_it_may_be(
    tap: Asked, request_: dict[str, Any], status: int, most: int
) -> None:
    """An observation needs some bytes; of what is without a node, each may have been meant."""
    assert tap.ask("POST", json=GOOD | {"node": "other"}).status_code == 202
    assert tap.ask(request_.pop("method", "POST"), request_.pop("path", PATH), **request_).status_code == status
    for node in ("router", "other"):
        assert dropped(tap, node) == spread(most)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"content": gzip.compress(b"x" * 9) + b"more", "headers": JSON | {"content-encoding": "gzip"}}, 400),
        ({"content": b"x", "headers": JSON | {"content-encoding": "br"}}, 415),
        ({"content": trickle(*[b"x" * 2**20] * 5), "headers": JSON}, 413),
    ],
)  # fmt: skip
def test_what_nobody_can_count_leaves_a_hole(tap: Asked, request_: dict[str, Any], status: int) -> None:
    """One that says how large it is unpacked may be as large as it likes."""
    assert tap.ask("POST", **request_).status_code == status
    tap.clock.advance(0.1)
    assert tap.ask("POST", json=GOOD).status_code == 202
    (batches,) = tap.batches().values()
    assert [batch.seq for batch in batches] == [0, 1, 3, 4]
    assert dropped(tap) == spread(1)


def test_a_slow_client_and_one_that_hangs_up_count(tmp_path: Path) -> None:
    """Nobody knows whether they come again."""
    tap = Asked(tmp_path, Limits(body_s=0.01))
    assert tap.ask("POST", json=GOOD).status_code == 202
    slow = trickle(*[b" "] * 100, wait_s=0.005)
    assert tap.ask("POST", content=slow, headers=JSON | {"content-length": "1600"}).status_code == 408
    assert dropped(tap) == spread(101)


def test_a_client_that_hangs_up_counts(tap: Asked) -> None:
    """In the middle of its body; that it is told so, nobody hears."""
    heard: Iterator[dict[str, Any]] = iter(
        [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    )

    async def receive() -> dict[str, Any]:
        return next(heard)

    async def send(_: object) -> None:
        return

    scope = {"type": "http", "method": "POST", "path": PATH, "headers": [(b"content-length", b"160")]}

    async def hang_up() -> None:
        await tap.app(scope, receive, send)

    asyncio.run(hang_up())
    assert dropped(tap) == spread(11)


def test_our_own_fault_counts(tap: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Observations of a request that failed by an internal error count as dropped."""

    def fail(_: object) -> None:
        raise KeyError

    monkeypatch.setattr(tap.intake, "observe", fail)
    assert tap.ask("POST", content=b"x" * 160, headers=JSON).status_code == 500
    assert dropped(tap) == spread(11)


def refuse_one(tap: Asked, monkeypatch: pytest.MonkeyPatch, **request: Any) -> None:  # noqa: ANN401 - as httpx takes it
    """Send what the sink does not take."""
    with monkeypatch.context() as patch:
        patch.setattr(SpoolSink, "send", lambda *_: False)
        assert tap.ask("POST", **request).status_code == 503


def test_nothing_is_vouched_for_until_what_was_sent_away_comes_again(
    tap: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither for its node nor for others; once it has come, all is well, and nothing was dropped."""
    refuse_one(tap, monkeypatch, json=GOOD | {"observations": [ONE | {"id": "late"}]})
    tap.clock.advance(5)
    assert tap.ask("POST", json=GOOD).status_code == 202
    assert tap.ask("POST", json=GOOD | {"observations": [ONE | {"id": "late"}]}).status_code == 202
    tap.clock.advance(1)
    assert tap.ask("POST", json=GOOD).status_code == 202
    (batches,) = tap.batches().values()
    after_s = [
        (batch.complete_through_us - EPOCH_US) / 1e6 for batch in batches if batch.kind is BatchKind.OBSERVATIONS
    ]
    assert after_s == [0, 0, 0, 6]
    assert dropped(tap) == {}


@pytest.mark.parametrize("waited_s", [pending_resends.RESEND_WAIT_S, None])
def test_what_was_sent_away_and_does_not_come_again_counts(
    tap: Asked, monkeypatch: pytest.MonkeyPatch, waited_s: float | None
) -> None:
    """After a while, and at the end."""
    refuse_one(tap, monkeypatch, json=GOOD | {"observations": [ONE | {"event_time": EPOCH_US - 90_000_000}] * 3})
    if waited_s is not None:
        tap.clock.advance(waited_s)
        tap.intake.tick()
        tap.clock.advance(2)
    (batches,) = tap.batches().values()
    assert dropped(tap) == {NOW_MS - 2 * MINUTE_MS: 3}
    assert batches[-1].complete_through_us == tap.clock.us


def test_a_request_too_many_is_waited_for(tap: Asked) -> None:
    """Nobody has looked into it, so that it may be of any node."""
    tap.app._app._app._limits = Limits(max_requests=0)  # type: ignore[attr-defined]
    assert tap.ask("POST", json=GOOD).status_code == 503
    size_bytes = len(httpx.Request("POST", "http://tap", json=GOOD).content)
    tap.clock.advance(pending_resends.RESEND_WAIT_S)
    tap.intake.tick()
    assert dropped(tap) == spread(1 + size_bytes // 16)


@pytest.mark.parametrize("bound", ["MAX_PENDING", "MAX_WINDOWS"])
def test_so_many_bodies_are_waited_for_and_no_more(tap: Asked, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    """Refused bodies beyond the bound count as refused at once; a resend makes room again."""
    monkeypatch.setattr(pending_resends, bound, 1)
    for number in range(3):
        refuse_one(tap, monkeypatch, json=GOOD | {"observations": [ONE | {"id": number}]})
    assert len(tap.intake.books._pending) == 1
    assert tap.intake.books.refused_requests == 2
    assert tap.ask("POST", json=GOOD | {"observations": [ONE | {"id": 0}]}).status_code == 202
    refuse_one(tap, monkeypatch, json=GOOD | {"observations": [ONE | {"id": 3}]})
    assert tap.intake.books.refused_requests == 2


def alone(tap: Asked, node: str) -> list[Batch]:
    """Return the batches of a node that the tap stamps nothing for."""
    tap.clock.advance(1)
    tap.intake.tick()
    return [batch for batches in tap.batches().values() for batch in batches if batch.node == node]


def test_a_node_of_which_all_was_refused_is_unknown(tap: Asked) -> None:
    """A node whose observations were all refused has an instance that completes nothing and says no bye."""
    for number in (1, 2):
        bad = GOOD | {"node": "sink", "observations": [ONE | {"stamp": "no"}] * number}
        assert tap.ask("POST", json=bad).status_code == 422
        tap.clock.advance(1)
        tap.intake.tick()
    batches = alone(tap, "sink")
    assert [(batch.kind, batch.complete_through_us, batch.seq) for batch in batches] == [
        (BatchKind.HEARTBEAT, EPOCH_US, 0), (BatchKind.HEARTBEAT, EPOCH_US, 1),
    ]  # fmt: skip
    assert {batch.epoch_us for batch in batches} == {EPOCH_US}
    assert dropped(tap, "sink") == {NOW_MS: 3}


def test_one_node_too_many_is_unknown(tap: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though all that was posted of it is good."""
    monkeypatch.setattr(books, "MAX_NODES", 1)
    assert tap.ask("POST", json=GOOD | {"node": "sink"}).status_code == 422
    assert [drop.count for batch in alone(tap, "sink") for drop in batch.drops] == [1]


def test_a_refused_record_counts_for_its_node(tap: Asked) -> None:
    """Its own numbers show it only if its probe goes on; where its values cannot be, its head can still be read."""
    spoilt = record_of(replace(TWO_PASSED, node="sink"), event_offset_us=b"\xff" * 8)
    assert tap.ask("POST", content=spoilt, headers=RECORD).status_code == 422
    (batch,) = alone(tap, "sink")
    assert batch.drops == (Drop(TWO_PASSED.window_start_ms, 2, "http: refused with 422"),)


@pytest.mark.parametrize(("content", "expected"), [(b"\x81" + bytes(79), 6), (bytes(80), 0)])
def test_a_record_of_another_version_counts_for_all_whose_records_come_here(
    tap: Asked, content: bytes, expected: int
) -> None:
    """Without our marker it was none of theirs; it may still be what services say in another form."""
    assert tap.ask("POST", content=encode(replace(HEARTBEAT, node="sink")), headers=RECORD).status_code == 202
    assert tap.ask("POST", content=content, headers=RECORD).status_code == 422
    tap.clock.advance(1)
    tap.intake.tick()
    tap.batches()
    assert dropped(tap) == spread(6)
    assert dropped(tap, "sink") == (spread(6) if expected else {})


def test_records_that_fail_later_count_for_their_node(tap: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their probe was told that they were taken."""
    with monkeypatch.context() as patch:
        patch.setattr(SpoolSink, "failed", lambda _: [encode(replace(TWO_PASSED, node="sink"))])
        tap.intake.tick()
    (batch,) = alone(tap, "sink")
    assert batch.drops == (Drop(TWO_PASSED.window_start_ms, 2, "undelivered"),)


def test_nodes_that_nobody_has_are_bounded(tap: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that makes names up costs a record each, as one that stamps."""
    monkeypatch.setattr(unstamped_nodes, "MAX_NODES", 3)
    for number in range(10):
        assert tap.ask("POST", json=GOOD | {"node": f"made-up-{number}", "observations": [7]}).status_code == 422
    tap.clock.advance(1)
    tap.intake.tick()
    nodes = {batch.node for batches in tap.batches().values() for batch in batches}
    assert nodes == {"router"} | {f"made-up-{number}" for number in (7, 8, 9)}


def test_a_refusal_needs_something_refused() -> None:
    """A refusal without observations makes no drop."""
    assert not RefusedObservations()
    assert RefusedObservations().to_drops("any", EPOCH_US) == {}
    assert min(start_ms for start_ms, _ in RefusedObservations(untimed=1).to_drops("any", 0)) == 0


ITEM = st.fixed_dictionaries(
    {"id": st.integers(0, 50) | st.just(""), "stamp": st.sampled_from(["in", "out", "no"])},
    optional={"event_time": st.integers(EPOCH_US - 100_000_000, EPOCH_US) | st.sampled_from([5, "no"])},
)
DAMAGE = st.sampled_from([None, "cut", "type", "encoding", "path", "field"])


@given(
    st.lists(
        st.tuples(st.lists(ITEM, min_size=1, max_size=4), DAMAGE, st.sampled_from(["router", "no name"])), max_size=6
    )
)
def test_whatever_is_posted_is_stamped_or_counted(
    tmp_path_factory: pytest.TempPathFactory, posts: list[tuple[list[dict[str, Any]], str | None, str]]
) -> None:
    """For each minute: as many as were posted are among what was stamped and what was dropped, or more."""
    tap = Asked(tmp_path_factory.mktemp("tap"))
    assert tap.ask("POST", json=GOOD).status_code == 202
    posted: Counter[int] = Counter([NOW_MS])
    for items, damage, node in posts:
        body = GOOD | {"node": node, "observations": items} | ({"more": 1} if damage == "field" else {})
        content = json.dumps(body).encode()
        headers = JSON | ({"content-encoding": "br"} if damage == "encoding" else {})
        if damage == "type":
            headers = {"content-type": "text/csv"}
        tap.ask(
            "POST",
            "/v1" if damage == "path" else PATH,
            content=content[:-1] if damage == "cut" else content,
            headers=headers,
        )
        posted.update(
            one["event_time"] // 60_000_000 * MINUTE_MS
            for one in items
            if isinstance(one.get("event_time"), int) and one["event_time"] > 5
        )
    found = dropped(tap)
    has_hole = False
    for batches in tap.batches().values():
        numbers = [batch.seq for batch in batches]
        has_hole |= numbers != list(range(len(numbers)))
        found.update(row.event_us // 60_000_000 * MINUTE_MS for batch in batches for row in batch_observations(batch))
    assert has_hole or all(found[start_ms] >= count for start_ms, count in posted.items())
