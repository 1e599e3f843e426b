"""Tests of how the dashboard is started: where it listens, and what its modules may be called."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from hopwatch.cli.main import main
from hopwatch.dashboards import server, theme
from hopwatch.monitor.errors import DependencyError
from tests.support.workspace import CONFIGURATION, Workspace

ALERTS = """
[alerts]
dashboard = "https://named.example"
"""


@pytest.fixture
def opened_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, ...]]]:
    """Yield the URLs that each start of the command gave as those at which it is opened; none serves."""
    found: list[tuple[str, ...]] = []

    def serve(config: Path, place: socket.socket, opened_at: tuple[str, ...], **_: Any) -> None:  # noqa: ANN401
        assert config.exists()
        place.close()
        found.append(opened_at)

    before = structlog.get_config()
    monkeypatch.setattr(server, "serve", serve)
    yield found
    structlog.configure(**before)


def free_port() -> int:
    """Return a port that nobody listened at a moment ago."""
    with socket.socket() as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])


def test_an_address_that_somebody_has_is_told() -> None:
    """With what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(DependencyError, match=f"cannot listen at 127.0.0.1:{port}: .*choose another with --port"):
            server.open_socket("127.0.0.1", port)


def test_small_answers_wait_for_nothing() -> None:
    """Asyncio switches that off for a socket that names its protocol, and for no other."""
    with server.open_socket("127.0.0.1", 0) as place:
        assert place.proto == socket.IPPROTO_TCP


def test_all_addresses_are_those_of_both_families() -> None:
    """The socket of ``::`` accepts both families, whatever the machine's default is."""
    with server.open_socket("::", 0) as place:
        assert place.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 0


@pytest.mark.parametrize(
    "flags",
    [("--port", "0"), ("--port", "many"), ("--base-path", "https://h/p"), ("--config", "nowhere.toml")],
)
def test_what_cannot_be_ends_with_2(
    flags: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything starts, with what was got."""
    monkeypatch.chdir(tmp_path)
    Workspace(tmp_path).configure()
    assert main(["dashboard", *flags]) == 2
    assert flags[1] in capsys.readouterr().err


def test_where_alerts_lead_is_an_origin(
    opened_at: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said in the file, or in the environment."""
    place, port = Workspace(tmp_path).configure(CONFIGURATION + ALERTS), free_port()
    assert place.run("dashboard", "--port", str(port)) == 0
    monkeypatch.setenv("HOPWATCH_ALERTS__DASHBOARD", "https://other.example")
    assert place.run("dashboard", "--port", str(port)) == 0
    own = f"http://127.0.0.1:{port}"
    assert opened_at == [(own, "https://named.example"), (own, "https://other.example")]


def test_alerts_that_are_wrong_keep_nobody_from_looking(
    opened_at: list[tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With wrong alerts the dashboard starts, and says which origin it lacks."""
    place, port = Workspace(tmp_path).configure(CONFIGURATION + ALERTS + "odd = 1\n"), free_port()
    assert place.run("dashboard", "--port", str(port)) == 0
    assert opened_at == [(f"http://127.0.0.1:{port}",)]
    assert "[alerts] is wrong, and [alerts] dashboard no origin; hopwatch pathway check" in capsys.readouterr().err


def test_no_host_is_every_address_and_no_origin(
    opened_at: list[tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is one of this machine's own, and let in by its number."""
    port = free_port()
    assert Workspace(tmp_path).configure().run("dashboard", "--host", "", "--port", str(port)) == 0
    assert opened_at == [()]
    assert f"the dashboard is at http://0.0.0.0:{port}/" in capsys.readouterr().err


def test_nothing_is_told_to_others_and_no_traceback_to_viewers() -> None:
    """The options send no statistics, and show viewers no traceback."""
    options = theme.build_options()
    assert options["browser.gatherUsageStats"] is False
    assert options["client.showErrorDetails"] == "none"


def test_no_module_hides_one_of_python_s() -> None:
    """Streamlit puts the folder of the app first on the path, and there its modules are found by their bare names."""
    names = {one.stem for one in Path(server.__file__).parent.iterdir() if not one.name.startswith("__")}
    assert not names & set(sys.stdlib_module_names)
