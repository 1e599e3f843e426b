"""Producer in a process of its own: it sends events by a client with a spool, and notes each that was accepted."""

from __future__ import annotations

import os
import sys
import time

from hopwatch.client import GateClient
from hopwatch.gate import ids
from hopwatch.probes.message_headers import generate_id
from tests.real.event_producers import payload

RATE_PER_S = 500
DRAIN_S = 120.0


def main(url: str, spool: str, notes: str, count: int) -> int:
    """Send so many events, and return 0 once the gate has all of them, and those that an earlier process has left."""
    log = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with GateClient(url, "orders", spool=spool) as client:
        for _ in range(count):
            event_id = ids.format_uuid(generate_id(time.time_ns() // 1_000))
            client.send(payload(event_id), event_id=event_id, wait_s=30.0)
            # A note that a kill prevents is of an event that may be there, and need not.
            os.write(log, f"{event_id}\n".encode())
            time.sleep(1 / RATE_PER_S)
        is_drained = client.flush(DRAIN_S)
    counts = client.counts()
    sys.stdout.write(f"{counts}\n")
    return 0 if is_drained and not counts.rejected else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
