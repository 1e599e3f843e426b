"""Golden vectors of the wire: records of both versions, good and bad, with what a reader makes of each.

``python -m tests.probes.contract.vectors`` writes them to ``vectors.jsonl`` beside it; INTERFACE.md says what is in it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any, Final

from hopwatch.probes.contract import envelope, limits
from hopwatch.probes.contract.batch import Batch, BatchKind, WireIdKind
from hopwatch.probes.contract.ids import hash_text
from tests.model.counts import fingerprint
from tests.model.lag_histogram import histogram, write
from tests.support.batches import HEARTBEAT, NAMED, PREFIXES, TWO_PASSED, record_of

PATH: Final = Path(__file__).with_name("vectors.jsonl")

Fields = dict[str, Any]
Vector = dict[str, Any]

_IN, _OUT = struct.pack("<2q", 5, -7), struct.pack("<2q", 1_000, limits.NOT_STAMPED)
_NEITHER: Final = struct.pack("<2q", limits.NOT_STAMPED, limits.NOT_STAMPED)
_ENDS: Final = (-(2**63), -1, 0, 2**63 - 1)
_PRINT: Final = dict(zip(("id_xor", "id_sum"), fingerprint([bytes(range(16)), bytes(range(16, 32))]), strict=True))
_DROP: Final = {"window_start_ms": 60_000, "count": 3, "cause": "queue full"}
_METRICS: Final = {"stamp": "IN", "count": 2, "bytes": 200, "lag_histogram": b""} | _PRINT


def build_vectors() -> list[Vector]:
    """Return all vectors, each with a name of its own."""
    return [*_good(), *_bad()]


def describe(record: bytes) -> Vector:
    """Return what a reader makes of a record: its version and fields, bytes in hexadecimal, or why it refuses it."""
    try:
        batch = envelope.decode(record)
    except envelope.RecordError as error:
        return {"error": error.reason}
    version = 1 if batch.id_kind is WireIdKind.UNKNOWN else 2
    return {"version": version, "fields": _to_json(batch, version)}


def write_vectors() -> str:
    """Return the text of the file."""
    return "".join(json.dumps(vector, ensure_ascii=True) + "\n" for vector in build_vectors())


def _to_json(batch: Batch, version: int) -> Fields:
    told = asdict(batch) | {"kind": batch.kind.name}
    told["metrics"] = [
        {"stamp": one.stamp.name, "count": one.count, "id_xor": one.id_xor, "id_sum": one.id_sum}
        | {"bytes": one.size_bytes, "lag_histogram": one.lag_histogram.hex()}
        for one in batch.metrics
    ]
    told = {name: value.hex() if isinstance(value, bytes) else value for name, value in told.items()}
    if version == 1:
        return {name: value for name, value in told.items() if name not in NAMED}
    return told | {"id_kind": batch.id_kind.name}


def _vector(name: str, record: bytes) -> Vector:
    return {"name": name, "record": record.hex()} | describe(record)


def _good() -> Iterator[Vector]:
    for version, (name, batch, fields) in product(PREFIXES, _of_both_versions()):
        yield _vector(f"version {version}: {name}", record_of(batch, version, **fields))
    for name, batch, fields in _of_version_2():
        yield _vector(f"version 2: {name}", record_of(batch, 2, **fields))


def _of_both_versions() -> Iterator[tuple[str, Batch, Fields]]:
    """Yield good batches: which fields are empty, which kinds there are, and how far numbers and names go."""
    offsets = {"no offsets": b"", "offsets": struct.pack("<2I", 0, 59_999_999)}
    lags = {"in": (_IN, b""), "out": (b"", _IN), "both": (_IN, _OUT)}
    ends: dict[str, Fields] = {
        "passed": {},
        "filtered and rejected": {"outcome": b"\x01\x02", "reason": b"\x00\xff", "reasons": ["test order"]},
        "passed, said so": {"outcome": bytes(2), "reason": b"\xff\xff"},
    }
    for (offset, packed), (side, both), (end, said) in product(offsets.items(), lags.items(), ends.items()):
        fields = {"event_offset_us": packed, "lag_in_us": both[0], "lag_out_us": both[1]} | said
        yield f"stamped {side}, {offset}, {end}", TWO_PASSED, fields
    yield "refused unstamped", TWO_PASSED, {"lag_in_us": b"", "outcome": b"\x01\x02"}
    for kind, drops, labels in product(("HEARTBEAT", "BYE"), range(3), (0, 1, 8)):
        told = {"kind": kind, "drops": [_DROP] * drops, "labels": {f"label{n}": "é" * n for n in range(labels)}}
        yield f"a {kind.lower()} with {drops} drops and {labels} labels", HEARTBEAT, told
    for field, number in product(("epoch_us", "sent_at_us", "complete_through_us"), _ENDS):
        yield f"{field} of {number}", HEARTBEAT, {field: number}
    for field, text in product(("probe", "stream", "node"), ("a", "A.b-c_1", "n" * 128)):
        yield f"a {field} of {len(text)} characters", HEARTBEAT, {field: text}
    yield "a probe beyond ASCII", HEARTBEAT, {"probe": "käfer \u2603"}
    yield "the highest number", HEARTBEAT, {"seq": 2**63 - 1}


def _of_version_2() -> Iterator[tuple[str, Batch, Fields]]:
    """Yield good batches with what only version 2 can say."""
    texts = [b"order-17", "größe".encode()]
    laid = {"id_texts": b"".join(texts), "id_text_ends": struct.pack("<2I", len(texts[0]), len(b"".join(texts)))}
    ids = b"".join(map(hash_text, texts))
    for kind in ("BYTES", "UUID", "INT", "TEXT"):
        yield f"ids that are {kind.lower()}", TWO_PASSED, {"id_kind": kind}
    yield "texts of ids", TWO_PASSED, {"id_kind": "TEXT", "message_ids": ids} | laid
    yield "a text left out", TWO_PASSED, {"id_kind": "TEXT", "id_text_ends": struct.pack("<2I", 0, 0)}
    waits = {"outcome": b"\x03\x00", "until_us": struct.pack("<2q", 90_000_000, 0), "reason": b"\xff\xff"}
    yield "a message that waits", TWO_PASSED, waits
    yield "numbers in a source", TWO_PASSED, {"sequence": struct.pack("<2q", -1, 2**63 - 1)}
    packet = {"kind": "METRICS"}
    for stamp in ("IN", "OUT", "FILTERED", "REJECTED", "DEFERRED"):
        yield f"counted as {stamp.lower()}", HEARTBEAT, packet | {"metrics": [_METRICS | {"stamp": stamp}]}
    for name, number in product(("count", "bytes"), (0, 2**63 - 1)):
        yield f"a packet whose {name} is {number}", HEARTBEAT, packet | {"metrics": [_METRICS | {name: number}]}
    for name, number in product(("id_xor", "id_sum"), _ENDS):
        yield f"a packet whose {name} is {number}", HEARTBEAT, packet | {"metrics": [_METRICS | {name: number}]}
    bare = _METRICS | {"id_xor": 0, "id_sum": 0}
    yield "a packet without a fingerprint", HEARTBEAT, packet | {"metrics": [bare]}
    for name, lags in _histograms().items():
        told = {"count": max(2, len(lags)), "lag_histogram": write(histogram(lags))}
        yield f"a packet with a histogram: {name}", HEARTBEAT, packet | {"metrics": [_METRICS | told]}
    yield "a packet of no stamp", HEARTBEAT, packet
    yield "eight in a packet", HEARTBEAT, packet | {"metrics": [_METRICS] * 8}


def _histograms() -> dict[str, list[int]]:
    """Return lags, in µs, by what their histogram shows."""
    return {
        "one lag of two": [1_234],
        "equal lags": [250_000, 250_000],
        "below 0, 0, and above": [-3, -3, 0, 7, 7, 7],
        "both sides of the first wide bucket": [255, 256, 257, 258, -256, -257, -259],
        "in one bucket": [1_000_000, 1_000_500, 1_001_000],
        "both ends of 64 bits": [-(2**63), 2**63 - 1],
        "300 lags": [number**3 for number in range(300)],
    }


def _bad() -> Iterator[Vector]:
    for version, (name, batch, fields) in product(PREFIXES, _broken_in_both()):
        yield _vector(f"version {version}, broken: {name}", record_of(batch, version, **fields))
    for name, batch, fields in _broken_in_version_2():
        yield _vector(f"version 2, broken: {name}", record_of(batch, 2, **fields))
    for version in PREFIXES:
        record = record_of(HEARTBEAT, version)
        for name, broken in _broken_bytes(record):
            yield _vector(f"version {version}, broken: {name}", broken)


def _broken_in_both() -> Iterator[tuple[str, Batch, Fields]]:
    """Yield batches that break a limit of both versions."""
    for field in ("probe", "stream", "node"):
        yield f"an empty {field}", HEARTBEAT, {field: ""}
        yield f"a {field} of 129 characters", HEARTBEAT, {field: "n" * 129}
    for field, text in product(("stream", "node"), ("a b", "a/b", "nöde", "line\n")):
        yield f"a {field} named {text!r}", HEARTBEAT, {field: text}
    yield "a number below 0", HEARTBEAT, {"seq": -1}
    yield "half a minute", HEARTBEAT, {"window_start_ms": 30_000}
    yield "a heartbeat that counts", HEARTBEAT, {"count": 1}
    yield "a heartbeat with ids", HEARTBEAT, {"message_ids": bytes(16)}
    for number in (-1, 0, 1, 65_537):
        yield f"two ids and a count of {number}", TWO_PASSED, {"count": number}
    for field, size in (("message_ids", 24), ("event_offset_us", 4), ("lag_in_us", 12), ("lag_out_us", 24)):
        yield f"{field} of {size} bytes for two", TWO_PASSED, {field: bytes(size)}
    for field, size in product(("outcome", "reason"), (1, 3)):
        yield f"{field} of {size} bytes for two", TWO_PASSED, {field: bytes(size)}
    yield "an offset of a minute", TWO_PASSED, {"event_offset_us": struct.pack("<2I", 1, 60_000_000)}
    yield "an outcome that nobody knows", TWO_PASSED, {"outcome": b"\x00\x04"}
    yield "a reason that is not given", TWO_PASSED, {"reason": b"\xff\x01", "reasons": ["one"]}
    yield "passed without a stamp", TWO_PASSED, {"lag_in_us": b""}
    yield "passed and not stamped", TWO_PASSED, {"lag_in_us": _NEITHER, "lag_out_us": _NEITHER}
    yield "33 reasons", HEARTBEAT, {"reasons": ["r"] * 33}
    yield "a reason of 65 characters", HEARTBEAT, {"reasons": ["r" * 65]}
    yield "a drop of half a minute", HEARTBEAT, {"drops": [_DROP | {"window_start_ms": 30_000}]}
    for number in (0, -1):
        yield f"{number} drops of a cause", HEARTBEAT, {"drops": [_DROP | {"count": number}]}
    yield "a cause of 65 characters", HEARTBEAT, {"drops": [_DROP | {"cause": "c" * 65}]}
    yield "nine labels", HEARTBEAT, {"labels": dict.fromkeys("123456789", "")}
    yield "a label of 65 characters", HEARTBEAT, {"labels": {"host": "h" * 65}}
    yield "a label's name of 65 characters", HEARTBEAT, {"labels": {"h" * 65: ""}}


def _broken_in_version_2() -> Iterator[tuple[str, Batch, Fields]]:
    """Yield batches that break a limit of what only version 2 has."""
    text: Fields = {"id_kind": "TEXT", "id_texts": b"ab"}
    yield "texts without ends", TWO_PASSED, text
    for ends in ((2, 1), (1, 3), (1, 1), (2**32 - 1, 0)):
        yield f"ends of texts at {ends}", TWO_PASSED, text | {"id_text_ends": struct.pack("<2I", *ends)}
    yield "texts of numbers", TWO_PASSED, text | {"id_kind": "INT", "id_text_ends": struct.pack("<2I", 1, 2)}
    for field in ("until_us", "sequence"):
        yield f"{field} of 12 bytes for two", TWO_PASSED, {field: bytes(12)}
    packet: Fields = {"kind": "METRICS"}
    for field in ("count", "bytes"):
        yield f"a packet whose {field} is -1", HEARTBEAT, packet | {"metrics": [_METRICS | {field: -1}]}
    yield "nine in a packet", HEARTBEAT, packet | {"metrics": [_METRICS] * 9}
    for name, data in _broken_histograms().items():
        broken = _METRICS | {"lag_histogram": data}
        yield f"a histogram with {name}", HEARTBEAT, packet | {"metrics": [broken]}
    yield "a packet with ids", TWO_PASSED, packet | {"metrics": [_METRICS]}
    for kind in (BatchKind.HEARTBEAT, BatchKind.BYE):
        yield f"counts in a {kind.name.lower()}", HEARTBEAT, {"kind": kind.name, "metrics": [_METRICS]}
    yield "counts beside ids", TWO_PASSED, {"metrics": [_METRICS]}


def _broken_histograms() -> dict[str, bytes]:
    """Return what is no histogram of some of two messages, by what is wrong; a good one is 1 10 12 2 1 1 1."""
    return {
        "another form": bytes((2, 10, 12, 2, 1, 1, 1)),
        "no buckets": bytes((1, 10, 12, 0)),
        "a number too few": bytes((1, 10, 12, 2, 1, 1)),
        "a number too many": bytes((1, 10, 12, 2, 1, 1, 1, 1)),
        "a number without an end": bytes((1, 10, 12, 2, 1, 1, 0x81)),
        "a number of 65 bits": bytes((1, 10, 12, 2, 1, 1, *(0xFF,) * 9, 0x03)),
        "a step of 0": bytes((1, 10, 12, 2, 0, 1, 1)),
        "an empty bucket": bytes((1, 10, 12, 2, 1, 0, 1)),
        "a greatest lag in no bucket": bytes((1, 10, 14, 2, 1, 1, 1)),
        "a greatest lag below the least": bytes((1, 12, 10, 1, 1)),
        "more lags than messages": bytes((1, 10, 12, 2, 1, 2, 1)),
    }


def _broken_bytes(record: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield what is no record, made of a good one."""
    yield "nothing", b""
    yield "another marker", b"\xc3" + record[1:]
    yield "a version that nobody knows", record[:1] + bytes(32) + record[33:]
    yield "another format with our marker", record[:1] + bytes(range(100))
    for length in (1, 32, 33, 40, len(record) - 1):
        yield f"its first {length} bytes", record[:length]
    yield "a byte behind it", record + b"\x00"
    yield "twice in one", record * 2
    yield "a number without an end", record[:33] + b"\xff" * 40
    yield "a probe that is no UTF-8", record[:34] + b"\xff" + record[35:]


if __name__ == "__main__":
    PATH.write_text(write_vectors(), "ascii")
