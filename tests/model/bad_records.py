"""Everything that must be set aside: each kind by its name, with the word that the model counts it under."""

import copy
import io
import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

import fastavro

from tests.model.random_choices import Dice
from tests.model.record import BEHIND_TEXT, HEAD, HEAD_2, NOT_STAMPED, SCHEMA, Body, encode
from tests.model.wire import MAGIC, MOST_BYTES, frame

_I64 = struct.Struct("<q")


def _with(**fields: Any) -> Callable[[Body], None]:  # noqa: ANN401  a field may be of any type
    return lambda body: body.update(fields)


def _stretch(field: str, extra: bytes) -> Callable[[Body], None]:
    return lambda body: body.update({field: body[field] + extra})


def _fill(field: str, item: bytes) -> Callable[[Body], None]:
    """Give every observation the same item."""
    return lambda body: body.update({field: item * body["count"]})


def _drops(count: int, start_ms: int = 0, each: int = 1, cause: str = "full") -> Callable[[Body], None]:
    return _with(drops=[{"window_start_ms": start_ms, "count": each, "cause": cause}] * count)


def _unstamped(body: Body) -> None:
    body.update(outcome=b"", lag_in_us=_I64.pack(NOT_STAMPED) * body["count"], lag_out_us=b"")


_NAMED: dict[str, Any] = {
    "id_kind": "BYTES",
    "id_texts": b"",
    "id_text_ends": b"",
    "until_us": b"",
    "sequence": b"",
    "metrics": [],
}
"""What makes a body one of version 2."""
_METRICS = {"stamp": "IN", "count": 1, "id_xor": 2, "id_sum": 3, "bytes": 4, "lag_histogram": b"h"}
_NO_OBSERVATIONS: dict[str, Any] = dict.fromkeys(
    ("message_ids", "event_offset_us", "lag_in_us", "lag_out_us", "outcome", "reason"), b""
) | {"count": 0}


def _first(body: Body, **fields: Any) -> None:  # noqa: ANN401  a field may be of any type
    """Make a body one of version 1."""
    for name in _NAMED:
        body.pop(name, None)
    body.update(fields)


def _backwards(body: Body) -> Body:
    ends = [2**32 - 1] * (body["count"] - 1) + [2]
    return {"id_text_ends": struct.pack(f"<{len(ends)}I", *ends)}


def _long(body: Body) -> Body:
    text = "\u00e9".encode() * 1_025
    ends = struct.pack("<I", len(text)) * body["count"]
    return {"id_texts": text, "id_text_ends": ends}


