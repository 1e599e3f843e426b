"""One record of the wire, slowly: what its bytes say, and which limit it breaks.

The schema below is the wire's own text. Everything that is not said there is a line of `LIMITS`.
"""

import io
import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import fastavro

from tests.model import lag_histogram
from tests.model.lag_histogram import LagHistogram

SCHEMA_TEXT = """
{"type": "record", "name": "ObservationBatch", "namespace": "hopwatch.v1", "fields": [
  {"name": "probe", "type": "string"},
  {"name": "epoch_us", "type": "long"},
  {"name": "seq", "type": "long"},
  {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["OBSERVATIONS", "HEARTBEAT", "BYE"]}},
  {"name": "stream", "type": "string"},
  {"name": "node", "type": "string"},
  {"name": "window_start_ms", "type": "long"},
  {"name": "sent_at_us", "type": "long"},
  {"name": "complete_through_us", "type": "long"},
  {"name": "count", "type": "int"},
  {"name": "message_ids", "type": "bytes"},
  {"name": "event_offset_us", "type": "bytes"},
  {"name": "lag_in_us", "type": "bytes"},
  {"name": "lag_out_us", "type": "bytes"},
  {"name": "outcome", "type": "bytes"},
  {"name": "reason", "type": "bytes"},
  {"name": "reasons", "type": {"type": "array", "items": "string"}},
  {"name": "drops", "type": {"type": "array", "items": {"type": "record", "name": "Drop", "fields": [
    {"name": "window_start_ms", "type": "long"},
    {"name": "count", "type": "long"},
    {"name": "cause", "type": "string"}]}}},
  {"name": "labels", "type": {"type": "map", "values": "string"}}]}
"""
SCHEMA = fastavro.parse_schema(json.loads(SCHEMA_TEXT))
BEHIND_TEXT = """[
  {"name": "id_kind", "type": {"type": "enum", "name": "IdKind", "symbols": ["BYTES", "UUID", "INT", "TEXT"]}},
  {"name": "id_texts", "type": "bytes"},
  {"name": "id_text_ends", "type": "bytes"},
  {"name": "until_us", "type": "bytes"},
  {"name": "sequence", "type": "bytes"},
  {"name": "metrics", "type": {"type": "array", "items": {"type": "record", "name": "Metrics", "fields": [
    {"name": "stamp", "type": {
      "type": "enum", "name": "Stamp", "symbols": ["IN", "OUT", "FILTERED", "REJECTED", "DEFERRED"]}},
    {"name": "count", "type": "long"},
    {"name": "id_xor", "type": "long"},
    {"name": "id_sum", "type": "long"},
    {"name": "bytes", "type": "long"},
    {"name": "lag_histogram", "type": "bytes"}]}}}]
"""
"""What version 2 has behind the fields of version 1."""


def _second() -> dict[str, Any]:
    schema = json.loads(SCHEMA_TEXT)
    schema["namespace"] = "hopwatch.v2"
    schema["fields"][3]["type"]["symbols"].append("METRICS")
    schema["fields"] += json.loads(BEHIND_TEXT)
    return dict(schema)


SCHEMA_2 = fastavro.parse_schema(_second())
FINGERPRINT = bytes.fromhex("90f6ad4a1245681f6d5985ae674c05f6a12f41bc8e9f2982eacf6e6271a27d9d")
FINGERPRINT_2 = bytes.fromhex("644b1dd5485e458e98e1dd30fcf33cfa31719c9023cbd25358c7638d6721d9a5")
HEAD, HEAD_2 = b"\x81" + FINGERPRINT, b"\x81" + FINGERPRINT_2
SCHEMAS = {HEAD: SCHEMA, HEAD_2: SCHEMA_2}
WINDOW_MS = 60_000
NOT_STAMPED = -(2**63)
NO_REASON = 255
PASSED, FILTERED, REJECTED, DEFERRED = 0, 1, 2, 3

Body = dict[str, Any]


class RecordError(ValueError):
    """A record that is set aside whole; `reason` is the word that it is counted under."""

    def __init__(self, reason: str, message: str) -> None:
        """Keep the word beside the sentence."""
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Observation:
    """One message at one node; a stamp that was not made is None, lags are in µs."""

    message_id: bytes
    lag_in_us: int | None
    lag_out_us: int | None
    outcome: int = PASSED
    event_offset_us: int = 0
    reason: int = NO_REASON
    kind: str = ""
    """Of which kind its id is; nothing where version 1 does not say."""
    text: bytes | None = None
    until_us: int = 0
    """Until when a deferred message waits."""
    tells_event_time: bool = True
    """Whether the record has event offsets; without, the offset is 0."""

    @property
    def passed(self) -> bool:
        """Return whether the node let the message go on."""
        return self.outcome == PASSED


