"""Completeness: whether a consumer may take the messages of a span of event time as all that there will be.

Values in, values out: what a contract asks for, what the monitor has concluded of each minute, and the answer with all
that stands in its way. An answer that says complete stays so unless a window is amended; SEMANTICS.md says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.results import Status, Verdict
from hopwatch.probes.contract.limits import WINDOW_US

HOUR_US: Final = 3_600_000_000


class CompletenessState(StrEnum):
    """Answer to a contract: it holds, it may hold by itself later, or only an amendment can make it hold."""

    COMPLETE = "complete"
    PENDING = "pending"
    FAILED = "failed"


class Obstacle(StrEnum):
    """Reason for which windows keep a contract from being met."""

    NOT_REPORTED = "not_reported"
    """No probe of the stream has reported of this minute or a later one."""
    NOT_JUDGED = "not_judged"
    """The window is not final."""
    IN_FLIGHT = "in_flight"
    """Messages of a final window are in flight: its judgement goes on."""
    UNKNOWN = "unknown"
    """The loss has no upper bound: an account is not told."""
    LOST = "lost"
    """More messages are surely lost than the contract allows."""
    MAYBE_LOST = "maybe_lost"
    """More messages may be lost than the contract allows."""
    NOT_KEPT = "not_kept"
    """The store has no such window: it was pruned, or the stream began later."""


class EarlierNodes(NamedTuple):
    """Nodes of a contract in windows that start before ``until_us``; None where the path then lacked one of its own."""

    until_us: int
    nodes: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class CompletenessContract:
    """Demand of a consumer: a stream up to some nodes, all of it without any, over a span before the moment asked.

    ``lost_below`` bounds the share of messages that are surely lost in the span, ``upper_below`` the share that may be
    lost, the same without one; a share of 0 meets every bound. ``blocks_unknown`` says that a window without an upper
    bound stands in the way, else it counts with its lower bound alone. ``blocks_deferred`` says that messages in flight
    do, else they count as lost. ``earlier`` are the nodes by earlier versions of the path, the oldest first.
    """

    stream: str
    nodes: tuple[str, ...] = ()
    over_us: int = HOUR_US
    lost_below: float = 0.0
    upper_below: float | None = None
    blocks_unknown: bool = True
    blocks_deferred: bool = True
    earlier: tuple[EarlierNodes, ...] = ()

    def split_nodes(self, from_us: int, until_us: int) -> Iterator[EarlierNodes]:
        """Yield the nodes of the contract by version of the path, each with the end of its part of the span."""
        yield from (one for one in self.earlier if from_us < one.until_us < until_us)
        covering = next((one.nodes for one in self.earlier if one.until_us >= until_us), self.nodes)
        yield EarlierNodes(until_us, covering)

    @property
    def upper_bound(self) -> float:
        """The share that may be lost."""
        return self.lost_below if self.upper_below is None else self.upper_below


@dataclass(frozen=True, slots=True)
class JudgedWindow:
    """Window as far as a contract needs it: its stage, and the bounds of the loss up to the nodes of the contract.

    ``upper`` is None where there is none. ``is_settled`` says that the monitor judges the window again only if
    something comes: what is in flight then stays so.
    """

    start_us: int
    status: Status
    verdict: Verdict | None
    revision: int
    known: int
    lower: int
    upper: int | None
    in_flight: int
    is_settled: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockedSpan:
    """Adjacent windows, from the first start to the last end in µs, that one obstacle keeps from being complete.

    It has stood since ``since_us``, as arrivals are timed. ``earliest_us`` is when it can go at the earliest, None
    where that may be at any moment, as with a report that is late; ``amendable_until_us`` is the last arrival that can
    still change one of the windows. ``is_lasting`` says that nothing but an amendment takes it away.
    """

    obstacle: Obstacle
    from_us: int
    to_us: int
    since_us: int
    earliest_us: int | None
    amendable_until_us: int
    is_lasting: bool
    messages: int = 0
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completeness:
    """Answer to a contract for ``[from_us, until_us)``, with the counts that it rests on and what stands in its way.

    ``known``, ``lost_lower``, ``lost_upper`` (None while a window has none) and ``in_flight`` are sums of the final
    windows, ``revisions`` is how often one of the windows was amended. ``earliest_us`` is when the answer can change at
    the earliest, None where that may be at any moment; ``amendable_until_us`` the last arrival of messages that can
    amend one of the windows.
    """

    state: CompletenessState
    from_us: int
    until_us: int
    known: int
    lost_lower: int
    lost_upper: int | None
    in_flight: int
    revisions: int
    earliest_us: int | None
    amendable_until_us: int
    blocked: tuple[BlockedSpan, ...]


@dataclass(frozen=True, slots=True)
class StreamWindows:
    """Windows of a stream as a store has them: the first and the last one's start, None without any; those asked for.

    ``read_through_us`` is the arrival up to which the transport was read.
    """

    first_us: int | None
    last_us: int | None
    read_through_us: int
    windows: Sequence[JudgedWindow]


def bound_loss(
    verdict: Verdict | None, lower: int, upper: int | None, *, counted_lower: int = 0, has_counts: bool = False
) -> tuple[int, int | None]:
    """Return the bounds of a window's loss, end to end or up to some nodes, by all that its verdict says.

    A window that is clean or idle has lost nothing, whatever single nodes leave open. Nodes that only count may show a
    loss that no id has, and leave no upper bound without one of these verdicts.
    """
    if verdict in (Verdict.CLEAN, Verdict.IDLE):
        return 0, 0
    return max(lower, counted_lower), None if has_counts else upper


def decide_completeness(
    contract: CompletenessContract, terms: WindowPolicy, until_us: int, stored: StreamWindows
) -> Completeness:
    """Return whether a contract holds for the span that ends at ``until_us``, a whole minute."""
    from_us = until_us - contract.over_us
    by_start = {one.start_us: one for one in stored.windows}
    found: list[BlockedSpan] = []
    judged: list[JudgedWindow] = []
    for start_us in range(from_us, until_us, WINDOW_US):
        window = by_start.get(start_us)
        obstacle = _find_obstacle(contract, terms, start_us, window, stored)
        if obstacle is not None:
            found.append(obstacle)
        if window is not None and window.status.is_final:
            judged.append(window)
    unbounded = [one for one in judged if one.upper is None]
    waiting = sum(one.in_flight for one in judged)
    lower, known = sum(one.lower for one in judged), sum(one.known for one in judged)
    if not {one.obstacle for one in found} & _UNJUDGED:
        found += _compare_shares(contract, terms, judged, stored.read_through_us)
    blocked = tuple(_join(found))
    state = CompletenessState.PENDING if blocked else CompletenessState.COMPLETE
    if any(one.is_lasting for one in blocked):
        state = CompletenessState.FAILED
    return Completeness(
        state,
        from_us,
        until_us,
        known,
        lower,
        None if unbounded else sum(one.upper or 0 for one in judged),
        waiting,
        sum(one.revision for one in judged),
        _latest([one.earliest_us for one in blocked]),
        terms.amendable_until_us(until_us - WINDOW_US),
        blocked,
    )


_UNJUDGED: Final = frozenset({Obstacle.NOT_REPORTED, Obstacle.NOT_JUDGED, Obstacle.IN_FLIGHT})
"""Obstacles that leave open how many messages there will be: a share of them says nothing yet."""


def _find_obstacle(
    contract: CompletenessContract,
    terms: WindowPolicy,
    start_us: int,
    window: JudgedWindow | None,
    stored: StreamWindows,
) -> BlockedSpan | None:
    """Return what a window itself puts in the way; the share of its losses is compared with the whole span's."""
    end_us, final_us, until_us = (
        start_us + WINDOW_US,
        terms.final_at_us(start_us),
        terms.amendable_until_us(start_us),
    )
    span = start_us, end_us
    is_over = stored.read_through_us > until_us
    # A moment that is past already may be any.
    earliest_us = final_us if final_us > stored.read_through_us else None
    if window is None:
        if stored.last_us is None or start_us > stored.last_us:
            return BlockedSpan(Obstacle.NOT_REPORTED, *span, end_us, earliest_us, until_us, is_lasting=False)
        return BlockedSpan(Obstacle.NOT_KEPT, *span, end_us, None, until_us, is_lasting=True)
    if not window.status.is_final:
        return BlockedSpan(Obstacle.NOT_JUDGED, *span, end_us, earliest_us, until_us, is_lasting=False)
    if window.in_flight and contract.blocks_deferred:
        lasting = window.is_settled and is_over
        return BlockedSpan(
            Obstacle.IN_FLIGHT, *span, final_us, None, until_us, lasting, window.in_flight, window.reasons
        )
    if window.upper is None and contract.blocks_unknown:
        return BlockedSpan(Obstacle.UNKNOWN, *span, final_us, None, until_us, is_over, 0, window.reasons)
    return None


