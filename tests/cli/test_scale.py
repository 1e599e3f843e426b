"""Tests of ``hopwatch scale``: its flags, its decisions as lines of JSON, its end."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import pytest

from hopwatch.cli.main import main
from servers.process import free_ports

PROGRAM = ("--", sys.executable, "-c", "import time; time.sleep(600)")
LAG = ("--policy", "lag", "--target", "10")
GROUP = ("--group", "g", "--from", "kafka://127.0.0.1:1/orders")
PAGE = ("--metric", "http://127.0.0.1:1/metrics", "lag")
CPU = ("--policy", "cpu", "--target", "0.7")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (LAG, "--policy lag needs --group and --from, or --metric, got neither: name one of them"),
        ((*LAG, *GROUP, *PAGE), "--policy lag needs --group and --from, or --metric, got both: name one of them"),
        ((*LAG, "--group", "g"), "the backlog of a group needs --group and --from, --from is missing"),
        ((*LAG, *GROUP[2:]), "the backlog of a group needs --group and --from, --group is missing"),
        ((*CPU, *GROUP), "--policy cpu reads its own processes: leave out --group, --from and --metric"),
        ((*CPU, *PAGE), "--policy cpu reads its own processes: leave out --group, --from and --metric"),
        ((*LAG, *GROUP[:3], "spool:x"), '--from: a Kafka URL is "kafka://HOST:PORT/TOPIC"'),
        ((*LAG, *GROUP[:3], "kafka://a:1"), "--from: it names no topic, got 'kafka://a:1'"),
        ((*LAG, "--metric", "x", "lag"), "--metric: a page of metrics is http://HOST:PORT/metrics, got 'x'"),
        ((*LAG, *PAGE[:2], "a b"), "--metric: a metric is NAME or NAME{label=\"value\",...}, got 'a b'"),
        ((*CPU, "--target", "0"), "the target is a number above 0, got 0.0"),
        ((*CPU, "--min", "5"), "the numbers of processes are 1 <= min <= max, got 5 and 4"),
        ((*CPU, "--tolerance", "2"), "the tolerance is a ratio from 0 to below 1, got 2.0"),
        ((*CPU, "--every", "0s"), "--every: "),
        ((*CPU, "--patience", "soon"), "--patience: a duration is a whole number with ms, s, m, h or d"),
        ((*CPU, "--down-window", "5"), "--down-window: a duration is a whole number with ms, s, m, h or d"),
        ((*CPU, "--up-rate", "4"), "--up-rate is N/TIME or N%/TIME with N above 0, such as 4/15s, got '4'"),
        ((*CPU, "--down-rate", "0/15s"), "--down-rate is N/TIME or N%/TIME with N above 0, such as 4/15s, got '0/15s'"),
        ((*CPU, "--down-rate", "1/0s"), "--down-rate: "),
        ((*CPU, "--metrics-listen", "x"), "--metrics-listen: "),
    ],
)
def test_what_cannot_be_asked_for_exits_with_2(
    capsys: pytest.CaptureFixture[str], asked: Sequence[str], told: str
) -> None:
    """One line on stderr that names the flag, nothing on stdout, and no process starts."""
    assert main(["scale", *asked, "--max", "4", *PROGRAM]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith(f"hopwatch: {told}")


def test_a_program_that_is_not_there_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything starts."""
    assert main(["scale", *CPU, "--max", "4", "--", "no-such-program"]) == 2
    advice = "there is no such program: name one that is there and may be run, after --"
    assert capsys.readouterr().err == f"hopwatch: 'no-such-program' cannot be started: {advice}\n"


@pytest.fixture
def lag() -> Iterator[Callable[[float | None], str]]:
    """Yield a function that sets the lag of a page, None for a page without it; it returns the URL of the page."""
    shown: list[float | None] = [None]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            if shown[0] is not None:
                self.wfile.write(f'lag{{stream="orders"}} {shown[0]}\n'.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def show(value: float | None) -> str:
        shown[0] = value
        return f"http://127.0.0.1:{server.server_port}/metrics"

    yield show
    server.shutdown()
    server.server_close()


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, at most 30 s."""
    give_up_s = time.monotonic() + 30
    while not holds():
        if time.monotonic() > give_up_s:
            raise TimeoutError
        time.sleep(0.02)


def test_it_scales_until_it_is_stopped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], lag: Callable[[float | None], str]
) -> None:
    """Out and in by the metric, none without it; each decision is a line of JSON; SIGTERM ends all in order."""
    program = (
        "import os, pathlib, signal, sys, time\n"
        f"mine = pathlib.Path({str(tmp_path)!r}, str(os.getpid()))\n"
        "signal.signal(signal.SIGTERM, lambda *_: (mine.rename(f'{mine}.ended'), sys.exit()))\n"
        "mine.touch()\n"
        "time.sleep(600)\n"
    )
    (port,) = free_ports(1)
    failed: list[Exception] = []
    pages: list[str] = []

    def count(pattern: str) -> int:
        return len(list(tmp_path.glob(pattern)))

    def run() -> None:
        try:
            until(lambda: count("*") == 1)
            lag(30)
            until(lambda: count("*") == 3)
            lag(None)
            time.sleep(0.5)
            pages.append(urlopen(f"http://127.0.0.1:{port}/metrics").read().decode())
            lag(1)
            until(lambda: count("*.ended") == 2)
        except Exception as error:  # noqa: BLE001 - told below, once the command has ended
            failed.append(error)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    url = lag(10)
    thread = threading.Thread(target=run)
    thread.start()
    flags = ("--every", "100ms", "--down-window", "300ms", "--max", "3", "--metrics-listen", f"127.0.0.1:{port}")
    code = main(["scale", *LAG, "--metric", url, "lag", *flags, "--json", "--", sys.executable, "-c", program])
    thread.join()
    said = capfd.readouterr()
    assert (failed, code) == ([], 0), said.err
    assert (count("*"), count("*.ended")) == (3, 3)
    decisions = [json.loads(line) for line in said.out.splitlines()]
    assert {one["processes"] for one in decisions} == {1, 3}
    without = [one for one in decisions if one["metric"] is None]
    assert without
    assert {(one["processes"], one["reason"]) for one in without} == {(3, "no_metric")}
    assert without[0]["fault"] == "the page of metrics has no sample lag"
    assert "hopwatch scale: 3 processes instead of 1: lag is 30 of 10\n" in said.err
    assert "hopwatch scale: no metric, 3 processes as before: the page of metrics has no sample lag\n" in said.err
    assert "hopwatch scale: 1 process instead of 3: lag is 1 of 10\n" in said.err
    assert said.err.endswith("all processes have ended; 0 had ended by themselves before, 0 had to be killed\n")
    assert 'hopwatch_scale_wanted_processes{policy="lag"} 3.0' in pages[0]
    assert 'hopwatch_scale_target{policy="lag"} 10.0' in pages[0]
