"""Stores of a hundred services: of seventeen streams that share them, for a map, and of one stream, for its pathway."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import RecentFigures, RecentLag, RecentNode
from hopwatch.monitor.store import dialect, recent_figures, schema, writer
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.batch import Batch, BatchKind
from tests.e2e.picture_store import AGO, write_byes
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

SERVICES: Final = 100
PATHS: Final = {
    "orders": (
        "web-gateway -> order-ingest -> order-validate -> order-router -> order-enrich & fraud-score & stock-reserve",
        "order-enrich -> order-writer",
        "fraud-score -> fraud-writer",
        "stock-reserve -> stock-writer",
    ),
    "payments": (
        "pay-gateway -> pay-ingest -> pay-validate -> fraud-score -> pay-ledger -> pay-settle -> bank-export",
    ),
    "refunds": ("web-gateway -> refund-ingest -> refund-check -> pay-ledger -> refund-notify",),
    "clicks": (
        "edge-collect -> click-ingest -> bot-filter -> sessionize -> click-enrich -> lake-writer & feature-store",
    ),
    "views": ("edge-collect -> view-ingest -> bot-filter -> view-count -> lake-writer",),
    "search": ("web-gateway -> search-log -> search-clean -> query-embed -> rank-train & lake-writer",),
    "stock": ("warehouse-a -> stock-ingest -> stock-merge -> stock-reserve -> stock-writer",),
    "shipping": ("carrier-hook -> ship-ingest -> ship-match -> ship-eta -> ship-notify & ship-writer",),
}
"""Streams whose services are named; the others are numbered."""
FLEETS: Final = {
    "telemetry": ("telemetry", 8),
    "logs": ("log", 7),
    "metrics": ("metric", 7),
    "billing": ("billing", 7),
    "email": ("email", 6),
    "audit": ("audit", 6),
    "prices": ("price", 6),
    "catalog": ("catalog", 5),
    "ads": ("ad", 7),
}
"""Streams that are chains of so many services of their own; the last one writes to the lake."""
LANES: Final = ("enrich", "pay", "stock", "fraud", "ship", "trail", "notify")
"""Lanes of the one stream, each a chain of so many services of its own between the first and the last of all."""
LANE_SERVICES: Final = 14
BAD: Final = {"order-router": 0.02, "telemetry-05": 0.3, "stock-merge": 0.001, "pay-07": 0.02, "trail-03": 0.001}
UNHEARD: Final = frozenset({"ship-eta", "ship-05"})
"""Their last batches never came."""
MINUTES: Final = 2


def build_paths() -> dict[str, tuple[str, ...]]:
    """Return the paths of all streams that share services."""
    chains = {
        stream: (" -> ".join([*(f"{name}-{number:02}" for number in range(1, count + 1)), "lake-writer"]),)
        for stream, (name, count) in FLEETS.items()
    }
    return PATHS | chains


def build_lanes() -> dict[str, tuple[str, ...]]:
    """Return the path of the one stream."""
    lanes = [[f"{lane}-{number:02}" for number in range(1, LANE_SERVICES + 1)] for lane in LANES]
    heads = " & ".join(lane[0] for lane in lanes)
    return {"orders": (f"gateway -> {heads}", *(" -> ".join([*lane, "warehouse"]) for lane in lanes))}


def place(folder: Path, texts: Mapping[str, tuple[str, ...]]) -> Workspace:
    """Return a place whose monitor has judged two minutes of streams with these paths, and has read up to now."""
    paths = {stream: Pathway.parse(text) for stream, text in texts.items()}
    told = "".join(f"[streams.{stream}]\npath = {json.dumps(text)}\n" for stream, text in texts.items())
    made = Workspace(folder).configure(f'[store]\nurl = "sqlite:///./store.db"\n{told}')
    engine = dialect.create_engine(made.store_url)
    schema.prepare_store(engine)
    rules = {stream: StreamConfig(path, WINDOW_POLICY) for stream, path in paths.items()}
    run_once(engine, rules, list(_segments(folder / "spool" / "0", paths)))
    with engine.execution_options(writes=True).begin() as connection:
        now_us = SystemClock().now_us()
        writer.set_values(connection, {"query_id": "pictured", "watermark_us": str(now_us + 90_000_000)})
        # They are of the next hour: pictures are taken while they are new.
        recent_figures.save_recent(connection, [_recent(stream, path, now_us) for stream, path in paths.items()])
    engine.dispose()
    return made


def _recent(stream: str, path: Pathway, now_us: int) -> RecentFigures:
    chance = np.random.default_rng(len(stream))
    nodes = []
    for place, node in enumerate(path.nodes):
        p50, count = 8_000 * (place + 1), int(chance.integers(900, 9_000))
        lag = RecentLag(p50, 3 * p50, 5 * p50)
        nodes.append(RecentNode(node, count, count, 0, lag, lag, 0))
    return RecentFigures(stream, now_us + 3_600_000_000, tuple(nodes))


def _segments(folder: Path, paths: dict[str, Pathway]) -> Iterator[Path]:
    chance = np.random.default_rng(0)
    first = (SystemClock().now_us() - START_US) // 60_000_000 - MINUTES - AGO
    for number in range(MINUTES):
        batches = [
            batch
            for place, (stream, path) in enumerate(paths.items())
            for batch in _minute(stream, path, place, number, chance, first)
        ]
        yield write_segment(folder / f"{number:010d}.seg", *batches, arrival_us=at_us(60 * (first + number) + 70))
    yield write_byes(folder, {stream: path.nodes for stream, path in paths.items()}, first, MINUTES)


def _minute(
    stream: str, path: Pathway, place: int, number: int, chance: np.random.Generator, first: int
) -> Iterator[Batch]:
    """Yield what the probes of a stream say of a minute."""
    count = int(chance.integers(300, 1_500))
    passed: dict[str, Any] = {}
    before = {path.nodes[target]: path.nodes[group.source] for group in path.groups for target in group.targets}
    for depth, node in enumerate(path.nodes):
        numbers = passed.get(before.get(node, ""), place * 1_000_000 + number * 10_000 + np.arange(count))
        numbers = numbers[chance.random(len(numbers)) >= BAD.get(node, 0)]
        passed[node] = numbers
        lag_us = (depth + 1) * 6_000 + chance.gamma(3, 4_000, len(numbers))
        if node in UNHEARD and number == MINUTES - 1:
            continue
        yield make_batch(
            BatchKind.OBSERVATIONS,
            node,
            stream=stream,
            seq=number,
            epoch_us=at_us(60 * first - 10),
            window_start_ms=window_ms(first + number),
            complete_through_us=at_us(60 * (first + number) + 65),
            message_ids=pack_ids(*map(int, numbers)),
            count=len(numbers),
            lag_in_us=pack_lags(*lag_us.astype(int)),
            lag_out_us=pack_lags(*(lag_us + 2_000).astype(int)),
        )