BODIES: dict[str, tuple[str, Callable[[Body], None]]] = {
    "probe without a name": ("probe_name", _with(probe="")),
    "probe of 129 characters": ("probe_name", _with(probe="p" * 129)),
    "negative number": ("seq", _with(seq=-1)),
    "stream without a name": ("stream_name", _with(stream="")),
    "stream with a space": ("stream_name", _with(stream="or ders")),
    "stream with a line feed": ("stream_name", _with(stream="orders\n")),
    "stream of 129 characters": ("stream_name", _with(stream="s" * 129)),
    "node with a slash": ("node_name", _with(node="a/b")),
    "node beyond ASCII": ("node_name", _with(node="n\u00f6de")),
    "window off the minute": ("window_start", lambda body: body.update(window_start_ms=body["window_start_ms"] + 1)),
    "observations without one": (
        "count",
        _with(count=0, message_ids=b"", event_offset_us=b"", lag_in_us=b"", lag_out_us=b""),
    ),
    "negative count": ("count", _with(count=-1)),
    "count over 65,536": ("count", _with(count=65_537, message_ids=bytes(16 * 65_537))),
    "heartbeat with observations": ("count", _with(kind="HEARTBEAT")),
    "bye with observations": ("count", _with(kind="BYE")),
    "heartbeat with ids": ("message_ids", _with(kind="HEARTBEAT", count=0)),
    "heartbeat with offsets": (
        "event_offset",
        _with(kind="HEARTBEAT", count=0, message_ids=b"", event_offset_us=bytes(4)),
    ),
    "count below the ids": ("message_ids", _stretch("message_ids", bytes(16))),
    "half an id": ("message_ids", _stretch("message_ids", bytes(8))),
    "no ids": ("message_ids", _with(message_ids=b"")),
    "offsets of another count": ("event_offset", _stretch("event_offset_us", b"\x00")),
    "offset of 60 s": ("event_offset", _fill("event_offset_us", struct.pack("<I", 60_000_000))),
    "offset of 71 min": ("event_offset", _fill("event_offset_us", b"\xff" * 4)),
    "lags in of another count": ("lag_in", _stretch("lag_in_us", bytes(4))),
    "lags out of another count": ("lag_out", _stretch("lag_out_us", bytes(3))),
    "outcomes of another count": ("outcome", lambda body: body.update(outcome=bytes(body["count"] + 1))),
    "outcome 4": ("outcome", _fill("outcome", b"\x04")),
    "deferred in version 1": ("outcome", lambda body: _first(body, outcome=b"\x03" * body["count"])),
    "metrics in observations": ("metrics", _with(**_NAMED | {"metrics": [_METRICS]})),
    "nine metrics": ("metrics", _with(**_NAMED | {"kind": "METRICS", "metrics": [_METRICS] * 9} | _NO_OBSERVATIONS)),
    "texts without ends": ("texts", _with(**_NAMED | {"id_kind": "TEXT", "id_texts": b"a"})),
    "texts of numbers": (
        "texts",
        lambda body: body.update(_NAMED, id_kind="INT", id_text_ends=bytes(4 * body["count"])),
    ),
    "ends that go back": ("texts", lambda body: body.update(_NAMED, id_kind="TEXT", id_texts=b"a", **_backwards(body))),
    "an end beyond": ("texts", lambda body: body.update(_NAMED, id_kind="TEXT", **_backwards(body))),
    "a text of 1,025 characters": ("texts", lambda body: body.update(_NAMED, id_kind="TEXT", **_long(body))),
    "half a sequence": ("sequence", lambda body: body.update(_NAMED, sequence=bytes(8 * body["count"] + 4))),
    "half a moment": ("until", lambda body: body.update(_NAMED, until_us=bytes(4))),
    "passed without a stamp": ("unstamped", _unstamped),
    "passed without lags": ("unstamped", _with(outcome=b"", lag_in_us=b"", lag_out_us=b"")),
    "33 reasons": ("reasons", _with(reasons=["r"] * 33)),
    "reason of 65 characters": ("reasons", _with(reasons=["\u00e9" * 65])),
    "reason indexes of another count": ("reason", lambda body: body.update(reason=b"\xff" * (body["count"] + 1))),
    "reason index out of range": ("reason", lambda body: body.update(reason=b"\x01" * body["count"], reasons=["one"])),
    "reason index without reasons": ("reason", lambda body: body.update(reason=bytes(body["count"]), reasons=[])),
    "1,025 drops": ("drops", _drops(1025)),
    "cause of 65 characters": ("drops", _drops(1, cause="c" * 65)),
    "drop off the minute": ("drop_window", _drops(1, start_ms=59_999)),
    "negative drop": ("drop_window", _drops(1, each=-1)),
    "9 labels": ("labels", _with(labels={str(at): "" for at in range(9)})),
    "label of 65 characters": ("labels", _with(labels={"host": "h" * 65})),
    "label name of 65 characters": ("labels", _with(labels={"h" * 65: ""})),
    "unknown stream": ("unknown_stream", _with(stream="nobody-knows-it")),
    "unknown node": ("unknown_node", _with(node="nobody-knows-it")),
}
"""A good body of OBSERVATIONS becomes one that breaks a rule: (reason, what is done to it)."""

_UP_TO_REASONS = HEAD + b"\x02p" + b"\x00\x00\x02" + b"\x02s" + b"\x02n" + bytes(10)
"""A heartbeat of version 1 up to where its reasons are counted."""

