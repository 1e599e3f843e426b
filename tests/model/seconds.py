"""Messages of a node by the second of their event time, and bursts of loss, second by second as SEMANTICS.md says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import exp, log
from typing import Any

from tests.model.record import Observation

Ids = frozenset[bytes]
SECONDS = range(60)
RUNS = [(start, end) for start in SECONDS for end in range(start + 1, 61)]


def find_seconds(observed: Iterable[tuple[str, Observation]]) -> dict[bytes, int]:
    """Give the second of each message of a window: the earliest that is told, and nothing where none is."""
    found: dict[bytes, int] = {}
    for _, seen in observed:
        if seen.tells_event_time:
            second = seen.event_offset_us // 1_000_000
            found[seen.message_id] = min(second, found.get(seen.message_id, second))
    return found


def count_by_second(second_of: dict[bytes, int], messages: Ids, lost: Ids) -> dict[str, tuple[int, ...]] | None:
    """Give the messages of a node, and those that it misses, by second; none where it misses none that is known."""
    if not any(one in second_of for one in lost):
        return None
    return {
        name: tuple(sum(second_of.get(one) == second for one in ids) for second in SECONDS)
        for name, ids in (("messages", messages), ("lost", lost))
    }


def find_bursts(counts: dict[str, tuple[int, ...]] | None) -> list[dict[str, Any]]:
    """Give the bursts of a node, at most three."""
    found: list[tuple[int, int]] = []
    while counts is not None and len(found) < 3:
        free = [second for second in SECONDS if not any(start <= second < end for start, end in found)]
        runs = [run for run in RUNS if all(second in free for second in range(*run))]
        rated = [(-_ratio(counts, run, free), run[1] - run[0], run) for run in runs]
        ratio, _, run = min(rated, default=(0.0, 0, (0, 0)))
        if len(RUNS) * exp(ratio / 2) >= 0.001:
            break
        found.append(run)
    return [] if counts is None else [_burst(counts, *run) for run in found]


def _ratio(counts: dict[str, tuple[int, ...]], run: tuple[int, int], free: Sequence[int]) -> float:
    lost, all_lost = _sums(counts["lost"], run, free)
    messages, all_messages = _sums(counts["messages"], run, free)
    if not all_lost or Fraction(lost, all_lost) <= Fraction(messages, all_messages):
        return 0.0
    share, expected = lost / all_lost, messages / all_messages
    ratio = share * log(share / expected)
    if share < 1:
        ratio += (1 - share) * log((1 - share) / (1 - expected))
    return 2 * all_lost * ratio


def _sums(counts: Sequence[int], run: tuple[int, int], free: Sequence[int]) -> tuple[int, int]:
    return sum(counts[slice(*run)]), sum(counts[second] for second in free)


def _burst(counts: dict[str, tuple[int, ...]], start_s: int, end_s: int) -> dict[str, Any]:
    told = {"start_s": start_s, "end_s": end_s}
    for name in ("lost", "messages"):
        inside = sum(counts[name][start_s:end_s])
        told |= {name: inside, f"other_{name}": sum(counts[name]) - inside}
    return told
