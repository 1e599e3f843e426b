"""State operator of the job: keeps the claim checks of each window shard, and tallies them as they arrive.

Its clock is the watermark of arrival times. Timers wake it when the window's end has passed, when it is to be judged,
when what is in flight is due, and when nothing can change it any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from zlib import crc32

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.payloads import Claims, pack_tally, split_payloads
from hopwatch.monitor.row_kinds import CLAIMS_ROW, TALLY_ROW, TICK_ROW
from hopwatch.monitor.spark import claim_reader
from hopwatch.monitor.spark.rows import TALLIED_SCHEMA
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import WINDOW_US

WORK_PER_TRIGGER: Final = 500_000
"""The work, some 50 ms, that a worker may spend in a trigger on windows that are not to be judged yet.

Work is counted in observations.
"""
DEADLINE_WORK_PER_TRIGGER: Final = 4_000_000
"""The same on windows of streams with deadlines: what is overdue is found by their tallies."""
WORK_PER_BATCH: Final = 60
"""The work of a batch apart from its observations."""
WORK_PER_TALLY: Final = 15_000
"""The work of a tally, and of the judgement that follows, apart from its batches."""
WORK_OF_ORDER: Final = 5
"""The work of an observation in the shard that counts order, as a multiple of that of any other."""
MAX_TALLY_WAIT_US: Final = 20_000_000
"""Time that claims wait for a tally at most."""
DEADLINE_TALLY_WAIT_US: Final = 10_000_000
"""The same for claims of a stream with deadlines."""

_OUTPUT_ROW: Final = Row(*TALLIED_SCHEMA.names)
"""Makes a row with the columns of the job's output."""
_STATE_COLUMNS: Final = "claims binary, claimed long, tallied long"
_PACKED_COLUMNS: Final = "claims binary, bytes long"
"""Columns of compressed claims, and their size before."""
MAX_CLAIMS_BYTES: Final = 16_384
"""Claims of a shard that are written anew in each trigger; more are compressed and added to a list."""
_codec: Final = pa.Codec("zstd", 1)


@dataclass(frozen=True, slots=True)
class ShardState:
    """State of a window shard: its newest claims, the work of a tally of all of them, and that of the last tally."""

    claims: bytes = b""
    claimed: int = 0
    tallied: int = 0

    def with_claims(self, joined: bytes) -> ShardState:
        """Return the shard with more claims, parcels that were joined."""
        more = sum(_work_of(Claims.unpack(parcel)) for parcel in split_payloads(joined))
        return replace(self, claims=self.claims + joined, claimed=self.claimed + more)

    @property
    def is_due(self) -> bool:
        """Return whether there are claims that no tally covers yet."""
        return self.claimed > self.tallied


