"""A store to be pictured: an hour of three streams up to now, one healthy, one that loses, one that nobody can know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.store import dialect, schema, writer
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.batch import Batch, BatchKind
from tests.support.micro_batches import run_once
from tests.support.spool import (
    START_US,
    WINDOW_POLICY,
    at_us,
    make_batch,
    pack_ids,
    pack_lags,
    window_ms,
    write_segment,
)
from tests.support.workspace import Workspace

MINUTES: Final = 60
AGO: Final = 4
"""Minutes between the end of the last window and now: so long it takes to be final."""
BAD_FROM: Final = 38
"""From this minute on the second node of the stream that loses drops one message in fifty."""
HOLE: Final = MINUTES - 1
"""The minute of which the last node of the stream that nobody can know lost its batch."""
LOST_RATIO: Final = 0.02
STREAMS: Final = {
    "orders": ("ingest", "router", "enrich", "sink"),
    "payments": ("gateway", "ledger", "settlement"),
    "clicks": ("edge", "sessions", "warehouse"),
}
CONFIGURATION: Final = """
[store]
url = "sqlite:///./store.db"
[streams.orders]
path = "ingest -> router -> enrich -> sink"
"""


def place(folder: Path) -> Workspace:
    """Return a place whose monitor has judged that hour."""
    made = Workspace(folder).configure(CONFIGURATION)
    engine = dialect.create_engine(made.store_url)
    schema.prepare_store(engine)
    rules = {
        stream: StreamConfig(Pathway.parse(" -> ".join(nodes)), WINDOW_POLICY) for stream, nodes in STREAMS.items()
    }
    run_once(engine, rules, list(_segments(folder / "spool" / "0")))
    # As a monitor leaves it that runs on, so that it is not behind while pictures are taken.
    with engine.execution_options(writes=True).begin() as connection:
        now_us = SystemClock().now_us()
        writer.set_values(connection, {"query_id": "pictured", "watermark_us": str(now_us + 90_000_000)})
    engine.dispose()
    return made


def _segments(folder: Path) -> Iterator[Path]:
    chance = np.random.default_rng(0)
    first = (SystemClock().now_us() - START_US) // 60_000_000 - MINUTES - AGO
    for number in range(MINUTES):
        batches = [batch for stream in STREAMS for batch in _minute(stream, first, number, chance)]
        yield write_segment(folder / f"{number:010d}.seg", *batches, arrival_us=at_us(60 * (first + number) + 70))
    yield write_byes(folder, STREAMS, first, MINUTES)


def write_byes(folder: Path, streams: Mapping[str, Sequence[str]], first: int, minutes: int) -> Path:
    """Write the segment in which all probes say bye, so many minutes after the first one, and return its path."""
    end_us = at_us(60 * (first + minutes) + 150)
    byes = [
        make_batch(
            BatchKind.BYE, node, stream=stream, seq=minutes, epoch_us=at_us(60 * first - 10), complete_through_us=end_us
        )
        for stream, nodes in streams.items()
        for node in nodes
    ]
    return write_segment(folder / f"{minutes:010d}.seg", *byes, arrival_us=end_us)


def _minute(stream: str, first: int, number: int, chance: np.random.Generator) -> Iterator[Batch]:
    """Yield what the probes of a stream say of a minute."""
    count = int(chance.normal(900 + 250 * np.sin(number / 9), 25))
    numbers = list(STREAMS).index(stream) * 1_000_000 + number * 10_000 + np.arange(count)
    lag_us = chance.gamma(3, 1_500, count)
    for place, node in enumerate(STREAMS[stream]):
        if stream == "orders" and place == 1 and number >= BAD_FROM:
            kept = chance.random(len(numbers)) >= LOST_RATIO
            numbers, lag_us = numbers[kept], lag_us[kept]
        slow = 3 if stream == "orders" and place == 2 and number >= BAD_FROM else 1
        out_us = lag_us + chance.gamma(4, 2_000 * (place + 1) * slow, len(numbers))
        told: dict[str, Any] = {
            "stream": stream,
            "seq": number,
            "epoch_us": at_us(60 * first - 10),
            "window_start_ms": window_ms(first + number),
            "complete_through_us": at_us(60 * (first + number) + 65),
            "message_ids": pack_ids(*map(int, numbers)),
            "count": len(numbers),
            "lag_in_us": pack_lags(*lag_us.astype(int)),
            "lag_out_us": pack_lags(*out_us.astype(int)),
        }
        lag_us = out_us + chance.gamma(2, 500, len(numbers))
        if not (stream == "clicks" and place == 2 and number == HOLE):
            yield make_batch(BatchKind.OBSERVATIONS, node, **told)
