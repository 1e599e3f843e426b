"""The demo on paper: real steps on a clock moved by hand, and a plain model of what an honest monitor reports.

The model is written from SEMANTICS.md, one window and node after the other, and knows nothing of ``demo.compare``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from hopwatch.demo.entrance.outlets import build_spool_outlets
from hopwatch.demo.faults import Dice, Faults
from hopwatch.demo.layout import Layout, create_layout
from hopwatch.demo.measurements import Measurements
from hopwatch.demo.nodes.step import Labels, NodeStep
from hopwatch.demo.records import FlightMessage
from hopwatch.demo.stream import STREAM
from hopwatch.demo.truth import Truth, TruthLog

NOON_US = 1_700_000_040_000_000
"""A whole minute."""
MINUTE_US = 60_000_000
FLUSH_US = 2_000_000
HOP_US = 1_000
"""How long a message takes from one node to the next."""


class Stamp(NamedTuple):
    """Call that a probe got for one message."""

    message_id: bytes
    window_us: int
    kind: str
    lag_us: int


class PaperClock:
    """One moment for everybody, moved by hand."""

    def __init__(self) -> None:
        """Start at noon."""
        self.us = NOON_US

    def now_us(self) -> int:
        """Return the moment."""
        return self.us

    def monotonic_s(self) -> float:
        """Return the moment in seconds."""
        return self.us / 1e6


class PaperProbe:
    """Remembers all that it is told, by a clock that may be wrong."""

    def __init__(self, clock: PaperClock, skew_s: float) -> None:
        """Take the right clock and by how much this probe's is ahead of it."""
        self._clock = clock
        self._skew_us = round(skew_s * 1e6)
        self.stamps: list[Stamp] = []
        self.labels: list[Labels] = []

    def arrived(self, message_id: bytes, event_time: int, *, labels: Labels = None) -> None:
        """Remember a stamp in."""
        self.labels.append(labels)
        self._remember("in", message_id, event_time)

    def departed(self, message_id: bytes, event_time: int, *, labels: Labels = None) -> None:
        """Remember a stamp out."""
        self.labels.append(labels)
        self._remember("out", message_id, event_time)

    def filtered(self, message_id: bytes, event_time: int, reason: str, *, labels: Labels = None) -> None:
        """Remember a message that was stopped on purpose."""
        assert reason
        self.labels.append(labels)
        self._remember("in", message_id, event_time)
        self._remember("filtered", message_id, event_time)

    def rejected(self, message_id: bytes, event_time: int, reason: str, *, labels: Labels = None) -> None:
        """Remember a message that was refused."""
        assert reason
        self.labels.append(labels)
        self._remember("in", message_id, event_time)
        self._remember("rejected", message_id, event_time)

    def _remember(self, kind: str, message_id: bytes, event_time: int) -> None:
        lag_us = self._clock.us + self._skew_us - event_time
        self.stamps.append(Stamp(message_id, event_time - event_time % MINUTE_US, kind, lag_us))


class PaperHop:
    """Hands a message on by a call; it has left at once."""

    def __init__(self, take: Callable[[FlightMessage], None]) -> None:
        """Take the call."""
        self._take = take

    def hand_on(self, message: FlightMessage, then: Callable[[], None]) -> None:
        """Make the call."""
        self._take(message)
        then()

    def settle(self) -> None:
        """Do nothing: all has left."""

    def close(self) -> None:
        """Do nothing."""


class PaperDemo:
    """All nodes in a row, and after ``send`` everything that is to be known about them."""

    def __init__(self, folder: Path, faults: Faults, *, has_gate: bool = False) -> None:
        """Lay out the run's files in ``folder``."""
        self.layout: Layout = create_layout(folder, gate=build_spool_outlets(folder) if has_gate else None)
        self.nodes = self.layout.nodes
        self.faults = faults
        self.delivered: list[bytes] = []
        self._clock = PaperClock()
        self.probes = {node: PaperProbe(self._clock, faults.select_node(node).skew_s) for node in self.nodes}

    def send(self, numbers: Iterable[int], every_us: int = 1_000_000) -> None:
        """Create messages and see them through."""
        with ExitStack() as stack:
            steps = self._steps(stack)
            for number in numbers:
                event_time_us = NOON_US + number * every_us
                self._pass_time(steps.values(), event_time_us)
                steps[self.nodes[0]].create(FlightMessage(message_id(number), number, event_time_us, {}))
            self._pass_time(steps.values(), None)

    def truth(self) -> Truth:
        """Return what the nodes wrote down."""
        return Truth(self.layout.truth_logs())

    def measured(self, change: Callable[[dict[str, Any]], None] = lambda _: None) -> Measurements:
        """Return what an honest monitor says, and after ``change`` a dishonest one."""
        report, lost = honest_report(self.probes)
        change(report)
        return Measurements(report, lambda node: lost[node], self.nodes)

    def _steps(self, stack: ExitStack) -> dict[str, NodeStep]:
        steps: dict[str, NodeStep] = {}
        hop = PaperHop(self._deliver)
        for node in reversed(self.nodes):
            own = self.faults.select_node(node)
            steps[node] = NodeStep(
                probe=self.probes[node],
                truth=stack.enter_context(closing(TruthLog(self.layout.truth_log(node)))),
                dice=Dice(self.faults.seed, node, own),
                delay_s=own.delay_s,
                work=dict,
                hop=hop,
                monotonic_s=self._clock.monotonic_s,
                now_us=self._clock.now_us,
            )
            hop = PaperHop(self._hop(steps[node]))
        return steps

    def _deliver(self, message: FlightMessage) -> None:
        self.delivered.append(message.id)

    def _hop(self, step: NodeStep) -> Callable[[FlightMessage], None]:
        def take(message: FlightMessage) -> None:
            self._clock.us += HOP_US
            step.receive_message(message)

        return take

    def _pass_time(self, steps: Collection[NodeStep], until_us: int | None) -> None:
        """Move the clock on from one release to the next, up to a moment, or until nothing is held any more."""
        while waiting := [step for step in steps if step.wait_s is not None]:
            first = min(waiting, key=lambda step: step.wait_s or 0.0)
            # The clock counts whole µs: round up, or it never gets there.
            due_us = self._clock.us + round((first.wait_s or 0.0) * 1e6) + 1
            if until_us is not None and due_us > until_us:
                break
            self._clock.us = due_us
            first.release()
        self._clock.us = max(self._clock.us, until_us or 0)