def _compare_shares(
    contract: CompletenessContract, terms: WindowPolicy, judged: Sequence[JudgedWindow], read_through_us: int
) -> Iterator[BlockedSpan]:
    """Yield the windows that lost more than the contract allows over the whole span, one after another."""
    known, lower = sum(one.known for one in judged), sum(one.lower for one in judged)
    if not _is_below(lower, known, contract.lost_below):
        for one in judged:
            if one.lower:
                yield _blame(Obstacle.LOST, one, terms, one.lower, is_lasting=True)
        return
    # What is in flight here does not block, and may be lost still.
    waiting = sum(one.in_flight for one in judged)
    bounded = [(one, one.upper + one.in_flight) for one in judged if one.upper is not None]
    of_bounded = sum(one.known for one, _ in bounded)
    is_kept = _is_below(lower + waiting, known, contract.lost_below)
    if not is_kept or not _is_below(sum(lost for _, lost in bounded), of_bounded, contract.upper_bound):
        blamed = [(one, (one.lower if one.upper is None else one.upper) + one.in_flight) for one in judged]
        is_over = all(read_through_us > terms.amendable_until_us(one.start_us) for one, lost in blamed if lost)
        for one, lost in blamed:
            if lost:
                yield _blame(Obstacle.MAYBE_LOST, one, terms, lost, is_lasting=is_over)


