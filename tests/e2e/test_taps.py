"""Taps in processes of their own: stopped in order, killed without a word, started again."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final

import httpx
import pytest

from hopwatch.cli.main import main
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.http.granian_server import check_port
from hopwatch.testing import EPOCH_US
from servers.process import free_ports
from tests.support.probe_host import ROOT, rows, spooled
from tests.support.program import Program
from tests.support.spool_traffic import rest

PATIENCE_S: Final = 240
KILLS: Final = (2, 5)
"""How often the tap is killed while it goes on, as a rule and with --soak."""
RUN: Final = ("hopwatch", "tap", "jsonl")
FLAGS: Final = ("--stream", "orders", "--node", "router", "--id", "id", "--time", "at")


def lines(first: int, last: int) -> bytes:
    """Return lines with these ids."""
    return b"".join(b'{"id": %d, "at": %d}\n' % (number, EPOCH_US) for number in range(first, last))


def ids(first: int, last: int) -> set[bytes]:
    """Return the ids of these lines."""
    return {id_bytes(number) for number in range(first, last)}


class Tap:
    """A tap of a log in a folder, with its state and its spool beside it."""

    def __init__(self, folder: Path) -> None:
        """Name the places."""
        self.log, self.state, self.spool, self.said = (folder / name for name in ("app.log", "state", "spool", "said"))

    @contextmanager
    def running(self, *more: str) -> Iterator[Program]:
        """Start it; it is killed at the end if it goes on."""
        with self.said.open("ab") as said:
            command = [*RUN, str(self.log), *FLAGS, "--sink", f"spool:{self.spool}", *more]
            process = Program(command, folder=ROOT, out=said)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def stamped(self) -> Counter[bytes]:
        """Return how often each message was stamped."""
        return Counter(row.message_id for batches in spooled(self.spool).values() for row in rows(batches))

    def kept(self) -> int:
        """Return how many lines lie before the position that is kept."""
        if not self.state.exists():
            return 0
        position, before = json.loads(self.state.read_text()), 0
        for path in [*sorted(self.log.parent.glob("app.log-*")), self.log]:
            if path.stat().st_ino == position["inode"]:
                return before + path.read_bytes()[: position["offset"]].count(b"\n")
            before += path.read_bytes().count(b"\n")
        raise AssertionError(f"no file is the one of the position {position}")

    def offset(self) -> int:
        """Return up to where the log was read, by the state."""
        return int(json.loads(self.state.read_text())["offset"]) if self.state.exists() else -1


@pytest.fixture
def tap(tmp_path: Path) -> Tap:
    """Return a tap that was not started yet."""
    return Tap(tmp_path)


@pytest.mark.parametrize(("more", "kind"), [((), BatchKind.HEARTBEAT), (("--bye",), BatchKind.BYE)])
def test_a_tap_that_is_stopped_settles_and_says_bye_only_when_it_is_told_to(
    tap: Tap, more: tuple[str, ...], kind: BatchKind
) -> None:
    """Its service goes on as a rule: what passes from now on is unknown, and never lost."""
    tap.log.write_bytes(lines(0, 10))
    with tap.running("--from-start", "--state", str(tap.state), *more) as process:
        for _ in rest(PATIENCE_S):
            if tap.offset() > 0:
                break
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    assert tap.offset() == len(lines(0, 10))
    (batches,) = spooled(tap.spool).values()
    assert (len(rows(batches)), batches[-1].kind) == (10, kind)


def test_a_tap_without_a_state_says_what_a_restart_costs(tap: Tap) -> None:
    """On stderr, when it starts; the interrupt of a terminal ends it in order."""
    with tap.running() as process:
        for _ in rest(PATIENCE_S):
            if "without --state a restart begins at the file's end" in tap.said.read_text():
                break
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0


def test_a_tap_that_is_killed_skips_no_line(tap: Tap, times: Callable[[int, int], int]) -> None:
    """Written and rotated while it runs and while it is dead: again only what no position was kept of."""
    kills, dice, rotations = times(*KILLS), random.Random(7), 0
    often: Counter[bytes] = Counter()
    tap.log.touch()
    written = 0
    for kill in range(kills + 1):
        before = tap.kept()
        with tap.running("--from-start", "--state", str(tap.state)) as process:
            for turn, _ in enumerate(rest(PATIENCE_S)):
                with tap.log.open("ab") as file:
                    file.write(lines(written, written + 1_000))
                written += 1_000
                # What was rotated away before the very first position was kept is nobody's to find.
                if tap.state.exists() and dice.random() < 0.05:
                    rotations += 1
                    tap.log.rename(tap.log.with_name(f"app.log-{rotations:08}"))
                    tap.log.touch()
                if turn > 20 and tap.kept() > before and dice.random() < 0.1:
                    break
            if kill == kills:
                until_all = (tap.stamped().keys() >= ids(0, written) for _ in rest(PATIENCE_S))
                assert any(until_all)
            os.kill(process.pid, signal.SIGKILL)
        often.update(ids(tap.kept(), written))
    stamped = tap.stamped()
    assert stamped.keys() == ids(0, written)
    assert {number: count for number, count in stamped.items() if count > 1 + often[number]} == {}


def test_a_pipe_completes_nothing_while_lines_wait_behind_it(tap: Tap) -> None:
    """A backlog of seventy reads: its windows are unknown until the last line of it was stamped."""
    count = 100_000
    tap.log.write_bytes(lines(0, count))
    written_us = tap.log.stat().st_mtime_ns // 1_000
    command = [sys.executable, "-m", *RUN, "-", *FLAGS, "--sink", f"spool:{tap.spool}"]
    with subprocess.Popen(["/bin/cat", str(tap.log)], stdout=subprocess.PIPE) as backlog:
        assert subprocess.run(command, cwd=ROOT, stdin=backlog.stdout, timeout=PATIENCE_S, check=False).returncode == 0
    (batches,) = spooled(tap.spool).values()
    completing = next(at for at, batch in enumerate(batches) if batch.complete_through_us > written_us)
    stamped = [len(rows(part)) for part in (batches[: completing + 1], batches[completing + 1 :])]
    assert (stamped, batches[-1].kind) == ([count, 0], BatchKind.BYE)


def test_a_tap_by_http_takes_what_is_posted_until_it_is_stopped(tap: Tap, tmp_path: Path) -> None:
    """Ready once it listens; a body that trickles is cut; the port is free again at the end."""
    (port,) = free_ports(1)
    command = [*RUN[:-1], "http", "--port", str(port), "--sink", f"spool:{tap.spool}", "--json"]
    with (tmp_path / "out").open("wb") as out, tap.said.open("wb") as said:
        process = Program(command, folder=ROOT, out=out, err=said)
    url = f"http://127.0.0.1:{port}"
    body = {"stream": "orders", "node": "router", "observations": [{"id": 7, "event_time": EPOCH_US, "stamp": "in"}]}
    try:
        for _ in rest(PATIENCE_S):
            with suppress(httpx.TransportError):
                if httpx.get(f"{url}/readyz").status_code == HTTPStatus.OK:
                    break
        assert httpx.post(f"{url}/v1/observations", json=body).json() == {"observations": 1}
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.sendall(b"POST /v1/observations HTTP/1.1\r\nHost: tap\r\nContent-Type: application/json\r\n")
            slow.sendall(b"Content-Length: 100\r\n\r\n{")
            slow.settimeout(PATIENCE_S)
            assert slow.recv(1_000).startswith(b"HTTP/1.1 408 Request Timeout")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
    assert json.loads((tmp_path / "out").read_text()) == {"observations": 1, "records": 0, "refused": 1}
    assert tap.stamped() == {id_bytes(7): 1}
    check_port("127.0.0.1", port)


def test_a_port_that_is_taken_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, before anything starts."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["tap", "http", "--port", str(port), "--sink", f"spool:{tmp_path}"]) == 3
    told = f"hopwatch: 127.0.0.1 port {port} cannot be listened on: Address already in use: choose another\n"
    assert capsys.readouterr().err == told
