"""Tests of the receiver's process: HTTP as a delivery meets it, and its log."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from hopwatch.demo.processes import PACKAGES
from hopwatch.demo.server_process import answers, free_ports, until
from hopwatch.demo.service.receiver import build_response
from hopwatch.demo.service.receiver_book import FailureMode, Reaction
from hopwatch.demo.service.settings import ReceiverSettings
from hopwatch.demo.truth import NodeAction, Truth

IDS = [str(uuid.UUID(int=number + 1)) for number in range(3)]


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[ReceiverSettings]:
    """Yield the settings of a receiver that runs, and is down for a second once it has had a request."""
    (port,) = free_ports(1)
    settings = ReceiverSettings("mainline", str(tmp_path / "truth"), port, 1, 0.0, down_after_s=0.5, down_s=1.0)
    command = [sys.executable, "-m", "hopwatch.demo.service.receiver", settings.to_json()]
    process = subprocess.Popen(command, cwd=PACKAGES, stdin=subprocess.PIPE)
    try:
        until(lambda: answers(port), "the receiver")
        yield settings
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def post(port: int) -> int:
    """Post a batch; return the status."""
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/events", json.dumps([{"id": one, "time": 1, "data": {}} for one in IDS]))
    return connection.getresponse().status


def test_it_writes_down_what_it_takes_and_is_down_once(receiver: ReceiverSettings) -> None:
    """Nobody listens meanwhile; then the same message is taken again, and stands in the log twice."""
    assert post(receiver.port) == 200
    until(lambda: not answers(receiver.port), "it is down")
    until(lambda: answers(receiver.port), "it is up again")
    assert post(receiver.port) == 200
    truth = Truth({"mainline": [Path(receiver.log)]}, ["mainline"])
    assert (truth.count("mainline", NodeAction.HANDED_ON), len(truth.delivered)) == (6, 3)


@pytest.mark.parametrize(
    ("failure", "statuses", "status", "waits"),
    [
        (FailureMode.NONE, (200, 200, 200), 200, None),
        (FailureMode.BUSY, (429, 429, 429), 429, "1"),
        (FailureMode.MIXED, (201, 503, 422), 207, None),
    ],
)
def test_one_status_is_said_for_all_where_it_is_one(
    failure: FailureMode, statuses: tuple[int, ...], status: int, waits: str | None
) -> None:
    """Otherwise each message has its own in a 207, as the gate answers."""
    response = build_response(IDS, Reaction(failure, statuses, {}))
    assert (response.status, response.headers.get("Retry-After")) == (status, waits)
    if status == 207:
        assert isinstance(response.text, str)
        listed = [(one["id"], one["status"]) for one in json.loads(response.text)["events"]]
        assert listed == list(zip(IDS, statuses, strict=True))
