"""Model of sizes: held against the figures of the page on performance, and the page on sizing is computed by it."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pytest

from bench import size_model
from bench.size_model import (
    DIGEST_BYTES,
    MAX_DIGEST_BYTES,
    MEASURED_MESSAGES,
    ONCE,
    POSTGRES,
    SQLITE,
    STREAM,
    MinuteBytes,
    Pipelines,
)
from bench.work import OBSERVATIONS_PER_MINUTE
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.settings.model import StoreSettings, StreamSettings
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support import page_blocks

PERFORMANCE: Final = page_blocks.page("docs/PERFORMANCE.md")
PAGE: Final = page_blocks.page("docs/SIZING.md")
BOUND: Final = 0.2
PIPELINES: Final = (Pipelines(100, 4, 4), Pipelines(2_000, 6, 60), Pipelines(50_000, 6, 600))


def read_rows(page: str, heading: str) -> list[list[str]]:
    """Return the rows of the first table below a heading, without its head."""
    section = page.split(f"\n## {heading}\n")[1]
    _, *rows = re.findall(r"^\|(.*)\|$", section[section.index("\n|") :].split("\n\n")[0], re.MULTILINE)
    return [[cell.strip() for cell in row.split("|")] for row in rows if not set(row) <= set("-:|")]


def read_number(cell: str) -> float:
    """Return the number of a cell, with its unit of a million."""
    number, _, unit = cell.replace(",", "").partition(" ")
    return float(number) * (1e6 if unit == "million" else 1)


@pytest.mark.parametrize("row", read_rows(PERFORMANCE, "How cost grows"))
def test_the_time_of_a_backlog_is_that_which_was_measured(row: list[str]) -> None:
    """Of each size, of ten and a hundred streams, and of small batches; as a stream and as a later query."""
    observations, streams, batch, once_s, _, stream_s, *_ = (read_number(cell) for cell in row)
    windows = round(streams * observations / OBSERVATIONS_PER_MINUTE)
    for cost, measured_s in ((ONCE, once_s), (STREAM, stream_s)):
        assert cost.estimate_s(int(observations), windows, int(batch)) == pytest.approx(measured_s, rel=BOUND)


def test_the_bytes_of_a_minute_are_those_that_were_measured() -> None:
    """Of both databases."""
    measured = {name: (before, after) for name, before, after, *_ in read_rows(PERFORMANCE, "The store")}
    for name, minute in (("SQLite", SQLITE), ("PostgreSQL", POSTGRES)):
        assert MinuteBytes(*(round(read_number(cell)) for cell in measured[name])) == minute
        assert f"| a node's minute, {name} | {minute.with_digests:,} |" in PAGE
    assert f"| the same, later | {SQLITE.without} |" in PAGE
    assert f"| the same, later | {POSTGRES.without} |" in PAGE


@pytest.mark.parametrize(
    ("messages", "digest_bytes"),
    [(MEASURED_MESSAGES, DIGEST_BYTES), (2_000, MAX_DIGEST_BYTES), (200_000, MAX_DIGEST_BYTES)],
)
def test_digests_are_as_large_as_the_model_has_them(messages: int, digest_bytes: int) -> None:
    """Of lags as the bench of the store has them."""
    lags_us = (50_000 * np.random.default_rng(1).lognormal(sigma=0.5, size=(40, messages))).astype(np.int64)
    sizes = [len(tdigest.to_bytes(tdigest.build(of_minute))) for of_minute in lags_us]
    assert np.mean(sizes) == pytest.approx(digest_bytes, rel=BOUND)


def test_the_bytes_of_an_observation_are_those_that_were_measured() -> None:
    """In a spool, and as a broker keeps it."""
    rows = {name: of for name, *of in read_rows(PERFORMANCE, "Through Kafka")}
    found = [read_number(of[2]) for of in rows.values() if of[2]]
    assert found == [size_model.WIRE_BYTES, size_model.TOPIC_BYTES]


def test_the_times_are_the_defaults() -> None:
    """Records are kept as windows need them, and digests as the store keeps them."""
    kept_us = sum(StreamSettings.model_fields[name].default for name in ("transit_us", "settle_us", "amend_for_us"))
    assert kept_us + WINDOW_US == size_model.NEEDED_S * 1_000_000
    assert (
        Pipelines(1, 1, 1).digest_days * size_model.MINUTES_PER_DAY * WINDOW_US
        == StoreSettings.model_fields["digests_for_us"].default
    )


def test_the_page_has_what_the_model_says() -> None:
    """Each line of its table, in GB, and what a backlog takes."""
    rows = [[cell.strip() for cell in line.split("|")[2:-1]] for line in PAGE.splitlines() if "messages/s" in line]
    for row, one in zip(rows, PIPELINES, strict=True):
        sizes = (
            one.estimate_records_bytes(),
            one.estimate_topic_bytes(),
            one.estimate_store_bytes(SQLITE),
            one.estimate_store_bytes(POSTGRES),
        )
        assert row == [f"{one.observations_per_s:,}", *(f"{size / 1e9:,.1f} GB" for size in sizes)]
    for cost in (STREAM, ONCE):
        told = f"| {cost.start_s} s | {cost.million_s:.3f} s | {cost.window_s * 1e3:g} ms | {cost.batch_s * 1e6:g} µs |"
        assert told in PAGE


def test_minutes_that_are_deleted_sooner_have_their_digests() -> None:
    """A store that keeps two days has none without."""
    one = Pipelines(1, 1, nodes=10, days=2)
    assert one.estimate_store_bytes(SQLITE) == 10 * 2 * size_model.MINUTES_PER_DAY * SQLITE.with_digests
