"""Tests of completeness by HTTP, of waiting for it, and of changes as they come."""

from __future__ import annotations

import asyncio
import json
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from hopwatch.api import changes, finding_routes, live_routes
from hopwatch.api.changes import ChangeFeed, StoreChange
from hopwatch.api.readers import Reader
from hopwatch.api.result_store import MAX_SLOW, ResultStore
from hopwatch.monitor import settings
from hopwatch.monitor.lookup.completeness import ask_completeness
from hopwatch.monitor.store import dialect
from tests.api.asked_api import END, NOW_US, AskedApi
from tests.support.spool import at_us
from tests.support.workspace import Workspace, one_of_ten_lost


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Return a store in which one of ten messages of a window is lost."""
    return Workspace(tmp_path).configure().watch(*one_of_ten_lost())


@pytest.mark.parametrize(
    ("contract", "state", "obstacles"),
    [("strict", "failed", ["lost"]), ("loose", "complete", []), ("arrivals", "complete", [])],
)
def test_a_contract_is_answered_with_what_blocks_it(
    workspace: Workspace, contract: str, state: str, obstacles: list[str]
) -> None:
    """A loss fails a strict one, is within a loose one, and is none where the contract ends before it."""
    found = AskedApi(workspace).json("/v1/completeness", contract=contract, until=END)
    assert (found["state"], [one["obstacle"] for one in found["blocked"]]) == (state, obstacles)
    assert (found["until"], found["known"]) == (END, 10)


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ({"contract": "nix", "until": END}, 404, "there is no [completeness.nix], the configuration has: strict,"),
        ({"contract": "strict", "until": "2026-01-01T02:00:00Z"}, 422, "until is in the future: 2026-01-01T02:00:00Z"),
        ({"contract": "strict", "until": "2026-01-01T00:00:30Z"}, 422, "until is a whole UTC minute"),
        ({"contract": "strict", "until": "soon"}, 422, "until is a time such as"),
        ({"contract": "strict", "until": END, "wait": 61}, 422, "the request is invalid"),
    ],
)
def test_bad_questions_have_one_line(workspace: Workspace, query: dict[str, Any], status: int, words: str) -> None:
    """Each says what was got."""
    answer = AskedApi(workspace).get("/v1/completeness", params=query)
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.text


def test_a_long_poll_ends_when_its_time_is_over(workspace: Workspace) -> None:
    """An answer that is not decided by then is told as it stands."""
    api = AskedApi(workspace)
    answer = api.get("/v1/completeness", params={"contract": "strict", "until": "2026-01-01T00:50:00Z", "wait": 1})
    assert (answer.json()["state"], answer.json()["blocked"][0]["obstacle"]) == ("pending", "not_reported")


async def _with_lifespan(api: AskedApi, call: Any) -> Any:  # noqa: ANN401 - an answer
    """Run the app's lifespan around a call, as a server does."""
    started, ended = asyncio.Event(), asyncio.Event()
    said: asyncio.Queue[Any] = asyncio.Queue()
    await said.put({"type": "lifespan.startup"})

    async def send(message: Any) -> None:  # noqa: ANN401 - ASGI's
        (started if message["type"] == "lifespan.startup.complete" else ended).set()

    async def run() -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        await api.app(scope, said.get, send)

    running = asyncio.create_task(run())
    await started.wait()
    try:
        return await call()
    finally:
        await said.put({"type": "lifespan.shutdown"})
        await ended.wait()
        await running


def test_changes_are_sent_as_they_come(workspace: Workspace) -> None:
    """First the windows that can still change, then those that are otherwise."""
    api = AskedApi(workspace)

    async def call() -> tuple[list[Any], Any]:
        reading = asyncio.create_task(api.answer("/v1/changes?stream=orders&most=2"))
        query = {"contract": "strict", "until": "2026-01-01T00:00:00Z", "wait": 30}
        # Again and again, as nobody tells when the first event was read.
        for revision in range(7, 107):
            await asyncio.sleep(0.2)
            if reading.done():
                break
            _run_sql(workspace, f"UPDATE windows SET revision = {revision} WHERE stream = 'orders'")  # noqa: S608 - ours
        answer = await asyncio.wait_for(reading, 20)
        polled = await api.answer("/v1/completeness", params=query)
        events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
        return events, polled

    events, polled = asyncio.run(_with_lifespan(api, call))
    assert len(events) == 2
    (revision,) = {one["revision"] for one in events[1]["windows"]}
    assert revision >= 7
    assert revision not in {one["revision"] for one in events[0]["windows"]}
    assert {one["stream"] for one in events[1]["windows"]} == {"orders"}
    # Before the first window there never was one.
    assert (polled.json()["state"], polled.json()["blocked"][0]["obstacle"]) == ("failed", "not_kept")


