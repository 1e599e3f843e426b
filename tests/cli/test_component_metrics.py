"""Tests of the page of metrics of the gate, taps, the validator and the dashboard: scraped from a real port."""

from __future__ import annotations

import http.client
import io
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hopwatch import __version__
from hopwatch.cli import metrics_server
from hopwatch.cli.main import main
from hopwatch.monitor.errors import DependencyError
from hopwatch.probes.metrics.account import ComponentAccounts
from hopwatch.probes.taps.http.intake import ObservationIntake
from servers.process import free_ports
from tests.support.gate_client import CHEAP, AtEntrance, post, put
from tests.support.workspace import Workspace

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(port: int) -> Samples:
    """Return the values of a page, by name and labels that are not empty."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    families = text_string_to_metric_families(text)
    return {
        (one.name, frozenset((name, value) for name, value in one.labels.items() if value)): one.value
        for family in families
        for one in family.samples
    }


def scraped(accounts: Callable[[], ComponentAccounts]) -> Samples:
    """Return what is served of accounts; afterwards the port is free."""
    (port,) = free_ports(1)
    said: list[str] = []
    with metrics_server.serve_accounts(f"127.0.0.1:{port}", accounts, said.append):
        found = scrape(port)
    assert said == [f"metrics are at http://127.0.0.1:{port}/metrics"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    return found


def value(found: Samples, name: str, **labels: str) -> float:
    """Return one value."""
    return found[f"hopwatch_component_{name}", frozenset(labels.items())]


def test_the_gate_accounts_for_events_and_requests() -> None:
    """A good event, its repeat, one in quarantine, and a request that asks for what is not there."""
    gate = AtEntrance(CHEAP)
    event_id = gate.new_id()
    put(gate, event_id)
    put(gate, event_id)
    put(gate, gate.new_id(), {"price": 11, "item": "x"})
    post(gate, [gate.event(), gate.event({"price": "x"})])
    gate.ask("GET", "/nowhere")
    found = scraped(gate.gate.accounts)
    of = {"component": "gate", "stream": "orders"}
    assert value(found, "received_events_total", **of) == 5
    assert value(found, "emitted_events_total", **of, output="stream") == 1
    assert value(found, "emitted_events_total", **of, output="quarantine") == 2
    assert value(found, "dropped_events_total", **of, reason="repeat") == 1
    assert value(found, "refused_events_total", **of, reason="batch") == 1
    assert value(found, "refused_events_total", **of, reason="busy") == 0
    assert value(found, "in_flight_events", **of) == 0
    # The first of them registers the schema.
    assert value(found, "received_requests_total", component="gate") == 6
    assert value(found, "answered_requests_total", component="gate", code="404") == 1
    assert value(found, "build_info", component="gate", version=__version__) == 1


def test_the_page_is_at_no_port_of_the_gate() -> None:
    """The gate's port has no page of metrics, as senders may not read figures of all streams."""
    assert AtEntrance().ask("GET", "/metrics").status_code == 404


