"""The gate as it is served, to clients that are slow, hostile, or who they say they are."""

from __future__ import annotations

import gzip
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import httpx
import pytest

from hopwatch.gate import ids
from hopwatch.gate.records import EnteredRecord
from hopwatch.probes.message_headers import generate_id
from servers.process import Process, answers, free_ports, until
from tests.real.gate_command import RUN
from tests.repository import ROOT
from tests.support.certificates import bad_certificates, certificates
from tests.support.gate_client import CONFIG, GOOD, ORDER
from tests.support.gate_spool import published
from tests.support.program import ProgramProcess

MIB: Final = 1024 * 1024
TOKEN: Final = "a-token-of-a-shop"  # noqa: S105 - of this test alone


@contextmanager
def served(folder: Path, more: str = "", scheme: str = "http", *flags: str) -> Iterator[tuple[str, Process]]:
    """Yield the URL of a gate with one entrance, and its process."""
    (folder / "hopwatch.toml").write_text(CONFIG + more)
    (port,) = free_ports(1)
    command = [*RUN, "--config", str(folder / "hopwatch.toml"), "--port", str(port), *flags]
    process = ProgramProcess(command, folder / "said", folder=ROOT)
    try:
        until(lambda: answers(port) or not process.is_alive, "the gate answers")
        process.check("the gate")
        yield f"{scheme}://127.0.0.1:{port}", process
    finally:
        process.kill()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[tuple[str, Process]]:
    """Yield a gate whose stream has a schema."""
    with served(tmp_path) as (url, process):
        assert httpx.put(f"{url}/subjects/orders/schemas", json=ORDER).status_code == 201
        yield url, process