def _is_below(lost: int, known: int, bound: float) -> bool:
    """Return whether a share is below a bound; none lost is, and of nothing known one that may be lost is not."""
    return lost == 0 or (known > 0 and lost < bound * known)


def _blame(
    obstacle: Obstacle, window: JudgedWindow, terms: WindowPolicy, messages: int, *, is_lasting: bool
) -> BlockedSpan:
    span = window.start_us, window.start_us + WINDOW_US
    since_us, until_us = terms.final_at_us(window.start_us), terms.amendable_until_us(window.start_us)
    return BlockedSpan(obstacle, *span, since_us, None, until_us, is_lasting, messages, window.reasons)


def _join(found: Iterable[BlockedSpan]) -> Iterator[BlockedSpan]:
    """Join adjacent windows with the same obstacle: of an outage the answer has one line, not one a minute."""
    last: BlockedSpan | None = None
    for one in found:
        if last is None or not _is_next(last, one):
            if last is not None:
                yield last
            last = one
            continue
        last = BlockedSpan(
            one.obstacle,
            last.from_us,
            one.to_us,
            last.since_us,
            _latest([last.earliest_us, one.earliest_us]),
            one.amendable_until_us,
            one.is_lasting,
            last.messages + one.messages,
            tuple(dict.fromkeys((*last.reasons, *one.reasons))),
        )
    if last is not None:
        yield last


def _is_next(last: BlockedSpan, one: BlockedSpan) -> bool:
    return (last.obstacle, last.to_us, last.is_lasting) == (one.obstacle, one.from_us, one.is_lasting)


def _latest(moments_us: Iterable[int | None]) -> int | None:
    """Return the latest of moments that all have to come; None if none of them is known."""
    return max((one for one in moments_us if one is not None), default=None)
