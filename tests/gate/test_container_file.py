"""Tests of Avro object container files: what others write is read, and hostile ones cost no more than their bytes."""

from __future__ import annotations

import re
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate.container_file import MAX_SCHEMA_BYTES, ContainerError, ContainerFile, TooLargeError
from tests.gate.container_bytes import SYNC, by_hand, container, deflated, number

MOST = 1024 * 1024


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_what_a_library_writes_is_read(codec: str) -> None:
    """In many blocks, each with its values; a file of no values has no block."""
    file = ContainerFile(container([{"a": at} for at in range(500)], codec=codec, sync_interval=100))
    blocks = list(file.read_blocks(MOST))
    assert (len(blocks) > 3, sum(one.values for one in blocks)) == (True, 500)
    assert b"".join(one.data for one in blocks) == b"".join(number(at) for at in range(500))
    assert b'"Number"' in file.schema
    assert list(ContainerFile(container([], codec=codec)).read_blocks(MOST)) == []


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "it begins with 4f626a01, got nothing"),
        (b"PAR1....", "it begins with 4f626a01, got 50415231"),
        (b"Obj\x01", "its header cannot be read: "),
        (by_hand()[:-1], "its header cannot be read: 16 bytes were expected, 15 are left"),
        (b"Obj\x01" + number(2**40), "its header cannot be read: 1099511627776 items were expected"),
        (b"Obj\x01\0" + SYNC, "its header has no avro.schema"),
        (by_hand(schema=b" " * (MAX_SCHEMA_BYTES + 1)), "its schema has at most 65,536 bytes, got 65,537"),
        (by_hand(codec=b"snappy"), "its codec is null or deflate, got b'snappy'"),
    ],
)
def test_what_has_no_header_is_told(data: bytes, told: str) -> None:
    """By what it begins with, or what is wrong with it."""
    with pytest.raises(ContainerError, match=re.escape(told)):
        ContainerFile(data)


GOOD = (1, b"\x02")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (by_hand(GOOD)[:-1], "the block at byte 56 cannot be read: 16 bytes were expected, 15 are left"),
        (by_hand(GOOD)[:-1] + b"x", "the block at byte 56 cannot be read: it does not end with the file's mark"),
        (by_hand() + b"\x80", "the block at byte 56 cannot be read: "),
        (by_hand() + number(1) + number(2**62), "4611686018427387904 bytes were expected, 0 are left"),
        (by_hand() + number(1) + number(-1), "-1 bytes were expected"),
        (by_hand((-1, b"\x02")), "the block at byte 56 says that it has -1 values"),
        (by_hand((1, b"\xff\xff"), codec=b"deflate"), "the block at byte 59 cannot be read: Error -3"),
        (by_hand((1, deflated(b"\x02" * 99)[:-1]), codec=b"deflate"), "it is not packed by deflate, or cut"),
        (by_hand((1, deflated(b"\x02") + bytes(5)), codec=b"deflate"), "it is not packed by deflate, or cut"),
    ],
)
def test_a_block_that_is_broken_is_told_with_its_place(data: bytes, told: str) -> None:
    """Those before it were read."""
    with pytest.raises(ContainerError, match=re.escape(told)):
        list(ContainerFile(data).read_blocks(MOST))


def test_a_bomb_is_not_unpacked() -> None:
    """A file of kilobytes that unpacks to many megabytes takes the bound and no more, in one block or in many."""
    bomb = deflated(bytes(2**26))
    for blocks in ([(1, bomb)], [(1, deflated(bytes(2**19)))] * 2000):
        file = ContainerFile(by_hand(*blocks, codec=b"deflate"))
        tracemalloc.start()
        with pytest.raises(TooLargeError, match="its blocks unpack to at most 1,048,576 bytes, got more"):
            for _ in file.read_blocks(MOST):
                pass
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 6 * MOST
    exact = by_hand((1, deflated(bytes(MOST))), codec=b"deflate")
    assert [len(one.data) for one in ContainerFile(exact).read_blocks(MOST)] == [MOST]


@given(st.integers(0, 200), st.binary(max_size=6), st.sampled_from(["null", "deflate"]))
def test_no_bytes_raise_anything_else(at: int, more: bytes, codec: str) -> None:
    """A file may be cut or garbled anywhere."""
    whole = container([{"a": number} for number in range(9)], codec=codec)
    with suppress(ContainerError):
        list(ContainerFile(whole[:at] + more + whole[at + len(more) :]).read_blocks(MOST))
    with suppress(ContainerError):
        list(ContainerFile(b"Obj\x01" + more).read_blocks(MOST))