def put(url: str, client: httpx.Client) -> int:
    """Send one event, and return the status."""
    event_id = ids.format_uuid(generate_id(time.time_ns() // 1_000))
    return client.put(f"{url}/streams/orders/events/{event_id}", json=GOOD).status_code


def peak_bytes(process: Process) -> int:
    """Return the most memory that a process has had."""
    lines = Path(f"/proc/{process.pid}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def test_slow_clients_keep_nobody_out(gate: tuple[str, Process]) -> None:
    """200 that trickle headers or bodies: events enter beside them, and health answers; in the end they are cut."""
    url, _ = gate
    host, port = url.removeprefix("http://").split(":")
    head = (
        b"POST /streams/orders/events HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99\r\n"
    )
    with ExitStack() as open_, httpx.Client() as client:
        slow = [open_.enter_context(socket.create_connection((host, int(port)), 30)) for _ in range(200)]
        for number, one in enumerate(slow):
            one.sendall(head[: 20 + number % 60] if number % 2 else head + b"\r\n[")
        for _ in range(20):
            assert put(url, client) == 201
            assert httpx.get(f"{url}/healthz").status_code == 200
        slow[0].settimeout(30)
        assert slow[0].recv(4_096).startswith(b"HTTP/1.1 408 ")


def test_clients_that_do_not_read_keep_nobody_out(tmp_path: Path) -> None:
    """Clients that do not read are cut; health has a port of its own, and the gate ends in time."""
    (health,) = free_ports(1)
    with served(tmp_path, "", "http", "--health-port", str(health)) as (url, process), ExitStack() as open_:
        host, port = url.removeprefix("http://").split(":")
        asking = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 40
        for _ in range(200):
            silent = open_.enter_context(socket.socket())
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            silent.settimeout(30)
            silent.connect((host, int(port)))
            silent.sendall(asking)
        for _ in range(5):
            for place in (url, f"http://{host}:{health}"):
                assert httpx.get(f"{place}/healthz", timeout=30).status_code == 200
        answer = httpx.get(f"http://{host}:{health}/subjects", timeout=30)
        assert (answer.status_code, answer.json()["detail"]) == (
            404,
            "there is /healthz and /readyz here, and nothing else",
        )
        process.signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_an_end_under_load_loses_nothing_that_was_acknowledged(gate: tuple[str, Process], tmp_path: Path) -> None:
    """SIGTERM while eight clients send: whatever was answered 201 is in the spool, where readers see it."""
    url, process = gate
    acknowledged: set[str] = set()

    def send() -> None:
        with httpx.Client(timeout=30) as client, suppress(httpx.TransportError):
            while True:
                event_id = ids.format_uuid(generate_id(time.time_ns() // 1_000))
                if client.put(f"{url}/streams/orders/events/{event_id}", json=GOOD).status_code == 201:
                    acknowledged.add(event_id)

    clients = [threading.Thread(target=send) for _ in range(8)]
    for one in clients:
        one.start()
    until(lambda: len(acknowledged) > 200, "events are acknowledged")
    process.signal(signal.SIGTERM)
    assert process.wait(60) == 0
    for one in clients:
        one.join()
    kept = {
        ids.format_uuid(EnteredRecord.decode(record).event_id) for record in published(tmp_path / "events" / "orders")
    }
    assert acknowledged <= kept
    assert not list(tmp_path.glob("events/orders/*/*.open"))


def test_a_bomb_is_cut(gate: tuple[str, Process]) -> None:
    """200 KB of gzip that would be 200 MB: 413, and the process has not grown by more than 16 MiB."""
    url, process = gate
    bomb = gzip.compress(bytes(200 * MIB))
    with httpx.Client() as client:
        assert put(url, client) == 201
        before = peak_bytes(process)
        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        answer = client.post(f"{url}/streams/orders/events", content=bomb, headers=headers)
    assert answer.status_code == 413
    assert answer.json()["type"] == "urn:hopwatch:problem:body-too-large"
    assert peak_bytes(process) - before < 16 * MIB


HUNG_UP: Final = (httpx.ReadError, httpx.ConnectError)


def showing(folder: Path, name: str | None) -> ssl.SSLContext:
    """Return how a client connects that trusts the gate's authority and shows a certificate, or none."""
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if name is not None:
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context


def test_clients_show_a_certificate_and_a_token(tmp_path: Path) -> None:
    """TLS with an authority of one's own: without a certificate nobody gets through, without a token nobody further."""
    certificates(tmp_path)
    more = (
        '[gate.tls]\ncertificate = "server.pem"\nkey = "server.key"\nclient_ca = "ca.pem"\n'
        f'[gate.producers.shop]\ntokens = ["sha256:{sha256(TOKEN.encode()).hexdigest()}"]\n'
    )
    with served(tmp_path, more, "https") as (url, _):
        with (
            httpx.Client(verify=showing(tmp_path, None)) as client,
            pytest.raises(HUNG_UP),
        ):
            client.get(f"{url}/healthz")
        with httpx.Client(verify=showing(tmp_path, "client")) as client:
            assert client.get(f"{url}/healthz").status_code == 200
            assert client.get(f"{url}/subjects").status_code == 401
            client.headers["authorization"] = f"Bearer {TOKEN}"
            assert client.put(f"{url}/subjects/orders/schemas", json=ORDER).status_code == 201
            assert put(url, client) == 201
    assert f"the gate is at {url}/, which needs a token" in (tmp_path / "said").read_text("utf-8")


TLS: Final = '[gate.tls]\ncertificate = "{0}.pem"\nkey = "{0}.key"\nclient_ca = "ca.pem"\n'


def test_certificates_that_nobody_should_trust_are_refused(tmp_path: Path) -> None:
    """In the handshake, one as the other, while a good one is let in beside them; the log has no line for each."""
    bad_certificates(tmp_path)
    with served(tmp_path, TLS.format("server"), "https") as (url, _):
        for _ in range(20):
            for name in ("expired", "early", "stranger", "selfmade", "server-only", None):
                with (
                    httpx.Client(verify=showing(tmp_path, name)) as client,
                    pytest.raises(HUNG_UP),
                ):
                    client.get(f"{url}/healthz")
        with httpx.Client(verify=showing(tmp_path, "client")) as client:
            assert client.get(f"{url}/healthz").status_code == 200
    assert len((tmp_path / "said").read_text("utf-8").splitlines()) < 5


def test_a_certificate_of_the_gate_that_clients_refuse_is_told(tmp_path: Path) -> None:
    """With why; the gate starts all the same, as some clients may not look."""
    bad_certificates(tmp_path)
    with served(tmp_path, TLS.format("expired"), "https"):
        pass
    told = (
        f"hopwatch: [gate.tls]: the certificate {tmp_path}/expired.pem is refused by clients: certificate has expired"
    )
    assert told in (tmp_path / "said").read_text("utf-8").replace("\n", " ")


@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        ('[gate.tls]\ncertificate = "a.pem"\nkey = "b.pem"\n', 2, "[gate.tls]: the files for TLS, "),
        (
            '[gate.streams.x]\nto = "spool:./x"\n',
            2,
            "there is no [streams.x], and the monitor would not know its messages",
        ),
    ],
)
def test_what_cannot_be_served_is_told(tmp_path: Path, more: str, code: int, told: str) -> None:
    """Before anything listens."""
    (tmp_path / "hopwatch.toml").write_text(CONFIG + more)
    process = ProgramProcess([*RUN, "--config", str(tmp_path / "hopwatch.toml")], tmp_path / "said", folder=ROOT)
    assert process.wait(60) == code
    assert told in (tmp_path / "said").read_text("utf-8")


def test_a_topic_that_is_not_there_is_told(tmp_path: Path) -> None:
    """With exit code 3; the same where no broker answers."""
    (tmp_path / "hopwatch.toml").write_text(CONFIG.replace("spool:./events/orders", "kafka://127.0.0.1:1/orders"))
    process = ProgramProcess([*RUN, "--config", str(tmp_path / "hopwatch.toml")], tmp_path / "said", folder=ROOT)
    assert process.wait(60) == 3
    assert "hopwatch: the Kafka brokers 127.0.0.1:1 cannot be reached: " in (tmp_path / "said").read_text("utf-8")
