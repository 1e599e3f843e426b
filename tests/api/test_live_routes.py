"""Tests of completeness by HTTP, of waiting for it, and of changes as they come."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hopwatch.monitor.store import dialect
from tests.api.asked_api import END, AskedApi
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
        await asyncio.sleep(0.2)
        engine = dialect.create_engine(workspace.store_url)
        with engine.execution_options(writes=True).begin() as connection:
            connection.exec_driver_sql("UPDATE windows SET revision = 7 WHERE stream = 'orders'")
        engine.dispose()
        answer = await asyncio.wait_for(reading, 20)
        polled = await api.answer("/v1/completeness", params=query)
        events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
        return events, polled

    events, polled = asyncio.run(_with_lifespan(api, call))
    assert len(events) == 2
    assert {one["revision"] for one in events[1]["windows"]} == {7}
    assert {one["stream"] for one in events[1]["windows"]} == {"orders"}
    # Before the first window there never was one.
    assert (polled.json()["state"], polled.json()["blocked"][0]["obstacle"]) == ("failed", "not_kept")
