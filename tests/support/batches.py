"""Batches and records to test with: good ones, ones that break a limit, and a strategy for all good ones."""

from __future__ import annotations

import io
import struct
from dataclasses import asdict, replace
from typing import Any, Final

import fastavro
from hypothesis import strategies as st

from hopwatch.probes.contract import envelope, limits
from hopwatch.probes.contract.batch import Batch, BatchKind, Drop, Outcome, WireIdKind

SCHEMAS: Final = {1: fastavro.parse_schema(envelope.SCHEMA_1), 2: fastavro.parse_schema(envelope.SCHEMA)}
PREFIXES: Final = {1: b"\x81" + envelope.FINGERPRINT_1, 2: b"\x81" + envelope.FINGERPRINT}
PREFIX: Final = PREFIXES[2]
NAMED: Final = ("id_kind", "id_texts", "id_text_ends", "until_us", "sequence", "metrics")
"""The fields that version 1 has not."""
HEARTBEAT: Final = Batch("host-1", 1, 0, BatchKind.HEARTBEAT, "orders", "router", 60_000, 61_000_000, 61_000_000)
TWO_PASSED: Final = Batch(
    "host-1", 1, 1, BatchKind.OBSERVATIONS, "orders", "router", 60_000, 62_000_000, 62_000_000,
    count=2, message_ids=bytes(range(32)), lag_in_us=struct.pack("<2q", 5, -7),
)  # fmt: skip


def record_of(batch: Batch, version: int = 2, **fields: Any) -> bytes:  # noqa: ANN401 - as the wire has them
    """Return the record of a batch with other fields, unchecked: what a broken or foreign probe may send."""
    body = io.BytesIO()
    names = {"kind": batch.kind.name, "id_kind": batch.id_kind.name, "metrics": []}
    fastavro.schemaless_writer(body, SCHEMAS[version], asdict(batch) | names | fields)
    return PREFIXES[version] + body.getvalue()


def as_fastavro_reads(record: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the body of a record as fastavro reads it, and what is left behind it."""
    body = io.BytesIO(record[len(PREFIX) :])
    (schema,) = (SCHEMAS[version] for version, prefix in PREFIXES.items() if record.startswith(prefix))
    return fastavro.schemaless_reader(body, schema, None), body.read()  # type: ignore[return-value]


def refusal(record: bytes) -> envelope.RecordError | None:
    """Return the error with which a record is refused, if it is."""
    try:
        envelope.decode(record)
    except envelope.RecordError as error:
        return error
    return None


def as_body(batch: Batch) -> dict[str, Any]:
    """Return a batch as fastavro reads it."""
    told = asdict(batch) | {"kind": batch.kind.name, "reasons": list(batch.reasons), "drops": _dicts(batch.drops)}
    if batch.id_kind is WireIdKind.UNKNOWN:
        return {name: value for name, value in told.items() if name not in NAMED}
    return told | {"id_kind": batch.id_kind.name, "metrics": []}


def _dicts(drops: tuple[Drop, ...]) -> list[dict[str, Any]]:
    return [asdict(drop) for drop in drops]


LONGS: Final = st.integers(-(2**63), 2**63 - 1)
STARTS_MS: Final = st.integers(-(2**63) // 60_000 + 1, 2**63 // 60_000 - 1).map(lambda minute: minute * 60_000)
LAGS: Final = st.just(limits.NOT_STAMPED) | LONGS
NAMES: Final = st.text("AZaz09._-", min_size=1, max_size=128)
CHARACTERS: Final = st.characters(exclude_categories=["Cs"])
TEXTS: Final = st.text(CHARACTERS, max_size=64)
DROPS: Final = st.lists(st.builds(Drop, STARTS_MS, st.integers(1, 2**63 - 1), TEXTS), max_size=4).map(tuple)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Draw any batch that a probe may send."""
    kind = draw(st.sampled_from([BatchKind.OBSERVATIONS, BatchKind.HEARTBEAT, BatchKind.BYE]))
    reasons = draw(st.lists(TEXTS, max_size=limits.MAX_REASONS).map(tuple))
    count = draw(st.integers(1, 5)) if kind is BatchKind.OBSERVATIONS else 0
    return Batch(
        draw(st.text(CHARACTERS, min_size=1, max_size=128)),
        draw(LONGS),
        draw(st.integers(0, 2**63 - 1)),
        kind,
        draw(NAMES),
        draw(NAMES),
        draw(STARTS_MS),
        draw(LONGS),
        draw(LONGS),
        count,
        reasons=reasons,
        drops=draw(DROPS),
        labels=draw(st.dictionaries(TEXTS, TEXTS, max_size=limits.MAX_LABELS)),
        **draw(_named(count)),
        **(draw(_packed(count, len(reasons))) if count else {}),
    )


@st.composite
def _named(draw: st.DrawFn, count: int) -> dict[str, Any]:
    id_kind = draw(st.sampled_from([kind for kind in WireIdKind if kind is not WireIdKind.UNKNOWN]))
    named: dict[str, Any] = {"id_kind": id_kind}
    if id_kind is WireIdKind.TEXT and count and draw(st.booleans()):
        # Whether they are UTF-8 is for whoever shows them.
        texts = draw(st.lists(st.binary(max_size=20), min_size=count, max_size=count))
        ends = [sum(map(len, texts[: place + 1])) for place in range(count)]
        named |= {"id_texts": b"".join(texts), "id_text_ends": struct.pack(f"<{count}I", *ends)}
    for name in draw(st.sets(st.sampled_from(["until_us", "sequence"]))):
        named[name] = draw(st.binary(min_size=8 * count, max_size=8 * count))
    return named


def of_version_1(batch: Batch) -> Batch:
    """Return a batch as version 1 tells it: without what it has no fields for."""
    return replace(batch, id_kind=WireIdKind.UNKNOWN, id_texts=b"", id_text_ends=b"", until_us=b"", sequence=b"")


@st.composite
def _packed(draw: st.DrawFn, count: int, reasons: int) -> dict[str, Any]:
    def column(items: st.SearchStrategy[int]) -> list[int]:
        return draw(st.lists(items, min_size=count, max_size=count))

    known = [Outcome.PASSED, Outcome.FILTERED, Outcome.REJECTED]
    outcomes = draw(st.booleans()) and column(st.sampled_from(known))
    lags_in, lags_out = column(LAGS), column(LAGS)
    bare = [lag_in == lag_out == limits.NOT_STAMPED for lag_in, lag_out in zip(lags_in, lags_out, strict=True)]
    passed = [not outcomes or outcome is Outcome.PASSED for outcome in outcomes or bare]
    lags_in = [0 if b and p else lag for b, p, lag in zip(bare, passed, lags_in, strict=True)]
    packed = {
        "event_offset_us": struct.pack(f"<{count}I", *column(st.integers(0, limits.WINDOW_US - 1))),
        "reason": bytes(column(st.sampled_from([limits.NO_REASON, *range(reasons)]))),
    }
    left_out = draw(st.sets(st.sampled_from(sorted(packed))))
    return {name: b"" if name in left_out else field for name, field in packed.items()} | {
        "message_ids": draw(st.binary(min_size=16 * count, max_size=16 * count)),
        "lag_in_us": _lags(lags_in),
        "lag_out_us": _lags(lags_out),
        "outcome": bytes(outcomes or b""),
    }


def _lags(lags_us: list[int]) -> bytes:
    is_bare = set(lags_us) == {limits.NOT_STAMPED}
    return b"" if is_bare else struct.pack(f"<{len(lags_us)}q", *lags_us)
