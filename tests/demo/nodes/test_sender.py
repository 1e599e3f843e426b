"""Tests of the sender's process, with Hopwatch's own client, before a gate on paper."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopwatch.demo.entrance.rejections import Rejection, read_rejections
from hopwatch.demo.entrance.settings import SenderSettings
from hopwatch.demo.faults import NodeFaults
from hopwatch.demo.layout import Layout
from hopwatch.demo.link import LinkError
from hopwatch.demo.nodes.sender import run_sender
from hopwatch.demo.truth import NodeAction, Truth
from tests.demo.entrance.paper_server import PaperServer, run_server

ARRIVED = "2023-11-14T22:14:00.000001Z"
POSTED = "POST /streams/flights/events?each=true"


@pytest.fixture
def server() -> Iterator[PaperServer]:
    """Yield a gate that runs."""
    with run_server() as made:
        yield made


@pytest.fixture
def settings(server: PaperServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SenderSettings]:
    """Yield the settings of a sender of 1,200 messages that nobody asks to stop."""
    for folder in (Layout(tmp_path).truth_log("gate").parent, Layout(tmp_path).rejections.parent):
        folder.mkdir(parents=True, exist_ok=True)
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "w"):
        monkeypatch.setattr("sys.stdin", stdin)
        faults = NodeFaults(reject_ratio=0.01)
        yield SenderSettings(str(tmp_path), server.server_port, 100.0, 0, faults, count=1_200, patience_s=30.0)


def test_every_message_is_sent_until_the_gate_has_answered_for_it(
    server: PaperServer, settings: SenderSettings
) -> None:
    """In batches of 500 at most: an unanswered request goes again as a whole, an unwritten event under its id."""
    statuses, unwritten = iter([503]), ["some"]

    def judge(event: dict[str, Any], number: int) -> dict[str, Any]:
        told = {"id": event["id"], "arrived": ARRIVED}
        if number == 1 and unwritten:
            unwritten.clear()
            return told | {"status": 503}
        if isinstance(event["data"]["distance"], str):
            errors = [{"place": f"/{number}/data/distance", "detail": "no integer"}]
            return told | {"status": 422, "errors": errors}
        return told | {"status": 201}

    def answer(request: str, said: Any) -> tuple[int, bytes]:  # noqa: ANN401 - JSON
        if request != POSTED:
            return 201, b"{}"
        if status := next(statuses, 0):
            return status, b"{}"
        events = [judge(event, number) for number, event in enumerate(said)]
        return 207, json.dumps({"events": events}).encode()

    server.answer = answer
    run_sender(settings)
    posted = [said for request, said in server.asked if request == POSTED]
    assert 1 < max(len(said) for said in posted) <= 500
    assert posted[0] == posted[1]
    assert posted[2] == [posted[1][1]]
    assert [event["data"]["number"] for said in (posted[0], *posted[3:]) for event in said] == list(range(1_200))
    layout = Layout(settings.path)
    truth = Truth({"gate": [layout.truth_log("gate")]})
    assert truth.count("gate", NodeAction.CREATED) == len(truth.created) == 1_200
    assert truth.count("gate", NodeAction.HANDED_ON, NodeAction.REJECTED) == 1_200
    kinds = {kind.what: kind for kind in read_rejections(layout.rejections)}
    wrong = kinds["wrong type"]
    assert wrong == Rejection("wrong type", wrong.injected, wrong.injected, "/data/distance no integer")
    assert wrong.injected > 0
    assert sum(kind.injected for kind in kinds.values()) == truth.count("gate", NodeAction.REJECTED)


def test_a_gate_that_refuses_the_requests_ends_the_sender(server: PaperServer, settings: SenderSettings) -> None:
    """With what it said."""
    server.answer = lambda request, _: (415, b"no JSON") if request == POSTED else (200, b"{}")
    text = r"^the gate answered HTTP 415 Unsupported Media Type to a request with events: no JSON$"
    with pytest.raises(LinkError, match=text):
        run_sender(settings)
