"""A body that is small as long as it is packed: how long the gate takes to refuse it, and what it holds meanwhile."""

from __future__ import annotations

import socket
import time
import zlib
from pathlib import Path
from typing import Final

from bench.contestant import Json
from bench.footprint import forget_peak, memory_bytes
from bench.gate.client import HOST, format_request
from bench.gate.load import PATH
from bench.truth import WrongResultError

UNPACKED_BYTES: Final = 200_000_000
_PIECE_BYTES: Final = 1_000_000
_GZIP_BITS: Final = 31
_REFUSED: Final = b"HTTP/1.1 413 "
_PATIENCE_S: Final = 30.0


def pack_body() -> bytes:
    """Return the bomb: a list that is opened, and spaces."""
    packing = zlib.compressobj(9, wbits=_GZIP_BITS)
    piece = b" " * _PIECE_BYTES
    parts = [packing.compress(b"[")] + [packing.compress(piece) for _ in range(UNPACKED_BYTES // _PIECE_BYTES)]
    return b"".join(parts) + packing.flush()


def throw_bombs(folder: Path, port: int, process: int, times: int) -> Json:
    """Send the bomb so many times, one after the other; each has to be refused for its size."""
    del folder
    bomb = pack_body()
    asked = format_request("POST", PATH, bomb, "content-encoding: gzip\r\n")
    _throw(port, asked)
    forget_peak(process)
    before_bytes = memory_bytes("VmRSS", process)
    spans_s = [_throw(port, asked) for _ in range(times)]
    return {
        "packed_bytes": len(bomb),
        "most_ms": max(spans_s) * 1e3,
        "grown_bytes": max(memory_bytes("VmHWM", process) - before_bytes, 0),
    }


def _throw(port: int, asked: bytes) -> float:
    """Return how long it took from the first byte to the answer, s."""
    with socket.create_connection((HOST, port), _PATIENCE_S) as connection:
        began_s = time.perf_counter()
        connection.sendall(asked)
        got = connection.recv(len(_REFUSED), socket.MSG_WAITALL)
        took_s = time.perf_counter() - began_s
    if got != _REFUSED:
        raise WrongResultError(f"a bomb is refused with 413, got {got!r}")
    return took_s