RECORDS: dict[str, tuple[str, Callable[[Dice, bytes], bytes]]] = {
    "nothing": ("envelope", lambda _dice, _record: b""),
    "another magic": ("envelope", lambda _dice, record: b"\xc3\x01" + record[1:]),
    "magic alone": ("fingerprint", lambda _dice, record: record[:1]),
    "cut in the fingerprint": ("fingerprint", lambda dice, record: record[: dice.rng.randint(1, 32)]),
    "unknown fingerprint": ("fingerprint", lambda dice, record: record[:1] + dice.rng.randbytes(32) + record[33:]),
    "head alone": ("body", lambda _dice, record: record[:33]),
    "cut in the body": ("body", lambda dice, record: record[: dice.rng.randint(33, len(record) - 1)]),
    "a byte too many": ("rest", lambda _dice, record: record + b"\x00"),
    "twice in one": ("rest", lambda _dice, record: record + record),
    "zeros": ("envelope", lambda dice, _record: bytes(dice.rng.randint(1, 200))),
    "endless varint": ("body", lambda _dice, _record: HEAD + b"\xff" * 64),
    "name that is not UTF-8": ("body", lambda _dice, record: record[:34] + b"\xff" + record[35:]),
    "kind 3 of version 1": ("body", lambda _dice, _record: HEAD + b"\x02p" + b"\x00\x00" + b"\x06" + bytes(64)),
    "kind 4": ("body", lambda _dice, _record: HEAD_2 + b"\x02p" + b"\x00\x00" + b"\x08" + bytes(64)),
    "a billion reasons": ("body", lambda _dice, _record: _UP_TO_REASONS + b"\x80\x94\xeb\xdc\x03"),
}
"""A good record becomes one that does not read: (reason, what is done to it)."""


def newer(dice: Dice, record: bytes) -> bytes:
    """Give a record of a version of the wire that nobody knows."""
    return record[:1] + dice.rng.randbytes(32) + record[33:]


def broken_body(body: Body, name: str) -> bytes:
    """Give the record of a copy of a good body, broken in that way."""
    broken = copy.deepcopy(body)
    BODIES[name][1](broken)
    return encode(broken)


def bad_crc(dice: Dice, framed: bytes) -> bytes:
    """Give a frame with one bit turned, in its checksum or behind it."""
    at = dice.rng.randrange(4, len(framed))
    return framed[:at] + bytes([framed[at] ^ 1 << dice.rng.randrange(8)]) + framed[at + 1 :]


def oversized(dice: Dice) -> bytes:
    """Give a frame of more than 4 MiB that is all there; its checksum is right, or not."""
    framed = frame(bytes(MOST_BYTES + dice.one((1, 4096))))
    return framed if dice.rng.random() < 0.5 else framed[:4] + bytes(4) + framed[8:]


def torn_tail(dice: Dice, framed: bytes) -> bytes:
    """Give the beginning of a frame, or a length that no file keeps."""
    torn = framed[: dice.rng.randint(1, len(framed) - 1)]
    return dice.one((torn, framed[:7], b"\xff" * 4 + framed[4:], struct.pack("<I", len(framed) - 7) + framed[4:]))


def foreign_file(dice: Dice, framed: bytes) -> bytes:
    """Give what a file holds that is no segment."""
    return dice.one((b"", MAGIC[:5], b"HWSP2\n" + framed, framed, b"timestamp,value\n", b"\n" + MAGIC + framed))


def in_blocks(dice: Dice, body: Body) -> bytes:
    """Give the record of a body with its arrays and its map in other blocks than fastavro writes: Avro allows it."""
    whole = encode(body | {"reasons": [], "drops": [], "labels": {}})
    behind = len(_avro(_BEHIND, body)) if "id_kind" in body else 0
    bare, rest = whole[: len(whole) - behind - 3], whole[len(whole) - behind :]
    string, drop = {"type": "string"}, SCHEMA["fields"][17]["type"]["items"]  # type: ignore[index,call-overload]
    labels = [_avro(string, key) + _avro(string, value) for key, value in body["labels"].items()]
    parts = ([_avro(string, one) for one in body["reasons"]], [_avro(drop, one) for one in body["drops"]], labels)
    return bare + b"".join(_blocks(dice, part) for part in parts) + rest


_BEHIND = {"type": "record", "name": "Behind", "fields": json.loads(BEHIND_TEXT)}


def _avro(schema: Any, value: Any) -> bytes:  # noqa: ANN401  what Avro writes
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def _blocks(dice: Dice, items: Sequence[bytes]) -> bytes:
    """Give one block an item, each with its count or with minus its count and its size in bytes."""
    long = {"type": "long"}
    heads = [_avro(long, 1) if dice.rng.random() < 0.5 else _avro(long, -1) + _avro(long, len(item)) for item in items]
    return b"".join(head + item for head, item in zip(heads, items, strict=True)) + b"\x00"
