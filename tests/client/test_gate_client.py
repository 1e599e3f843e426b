"""Tests of the client for threads."""

from __future__ import annotations

import logging
import os
import threading
import time
import tracemalloc
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from hopwatch.client import (
    ClientClosedError,
    ClientPolicy,
    ClientSpoolError,
    GateClient,
    OutcomeResult,
    QueueFullError,
    SendOutcome,
)
from hopwatch.client.spool import LOCK_NAME, SEGMENT_BYTES, SpoolQueue
from hopwatch.deliver.answers import Answer, NoAnswer
from servers.process import free_ports
from tests.support.client_parts import PATIENCE_S, QUICK, ScriptedTransport, open_client

BIG = "x" * 1_000


def fill(client: GateClient) -> None:
    """Send events until there is no room."""
    while True:
        client.send(BIG)


def test_events_are_sent_in_batches() -> None:
    """Events that come while a request is under way are one batch; each is told once, and counted."""
    transport, told = ScriptedTransport(), list[SendOutcome]()
    transport.hold()
    with open_client(transport, on_outcome=told.append) as client:
        sent = [client.send(0)]
        assert transport.is_asked.wait(PATIENCE_S)
        sent += [client.send(number) for number in range(1, 10)]
        transport.may_go_on.set()
        assert client.flush(PATIENCE_S)
    assert [[event["data"] for event in events] for events in transport.events()] == [[0], list(range(1, 10))]
    assert [outcome.event_id for outcome in told] == sent
    assert {(one.result, one.status, one.reason) for one in told} == {(OutcomeResult.ENTERED, 201, "")}
    counts = client.counts()
    assert (counts.accepted, counts.entered, counts.requests, counts.waiting_bytes) == (10, 10, 2, 0)


def test_a_batch_waits_to_be_filled_but_not_for_a_flush() -> None:
    """With a linger of a minute a flush sends at once."""
    transport = ScriptedTransport()
    with open_client(transport, policy=ClientPolicy(linger_s=60.0)) as client:
        for number in range(3):
            client.send(number)
        assert not transport.is_asked.wait(0.05)
        assert client.flush(PATIENCE_S)
    assert len(transport.bodies) == 1


def test_what_is_not_taken_is_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    """Failures in a row are logged once, with their end, and the body that is repeated is the same."""
    transport = ScriptedTransport(0, 503, 207)
    with caplog.at_level(logging.INFO, "hopwatch.client"), open_client(transport) as client:
        assert client.send_and_wait({"a": 1}, timeout_s=PATIENCE_S).result is OutcomeResult.ENTERED
    assert len(set(transport.bodies)) == 1
    assert len(transport.bodies) == 3
    assert [record.message for record in caplog.records] == [
        "the gate does not take events: the connection broke: by the test; they are sent again",
        "the gate takes events again",
    ]
    assert (client.counts().failed_requests, client.counts().repeated) == (2, 2)


def test_the_counts_say_why_the_gate_takes_nothing() -> None:
    """The reason stands there until a request succeeds as a whole."""
    transport = ScriptedTransport(503)
    with open_client(transport, policy=ClientPolicy(linger_s=0.0, backoff_base_s=60.0, backoff_max_s=60.0)) as client:
        failed = threading.Event()
        client.add_listener(failed.set)
        client.send(1)
        assert failed.wait(PATIENCE_S)
        assert client.counts().last_failure == "HTTP 503 Service Unavailable"
        client.close(0.0)
    transport = ScriptedTransport(503)
    with open_client(transport) as client:
        client.send_and_wait(1, timeout_s=PATIENCE_S)
        assert client.counts().last_failure == ""


def test_a_page_of_a_stranger_is_no_acknowledgement(caplog: pytest.LogCaptureFixture) -> None:
    """A proxy that answers 200 to everything has taken nothing."""
    transport = ScriptedTransport(200)
    with open_client(transport) as client:
        assert client.send_and_wait(1, timeout_s=PATIENCE_S).status == 201
    assert len(transport.bodies) == 2
    assert "HTTP 200 OK is no answer of a gate, which is 207: look at the URL" in caplog.text


