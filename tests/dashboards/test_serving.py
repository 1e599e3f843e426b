"""Tests of how the dashboard is started: where it listens, and what its modules may be called."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from dashboards import look, serving
from monitor.cli.main import main
from monitor.errors import DependencyError
from tests.monitor.cli.workplace import Workplace


def test_an_address_that_somebody_has_is_told() -> None:
    """With what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(DependencyError, match=f"cannot listen at 127.0.0.1:{port}: .*choose another with --port"):
            serving.listen("127.0.0.1", port)


def test_small_answers_wait_for_nothing() -> None:
    """Asyncio switches that off for a socket that names its protocol, and for no other."""
    with serving.listen("127.0.0.1", 0) as place:
        assert place.proto == socket.IPPROTO_TCP


def test_all_addresses_are_those_of_both_families() -> None:
    """Whatever the machine's own default is."""
    with serving.listen("::", 0) as place:
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
    Workplace(tmp_path).configure()
    assert main(["dashboard", *flags]) == 2
    assert flags[1] in capsys.readouterr().err


def test_nothing_is_told_to_others_and_no_traceback_to_viewers() -> None:
    """Whatever a configuration of Streamlit's own says: flags come before it."""
    options = look.options()
    assert options["browser.gatherUsageStats"] is False
    assert options["client.showErrorDetails"] == "none"


def test_no_module_hides_one_of_python_s() -> None:
    """Streamlit puts the folder of the app first on the path, and there its modules are found by their bare names."""
    names = {one.stem for one in Path(serving.__file__).parent.iterdir() if not one.name.startswith("__")}
    assert not names & set(sys.stdlib_module_names)