def message_id(number: int) -> bytes:
    """Return the id of a message on paper; it ends in zeros, as ids may."""
    return (number + 1).to_bytes(8, "big") + bytes(8)


def honest_report(probes: dict[str, PaperProbe]) -> tuple[dict[str, Any], dict[str, set[bytes]]]:
    """Return the report of complete books over these stamps, and the lost ids of each node."""
    starts = sorted({stamp.window_us for probe in probes.values() for stamp in probe.stamps})
    lost: dict[str, set[bytes]] = defaultdict(set)
    windows = [_window(start, probes, lost) for start in starts]
    accounts = {"too_late": 0, "implausible": 0, "set_aside": {}}
    return {"streams": [{"stream": STREAM, "windows": windows}], "accounts": accounts}, lost


def _window(start_us: int, probes: dict[str, PaperProbe], lost: dict[str, set[bytes]]) -> dict[str, Any]:
    stamps = {node: [s for s in probe.stamps if s.window_us == start_us] for node, probe in probes.items()}
    known = set().union(*({s.message_id for s in of_node} for of_node in stamps.values()))
    delivered = _ids(stamps[[*stamps][-1]], "out")
    rejected = set().union(*(_ids(of_node, "rejected") for of_node in stamps.values())) - delivered
    filtered = set().union(*(_ids(of_node, "filtered") for of_node in stamps.values())) - delivered - rejected
    count = len(known - delivered - filtered - rejected)
    nodes = [_node(node, stamps, lost) for node in stamps]
    return {
        "window_start": datetime.fromtimestamp(start_us / 1e6, UTC).isoformat().replace("+00:00", "Z"),
        "status": "FINAL",
        "verdict": "LOSSY" if count else "CLEAN",
        "known": len(known),
        "delivered": len(delivered),
        "filtered": len(filtered),
        "rejected": len(rejected),
        "lost": count,
        "lost_lower": count,
        "lost_upper": count,
        "in_flight": 0,
        "lag_us": _quantiles(stamps[[*stamps][-1]], "out"),
        "nodes": nodes,
    }


def _node(node: str, stamps: dict[str, list[Stamp]], lost: dict[str, set[bytes]]) -> dict[str, Any]:
    nodes = [*stamps]
    place = nodes.index(node)
    seen, arrived, departed = (
        {s.message_id for s in stamps[node]},
        _ids(stamps[node], "in"),
        _ids(stamps[node], "out"),
    )
    after = set().union(*({s.message_id for s in stamps[later]} for later in nodes[place + 1 :]))
    stopped = _ids(stamps[node], "filtered") | _ids(stamps[node], "rejected")
    expected = _ids(stamps[nodes[place - 1]], "out") if place else seen
    missing = (expected - seen - after) | (arrived - departed - stopped - after)
    lost[node] |= missing
    count = Counter(s.kind for s in stamps[node])
    lags_us = {kind: _quantiles(stamps[node], kind) for kind in ("in", "out")}
    return {
        "node": node,
        "arrived": len(arrived),
        "filtered": len(_ids(stamps[node], "filtered")),
        "rejected": len(_ids(stamps[node], "rejected")),
        "loss": len(missing),
        "loss_lower": len(missing),
        "loss_upper": len(missing),
        "dropped": 0,
        "duplicates_in": count["in"] - len(arrived),
        "duplicates_out": count["out"] - len(departed),
        "lag_negative": sum(s.lag_us < 0 for s in stamps[node] if s.kind in ("in", "out")),
        "lag_in_us": lags_us["in"],
        "lag_out_us": lags_us["out"],
        "inside_us": _inside(stamps[node]),
    }


def _ids(stamps: list[Stamp], kind: str) -> set[bytes]:
    return {s.message_id for s in stamps if s.kind == kind}


def _inside(stamps: list[Stamp]) -> dict[str, int] | None:
    """Return the time inside a node of what a probe would join: both stamps within a flush."""
    by_id: dict[bytes, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for s in stamps:
        by_id[s.message_id][s.kind].append(s.lag_us)
    pairs = [pair for of_id in by_id.values() for pair in zip(of_id["in"], of_id["out"], strict=False)]
    return _percentiles([left - came for came, left in pairs if left - came < FLUSH_US])


def _quantiles(stamps: list[Stamp], kind: str) -> dict[str, int] | None:
    return _percentiles([s.lag_us for s in stamps if s.kind == kind])


def _percentiles(values_us: list[int]) -> dict[str, int] | None:
    ordered = sorted(values_us)
    return {f"p{p}": ordered[(len(ordered) - 1) * p // 100] for p in (50, 95, 99)} if ordered else None
