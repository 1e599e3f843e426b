"""Tests of the link through sockets, over real loopback ones."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.demo.link import LinkError
from hopwatch.demo.links.sockets import MAX_FRAME_BYTES, MAX_UNACKNOWLEDGED, SocketInlet, SocketOutlet, split_frames

WAIT_S = 10.0


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Return a socket that listens on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def nothing() -> None:
    """Do nothing once a message has left."""


def receive(inlet: SocketInlet, count: int) -> list[bytes]:
    """Return the next ``count`` payloads."""
    payloads: list[bytes] = []
    while len(payloads) < count:
        payloads += inlet.receive(WAIT_S)
    return payloads


def framed(payload: bytes) -> bytes:
    """Return a payload as it is on the wire."""
    return struct.pack("<I", len(payload)) + payload


@given(st.lists(st.binary(max_size=50)), st.data())
def test_frames_come_apart_wherever_the_bytes_are_cut(payloads: list[bytes], data: st.DataObject) -> None:
    """A stream of frames cut anywhere gives the same payloads, and leaves nothing."""
    stream = b"".join(map(framed, payloads))
    cut = data.draw(st.integers(0, len(stream)))
    first, rest = split_frames(stream[:cut])
    second, left = split_frames(rest + stream[cut:])
    assert first + second == payloads
    assert left == b""


def test_a_frame_that_claims_too_much_is_refused() -> None:
    """A length over the limit is no frame, and the error says which length it was."""
    with pytest.raises(LinkError, match=rf"at most {MAX_FRAME_BYTES} bytes, got a length of {MAX_FRAME_BYTES + 1}"):
        split_frames(struct.pack("<I", MAX_FRAME_BYTES + 1))


def test_what_is_sent_arrives_in_order(listener: socket.socket) -> None:
    """Far more frames than may be on their way arrive, each once, and the sender learns that they did."""
    payloads = [bytes([number % 256]) * (number % 300) for number in range(10 * MAX_UNACKNOWLEDGED)]
    outlet = SocketOutlet(listener.getsockname())

    def send() -> None:
        for payload in payloads:
            outlet.send(payload, nothing)
        outlet.close()

    sender = Thread(target=send)
    sender.start()
    with closing(SocketInlet(listener)) as inlet:
        assert receive(inlet, len(payloads)) == payloads
        sender.join()
        assert inlet.receive(WAIT_S) == []
        assert inlet.has_ended()
    assert outlet.abandoned == 0


def test_a_sender_waits_for_an_absent_receiver(listener: socket.socket) -> None:
    """Not more than the agreed number of frames goes out while nobody takes them."""
    outlet = SocketOutlet(listener.getsockname())
    for _ in range(MAX_UNACKNOWLEDGED):
        outlet.send(b"waits", nothing)
    sender = Thread(target=outlet.send, args=(b"one too many", nothing))
    sender.start()
    sender.join(0.05)
    assert sender.is_alive()
    with closing(SocketInlet(listener)) as inlet:
        assert receive(inlet, MAX_UNACKNOWLEDGED + 1)[-1] == b"one too many"
        sender.join()
        outlet.close()


def test_when_the_receiver_dies_its_frames_are_not_sent_again(listener: socket.socket) -> None:
    """Frames of a dead receiver count as abandoned; the next one goes to the new receiver, once."""
    outlet = SocketOutlet(listener.getsockname())
    outlet.send(b"taken", nothing)
    with closing(SocketInlet(listener)) as killed:
        assert receive(killed, 1) == [b"taken"]
        outlet.send(b"on its way", nothing)
    with closing(SocketInlet(listener)) as restarted:
        while not outlet.abandoned:  # until the sender has noticed
            outlet._collect(wait=True)
        outlet.send(b"after", nothing)
        assert receive(restarted, 1) == [b"after"]
        outlet.close()
    assert outlet.abandoned == 1


def test_a_sender_that_hangs_up_is_followed_by_the_next(listener: socket.socket) -> None:
    """Half a frame of one sender is forgotten, and does not spoil the first of another."""
    with closing(SocketInlet(listener)) as inlet:
        with socket.create_connection(listener.getsockname()) as dying:
            dying.sendall(framed(b"whole") + framed(b"half of it")[:7])
            assert receive(inlet, 1) == [b"whole"]
        while not inlet.has_ended():
            assert inlet.receive(WAIT_S) == []
        outlet = SocketOutlet(listener.getsockname())
        outlet.send(b"next", nothing)
        assert receive(inlet, 1) == [b"next"]
        outlet.close()


def test_a_stranger_is_hung_up_on(listener: socket.socket) -> None:
    """A client of another protocol, as of a server that had the port before, keeps no sender from being served."""
    with closing(SocketInlet(listener)) as inlet, socket.create_connection(listener.getsockname()) as stranger:
        stranger.sendall(struct.pack(">I", 64) + b"a request of Kafka")
        outlet = SocketOutlet(listener.getsockname())
        outlet.send(b"next", nothing)
        assert receive(inlet, 1) == [b"next"]
        assert stranger.recv(1) == b""
        outlet.close()


def test_nobody_at_the_address_is_an_error(listener: socket.socket) -> None:
    """Sending to an address without a listener is an error."""
    address = listener.getsockname()
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        SocketOutlet(address).send(b"lost", nothing)


def test_with_nothing_to_receive_the_time_is_up(listener: socket.socket) -> None:
    """An inlet gives the step a chance to do other things."""
    with closing(SocketInlet(listener)) as inlet:
        assert inlet.receive(0.0) == []
        assert inlet.receive(-1.0) == []