def _run_sql(workspace: Workspace, *statements: str) -> None:
    """Change the store, as a monitor does."""
    engine = dialect.create_engine(workspace.store_url)
    with engine.execution_options(writes=True).begin() as connection:
        for one in statements:
            connection.exec_driver_sql(one)
    engine.dispose()


def _parse_events(answer: httpx.Response) -> list[Any]:
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


def test_what_a_monitor_ends_as_it_catches_up_is_told(workspace: Workspace) -> None:
    """Of a window that can no longer change when it is looked at next, its last change is told still, and once."""
    later = "UPDATE books SET last_arrival_us = last_arrival_us + 36000000000"
    store, rules = ResultStore(workspace.store_url), settings.load(workspace.config, flags={}, environ={})
    feed = ChangeFeed(store, rules.stream_configs(), 0.02)

    async def call() -> list[StoreChange | None]:
        async with feed.run():
            first = await feed.read_state()
            feed.waiting += 1
            _run_sql(workspace, later, "UPDATE windows SET revision = 7")
            second = await feed.wait(first.number, 20)
            _run_sql(workspace, later)
            return [first, second, await feed.wait(first.number + 1, 20)]

    told = [None if one is None else [state.revision for state in one.windows.values()] for one in asyncio.run(call())]
    assert told == [[0], [7], []]
    store.close()


