"""Tests of the client: answers in whatever pieces they come, and what is no answer."""

from __future__ import annotations

import asyncio

import pytest

from bench.gate.client import HttpReply, ReplyError, ReplyReader, format_request, open_connection
from tests.bench.gate.entrance import entrance

WHOLE = b"HTTP/1.1 201 Created\r\nserver: granian\r\nContent-Length: 5\r\n\r\nhello"


@pytest.mark.parametrize("size", [1, 7])
def test_an_answer_may_come_in_any_pieces(size: int) -> None:
    """Two answers, one behind the other: each is whole with its last byte, and not before."""
    answers = ReplyReader()
    told = WHOLE + b"HTTP/1.1 422 Unprocessable Entity\r\ncontent-length: 0\r\n\r\n"
    got = [answers.feed(told[at : at + size]) for at in range(0, len(told), size)]
    assert [one for one in got if one] == [HttpReply(201, b"hello"), HttpReply(422, b"")]
    assert got.index(HttpReply(201, b"hello")) == (len(WHOLE) - 1) // size


@pytest.mark.parametrize("head", [b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"])
def test_what_is_no_answer_is_told(head: bytes) -> None:
    """Another protocol, or an answer that does not say how long it is."""
    with pytest.raises(ReplyError, match=r"an answer of HTTP/1\.1 with a content-length was expected, got b'"):
        ReplyReader().feed(head)


def test_a_connection_is_kept() -> None:
    """Two requests by one connection; method, path, body and the lines of one's own arrive."""

    async def ask(port: int) -> list[HttpReply]:
        connection = await open_connection(port)
        answers = [await connection.ask(format_request("PUT", "/a", b"[1]", "x-own: 7\r\n"))]
        answers.append(await connection.ask(format_request("GET", "/b")))
        connection.close()
        return answers

    with entrance() as asked:
        assert asyncio.run(ask(asked.port)) == [HttpReply(201, b"{}"), HttpReply(200, b"{}")]
    (put, get) = asked.requests
    assert (put[:2], put[2]["x-own"], put[2]["content-type"], put[3]) == (
        ("PUT", "/a"),
        "7",
        "application/json",
        b"[1]",
    )
    assert get[:2] == ("GET", "/b")


def test_whoever_waits_hears_that_the_server_hung_up() -> None:
    """An error, not silence."""

    async def ask(port: int) -> None:
        await (await open_connection(port)).ask(format_request("PUT", "/a", b"[1]"))

    with entrance(hangs_up=True) as asked, pytest.raises(ConnectionError, match="the server has closed the connection"):
        asyncio.run(ask(asked.port))
