"""``hopwatch`` that lets Spark forget after each batch, as one whose log of segments has become long."""

from __future__ import annotations

from functools import partial

from hopwatch.cli.main import main
from hopwatch.monitor.spark import job, sink

if __name__ == "__main__":
    # Nothing is too short to be forgotten.
    sink.LOG_BYTES = -(10**9)  # type: ignore[misc]
    job.__dict__["MicroBatchSink"] = partial(sink.MicroBatchSink, most_log_bytes=-1)
    main()
