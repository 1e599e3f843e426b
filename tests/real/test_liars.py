"""Servers that are not what the configuration takes them for: commands end with 3, in bounded time and in one line."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from hopwatch import Probe
from servers.liar import LIES, Liar, lying
from servers.process import Process, free_ports
from tests.real.program_folder import Workplace

AT_MOST_S: Final = 120
"""How long a command may take beside seven others; by itself it takes 15 s."""
GROWN_BYTES: Final = 100 * 1024 * 1024
SCHEMA: Final = {
    "type": "record",
    "name": "order",
    "fields": [{"name": "id", "type": "string"}],
}
GATED: Final = '[streams.orders]\npath = "gate -> b"\n[gate.streams.orders]\nto = "{0}/good"\nrejected = "{0}/bad"\n'
SILENT: Final = ("closes at once", "never answers")


EVERY: Final = 4
"""So many lies share the commands, every fourth for each; with --soak each command meets all."""


@pytest.fixture(params=LIES)
def liar(request: pytest.FixtureRequest) -> Iterator[tuple[str, Liar]]:
    """Yield a lie, and the server that tells it."""
    with lying(request.param) as one:
        yield request.param, one


def some(commands: Mapping[str, tuple[str, ...]], lie: str, every: int) -> dict[str, tuple[str, ...]]:
    """Return the first of every so many commands, begun elsewhere for each lie: all lies together meet them all."""
    names = list(commands)
    return {name: commands[name] for name in names[list(LIES).index(lie) % every :: every]}


def ended(folder: Path, commands: Mapping[str, tuple[str, ...]], work: Workplace) -> dict[str, tuple[int, str]]:
    """Run commands beside each other; return by their names what each ended with, and what it said."""
    running: dict[str, Process] = {}
    for name, command in commands.items():
        place = Workplace(folder / name, work.transport, work.store, streams=work.streams)
        running[name] = place.start(*command)
    return {
        name: (process.wait(AT_MOST_S), (folder / name / "words.log").read_text("utf-8"))
        for name, process in running.items()
    }


def test_what_is_no_kafka_ends_each_command(
    liar: tuple[str, Liar], tmp_path: Path, times: Callable[[int, int], int]
) -> None:
    """One line each, with the address, why, and what to look at, and no advice of the client's that leads astray."""
    lie, server = liar
    url = f"kafka://{server.address}"
    work = Workplace(tmp_path, f"{url}/obs", f"sqlite:///{tmp_path}/store.db", streams=GATED.format(url))
    (tmp_path / "order.json").write_text(json.dumps(SCHEMA))
    registered = work.call("schema", "register", "--subject", "orders", "order.json")
    assert registered.returncode == 0, registered.stderr
    of = ("--stream", "orders", "--from", f"{url}/raw", "--group", "g")
    commands = {
        "check": ("topics", "check"),
        "create": ("topics", "create"),
        "doctor": ("doctor",),
        "run": ("run",),
        "once": ("run", "--once"),
        "gate": ("gate", "--port", str(free_ports(1)[0])),
        "validate": ("validate", "kafka", *of),
        "tap": ("tap", "kafka", *of, "--node", "b", "--sink", "spool:./spool"),
    }
    for name, (code, words) in ended(tmp_path, some(commands, lie, times(EVERY, 1)), work).items():
        lines = words.splitlines()
        assert code == 3, (name, words)
        if name == "doctor":
            lines = [" ".join(lines[at : at + 2]) for at, line in enumerate(lines) if line.startswith("FAIL transport")]
        (line,) = lines
        assert "cannot be reached: " in line
        assert server.address in line
        assert "check " in line
        told = "none answers as a broker does" if lie in SILENT else f"what answers at {server.address} does not speak"
        assert told in line, (name, line)
        assert "receive.message.max.bytes" not in line


def resident_bytes() -> int:
    """Return how much memory this process has."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4_096


def test_what_is_no_kafka_costs_a_host_nothing(liar: tuple[str, Liar], caplog: pytest.LogCaptureFixture) -> None:
    """No call raises or is waited for, what has no room is counted, and the log has a few lines."""
    _, server = liar
    before, now_us = resident_bytes(), time.time_ns() // 1_000
    probe = Probe("orders", "a", f"kafka://{server.address}/obs", most_stamps=50_000)
    began_s = time.monotonic()
    stamped = 0
    while stamped < 200_000:
        probe.arrived(stamped, now_us)
        stamped += 1
    assert time.monotonic() - began_s < 20
    assert not probe.flush(1.0)
    began_s = time.monotonic()
    probe.close()
    assert time.monotonic() - began_s < 10
    assert probe.dropped == stamped
    assert resident_bytes() - before < GROWN_BYTES
    assert len(caplog.records) < 12


def test_what_is_no_postgresql_ends_each_command(
    liar: tuple[str, Liar], tmp_path: Path, times: Callable[[int, int], int]
) -> None:
    """One line each, with the address and what to look at, and without the password."""
    lie, server = liar
    url = f"postgresql+psycopg://hopwatch:open-sesame-7@{server.address}/store"
    work = Workplace(tmp_path, "spool:./spool", url)
    commands = {
        "report": ("report",),
        "run": ("run",),
        "doctor": ("doctor",),
        "list": ("alerts", "list"),
        "migrate": ("store", "migrate"),
        "prune": ("store", "prune", "--keep", "30d"),
    }
    for name, (code, words) in ended(tmp_path, some(commands, lie, times(EVERY, 1)), work).items():
        lines = words.splitlines()
        assert code == 3, (name, words)
        if name == "doctor":
            lines = [" ".join(lines[at : at + 2]) for at, line in enumerate(lines) if line.startswith("FAIL store")]
        (line,) = lines
        assert f"the store postgresql+psycopg://hopwatch:***@{server.address}/store failed: " in line
        assert "check that the server is up, and host and port in [store] url" in line
        assert "sesame" not in words
