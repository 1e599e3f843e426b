"""Tests of ``hopwatch rate``: its flags, and runs over a stream of this process that delivers by HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

import pytest

from hopwatch.cli import rate, rate_builder
from hopwatch.cli.main import main
from hopwatch.rate import step
from hopwatch.rate.results import StepResult
from servers.process import free_ports, until
from tests.support.workspace import CONFIGURATION

TARGET = ("--until", "e2e p50 <= 30 s and loss = 0")
"""A target that a stream of this process keeps on a machine that is busy with other tests, too."""
TRIES = 3
BOTH = "messages arrive at --topic or at --receiver, got"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a configuration and events, in which the command runs."""
    (tmp_path / "hopwatch.toml").write_text(CONFIGURATION, "utf-8")
    (tmp_path / "events.jsonl").write_text('{"price": 1.5}\n\n{"price": 2}\n', "utf-8")
    (tmp_path / "broken.jsonl").write_text('{"price": 1.5}\n{"price"\n', "utf-8")
    (tmp_path / "empty.jsonl").write_text("\n", "utf-8")
    (tmp_path / "large.jsonl").write_text(json.dumps("x" * 262_144), "utf-8")
    (tmp_path / "token").write_text("two words\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    # Steps of 2 s decide what is asked here as those of 8 s do.
    monkeypatch.setattr(step, "MIN_MEASURED_S", 2.0)
    return tmp_path


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("--until", "e2e p90 <= 1 s"), "--until: a target is "),
        (("--stream", "nobody"), "--stream names 'nobody', the configuration has: orders"),
        (("--topic", "kafka://127.0.0.1:1/x"), f"{BOTH} both: name one of them"),
        (("--receiver", "x"), "--receiver: an address is HOST:PORT"),
        (("--entrance", "ftp://x"), "--entrance is the URL of a gate, such as http://127.0.0.1:8081, got 'ftp://x'"),
        (
            ("--entrance", "http://x:y"),
            "--entrance is the URL of a gate, such as http://127.0.0.1:8081, got 'http://x:y'",
        ),
        (("--entrance", "http://192.0.2.1"), "192.0.2.1 is not this machine, and a rating loads it until it fails"),
        (("--events", "none"), "--events none cannot be read: No such file or directory"),
        (("--events", "broken.jsonl"), "--events broken.jsonl, line 2: it is no JSON: "),
        (("--events", "empty.jsonl"), "--events empty.jsonl is empty: write the data of an event as JSON, one a line"),
        (("--events", "large.jsonl"), "--events large.jsonl, line 1: an event has at most 262,144 bytes, got 262,146"),
        (("--token-file", "none"), "--token-file none cannot be read: No such file or directory"),
        (("--token-file", "token"), "--token-file token holds no token: one line of printable ASCII is one"),
        (("--start", "0"), "--start, --max-rate and --tolerance: the rates are 0 < min <= start <= max, got 0, 0 and"),
        (("--tolerance", "2"), "--start, --max-rate and --tolerance: the tolerance is a ratio above 0 and at most 1"),
        (("--max-rate", "2e9"), "--max-rate is at most 1,000,000 messages a second, got 2e+09"),
        (("--at", "-5"), "--at is above 0 and at most --max-rate 50000, got -5"),
        (("--linger", "x"), "--linger: a duration is a whole number with ms, s, m, h or d"),
        (("--patience", "0s"), "--patience: "),
        (("--hold", "0s"), "--hold: "),
        (("--for", "0s"), "--for: "),
        (("--process", "router"), "--process is NODE=PID, such as router=4711, got 'router'"),
        (
            ("--consumers", "1,x", "--", "true"),
            "--consumers are whole numbers from 1 to 1,000, such as 1,2,4, got '1,x'",
        ),
        (("--consumers", "1"), "--consumers needs the command of a consumer: name it after --"),
        (
            ("--consumers", "1", "--", "no-such-program"),
            "'no-such-program' cannot be started: there is no such program",
        ),
        (("--", "true"), "a command needs --consumers, got 'true' without: --consumers 1,2,4"),
        (("--html", "none/x.html"), "--html cannot write none/x.html: No such file or directory"),
    ],
)
def test_what_cannot_be_asked_for_exits_with_2(
    folder: Path, capsys: pytest.CaptureFixture[str], asked: Sequence[str], told: str
) -> None:
    """One line on stderr that names the flag, and nothing is sent."""
    del folder
    usual = ("--stream", "orders", *TARGET, "--events", "events.jsonl", "--receiver", "127.0.0.1:1")
    assert main(["rate", *usual, *asked]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith(f"hopwatch: {told}")


def test_a_rating_needs_an_end(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A topic with its name, or an address to receive at."""
    del folder
    usual = ("rate", "--stream", "orders", *TARGET, "--events", "events.jsonl")
    for asked, told in (
        ((), f"{BOTH} neither: name one of them"),
        (("--topic", "x"), "--topic: a Kafka URL is"),
        (("--topic", "kafka://127.0.0.1:1"), "--topic: it names no topic, got 'kafka://127.0.0.1:1'"),
        (("--topic", "kafka://192.0.2.7:1/x"), "192.0.2.7 is not this machine"),
    ):
        assert main([*usual, *asked]) == 2
        assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("behind", "told"),
    [
        (
            '[gate.streams.orders]\nto = "kafka://127.0.0.1:9092,192.0.2.3:9092/orders"',
            "192.0.2.3 of [gate.streams.orders] is not this machine",
        ),
        (
            '[gate.streams.orders]\nto = "spool:/var/spool/orders"\nrejected = "kafka://192.0.2.4:9092/r"',
            "192.0.2.4 of [gate.streams.orders] is not this machine",
        ),
        (
            '[deliver.shop]\nstream = "orders"\nfrom = "kafka://127.0.0.1:1/o"\nurl = "https://192.0.2.5/hook"',
            "192.0.2.5 of [deliver.shop] is not this machine",
        ),
        (
            '[deliver.shop]\nstream = "orders"\nfrom = "kafka://192.0.2.6:1/o"\nurl = "http://127.0.0.1/hook"',
            "192.0.2.6 of [deliver.shop] is not this machine",
        ),
    ],
)
def test_what_stands_behind_the_gate_is_no_strangers(
    folder: Path, capsys: pytest.CaptureFixture[str], behind: str, told: str
) -> None:
    """A gate of this machine may write to brokers of others, and a delivery may post all of the load to a partner."""
    (folder / "hopwatch.toml").write_text(f'[streams.orders]\npath = "gate -> deliver"\n{behind}\n', "utf-8")
    usual = ("rate", "--stream", "orders", *TARGET, "--events", "events.jsonl", "--receiver", "127.0.0.1:1")
    assert main(list(usual)) == 2
    assert f"hopwatch: {told}, and a rating loads it until it fails" in capsys.readouterr().err


class Stream(NamedTuple):
    """Stream of this process: where its gate is, and where it delivers to."""

    gate: str
    receiver: str


@pytest.fixture
def stream() -> Iterator[Callable[..., Stream]]:
    """Yield a function that starts a stream whose gate answers with a status; it delivers what it accepts.

    With ``loses`` it loses every second request.
    """
    servers: list[ThreadingHTTPServer] = []
    deliver = ThreadPoolExecutor(4)

    def start(status: int, *, loses: bool = False) -> Stream:
        (port,) = free_ports(1)
        requests = count()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()
                if status == 201 and not (loses and next(requests) % 2):
                    deliver.submit(urlopen, Request(f"http://127.0.0.1:{port}/", body, method="POST"))

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return Stream(f"http://127.0.0.1:{server.server_port}", f"127.0.0.1:{port}")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
    deliver.shutdown()


def flags(made: Stream) -> tuple[str, ...]:
    """Return the flags of a rating of a stream."""
    where = ("--entrance", made.gate, "--receiver", made.receiver, "--batch", "10")
    return ("rate", "--stream", "orders", *TARGET, "--events", "events.jsonl", *where)


def test_a_stream_is_rated(folder: Path, stream: Callable[..., Stream], capsys: pytest.CaptureFixture[str]) -> None:
    """A rate that holds ends it with 0; JSON has the step, and the page opens without a network."""
    asked = (*flags(stream(201)), "--max-rate", "100", "--repeats", "1", "--json", "--html", "page.html")
    code, said = main(list(asked)), capsys.readouterr()
    for _ in range(TRIES):
        # A busy machine holds back the sender or the receiver, and lower rates are tried.
        if code == 0 and json.loads(said.out)["runs"][0]["is_lower_bound"]:
            break
        code, said = main(list(asked)), capsys.readouterr()
    assert code == 0, said.err
    told = json.loads(said.out)
    (run,) = told["runs"]
    assert (told["end"], run["rating_per_s"], run["is_lower_bound"]) == ("complete", 100, True)
    assert run["saturation"] is None
    (only,) = run["repeats"][0]["steps"]
    assert (only["state"], only["messages"], only["lost"], only["not_acknowledged"]) == ("holds", 200, 0, 0)
    assert 0 < only["p50_ms"]["low"] <= only["p50_ms"]["value"] <= only["p50_ms"]["high"] < 30_000
    assert "hopwatch rate: 100 messages/s holds, p95 " in said.err
    page = (folder / "page.html").read_text("utf-8")
    assert "at least 100 messages/s" in page
    assert "<script" not in page
    assert "src=" not in page


def test_a_target_that_fails_exits_with_1(
    folder: Path, stream: Callable[..., Stream], capsys: pytest.CaptureFixture[str]
) -> None:
    """The terminal shows why, and that no probe was heard."""
    del folder
    asked = (*flags(stream(201, loses=True)), "--at", "50", "--hold", "1s", "--patience", "1s")
    assert main(asked) == 1
    said = capsys.readouterr()
    assert re.search(r"50 messages/s fails, p95 .*: loss: \d+ of 100 messages did not arrive", said.err), said.err
    assert "what saturates is UNKNOWN: no probe of the stream was heard while a rate failed" in said.out


def test_ctrl_c_leaves_what_was_measured(
    folder: Path,
    stream: Callable[..., Stream],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first step is printed although the second one was interrupted; the exit code is 130."""
    del folder
    told = threading.Event()

    def interrupt() -> None:
        told.wait(60)
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    original = rate._print_step

    def print_step(result: StepResult) -> None:
        original(result)
        told.set()

    monkeypatch.setattr(rate, "_print_step", print_step)
    code = main([*flags(stream(201)), "--at", "20", "--at", "30", "--hold", "1s", "--json"])
    thread.join()
    assert code == 130
    found = json.loads(capfd.readouterr().out)
    assert found["end"] == "interrupted"
    assert [one["rate_per_s"] for one in found["runs"][0]["repeats"][0]["steps"]] == [20]


def test_a_rate_that_is_held_for_too_long_is_not_planned(
    folder: Path, stream: Callable[[int], Stream], capsys: pytest.CaptureFixture[str]
) -> None:
    """A step that ends behind the end of the run has no messages: those of a year would fill the memory."""
    del folder
    asked = ("--at", "1000", "--hold", "365d", "--for", "10s", "--json")
    assert main([*flags(stream(201)), *asked]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["end"], told["runs"][0]["repeats"][0]["steps"]) == ("time", [])


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (422, 2, "the entrance refuses the events with 422: "),
        (503, 3, "no message has arrived within 0.5 s, the last answers were HTTP 503: see that the nodes of"),
    ],
)
def test_a_stream_that_lets_nothing_through_is_not_rated(
    folder: Path,
    stream: Callable[..., Stream],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    code: int,
    told: str,
) -> None:
    """One line says why, before any rate is tried."""
    del folder
    monkeypatch.setattr(rate_builder, "READY_S", 0.5)
    assert main(flags(stream(status))) == code
    assert f"hopwatch: {told}" in capsys.readouterr().err


