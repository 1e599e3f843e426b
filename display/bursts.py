"""Bursts of loss in words: from when to when messages are missing, how many, and what was marked shortly before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from typing import Final

from hopwatch.display import texts
from hopwatch.display.markers import BEFORE_US
from hopwatch.monitor.kernel.seconds import SECOND_US
from hopwatch.monitor.markers import Marker
from hopwatch.monitor.results import LossBurst

BEHIND_US: Final = 60_000_000
"""Time behind a burst whose markers are named with it: a process that died begins again."""


def describe_bursts(
    node: str, start_us: int, bursts: Sequence[LossBurst], markers: Sequence[Marker] = (), zone: tzinfo = UTC
) -> list[str]:
    """Return a sentence for each burst of what is missing at a node in the window that starts at ``start_us``.

    Of the markers that are given it names the latest one from shortly before the burst, and the first one in it or
    shortly after.
    """
    sentences = []
    for one in bursts:
        inside, outside = (
            texts.format_percent(*counts) for counts in ((one.lost, one.messages), (one.other_lost, one.other_messages))
        )
        told = (
            f"burst at {node} from {_format_span(start_us, one, zone)}: {_describe_share(one)} missing",
            f"of its messages {inside} are missing, of all others of the minute {outside}",
            *_describe_markers(markers, *(start_us + second * SECOND_US for second in (one.start_s, one.end_s))),
        )
        sentences.append("; ".join(told))
    return sentences


def summarize_bursts(start_us: int, bursts: Sequence[LossBurst]) -> str:
    """Return the likeliest burst at a node in a few words, for an alert; empty if there is none."""
    if not bursts:
        return ""
    return f"{_describe_share(bursts[0])} missing have event times from {_format_span(start_us, bursts[0], UTC)}"


def _describe_share(burst: LossBurst) -> str:
    return texts.format_share(burst.lost, burst.lost + burst.other_lost)


def _format_span(start_us: int, burst: LossBurst, zone: tzinfo) -> str:
    ends = (start_us + second * SECOND_US for second in (burst.start_s, burst.end_s))
    return " to ".join(texts.format_moment(at_us, zone, texts.CLOCK) for at_us in ends)


def _describe_markers(markers: Sequence[Marker], start_us: int, end_us: int) -> Iterator[str]:
    before = [one for one in markers if start_us - BEFORE_US <= one.at_us <= start_us]
    if before:
        last = max(before, key=lambda one: (one.at_us, one.number))
        yield f"it begins {texts.format_age(start_us - last.at_us)} after {last.describe()}"
    behind = [one for one in markers if start_us < one.at_us <= end_us + BEHIND_US]
    if behind:
        first = min(behind, key=lambda one: (one.at_us, one.number))
        yield f"{texts.format_age(first.at_us - start_us)} after its start came {first.describe()}"
