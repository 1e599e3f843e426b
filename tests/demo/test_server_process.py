"""Ports of servers that other programs need."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from hopwatch.demo.server_process import free_ports


def test_no_port_is_given_twice() -> None:
    """Ports stay reserved while the process runs, so that programs that start side by side share none."""
    given = [port for _ in range(50) for port in free_ports(2)]
    assert len(set(given)) == len(given)
    for port in given:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))


def test_a_reserved_port_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that another program has reserved is not given, though nobody listens on it yet."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        taken = other.getsockname()[1]
        offers = [taken]

        class Offered(socket.socket):
            def getsockname(self) -> Any:  # noqa: ANN401 - as the library has it
                # The kernel may give a port whose namesake of UDP is another program's.
                is_first = self.type == socket.SOCK_STREAM and offers
                return ("127.0.0.1", offers.pop()) if is_first else super().getsockname()

        monkeypatch.setattr("hopwatch.demo.server_process.socket.socket", Offered)
        (port,) = free_ports(1)
    assert port != taken