def test_what_is_refused_is_told_and_never_sent_again() -> None:
    """The outcome has status, reason, the event as it was sent and what the gate said."""
    transport = ScriptedTransport(415)
    with open_client(transport) as client:
        outcome = client.send_and_wait(1, timeout_s=PATIENCE_S)
    told = OutcomeResult.REJECTED, 415, "HTTP 415 Unsupported Media Type"
    assert (outcome.result, outcome.status, outcome.reason) == told
    assert outcome.answer == b'{"detail": "no"}'
    assert transport.bodies == [b"[" + outcome.event + b"]"]
    assert client.counts().rejected == 1


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (401, "HTTP 401 Unauthorized: look at the token"),
        (403, "HTTP 403 Forbidden: look at the token and its streams"),
        (404, "HTTP 404 Not Found: look at the URL and the stream"),
        (302, "HTTP 302 Found is no answer of a gate, which is 207: look at the URL"),
    ],
)
def test_what_no_event_is_the_reason_for_costs_no_event(
    caplog: pytest.LogCaptureFixture, status: int, told: str
) -> None:
    """A token that has expired, a stream that is not there yet and a portal are told, and events wait."""
    transport = ScriptedTransport(status, status)
    with open_client(transport) as client:
        assert client.send_and_wait(1, timeout_s=PATIENCE_S).result is OutcomeResult.ENTERED
    assert len(set(transport.bodies)) == 1
    assert f"the gate does not take events: {told}; they are sent again" in caplog.text


def test_one_event_that_a_gate_cannot_read_costs_no_other() -> None:
    """A batch that is refused as a whole is sent in halves, until the event that is the reason is alone."""

    class Poisoned(ScriptedTransport):
        def post(self, body: bytes) -> Answer | NoAnswer:
            self.statuses = [400] if b"poison" in body else []
            return super().post(body)

    told = list[SendOutcome]()
    with open_client(Poisoned(), on_outcome=told.append, policy=replace(QUICK, linger_s=60.0)) as client:
        sent = {client.send("poison" if number == 5 else number): number for number in range(9)}
        assert client.flush(PATIENCE_S)
    assert sorted(sent[one.event_id] for one in told if one.result is OutcomeResult.ENTERED) == [0, 1, 2, 3, 4, 6, 7, 8]
    assert [(sent[one.event_id], one.status) for one in told if one.result is OutcomeResult.REJECTED] == [(5, 400)]


@pytest.mark.parametrize("is_spooled", [False, True])
def test_a_full_queue_refuses_or_waits(tmp_path: Path, is_spooled: bool) -> None:  # noqa: FBT001
    """Beyond the bound an event is refused at once, or waits for room as long as its caller allows."""
    transport = ScriptedTransport()
    transport.hold()
    client = open_client(transport, spool=tmp_path if is_spooled else None, max_bytes=5_000)
    with pytest.raises(QueueFullError, match=r"of 5,000 bytes of events wait .* for the gate already: send it again"):
        fill(client)
    accepted = client.counts().accepted
    assert 2 < accepted < 5
    assert client.counts().waiting_bytes <= 5_000
    with pytest.raises(QueueFullError):
        client.send(BIG, wait_s=0.01)
    threading.Timer(0.05, transport.may_go_on.set).start()
    client.send(BIG, wait_s=PATIENCE_S)
    assert client.close(PATIENCE_S)
    assert client.counts().entered == accepted + 1


def test_what_is_left_in_memory_is_told_at_the_end() -> None:
    """A client that is closed while the gate hangs returns in time, and each event has an outcome."""
    transport, told = ScriptedTransport(), list[SendOutcome]()
    transport.hold()
    client = open_client(transport, on_outcome=told.append)
    sent = [client.send(number) for number in range(3)]
    assert transport.is_asked.wait(PATIENCE_S)
    waiting: Future[SendOutcome] = Future()
    record = client.build_record(4, None, None)
    client.accept(record, future=waiting)
    assert not client.close(0.05)
    assert waiting.result(PATIENCE_S).result is OutcomeResult.UNSENT
    assert [(one.event_id, one.result) for one in told] == [
        (event_id, OutcomeResult.UNSENT) for event_id in (*sent, record.id_text)
    ]
    assert told[0].reason == "the client was closed before the gate had answered for it"
    assert client.counts().unsent == 4
    with pytest.raises(ClientClosedError, match="the client is closed: it takes no events any more"):
        client.send(1)
    assert not client.close()


