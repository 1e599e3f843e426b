"""Minutes of nodes that only count, made by hand, and judged by the model and the product."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hopwatch.monitor.store import reader
from tests.model.counts import fingerprint
from tests.model.lag_histogram import histogram, write
from tests.model.record import Body
from tests.model.spool_writer import SpoolWriter, passed
from tests.support.micro_batches import run_once
from tests.support.model_comparison import assert_spans_are_sums, comparable, prepared_store, rules_of

HORIZON_S = 60 + 150
NOTHING: Body = dict.fromkeys(("id_texts", "id_text_ends", "until_us", "sequence"), b"") | {"id_kind": "BYTES"}


def part(stamp: str, count: int, ids: Sequence[int] = (), lags_us: Sequence[int] = ()) -> Body:
    """Give what was counted at a stamp, with the fingerprint of some ids or none, and some lags or none."""
    lags = write(histogram(lags_us))
    xor, total = fingerprint(number.to_bytes(16, "big") for number in ids)
    return {"stamp": stamp, "count": count, "id_xor": xor, "id_sum": total, "bytes": 7, "lag_histogram": lags}


def counts(*ids: int) -> Body:
    """Give messages that were counted as they came, with their fingerprint."""
    return part("IN", len(ids), ids)


def packet(*parts: Body, **other: object) -> Body:
    """Give what makes a batch one of counts."""
    return NOTHING | {"kind": "METRICS", "metrics": list(parts)} | other


def tells(hand: SpoolWriter, node: str, *message_ids: int, until_s: float = HORIZON_S) -> None:
    """Have a probe send observations, and complete the window."""
    hand.say(node, 0, 30, passed(*message_ids))
    hand.say(node, 1, until_s, minute=3)


def counted(
    hand: SpoolWriter, *parts: Body, probe: str = "p", until_s: float = HORIZON_S, other: Body | None = None
) -> None:
    """Have a probe of n send a packet, and complete the window."""
    named = {"probe": probe} | (other or {})
    hand.say("n", 0, 30, other=packet(*parts, **named))
    hand.say("n", 1, until_s, minute=3, other={"probe": probe})


def judged(hand: SpoolWriter, folder: Path) -> dict[str, Any]:
    """Give the window as model and product have it."""
    store = prepared_store(folder, "once.db")
    rules = rules_of(folder, {"orders": hand.table})
    run_once(store, rules, sorted(hand.spool_dir.rglob("*.seg")), hand.spool_dir)
    found = reader.read_report(store)
    expected = hand.report()
    assert comparable(found) == comparable(expected)
    assert_spans_are_sums(store, expected)
    return dict(found["streams"][0]["windows"][0])