def test_a_tap_of_lines_accounts_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One stamped, one unreadable; scraped when its input is over."""
    (port,) = free_ports(1)
    (tmp_path / "spool").mkdir()
    found: list[Samples] = []
    monkeypatch.setattr("hopwatch.cli.tap.STANDARD_INPUT_FILE", _pipe(b'{"i": 1, "t": 1700000040000000}\nodd\n'))
    from hopwatch.probes.taps.jsonl import JsonLinesTap  # noqa: PLC0415 - what is patched

    run = JsonLinesTap.run

    def run_and_scrape(tap: JsonLinesTap) -> None:
        run(tap)
        found.append(scrape(port))

    monkeypatch.setattr(JsonLinesTap, "run", run_and_scrape)
    sink = f"spool:{tmp_path / 'spool'}"
    flags = ("--stream", "orders", "--node", "a", "--id", "i", "--time", "t", "--sink", sink)
    assert main(["tap", "jsonl", "-", *flags, "--metrics-listen", f"127.0.0.1:{port}"]) == 0
    of = {"component": "jsonl_tap", "stream": "orders"}
    assert value(found[0], "received_events_total", **of) == 2
    assert value(found[0], "emitted_events_total", **of, output="stamps") == 1
    assert value(found[0], "dropped_events_total", **of, reason="not_json") == 1
    assert value(found[0], "in_flight_events", **of) == 0


def _pipe(data: bytes) -> int:
    """Return a descriptor from which data is read, and then its end."""
    import os  # noqa: PLC0415 - of this helper alone

    reading, writing = os.pipe()
    with io.FileIO(writing, "w") as file:
        file.write(data)
    return reading


def test_the_http_tap_accounts_for_observations(tmp_path: Path) -> None:
    """Of all streams together, as who posts names them; with what it refuses."""
    from hopwatch.probes.taps.context import RunContext  # noqa: PLC0415 - of this test alone
    from hopwatch.probes.taps.http.refusals import NodeName, RefusalProblem  # noqa: PLC0415

    (tmp_path / "spool").mkdir()
    allowed = [NodeName("orders", "a")]
    intake = ObservationIntake(f"spool:{tmp_path / 'spool'}", RunContext(print), allowed=allowed)
    good, bad = b'{"id": "a", "event_time": 1700000040000000, "stamp": "in"}', b'{"id": "b"}'
    intake.observe(b'{"stream": "orders", "node": "a", "observations": [' + good + b"," + bad + b"]}")
    with pytest.raises(RefusalProblem):
        intake.observe(b'{"stream": "orders", "node": "b", "observations": [' + good + b"]}")
    found = scraped(intake.accounts)
    intake.close(bye=True)
    assert value(found, "received_events_total", component="http_tap") == 3
    assert value(found, "emitted_events_total", component="http_tap", output="stamps") == 1
    assert value(found, "refused_events_total", component="http_tap", reason="rejected") == 1
    assert value(found, "refused_events_total", component="http_tap", reason="unknown_node") == 1
    assert value(found, "in_flight_events", component="http_tap") == 0
    assert value(found, "received_requests_total", component="http_tap") == 0


def test_what_is_no_address_is_told(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """With the flag, before anything is served."""
    workspace.configure()
    assert workspace.run("gate", "--metrics-listen", "9464") == 2
    assert capsys.readouterr().err.endswith(
        'hopwatch: --metrics-listen: an address is HOST:PORT, such as "127.0.0.1:9464", "0.0.0.0:9464" or '
        "\"[::1]:9464\"; got '9464'\n"
    )


def test_an_address_that_is_taken_is_told() -> None:
    """With the flag that names it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        serving = metrics_server.serve_accounts(address, lambda: ComponentAccounts("gate"), print)
        with pytest.raises(DependencyError) as caught, serving:
            raise AssertionError("it is served")
    told = f"metrics cannot be served at {address}: Address already in use"
    assert str(caught.value) == f"{told}; name another place in --metrics-listen, or leave it out"


def test_a_page_that_cannot_be_made_is_told() -> None:
    """On the command's own channel, and the command goes on."""
    (port,) = free_ports(1)
    said: list[str] = []

    def fail() -> ComponentAccounts:
        raise ValueError("odd")

    with (
        metrics_server.serve_accounts(f"127.0.0.1:{port}", fail, said.append),
        pytest.raises(http.client.RemoteDisconnected),
    ):
        scrape(port)
    assert said[1:] == ["the page of metrics cannot be made: ValueError('odd')"]


def test_the_port_is_free_where_its_address_cannot_be_told() -> None:
    """As on a terminal that is gone: the command ends, and holds nothing."""
    (port,) = free_ports(1)

    def fail(_: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError), metrics_server.serve_accounts(f"127.0.0.1:{port}", dict, fail):  # type: ignore[arg-type]  # never asked
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