def test_nothing_is_waited_for_once_the_client_has_ended(tmp_path: Path) -> None:
    """A client that is closed twice, or flushed behind that, waits no second time for a gate that is away."""
    transport = ScriptedTransport()
    transport.hold()
    client = open_client(transport, spool=tmp_path)
    client.send(1)
    assert not client.close(0.01)
    client._thread.join(PATIENCE_S)
    begun_s = time.monotonic()
    assert not client.flush(PATIENCE_S)
    assert not client.close(PATIENCE_S)
    assert time.monotonic() - begun_s < PATIENCE_S / 2


def test_what_could_not_be_read_is_kept_beside_what_could_not_be_before(tmp_path: Path) -> None:
    """The next file that is put aside takes another name, however often a process is killed while it writes."""
    for number in range(3):
        transport = ScriptedTransport()
        transport.hold()
        client = open_client(transport, spool=tmp_path)
        client.send(number)
        client.close(0.01)
        client._thread.join(PATIENCE_S)
        with next((tmp_path / "orders").glob("*.seg")).open("ab") as file:
            file.write(b"torn")
        with open_client(ScriptedTransport(), spool=tmp_path) as client:
            assert client.flush(PATIENCE_S)
        assert len(list((tmp_path / "orders").glob("*.unreadable"))) == number + 1


