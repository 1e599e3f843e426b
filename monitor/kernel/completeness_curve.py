"""Timeliness against accuracy: what windows would have lacked, had they been judged after a shorter or longer wait.

It is known from the digests of lags when messages came to a node, counted from their event times. A message may have
its event time anywhere in its minute, so that a lag says within a minute how long behind the window's end it came: what
is told are bounds. What never came has no lag, and is in no figure here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.tdigest import Digest
from hopwatch.probes.contract.limits import WINDOW_US

WAITS_US: Final = tuple(seconds * 1_000_000 for seconds in (5, 10, 30, 60, 150, 600))
"""Waits that a curve has points at, µs behind the end of a window."""
SECOND_US: Final = 1_000_000


class NodeArrivals(NamedTuple):
    """Arrivals at a node in a window: how many, one at least, their smallest and largest lag, µs, and all of them.

    The digest may be left out where no lag is over the shortest wait.
    """

    node: str
    start_us: int
    messages: int
    min_us: int
    max_us: int
    lags: Digest | None = None


class WaitPoint(NamedTuple):
    """Gaps of windows that are judged ``wait_us`` behind their ends.

    Of ``windows_lower`` to ``windows_upper`` windows a message came later; of all arrivals ``late_lower`` to
    ``late_upper`` did, as estimated from digests. ``worst_share`` is the largest share of the arrivals of one node in
    one window that may have been later.
    """

    wait_us: int
    windows_lower: int
    windows_upper: int
    late_lower: int
    late_upper: int
    worst_share: float


class WaitCurve(NamedTuple):
    """Points of a node, or of all nodes of a stream together, over its windows; ``latest_us`` is the largest lag."""

    windows: int
    arrivals: int
    latest_us: int
    points: tuple[WaitPoint, ...]


class StreamCurve(NamedTuple):
    """WaitCurve of a stream and of each of its nodes; ``passing_us`` is, of each window, how long its messages took.

    That is from the first node to the last, at most: the largest lag of the window without the smallest.
    """

    whole: WaitCurve
    nodes: Mapping[str, WaitCurve]
    passing_us: tuple[int, ...]


class PolicyProposal(NamedTuple):
    """Proposal for ``transit`` and ``settle``, µs, by the windows that were observed.

    With it messages of ``slow_windows`` of the windows would have taken longer than transit, so that they would have
    counted as lost until they came; ``amended_windows`` would have been amended.
    """

    transit_us: int
    settle_us: int
    windows: int
    slow_windows: int
    amended_windows: int


def build_curve(arrivals: Iterable[NodeArrivals], waits_us: Sequence[int] = WAITS_US) -> StreamCurve:
    """Return the curve of a stream from the arrivals at its nodes, in any order.

    Args:
        arrivals: one for each node and window at which a message came.
        waits_us: waits behind the end of a window, µs, none below 0.
    """
    whole, nodes = _Sums(waits_us), dict[str, _Sums]()
    spans: dict[int, tuple[int, int]] = {}
    for one in arrivals:
        late = [(count_late(one, wait_us + WINDOW_US), count_late(one, wait_us)) for wait_us in waits_us]
        for sums in (whole, nodes.setdefault(one.node, _Sums(waits_us))):
            sums.add(one, late)
        low, high = spans.get(one.start_us, (one.min_us, one.max_us))
        spans[one.start_us] = min(low, one.min_us), max(high, one.max_us)
    passing = tuple(high - low for low, high in spans.values())
    return StreamCurve(whole.build(), {node: sums.build() for node, sums in nodes.items()}, passing)


def count_late(arrivals: NodeArrivals, lag_us: int) -> int:
    """Return how many arrivals have a lag over one: exact where all or none have, else an estimate, 1 at least."""
    if arrivals.max_us <= lag_us:
        return 0
    if arrivals.min_us > lag_us or arrivals.lags is None:
        return arrivals.messages
    late = round(arrivals.messages * (1 - tdigest.cdf(arrivals.lags, lag_us)))
    return min(max(late, 1), arrivals.messages - 1)


def propose_policy(
    passing_us: Sequence[int], amended_after_us: Sequence[int], settle_us: int, risk: float
) -> PolicyProposal:
    """Propose the shortest transit by which at most a share of the windows would have had messages that took longer.

    Settle is proposed to be longer only if windows were amended later than that: nothing that is stored shows how much
    shorter it could be.

    Args:
        passing_us: how long the messages of each window took at most, one window at least.
        amended_after_us: how long behind its end each amended window was amended last.
        settle_us: settle as it is.
        risk: the share of windows, from 0 to below 1.
    """
    allowed = math.floor(risk * len(passing_us))
    slowest = sorted(passing_us, reverse=True)
    transit_us = round_up_us(slowest[allowed])
    late = sorted(amended_after_us, reverse=True)
    needed_us = late[allowed] - transit_us if len(late) > allowed else 0
    settled_us = max(settle_us, round_up_us(needed_us))
    return PolicyProposal(
        transit_us,
        settled_us,
        len(slowest),
        sum(one > transit_us for one in slowest),
        sum(one > transit_us + settled_us for one in late),
    )


def round_up_us(span_us: int) -> int:
    """Return the next span of whole seconds with two digits that is not shorter, a second at least."""
    seconds = max(1, -(-span_us // SECOND_US))
    step = int(10 ** max(0, len(str(seconds)) - 2))
    return -(-seconds // step) * step * SECOND_US


class _Sums:
    """Sums of a curve over windows."""

    def __init__(self, waits_us: Sequence[int]) -> None:
        self._waits_us = waits_us
        self._starts = set[int]()
        self._arrivals = self._latest_us = 0
        self._windows = defaultdict[int, tuple[set[int], set[int]]](lambda: (set(), set()))
        self._late = [[0, 0] for _ in waits_us]
        self._worst = [0.0] * len(waits_us)

    def add(self, one: NodeArrivals, late: Sequence[tuple[int, int]]) -> None:
        """Add the arrivals at a node in a window: at least and at most so many later than each wait."""
        self._latest_us = max(self._latest_us, one.max_us) if self._starts else one.max_us
        self._starts.add(one.start_us)
        self._arrivals += one.messages
        for place, bounds in enumerate(late):
            for side, number in enumerate(bounds):
                self._late[place][side] += number
                if number:
                    self._windows[place][side].add(one.start_us)
            self._worst[place] = max(self._worst[place], bounds[1] / one.messages)

    def build(self) -> WaitCurve:
        """Return the curve."""
        return WaitCurve(len(self._starts), self._arrivals, self._latest_us, tuple(self._build_points()))

    def _build_points(self) -> Iterator[WaitPoint]:
        for place, wait_us in enumerate(self._waits_us):
            lower, upper = self._windows[place]
            least, most = self._late[place]
            yield WaitPoint(wait_us, len(lower), len(upper), least, most, self._worst[place])
