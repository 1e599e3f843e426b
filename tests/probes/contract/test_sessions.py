"""The golden sessions are what the probe in Python sends."""

from __future__ import annotations

import json

from hopwatch.probes.contract import envelope
from tests.probes.contract import sessions


def test_the_generator_writes_the_file_that_is_here() -> None:
    """To the byte: a change of what a probe sends shows."""
    assert sessions.PATH.read_text("ascii") == sessions.write_sessions()


def test_sessions_show_all_that_a_probe_says() -> None:
    """1,000 records at least, of all kinds but packets, and with drops of every cause that a service can make."""
    found = [json.loads(line) for line in sessions.PATH.read_text("ascii").splitlines()]
    assert len({session["name"] for session in found}) == len(found)
    records = [record for session in found for record in session["records"]]
    assert len(records) >= 1_000
    batches = [envelope.decode(bytes.fromhex(record)) for record in records if not record.startswith("sha256:")]
    assert {batch.kind.name for batch in batches} == {"OBSERVATIONS", "HEARTBEAT", "BYE"}
    assert {batch.id_kind.name for batch in batches} == {"BYTES", "UUID", "INT", "TEXT"}
    assert {drop.cause for batch in batches for drop in batch.drops} >= {
        *("bad event time", "bad message id", "implausible event time"),
        "implausible event time, perhaps of this minute",
        *("sink refused", "undelivered", "broken"),
    }