def test_one_client_too_many_is_told_before_any_event(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though there was room when it came, and another one took it while the store was read."""
    read_state = ChangeFeed.read_state

    async def read_slowly(feed: ChangeFeed) -> StoreChange:
        state = await read_state(feed)
        feed.waiting += 1
        return state

    monkeypatch.setattr(ChangeFeed, "read_state", read_slowly)
    monkeypatch.setattr(live_routes, "MAX_WAITING", 1)
    answer = AskedApi(workspace).get("/v1/changes?most=1")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["detail"] == "1 clients wait already: retry later"


def test_changes_end_with_their_token(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that asked in time reads no longer than that."""
    api = AskedApi(workspace, Reader("late", (sha256(b"late").digest(),), expires_us=NOW_US + 1_000_000))

    async def wait(_: ChangeFeed, number: int, timeout_s: float) -> None:  # noqa: ARG001 - as the feed has it
        api.clock.advance(0.5)

    monkeypatch.setattr(ChangeFeed, "wait", wait)
    answer = api.get("/v1/changes", headers={"authorization": "Bearer late"})
    assert (answer.status_code, len(_parse_events(answer))) == (200, 1)
    assert answer.text.count(": nothing has changed") == 1


def test_read_states_no_stream_are_refused(workspace: Workspace) -> None:
    """A name that is written wrongly would be silent for ever."""
    answer = AskedApi(workspace).get("/v1/changes?stream=order")
    assert (answer.status_code, answer.json()["detail"]) == (404, "the configuration has no stream 'order'")


def test_who_asks_the_same_at_once_shares_an_answer(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A contract of days reads thousands of windows: a hundred who wait for it cost no more than one."""
    asked: list[int] = []

    def ask(engine: Any, chosen: Any, name: str, until_us: int, now_us: int) -> Any:  # noqa: ANN401 - as the route asks
        asked.append(until_us)
        time.sleep(0.3)
        return ask_completeness(engine, chosen, name, until_us, now_us)

    monkeypatch.setattr(live_routes, "ask_completeness", ask)
    api = AskedApi(workspace)

    async def call() -> list[httpx.Response]:
        ends = (END, "2026-01-01T00:02:00Z")
        queries = [{"contract": "strict", "until": ends[number % 2]} for number in range(100)]
        return await asyncio.gather(*(api.answer("/v1/completeness", params=query) for query in queries))

    answers = asyncio.run(_with_lifespan(api, call))
    assert {(one.status_code, one.json()["state"]) for one in answers} == {(200, "failed"), (200, "pending")}
    assert sorted(asked) == [at_us(60), at_us(120)]


def test_few_slow_questions_are_read_at_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these reads all lost ids: forty of them would leave no thread for anything else."""
    running: list[str] = []
    seen: list[int] = []

    def read(_: Any, wanted: Any, stream: str | None) -> tuple[()]:  # noqa: ANN401 - as the route asks
        running.append(f"{wanted} {stream}")
        seen.append(len(running))
        time.sleep(0.05)
        running.pop()
        return ()

    monkeypatch.setattr(finding_routes, "list_losses", read)
    api = AskedApi(workspace)

    async def call() -> list[httpx.Response]:
        return await asyncio.gather(*(api.answer(f"/v1/messages/{number}") for number in range(30)))

    assert {one.status_code for one in asyncio.run(call())} == {200}
    assert (len(seen), max(seen) <= MAX_SLOW) == (30, True)


@pytest.mark.parametrize("kept", [16, 1])
def test_a_client_that_is_slow_misses_no_change(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """While it takes one, several more come: it has them as one, or all windows where they are not kept."""
    monkeypatch.setattr(changes, "MAX_RECENT", kept)
    feed = ChangeFeed(
        ResultStore(workspace.store_url), settings.load(workspace.config, flags={}, environ={}).stream_configs(), 0.02
    )

    async def call() -> StoreChange | None:
        async with feed.run():
            first = await feed.read_state()
            feed.waiting += 1
            _run_sql(workspace, "UPDATE windows SET revision = 7")
            await feed.wait(first.number, 20)
            _run_sql(workspace, "UPDATE books SET last_arrival_us = last_arrival_us + 1")
            await feed.wait(first.number + 1, 20)
            return await feed.wait(first.number, 20)

    told = asyncio.run(call())
    assert told is not None
    assert [one.revision for one in told.windows.values()] == [7]


def test_clients_that_come_at_once_begin_from_one_state(workspace: Workspace) -> None:
    """All who come at once begin from one state, and nothing has changed since until something does."""
    store, rules = ResultStore(workspace.store_url), settings.load(workspace.config, flags={}, environ={})
    feed = ChangeFeed(store, rules.stream_configs(), 0.02)

    async def call() -> tuple[list[StoreChange], StoreChange | None]:
        async with feed.run():
            states = [await feed.read_state() for _ in range(3)]
            return states, await feed.wait(states[0].number, 0.2)

    (first, *others), change = asyncio.run(call())
    assert (first.number, len(first.windows)) == (1, 1)
    assert [one is first for one in others] == [True, True]
    assert change is None
    store.close()


def test_changes_while_nobody_waits_are_told_to_nobody(workspace: Workspace) -> None:
    """The first client that comes then begins from the state as it is."""
    store, rules = ResultStore(workspace.store_url), settings.load(workspace.config, flags={}, environ={})
    feed = ChangeFeed(store, rules.stream_configs(), 0.02)

    async def call() -> StoreChange:
        async with feed.run():
            await feed.read_state()
            _run_sql(workspace, "UPDATE windows SET revision = 7")
            await asyncio.sleep(0.2)
            return await feed.read_state()

    assert [one.revision for one in asyncio.run(call()).windows.values()] == [7]
    store.close()


def test_two_hundred_clients_get_every_change_in_order(workspace: Workspace) -> None:
    """Each of them once, and all of them the same bytes."""
    store, rules = ResultStore(workspace.store_url), settings.load(workspace.config, flags={}, environ={})
    feed, last = ChangeFeed(store, rules.stream_configs(), 0.02), 10
    encoded: set[int] = set()

    async def read(begin: StoreChange) -> list[int]:
        change, got = begin, list[int]()
        while not got or got[-1] < last:
            found = await feed.wait(change.number, 20)
            assert found is not None
            change = found
            encoded.add(id(change.to_event("orders")))
            got += [state.revision for state in change.windows.values()]
        return got

    async def call() -> list[list[int]]:
        async with feed.run():
            clients = [asyncio.create_task(read(await feed.read_state())) for _ in range(200)]
            feed.waiting = len(clients)
            for number in range(1, last + 1):
                before = feed.last.number
                change = f"UPDATE windows SET revision = {number}"  # noqa: S608 - a number made here
                await asyncio.to_thread(_run_sql, workspace, change)
                await feed.wait(before, 20)
            return await asyncio.gather(*clients)

    assert asyncio.run(call()) == [list(range(1, last + 1))] * 200
    assert len(encoded) == last
    store.close()


def test_the_first_of_many_clients_reads_for_all(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred who come at once read the store as often as one."""
    reads: list[int | None] = []

    def read(connection: Any, rules: Any, before_us: int | None) -> Any:  # noqa: ANN401 - as the feed asks
        reads.append(before_us)
        return read_states(connection, rules, before_us)

    read_states = changes.read_states
    monkeypatch.setattr(changes, "read_states", read)
    store, rules = ResultStore(workspace.store_url), settings.load(workspace.config, flags={}, environ={})
    feed = ChangeFeed(store, rules.stream_configs())

    async def call() -> list[StoreChange]:
        return await asyncio.gather(*(feed.read_state() for _ in range(200)))

    states = asyncio.run(call())
    assert (len(set(map(id, states))), reads) == (1, [None])
    store.close()
