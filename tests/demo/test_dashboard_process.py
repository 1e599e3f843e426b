"""Tests of the dashboard beside the demo: where it listens, what is said of it, and that it never outlives the demo."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hopwatch.cli import dashboard as command
from hopwatch.demo import dashboard_process, ports
from hopwatch.demo.dashboard_process import Dashboard
from hopwatch.demo.layout import Layout, create_layout
from hopwatch.demo.ports import HOST, hold_port

LISTENER = (
    "import http.server, signal, sys\n"
    "class Well(http.server.BaseHTTPRequestHandler):\n"
    "    def do_GET(self): self.send_response(200); self.end_headers()\n"
    "{}\nserver = http.server.HTTPServer(('127.0.0.1', int(sys.argv[-1])), Well)\n"
    "print('up', flush=True)\nserver.serve_forever()"
)
STUBBORN = LISTENER.format("signal.signal(signal.SIGTERM, signal.SIG_IGN)")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Return the files of a run."""
    return create_layout(tmp_path / "run")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the commands that are started; each says that it is well, and does nothing else."""
    return stood_in(monkeypatch, LISTENER.format(""))


def stood_in(monkeypatch: pytest.MonkeyPatch, program: str) -> list[list[str]]:
    """Let a small program run instead of the dashboard, and return the commands that were asked for."""
    asked: list[list[str]] = []
    real = subprocess.Popen

    def start(words: list[str], **options: object) -> subprocess.Popen[bytes]:
        asked.append(words)
        return real([sys.executable, "-c", program, *words[1:]], **options)  # type: ignore[call-overload, no-any-return]  # as they come

    monkeypatch.setattr(subprocess, "Popen", start)
    return asked


def first_news(dashboard: Dashboard) -> list[str]:
    """Return what is said first."""
    while not (said := dashboard.news()):
        threading.Event().wait(0.01)
    return said


def free_port() -> int:
    """Return a port that nobody has."""
    port, held = hold_port(0)
    held.close()
    return port


def test_it_is_hopwatch_dashboard_over_the_files_of_the_run(layout: Layout, started: list[list[str]]) -> None:
    """The very command that a user would give; its URL is said once, when it answers."""
    port = free_port()
    with Dashboard(layout, port) as dashboard:
        assert first_news(dashboard) == [f"the dashboard is at http://127.0.0.1:{port}/"]
        assert dashboard.news() == []
    flags = ["dashboard", "--config", str(layout.config), "--port", str(port)]
    assert started == [[sys.executable, "-m", "hopwatch", *flags]]
    with socket.socket() as tried:
        assert tried.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_its_port_is_that_of_the_command() -> None:
    """The demo's dashboard has the host and port of the command."""
    assert (HOST, dashboard_process.PORT) == (command.HOST, command.PORT)


@pytest.mark.usefixtures("started")
def test_a_taken_port_is_told_and_another_is_chosen(layout: Layout) -> None:
    """By whoever listens there."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Dashboard(layout, port) as dashboard:
            (said,) = first_news(dashboard)
    assert said.startswith(f"port {port} is taken; the dashboard is at http://127.0.0.1:")
    assert not said.endswith(f":{port}/")


def test_demos_that_start_together_have_ports_of_their_own() -> None:
    """Before any of their dashboards listens."""
    wished = free_port()
    held = [hold_port(wished) for _ in range(20)]
    assert held[0][0] == wished
    assert len({port for port, _ in held}) == 20
    for _, holding in held:
        holding.close()


def test_a_free_port_that_another_demo_holds_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system gives any port that is free for TCP; it may give one that a demo holds several times."""
    hold, tried = ports._hold, []

    def hold_late(port: int) -> socket.socket:
        tried.append(port)
        if len(tried) < 4:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        return hold(port)

    monkeypatch.setattr(ports, "_hold", hold_late)
    port, holding = hold_port(9)
    assert (tried, port) == ([9, 0, 0, 0], holding.getsockname()[1])
    holding.close()


def test_without_any_free_port_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last error of the system, once enough ports were tried."""

    def refuse(port: int) -> socket.socket:
        raise OSError(errno.EADDRNOTAVAIL, f"no port {port}")

    monkeypatch.setattr(ports, "_hold", refuse)
    with pytest.raises(OSError, match="no port 0"):
        hold_port(9)


def test_a_dashboard_that_ends_is_told_once(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its last words and its log, and nothing is raised."""
    stood_in(monkeypatch, "print('hopwatch: no luck'); raise SystemExit(3)")
    with Dashboard(layout, free_port()) as dashboard:
        told = first_news(dashboard)
        assert dashboard.news() == []
    log = layout.log("dashboard")
    assert told == [f"no dashboard: it ended by itself with exit code 3; its last words: hopwatch: no luck ({log})"]


def test_one_that_cannot_be_started_is_told(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has no process to spare shows its demo in the terminal."""

    def start(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", start)
    with Dashboard(layout, free_port()) as dashboard:
        assert dashboard.news() == ["no dashboard: it cannot be started, Resource temporarily unavailable"]


def test_one_that_will_not_end_is_killed(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM first, and where that is ignored SIGKILL."""
    stood_in(monkeypatch, STUBBORN)
    monkeypatch.setattr("hopwatch.demo.dashboard_process.STOP_WITHIN_S", 0.1)
    with Dashboard(layout, free_port()) as dashboard:
        first_news(dashboard)
        process = dashboard._process
        assert process is not None
    assert process.returncode == -9


def test_without_its_packages_one_line_says_how_to_get_them(
    layout: Layout, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is started."""
    monkeypatch.setattr("hopwatch.demo.dashboard_process.REQUIRED_PACKAGES", ("no_such_package",))
    with Dashboard(layout) as dashboard:
        (said,) = dashboard.news()
    assert said.startswith("no dashboard: ")
    assert "pip install 'hopwatch[monitor,dashboards]'" in said
    assert started == []


def test_where_none_is_wished_for_none_is_started(layout: Layout, started: list[list[str]]) -> None:
    """``--no-dashboard``."""
    with Dashboard(layout, None) as dashboard:
        assert dashboard.news() == []
    assert started == []


def test_the_results_can_be_looked_at_later(layout: Layout) -> None:
    """By a command that can be pasted."""
    assert Dashboard(layout).later.endswith(f"hopwatch dashboard --config {layout.config}")