class WindowShardProcessor(StatefulProcessor):
    """Keeps one window shard a key: (kind, stream, window_start_ms, shard). Rows of other kinds pass by."""

    def __init__(self, rules: Mapping[str, StreamConfig]) -> None:
        """Take the rules of all streams along to the workers."""
        self.rules = rules

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state; Spark calls this once in a task, which is one worker's part of a trigger."""
        self.handle, self.left, self.left_for_deadlines = handle, WORK_PER_TRIGGER, DEADLINE_WORK_PER_TRIGGER
        self.state = handle.getValueState("shard", _STATE_COLUMNS)
        # A value is written as a whole; of a list what is added to it is.
        self.packed = handle.getListState("claims", _PACKED_COLUMNS)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ANN401, N802, N803 - Spark's names
        """Take in what a trigger brings."""
        watermark_us = timerValues.getCurrentWatermarkInMs() * 1_000
        kind, stream, start_ms, _ = key
        if kind != CLAIMS_ROW:
            yield from (_OUTPUT_ROW(kind, "", 0, 0, watermark_us, 0, row.payload) for row in rows)
            return
        start_us = start_ms * 1_000
        config = self.rules[stream].at(start_us)
        terms = config.terms
        if _is_over(terms, start_us, watermark_us):
            return
        known = self._known()
        if known is None:
            known = ShardState()
            self._wake_at(start_us + WINDOW_US, terms.final_at_us(start_us), terms.kept_until_us(start_us))
        shard = known.with_claims(b"".join(row.payload for row in rows))
        is_final = watermark_us >= terms.final_at_us(start_us)
        if shard.is_due and (is_final or self._can_afford(key, shard)):
            shard, row = self._tally(key, shard, watermark_us)
            yield row
        elif shard.is_due and not known.is_due:
            self._wake_at(_next_tally_us(stream, config, start_us, watermark_us))
        self._keep(shard)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: ANN401, N802, N803 - Spark's names
        """Wake up: the watermark has passed one of the moments that were asked for."""
        watermark_us = timerValues.getCurrentWatermarkInMs() * 1_000
        _, stream, start_ms, _ = key
        start_us = start_ms * 1_000
        if stream not in self.rules:
            # The configuration has dropped the stream while windows of it were open.
            self._clear()
            return
        shard = self._known() or ShardState()
        config, end_us = self.rules[stream].at(start_us), start_us + WINDOW_US
        terms = config.terms
        ends_now = expiredTimerInfo.getExpiryTimeInMs() == _timer_ms(end_us)
        is_final = watermark_us >= terms.final_at_us(start_us)
        waits = ends_now and shard.is_due and not is_final and not self._can_afford(key, shard)
        if waits:
            # More is on its way: one tally at its next moment is of all of it.
            self._wake_at(_next_tally_us(stream, config, start_us, watermark_us))
        if not waits and (shard.is_due or (ends_now and self._lacks_stamps(shard, end_us))):
            shard, row = self._tally(key, shard, watermark_us)
            self._keep(shard)
            yield row
        else:
            yield _OUTPUT_ROW(TICK_ROW, "", 0, 0, watermark_us, 0, b"")
        if _is_over(terms, start_us, watermark_us):
            self._clear()

    def _lacks_stamps(self, shard: ShardState, end_us: int) -> bool:
        """Return whether the last tally of claims that are not due may be from before the end of their window.

        Times are measured once a window is over. As a rule something of it arrives after its end, and is tallied.
        """
        claims = self._read_claims(shard)
        return bool(claims) and not claim_reader.has_arrivals_since(claims, end_us)

    def _can_afford(self, key: Any, shard: ShardState) -> bool:  # noqa: ANN401
        """Return whether a tally fits into what is left of the trigger, and take it from that if so."""
        _, stream, start_ms, number = key
        config = self.rules[stream].at(start_ms * 1_000)
        work = WORK_PER_TALLY + shard.claimed * (WORK_OF_ORDER if config.order and not number else 1)
        if config.deadlines and work <= self.left_for_deadlines:
            self.left_for_deadlines -= work
            return True
        if work > self.left:
            return False
        self.left -= work
        return True

    def _tally(self, key: Any, shard: ShardState, watermark_us: int) -> tuple[ShardState, Row]:  # noqa: ANN401
        _, stream, start_ms, number = key
        rules, end_us = self.rules[stream].at(start_ms * 1_000), start_ms * 1_000 + WINDOW_US
        tally = claim_reader.tally_claims(rules, self._read_claims(shard), end_us, number, watermark_us)
        sighted_us = tally.last_first_sighting_us
        # In flight is what was sighted late, or waits: the ledger looks again once that has settled, and needs a tick
        # for the last of it. Ticks in between come with the pulse.
        for last_us in {sighted_us, tally.last_wait_us} - {0}:
            self._wake_at(rules.terms.settled_at_us(end_us - WINDOW_US, last_us))
        row = _OUTPUT_ROW(TALLY_ROW, stream, start_ms, number, watermark_us, sighted_us, pack_tally(tally))
        return replace(shard, tallied=shard.claimed), row

    def _known(self) -> ShardState | None:
        kept = self.state.get()
        return ShardState(bytes(kept[0]), *kept[1:]) if kept else None

    def _read_claims(self, shard: ShardState) -> list[Claims]:
        packed = (_codec.decompress(bytes(claims), size, asbytes=True) for claims, size in self.packed.get())
        return [Claims.unpack(parcel) for joined in (*packed, shard.claims) for parcel in split_payloads(joined)]

    def _keep(self, shard: ShardState) -> None:
        claims = shard.claims
        if len(claims) > MAX_CLAIMS_BYTES:
            self.packed.appendValue((_codec.compress(claims, asbytes=True), len(claims)))
            claims = b""
        self.state.update((claims, shard.claimed, shard.tallied))

    def _clear(self) -> None:
        self.state.clear()
        self.packed.clear()

    def _wake_at(self, *moments_us: int) -> None:
        for moment_us in moments_us:
            self.handle.registerTimer(_timer_ms(moment_us))


def _timer_ms(moment_us: int) -> int:
    """Return the time of a timer: they count in ms, and the next whole one is surely not too early."""
    return moment_us // 1_000 + 1


def _next_tally_us(stream: str, config: StreamConfig, start_us: int, watermark_us: int) -> int:
    """Return the next moment to recount at, one for all that comes before it, as timers pile up.

    Each stream has moments of its own, so that no trigger pays for the windows of all streams; two windows that follow
    each other, of which both have news, have theirs half of the time apart.
    """
    wait_us = DEADLINE_TALLY_WAIT_US if config.deadlines else MAX_TALLY_WAIT_US
    phase_us = (crc32(stream.encode()) * wait_us >> 32) + start_us // WINDOW_US % 2 * wait_us // 2
    return watermark_us + wait_us - (watermark_us - phase_us) % wait_us


def _work_of(claims: Claims) -> int:
    """Return what it costs to tally the observations behind claims, in observations."""
    return claims.observations + WORK_PER_BATCH * len(claims.refs) if claims.observations else 0


def _is_over(terms: WindowPolicy, start_us: int, watermark_us: int) -> bool:
    return watermark_us > terms.kept_until_us(start_us)