def test_a_kill_before_the_first_write_leaves_nothing_to_tell(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file without a byte holds no event, and is no damage."""
    open_client(ScriptedTransport(), spool=tmp_path).close()
    (tmp_path / "orders" / "0000000000.seg").touch()
    with open_client(ScriptedTransport(), spool=tmp_path) as client:
        assert client.send_and_wait(1, timeout_s=PATIENCE_S).result is OutcomeResult.ENTERED
    assert client.counts().unreadable == 0
    assert not caplog.records
    assert not list((tmp_path / "orders").glob("0*"))


def test_what_is_no_file_in_the_spool_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Links, pipes and folders that are named as segments keep no event from being sent, and stay as they are."""
    folder = tmp_path / "orders"
    folder.mkdir()
    (tmp_path / "elsewhere").write_bytes(b"x")
    (folder / "0000000000.seg").symlink_to(tmp_path / "elsewhere")
    (folder / "0000000001.seg").symlink_to(tmp_path / "nowhere")
    os.mkfifo(folder / "0000000002.seg")
    (folder / "0000000003.seg").mkdir()
    before = sorted(folder.iterdir())
    with open_client(ScriptedTransport(), spool=tmp_path) as client:
        assert client.send_and_wait(1, timeout_s=PATIENCE_S).result is OutcomeResult.ENTERED
    assert sorted(folder.iterdir()) == before
    assert (tmp_path / "elsewhere").read_bytes() == b"x"
    assert [f"{path} is no file, and is left alone" for path in before] == caplog.messages


def test_a_segment_larger_than_any_is_read_in_part(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Of a file of 3 GiB the events at its beginning are sent, and it takes neither the memory nor the room of them."""
    transport = ScriptedTransport()
    transport.hold()
    client = open_client(transport, spool=tmp_path)
    client.send(1)
    client.close(0.01)
    client._thread.join(PATIENCE_S)
    (segment,) = (tmp_path / "orders").glob("*.seg")
    os.truncate(segment, 3 * 1024**3)
    tracemalloc.start()
    with open_client(ScriptedTransport(), spool=tmp_path) as later:
        later.send(2)
        assert later.flush(PATIENCE_S)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 16 * SEGMENT_BYTES
    assert (later.counts().recovered, later.counts().entered, later.counts().unreadable) == (1, 2, 1)
    assert "it has 3,221,225,472 bytes, a segment at most 2,097,152" in caplog.text
    assert segment.with_suffix(".unreadable").stat().st_size == 3 * 1024**3


def test_a_lock_that_is_no_file_is_told(tmp_path: Path) -> None:
    """A pipe in its place holds up nobody, and a link makes no file elsewhere."""
    folder = tmp_path / "orders"
    folder.mkdir()
    os.mkfifo(folder / LOCK_NAME)
    with pytest.raises(ClientSpoolError, match=r"the spool .* cannot be used: No such device or address"):
        SpoolQueue(tmp_path, "orders", 10_000)
    (folder / LOCK_NAME).unlink()
    (folder / LOCK_NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ClientSpoolError, match=r"the spool .* cannot be used: Too many levels of symbolic links"):
        SpoolQueue(tmp_path, "orders", 10_000)
    assert not (tmp_path / "elsewhere").exists()


def test_what_is_left_in_the_spool_is_sent_by_the_next_client(tmp_path: Path) -> None:
    """Events outlive a client that could not send them, in their order and with their ids."""
    hanging = ScriptedTransport()
    hanging.hold()
    client = open_client(hanging, spool=tmp_path)
    sent = [client.send(number) for number in range(3)]
    waiting: Future[SendOutcome] = Future()
    client.accept(client.build_record(3, None, None), future=waiting)
    assert not client.close(0.05)
    with pytest.raises(ClientClosedError, match="the client was closed before the gate had answered"):
        waiting.result(PATIENCE_S)
    transport, told = ScriptedTransport(), list[SendOutcome]()
    with open_client(transport, spool=tmp_path, on_outcome=told.append) as later:
        assert later.flush(PATIENCE_S)
    assert [one.event_id for one in told][:3] == sent
    assert [event["data"] for events in transport.events() for event in events] == [0, 1, 2, 3]
    assert (later.counts().accepted, later.counts().recovered) == (0, 4)
    assert list((tmp_path / "orders").iterdir()) == []


def test_a_long_outage_fills_segments(tmp_path: Path) -> None:
    """Segments are cut at their size and synced; all of them are sent in order, and deleted."""
    transport = ScriptedTransport()
    transport.hold()
    client = open_client(transport, spool=tmp_path)
    count = 3 * SEGMENT_BYTES // 100_000
    for number in range(count):
        client.send([number, "x" * 100_000])
    assert len(list((tmp_path / "orders").glob("*.seg"))) == 3
    transport.may_go_on.set()
    assert client.close(PATIENCE_S)
    assert [event["data"][0] for events in transport.events() for event in events] == list(range(count))
    assert list((tmp_path / "orders").iterdir()) == []


def test_a_spool_has_one_client(tmp_path: Path) -> None:
    """A second client of one folder and stream is refused, and another stream has a folder of its own."""
    first = SpoolQueue(tmp_path, "orders", 10_000)
    with pytest.raises(ClientSpoolError, match=r"another client has the spool .*/orders: give each process a folder"):
        SpoolQueue(tmp_path, "orders", 10_000)
    SpoolQueue(tmp_path, "others", 10_000).close()
    first.close()
    SpoolQueue(tmp_path, "orders", 10_000).close()


def test_a_spool_that_cannot_be_used_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a folder that cannot be made nor a disk that is full takes an event silently."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ClientSpoolError, match=r"the spool .* cannot be used: Not a directory"):
        SpoolQueue(tmp_path / "file", "orders", 10_000)
    transport = ScriptedTransport()
    with open_client(transport, spool=tmp_path) as client:

        def fail(*_: object) -> None:
            raise OSError(28, os.strerror(28))

        with monkeypatch.context() as patched:
            patched.setattr("hopwatch.client.spool.write_at", fail)
            with pytest.raises(ClientSpoolError, match=r"the spool .* cannot be written: No space left on device"):
                client.send(1)
        assert client.send_and_wait(2, timeout_s=PATIENCE_S).result is OutcomeResult.ENTERED
    assert client.counts().accepted == 1


def test_a_spool_that_cannot_be_read_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that fails for a moment costs no event."""
    faults = [5, 5]
    read = os.pread

    def fail_twice(file: int, count: int, offset: int) -> bytes:
        if faults:
            raise OSError(faults.pop(), "Input/output error")
        return read(file, count, offset)

    monkeypatch.setattr("hopwatch.client.spool.os.pread", fail_twice)
    with open_client(ScriptedTransport(), spool=tmp_path) as client:
        assert client.send_and_wait(1, timeout_s=PATIENCE_S).result is OutcomeResult.ENTERED
    assert "0000000000.seg cannot be read: Input/output error" in caplog.text


def test_a_sync_that_fails_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Events go on being sent where the disk cannot be synced."""

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("hopwatch.client.spool.os.fsync", fail)
    monkeypatch.setattr("hopwatch.client.gate_client.SYNC_S", 0.01)
    transport = ScriptedTransport(*[503] * 20)
    with open_client(transport, spool=tmp_path) as client:
        assert client.send_and_wait(1, timeout_s=PATIENCE_S).result is OutcomeResult.ENTERED
    assert caplog.text.count("the spool cannot be synced: Input/output error") == 1


def test_a_callback_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """An error of the host's callback is logged, and the next event is sent."""

    def fail(_: SendOutcome) -> None:
        raise RuntimeError("by the test")

    with open_client(ScriptedTransport(), on_outcome=fail) as client:
        client.send(1)
        assert client.flush(PATIENCE_S)
        client.send(2)
        assert client.flush(PATIENCE_S)
    assert caplog.text.count("RuntimeError: by the test") == 2


def test_a_callback_may_close_the_client() -> None:
    """Closing from the client's own thread does not wait for that thread."""
    transport = ScriptedTransport()
    closed = threading.Event()

    def close(_: SendOutcome) -> None:
        client.close()
        closed.set()

    client = open_client(transport, on_outcome=close)
    client.send(1)
    assert closed.wait(PATIENCE_S)
    client._thread.join(PATIENCE_S)
    assert not client._thread.is_alive()


def test_an_answer_that_does_not_come_in_time_is_told() -> None:
    """The caller waits no longer than it wants, and the event is sent all the same."""
    transport = ScriptedTransport()
    transport.hold()
    client = open_client(transport)
    with pytest.raises(TimeoutError, match=r"the gate has not answered for [0-9a-f-]{36} within 0.05 s"):
        client.send_and_wait(1, timeout_s=0.05)
    assert client._waiting == {}
    transport.may_go_on.set()
    assert client.close(PATIENCE_S)
    assert client.counts().entered == 1


def test_the_child_of_a_fork_has_no_client() -> None:
    """A child would share the spool and has no thread: each call says so, and closing does nothing."""
    with open_client(ScriptedTransport()) as client:
        client._process += 1
        with pytest.raises(ClientClosedError, match="belongs to the parent of this process: make one behind the fork"):
            client.send(1)
        with pytest.raises(ClientClosedError):
            client.flush()
        # The parent's thread may have held the lock at the fork: nobody gives it back in the child.
        with client._lock, pytest.raises(ClientClosedError):
            client.counts()
        assert not client.close()
        client._process -= 1


def test_a_fault_of_the_client_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    """A client whose thread has failed takes no more events, instead of keeping them for ever."""

    class Broken(ScriptedTransport):
        def post(self, body: bytes) -> Answer | NoAnswer:
            raise AssertionError(f"by the test: {len(body)} bytes")

    client = open_client(Broken(), policy=QUICK)
    client.send(1)
    client._thread.join(PATIENCE_S)
    with pytest.raises(ClientClosedError):
        client.send(2)
    assert "the client failed: it takes no events any more" in caplog.text
    assert not client.close(0.01)


def test_a_client_is_made_of_a_url() -> None:
    """Without a gate events wait, and the end of the client is in time."""
    (port,) = free_ports(1)
    client = GateClient(f"http://127.0.0.1:{port}", "orders", policy=QUICK)
    client.send({"a": 1})
    assert not client.flush(0.05)
    assert not client.close(0.05)
    assert client.counts().unsent == 1