def test_an_address_that_is_taken_exits_with_3(
    folder: Path, stream: Callable[..., Stream], capsys: pytest.CaptureFixture[str]
) -> None:
    """The receiver's own."""
    del folder
    made = stream(201)
    taken = made._replace(receiver=made.gate.removeprefix("http://"))
    assert main(flags(taken)) == 3
    assert f"hopwatch: --receiver {taken.receiver} cannot be had: " in capsys.readouterr().err


def test_consumers_are_started_and_ended(
    folder: Path, stream: Callable[..., Stream], capsys: pytest.CaptureFixture[str]
) -> None:
    """With each number of consumers there is a result, and none of them is left."""
    program = f"import os, pathlib, time; pathlib.Path({str(folder)!r}, f'c{{os.getpid()}}').touch(); time.sleep(600)"
    asked = ("--at", "20", "--hold", "1s", "--consumers", "1,2", "--json", "--", sys.executable, "-c", program)
    code = main([*flags(stream(201)), *asked])
    told = json.loads(capsys.readouterr().out)
    assert [run["consumers"] for run in told["runs"]] == [1, 2]
    steps = [step for run in told["runs"] for repeat in run["repeats"] for step in repeat["steps"]]
    assert [(step["messages"] > 0, step["lost"], step["not_acknowledged"]) for step in steps] == [(True, 0, 0)] * 2
    # A machine that is busy with other tests may let the lag of a step grow for seconds, which fails it, or let the
    # sender be late, of which it is void; nothing else.
    reasons = [reason for step in steps for reason in step["reasons"]]
    assert all(reason.startswith(("the lag grows by ", "the sender itself was late: ")) for reason in reasons), reasons
    assert code == (1 if reasons else 0)
    started = [int(path.name[1:]) for path in folder.glob("c[0-9]*")]
    assert len(started) == 2
    for pid in started:
        until(lambda one=pid: not Path(f"/proc/{one}").exists(), "the end of a consumer")  # type: ignore[misc]