@dataclass(frozen=True, slots=True)
class Packet:
    """Messages that were counted at one stamp."""

    stamp: str
    count: int
    id_xor: int
    id_sum: int
    bytes: int
    lags: LagHistogram | None = None
    """Of some or all of them."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Batch of a probe instance, one object an observation; times in the unit that their name ends in."""

    stream: str
    node: str
    probe: str
    epoch_us: int
    seq: int
    kind: str
    window_start_ms: int
    sent_at_us: int
    complete_through_us: int
    observations: tuple[Observation, ...]
    drops: tuple[tuple[int, int], ...]
    """(window_start_ms, count) of each."""
    packets: tuple[Packet, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def messages(self) -> int:
        """Of how many messages it speaks."""
        return len(self.observations) + sum(packet.count for packet in self.packets)

    @property
    def is_of_window(self) -> bool:
        """Return whether it says something of the messages of its window."""
        return self.kind in {"OBSERVATIONS", "METRICS"}


def _whole(field: str, size: int, *, may_be_empty: bool = True) -> Callable[[Body], bool]:
    return lambda b: len(b[field]) == size * b["count"] or (may_be_empty and not b[field])


def _short(texts: Sequence[str] | Mapping[str, str], most: int = 64) -> bool:
    return all(len(text) <= most for text in texts)


def _unpack(code: str, packed: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(packed) // struct.calcsize('<' + code)}{code}", packed)


def _lags(body: Body, field: str) -> list[int | None]:
    if not body[field]:
        return [None] * body["count"]
    return [None if lag == NOT_STAMPED else lag for lag in _unpack("q", body[field])]


def _passed_are_stamped(body: Body) -> bool:
    outcomes = body["outcome"] or bytes(body["count"])
    stamps = zip(_lags(body, "lag_in_us"), _lags(body, "lag_out_us"), strict=True)
    return all(o != PASSED or s != (None, None) for o, s in zip(outcomes, stamps, strict=True))


def _ends(body: Body) -> tuple[int, ...]:
    return _unpack("I", body["id_text_ends"])


def _texts(body: Body) -> list[bytes]:
    ends = _ends(body)
    return [body["id_texts"][begin:end] for begin, end in zip((0, *ends), ends, strict=False)]


def _laid_end_to_end(body: Body) -> bool:
    ends = _ends(body)
    if not ends:
        return not body["id_texts"]
    return list(ends) == sorted(ends) and ends[-1] == len(body["id_texts"])


def _characters(text: bytes) -> int:
    return sum(byte & 0b1100_0000 != 0b1000_0000 for byte in text)


_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")

LIMITS: tuple[tuple[str, str, Callable[[Body], bool]], ...] = (
    ("probe_name", "a probe has a name of 1 to 128 characters", lambda b: 1 <= len(b["probe"]) <= 128),
    ("seq", "batches are numbered from 0", lambda b: b["seq"] >= 0),
    ("stream_name", "a stream has a name of 1 to 128 of [A-Za-z0-9._-]", lambda b: bool(_NAME.fullmatch(b["stream"]))),
    ("node_name", "a node has a name of 1 to 128 of [A-Za-z0-9._-]", lambda b: bool(_NAME.fullmatch(b["node"]))),
    ("window_start", "a window starts at a whole minute", lambda b: b["window_start_ms"] % WINDOW_MS == 0),
    (
        "count",
        "there are 1 to 65,536 observations in OBSERVATIONS and none in the others",
        lambda b: 1 <= b["count"] <= 65_536 if b["kind"] == "OBSERVATIONS" else b["count"] == 0,
    ),
    ("message_ids", "an id has 16 bytes", _whole("message_ids", 16, may_be_empty=False)),
    ("event_offset", "event offsets have 4 bytes each, or there are none", _whole("event_offset_us", 4)),
    ("lag_in", "lags have 8 bytes each, or there are none", _whole("lag_in_us", 8)),
    ("lag_out", "lags have 8 bytes each, or there are none", _whole("lag_out_us", 8)),
    ("outcome", "outcomes have 1 byte each, or there are none", _whole("outcome", 1)),
    ("reason", "reasons have 1 byte each, or there are none", _whole("reason", 1)),
    (
        "event_offset",
        "an event offset is below 60,000,000",
        lambda b: all(offset < 60_000_000 for offset in _unpack("I", b["event_offset_us"])),
    ),
    (
        "outcome",
        "an outcome is 0, 1 or 2, and 3 in version 2",
        lambda b: all(o <= (DEFERRED if b["id_kind"] else REJECTED) for o in b["outcome"]),
    ),
    ("unstamped", "one that passed carries at least one stamp", _passed_are_stamped),
    (
        "reasons",
        "there are at most 32 reasons of at most 64 characters",
        lambda b: len(b["reasons"]) <= 32 and _short(b["reasons"]),
    ),
    (
        "reason",
        "a reason is 255 or one of the reasons",
        lambda b: all(r == NO_REASON or r < len(b["reasons"]) for r in b["reason"]),
    ),
    (
        "drops",
        "there are at most 1,024 drops with a cause of at most 64 characters",
        lambda b: len(b["drops"]) <= 1_024 and _short([drop["cause"] for drop in b["drops"]]),
    ),
    (
        "drop_window",
        "a drop names a whole minute and a count over 0",
        lambda b: all(drop["window_start_ms"] % WINDOW_MS == 0 and drop["count"] > 0 for drop in b["drops"]),
    ),
    ("texts", "texts have 4 bytes each to say where they end, or there are none", _whole("id_text_ends", 4)),
    ("texts", "ids that are no texts have none", lambda b: b["id_kind"] == "TEXT" or not b["id_text_ends"]),
    ("texts", "texts lie end to end, to the last byte", _laid_end_to_end),
    (
        "texts",
        "a text has at most 1,024 characters, of 4 bytes at most",
        lambda b: all(_characters(text) <= 1_024 and len(text) <= 4_096 for text in _texts(b)),
    ),
    ("until", "moments have 8 bytes each, or there are none", _whole("until_us", 8)),
    ("sequence", "numbers have 8 bytes each, or there are none", _whole("sequence", 8)),
    (
        "metrics",
        "there are at most 8 metrics, of at most 64 KiB, in a batch of their kind",
        lambda b: (
            len(b["metrics"]) <= (8 if b["kind"] == "METRICS" else 0)
            and all(len(one["lag_histogram"]) <= 65_536 for one in b["metrics"])
        ),
    ),
    (
        "metrics",
        "metrics count from 0",
        lambda b: all(one["count"] >= 0 and one["bytes"] >= 0 for one in b["metrics"]),
    ),
    (
        "metrics",
        "a lag histogram is one of no more lags than messages",
        lambda b: all(lag_histogram.is_of(one["lag_histogram"], one["count"]) for one in b["metrics"]),
    ),
    (
        "labels",
        "there are at most 8 labels of at most 64 characters",
        lambda b: len(b["labels"]) <= 8 and _short(b["labels"]) and _short(list(b["labels"].values())),
    ),
)
"""(reason, what must hold, whether it does), in the order in which a record is judged."""


def encode(body: Body) -> bytes:
    """Give the whole record of a body with the fields of its version's schema; broken on purpose is fine."""
    head = HEAD_2 if "id_kind" in body else HEAD
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMAS[head], body)
    return head + out.getvalue()


@lru_cache(maxsize=16_384)
def decode(record: bytes) -> Batch:
    """Give what a record says, or raise RecordError with the reason why it is set aside.

    Laws read what a stream has so far at each of many moments: a record that was read before is not decoded again.
    """
    body = _body(record)
    for reason, rule, holds in LIMITS:
        if not holds(body):
            raise RecordError(reason, f"{rule}, and this record of {body['stream']!r}, {body['node']!r} breaks that")
    return Batch(
        **{name: body[name] for name in ("stream", "node", "probe", "epoch_us", "seq", "kind", "window_start_ms")},
        sent_at_us=body["sent_at_us"],
        complete_through_us=body["complete_through_us"],
        observations=_observations(body),
        drops=tuple((drop["window_start_ms"], drop["count"]) for drop in body["drops"]),
        packets=tuple(
            replace(Packet(*(one[name] for name in _COUNTED)), lags=lag_histogram.read(one["lag_histogram"]))
            for one in body["metrics"]
        ),
        labels=body["labels"],
    )


_COUNTED = ("stamp", "count", "id_xor", "id_sum", "bytes")


def _body(record: bytes) -> Body:
    if record[:1] != HEAD[:1]:
        raise RecordError("envelope", f"a record starts with 0x81, this one with {record[:1].hex() or 'nothing'}")
    schema = SCHEMAS.get(record[: len(HEAD)])
    if schema is None:
        raise RecordError("fingerprint", f"no schema is known with the fingerprint {record[1 : len(HEAD)].hex()}")
    stream = io.BytesIO(record[len(HEAD) :])
    try:
        body = fastavro.schemaless_reader(stream, schema, None)
    except Exception as error:  # whatever fastavro meets in foreign bytes, the record is broken
        raise RecordError(
            "body", f"the body does not read as ObservationBatch: {type(error).__name__} {error}"
        ) from error
    if rest := stream.read():
        raise RecordError("rest", f"{len(rest)} bytes are left behind the body")
    return _SILENT | dict(body)  # type: ignore[arg-type]


_SILENT: Body = {"id_kind": "", "id_texts": b"", "id_text_ends": b"", "until_us": b"", "sequence": b"", "metrics": []}
"""What version 1 says of what it has no fields for."""


def _observations(body: Body) -> tuple[Observation, ...]:
    count, ids = body["count"], body["message_ids"]
    offsets = _unpack("I", body["event_offset_us"]) or (0,) * count
    lags_in, lags_out = _lags(body, "lag_in_us"), _lags(body, "lag_out_us")
    outcomes = body["outcome"] or bytes([PASSED]) * count
    reasons = body["reason"] or bytes([NO_REASON]) * count
    texts: Sequence[bytes | None] = _texts(body) or [None] * count
    until_us = _unpack("q", body["until_us"]) or (0,) * count
    return tuple(
        Observation(
            ids[16 * i : 16 * i + 16],
            lags_in[i],
            lags_out[i],
            outcomes[i],
            offsets[i],
            reasons[i],
            body["id_kind"],
            texts[i],
            until_us[i],
            bool(body["event_offset_us"]),
        )
        for i in range(count)
    )
