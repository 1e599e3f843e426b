"""Tests of the bench of the ingest time."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from bench.gate import ingest
from bench.gate.ingest import IngestSizes
from tests.bench.contestants import quiet

PAGE = b"""# TYPE hopwatch_gate_ingest_seconds histogram
hopwatch_gate_ingest_seconds_bucket{le="+Inf",stream="orders"} 7.0
hopwatch_gate_ingest_seconds_count{stream="orders"} 7.0
hopwatch_gate_ingest_seconds_sum{stream="orders"} 0.25
"""


def test_a_line_is_of_medians_with_their_spread() -> None:
    """The time of an event is the median ingest time over the events of a request."""
    rounds = [{"ingest_ms": span, "p95_ms": 2 * span, "rate": 100, "cpu_us": 5} for span in (2.0, 9.0, 1.0)]
    line = ingest.summarize_ingest(100, rounds)
    assert (line.ingest_ms, line.ingest_least_ms, line.ingest_most_ms) == (2.0, 1.0, 9.0)
    assert (line.us_per_event, line.round_trip_p95_ms) == (20.0, 4.0)
    assert ingest.build_table([line]).row_count == 1


def test_the_histogram_of_the_gate_is_read() -> None:
    """Count and sum of the page of metrics."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as page:
        threading.Thread(target=page.handle_request, daemon=True).start()
        assert ingest.read_histogram(page.server_port) == (7, 0.25)


@pytest.mark.soak  # a bench
def test_all_of_it_in_little(tmp_path: Path) -> None:
    """A line a batch size; the measure itself holds the gate's count against the client's."""
    lines = ingest.measure(tmp_path, quiet, IngestSizes(rounds=1, seconds=0.2, warm_s=0.1))
    assert [line.batch for line in lines] == list(ingest.BATCHES)
    assert all(line.ingest_ms > 0 for line in lines)
