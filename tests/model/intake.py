"""Checks of a batch before it counts in a window: duplicate, implausible, too late, or in its window."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.model.pathway import Pathway, parse
from tests.model.wire import Received, SetAside, Spool

MINUTE_US = 60_000_000
AHEAD_US = 5 * MINUTE_US
DAY_US = 24 * 60 * MINUTE_US
PULSE = "_hopwatch"
_UNITS_US = {"ms": 1000, "s": 1_000_000, "m": MINUTE_US, "h": 60 * MINUTE_US, "d": 24 * 60 * MINUTE_US}


def duration_us(text: str) -> int:
    """Read "150s", "1h" and the like."""
    number, unit = re.fullmatch(r"(\d+)(ms|s|m|h|d)", text).groups()  # type: ignore[union-attr]
    return int(number) * _UNITS_US[unit]


@dataclass(frozen=True, slots=True)
class Stream:
    """One `[streams.X]` table."""

    pathway: Pathway
    transit_us: int
    settle_us: int
    amend_for_us: int
    max_age_us: int
    order: bool = False
    deadlines_us: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> "Stream":
        """Read the table; what is not in it has the default of the page."""
        pathway, deadline = parse(table["path"], table.get("stamps", {})), table.get("deadline", {})
        named = deadline if isinstance(deadline, Mapping) else dict.fromkeys(pathway.nodes, deadline)
        return cls(
            pathway=pathway,
            transit_us=duration_us(table.get("transit", "150s")),
            settle_us=duration_us(table.get("settle", "30s")),
            amend_for_us=duration_us(table.get("amend_for", "1h")),
            max_age_us=duration_us(table.get("max_age", "24h")),
            order=table.get("order", False),
            deadlines_us={node: duration_us(span) for node, span in named.items()},
        )

    def implausible(self, one: Received) -> bool:
        """Its window starts more than 5 min after its arrival, or ended more than `max_age` before."""
        start_us = one.window_us
        return start_us > one.arrival_us + AHEAD_US or start_us + MINUTE_US < one.arrival_us - self.max_age_us

    def too_late(self, one: Received) -> bool:
        """Return whether it came when its window could no longer be amended."""
        return one.arrival_us > one.window_us + MINUTE_US + self.transit_us + self.settle_us + self.amend_for_us


def is_near(one: Received) -> bool:
    """Return whether its window starts less than a day after its arrival; others are set aside without a window."""
    return one.window_us < one.arrival_us + DAY_US


@dataclass(frozen=True, slots=True)
class Intake:
    """All that was received, each batch in one place and one place only."""

    known: tuple[Received, ...]
    """Of a stream and node of the configuration, or of the monitor's pulse."""
    first: tuple[Received, ...]
    """The known less the duplicates."""
    in_windows: tuple[Received, ...]
    too_late: tuple[Received, ...]
    implausible: tuple[Received, ...]
    set_aside: Counter[str]
    undeclared: tuple[Received, ...]
    """Of a stream of the configuration, but not of its nodes; duplicates set aside."""
    unread: tuple[SetAside, ...]
    others: frozenset[str]
    """The folders with records of streams that are not of the configuration."""
    folders: tuple[tuple[str, int], ...]

    def accounts(self) -> dict[str, Any]:
        """Give the accounts of INTERFACE.md."""
        return {
            "records": len(self.known) + self.set_aside.total(),
            "batches": len(self.known),
            "duplicate_batches": len(self.known) - len(self.first),
            "observations": _observations(self.known),
            "too_late": _observations(self.too_late),
            "implausible": _observations(self.implausible),
            "set_aside": dict(self.set_aside),
        }


def _observations(batches: Iterable[Received]) -> int:
    return sum(len(one.batch.observations) for one in batches)


def take_in(spool: Spool, streams: Mapping[str, Stream]) -> Intake:
    """Sort what the spool holds; `streams` has the pulse's too."""
    set_aside = Counter(one.reason for one in spool.set_aside)
    known, undeclared, others = [], [], set()
    unread = list(spool.set_aside)
    for one in spool.received:
        if (unknown := _unknown(one, streams)) is None:
            known.append(one)
        else:
            set_aside[unknown] += 1
            undeclared += [one] * (unknown == "unknown_node")
            others |= {one.folder} if unknown == "unknown_stream" else set()
            unread += [SetAside(unknown, one.arrival_us, one.place)] * (unknown == "unsupported")
    first = _first_of_each(known)
    plausible = [one for one in first if not streams[one.batch.stream].implausible(one)]
    return Intake(
        known=tuple(known),
        first=tuple(first),
        in_windows=tuple(one for one in plausible if not streams[one.batch.stream].too_late(one)),
        too_late=tuple(one for one in plausible if streams[one.batch.stream].too_late(one)),
        implausible=tuple(one for one in first if streams[one.batch.stream].implausible(one)),
        set_aside=set_aside,
        undeclared=tuple(_first_of_each(undeclared)),
        unread=tuple(unread),
        others=frozenset(others),
        folders=spool.folders,
    )


def _unknown(one: Received, streams: Mapping[str, Stream]) -> str | None:
    if one.batch.stream == PULSE:
        return None
    if one.batch.stream not in streams:
        return "unknown_stream"
    pathway = streams[one.batch.stream].pathway
    if one.batch.node not in pathway.declared:
        return "unknown_node"
    speaks_of = "OBSERVATIONS" if one.batch.node in pathway.nodes else "METRICS"
    return "unsupported" if one.batch.is_of_window and one.batch.kind != speaks_of else None


def _first_of_each(known: Iterable[Received]) -> list[Received]:
    """Keep of the batches of one instance with one number the first that arrived; ties by path, then position."""
    kept: dict[tuple[str, str, str, int, int], Received] = {}
    for one in sorted(known, key=lambda one: (one.arrival_us, one.place)):
        batch = one.batch
        kept.setdefault((batch.stream, batch.node, batch.probe, batch.epoch_us, batch.seq), one)
    return list(kept.values())
