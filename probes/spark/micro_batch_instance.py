"""Batches of a micro-batch at one node: those of a probe instance that is named after what it stamped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np

from hopwatch.probes.contract.batch import Batch, Drop, Outcome, WireIdKind
from hopwatch.probes.contract.limits import NOT_STAMPED, WINDOW_US
from hopwatch.probes.event_times import MAX_AHEAD_US
from hopwatch.probes.finished_instance import FinishedInstance, build_end, build_hello, build_observations
from hopwatch.probes.packing import NO_LABELS, NO_TEXT, Columns, concatenate
from hopwatch.probes.spark.evaluations import StampedRows
from hopwatch.probes.tables.message_rows import MessageRows
from hopwatch.probes.tables.snapshot_batches import find_drops
from hopwatch.probes.values import SkipReason

TOO_MANY: Final = "too many rows in a task"
"""Cause of rows for which a task had no room."""


class JobStamp(StrEnum):
    """Stamp of a job: its rows arrive at the node, leave it, or end there on purpose, after they have arrived."""

    IN = "in"
    OUT = "out"
    FILTERED = "filtered"
    REJECTED = "rejected"


class SideStamps(NamedTuple):
    """Messages of a micro-batch that a node stamped in one way."""

    stamp: JobStamp
    found: StampedRows


def build_micro_batch(
    job: FinishedInstance, stamps: Sequence[SideStamps], now_us: int, *, id_text: bool = True
) -> list[Batch]:
    """Build all batches of a micro-batch, which is named as the job is, and by its stamps; none if it has no rows.

    Equal stamps, whenever they were made, are of one instance with equal numbers, and count once; others are of another
    instance, so that none is taken for a copy. The epoch is before all moments at which the messages can have come.
    """
    rows = [each.found.rows for each in stamps]
    if not any(len(each) or each.bad for each in rows) and not any(each.found.unkept for each in stamps):
        return []
    events_us = np.concatenate([each.events_us for each in rows])
    epoch_us = max(0, int(events_us.min()) - MAX_AHEAD_US) if len(events_us) else now_us // WINDOW_US * WINDOW_US
    instance = replace(job, probe=f"{job.probe}.{_digest(stamps)}", epoch_us=epoch_us)
    columns = concatenate(
        [_build_columns(each, _count_texts(rows[:place]), now_us) for place, each in enumerate(stamps)]
    )
    texts = [text for each in rows for text in each.id_texts] if id_text else []
    batches = [build_hello(instance, now_us)]
    batches += build_observations(instance.after(1), columns, texts, now_us)
    return [*batches, *build_end(instance.after(len(batches)), _find_drops(stamps, now_us), now_us)]


def count_windows(batches: Sequence[Batch]) -> Mapping[int, int]:
    """Return the number of observations and drops of each window, by its start in ms since 1970."""
    counts: Counter[int] = Counter()
    for batch in batches:
        if batch.count:
            counts[batch.window_start_ms] += batch.count
        counts.update({drop.window_start_ms: drop.count for drop in batch.drops})
    return counts


def _find_drops(stamps: Sequence[SideStamps], now_us: int) -> list[Drop]:
    drops: list[Drop] = []
    for _, (rows, _, unkept) in stamps:
        span_us = (int(rows.events_us.min()), int(rows.events_us.max())) if len(rows) else None
        bad = rows.bad + Counter({(SkipReason.BAD_TIME, None): unkept[None]})
        drops += find_drops(bad, span_us, now_us)
        drops += [Drop(window, count, TOO_MANY) for window, count in unkept.items() if window is not None]
    return drops


def _build_columns(each: SideStamps, first_text: int, now_us: int) -> Columns:
    """Build the observations of one stamp; messages leave when the micro-batch is done, now.

    Those that end at the node have arrived there before, and carry no moment.
    """
    rows, stamped_us, _ = each.found
    count = len(rows)
    absent = np.full(count, NOT_STAMPED)
    has_text = (rows.id_kinds == WireIdKind.TEXT) & bool(len(rows.id_texts))
    return Columns(
        rows.ids,
        rows.events_us,
        stamped_us if each.stamp is JobStamp.IN else absent,
        np.full(count, now_us) if each.stamp is JobStamp.OUT else absent,
        np.full(count, _OUTCOMES.get(each.stamp, Outcome.PASSED), np.uint8),
        np.full(count, NO_TEXT),
        rows.id_kinds,
        np.where(has_text, np.arange(first_text, first_text + count), NO_TEXT),
        np.zeros(count, np.int64),
        np.full(count, NO_LABELS),
    )


def _count_texts(rows: Sequence[MessageRows]) -> int:
    return sum(len(each.id_texts) for each in rows)


def _digest(stamps: Sequence[SideStamps]) -> str:
    """Return a name of what was stamped, moments left out."""
    digest = blake2b(digest_size=8)
    for stamp, (rows, _, unkept) in stamps:
        missing = sorted(map(repr, [*rows.bad.items(), *unkept.items()]))
        digest.update(f"{stamp} {len(rows)} {missing}".encode())
        for array in (rows.ids, rows.events_us, rows.id_kinds):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


_OUTCOMES: Final = {JobStamp.FILTERED: Outcome.FILTERED, JobStamp.REJECTED: Outcome.REJECTED}
