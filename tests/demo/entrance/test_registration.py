"""Tests of the registration of the schema: with a gate that is there, one that comes, one that refuses, and none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hopwatch.demo.entrance.events import SCHEMA
from hopwatch.demo.entrance.registration import RETRY_S, register_schema
from hopwatch.demo.link import LinkError
from tests.demo.entrance.paper_server import PaperServer, run_server
from tests.demo.hand_clock import HandClock


class WaitingClock(HandClock):
    """A clock whose seconds pass while somebody sleeps."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.s += seconds


@pytest.fixture
def server() -> Iterator[PaperServer]:
    """Yield a server that runs."""
    with run_server() as made:
        yield made


@pytest.fixture
def clock() -> WaitingClock:
    """Return a clock."""
    return WaitingClock()


@pytest.mark.parametrize("status", [200, 201])
def test_a_schema_that_is_new_or_known_is_registered(server: PaperServer, clock: WaitingClock, status: int) -> None:
    """A sender that comes back registers it again."""
    server.answer = lambda _, __: (status, b"{}")
    register_schema(server.server_port, 30.0, clock, clock.sleep)
    assert server.asked == [("PUT /subjects/flights/schemas", SCHEMA)]
    assert clock.s == 0


def test_the_schema_is_registered_once_the_gate_can(server: PaperServer, clock: WaitingClock) -> None:
    """The gate takes seconds to start, and may have too much to do."""
    statuses = [408, 429, 503, 201]
    server.answer = lambda _, __: (statuses.pop(0), b"too much at once")
    register_schema(server.server_port, 30.0, clock, clock.sleep)
    assert statuses == []
    assert clock.s == 3 * RETRY_S


def test_a_gate_that_never_can_is_given_up(server: PaperServer, clock: WaitingClock) -> None:
    """In a sentence that says for how long it was tried, and what was heard."""
    server.answer = lambda _, __: (503, b"no store")
    text = r"^the gate has taken nothing for 2 s: 503 no store; look into its log$"
    with pytest.raises(LinkError, match=text):
        register_schema(server.server_port, 2.0, clock, clock.sleep)
    server.shutdown()
    server.server_close()
    with pytest.raises(
        LinkError, match=r"^the gate has taken nothing for 2 s: .*Connection refused; look into its log$"
    ):
        register_schema(server.server_port, 2.0, clock, clock.sleep)
    assert clock.s == 4.0


def test_a_gate_that_refuses_the_schema_is_not_asked_again(server: PaperServer, clock: WaitingClock) -> None:
    """The demo ends with what the gate said."""
    server.answer = lambda _, __: (409, b'{"detail": "the schema would break readers"}')
    text = r'^the gate answered 409 to PUT /subjects/flights/schemas: {"detail": "the schema would break readers"}$'
    with pytest.raises(LinkError, match=text):
        register_schema(server.server_port, 30.0, clock, clock.sleep)
    assert len(server.asked) == 1
