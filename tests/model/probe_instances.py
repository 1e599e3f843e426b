"""Probe instances: what they stamp, and what they therefore put on the wire, flush by flush."""

import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from tests.model.counts import fingerprint
from tests.model.lag_histogram import histogram, write
from tests.model.message_names import Naming
from tests.model.random_choices import MINUTE_US, SECOND_US, Dice, Fault
from tests.model.record import DEFERRED, FILTERED, NO_REASON, NOT_STAMPED, PASSED, REJECTED, Body

MISNAMED = "misnamed"
"""A node that no configuration declares: its records are set aside, however good they are."""
_STAMPS = {FILTERED: "FILTERED", REJECTED: "REJECTED", DEFERRED: "DEFERRED"}
HEARTBEAT_US = 10 * SECOND_US
_HOUR_US = 3600 * SECOND_US
_AGES_US = 70 * 365 * 24 * _HOUR_US


@dataclass(frozen=True, slots=True)
class Stamped:
    """A message as a probe saw it, by true clocks; recorded at the later of its stamps."""

    at_us: int
    message_id: bytes
    event_us: int
    came_us: int | None
    left_us: int | None
    outcome: int = PASSED
    reason: str = ""
    until_us: int = 0
    """Until when a deferred message waits."""


@dataclass(slots=True)
class Life:
    """One probe instance from start to stop, in true time."""

    stream: str
    node: str
    probe: str
    start_us: int
    stop_us: int
    says_bye: bool
    skew_us: int
    flushes_us: list[int]
    announces: bool = True
    """Whether it says hello."""
    errs: Fault | None = None
    """Whether it calls messages otherwise than the others, or gives them other times."""
    counts: bool = False
    """Whether it sends packets, and no ids."""
    crosses: bool = False
    """Whether its node is declared to do the other, so that it is set aside."""
    home: str = ""
    """The node that it is at, whatever it calls it."""
    stamped: list[Stamped] = field(default_factory=list)

    def stamp(self, stamped: Stamped, *, apart: bool) -> None:
        """Record it; the two stamps are told apart when asked, or when a flush lies between them."""
        if self.errs is Fault.RETYPED:
            stamped = replace(stamped, message_id=blake2b(stamped.message_id, digest_size=16).digest())
        if self.errs is Fault.MISTIMED:
            stamped = replace(stamped, event_us=stamped.event_us // 1000)
        came_us, left_us = stamped.came_us, stamped.left_us
        if (
            came_us is not None
            and left_us is not None
            and (apart or self._flush_of(came_us) != self._flush_of(left_us))
        ):
            one = (stamped.message_id, stamped.event_us)
            self.stamped.append(Stamped(came_us, *one, came_us, None, stamped.outcome, stamped.reason))
            self.stamped.append(Stamped(left_us, *one, None, left_us, stamped.outcome, stamped.reason))
        else:
            self.stamped.append(stamped)

    def _flush_of(self, moment_us: int) -> int:
        return sum(flush_us < moment_us for flush_us in self.flushes_us)


@dataclass(slots=True)
class Sent:
    """A body of a batch and the true moment it was sent at."""

    at_us: int
    body: Body


def lives(dice: Dice, stream: str, node: str, start_us: int, stop_us: int) -> list[Life]:
    """Give the instances that stamp a node between the two moments: replicas, and one after the other."""
    found: list[Life] = []
    for replica in range(dice.one((1, 1, 1, 2, 3))):
        begin_us = dice.moment(start_us - 2 * MINUTE_US, start_us)
        while begin_us < stop_us:
            end_us = dice.moment(begin_us, stop_us) if dice.hit(Fault.RESTARTS, 0.6) else stop_us
            dies = dice.hit(Fault.DEAD, 0.15)
            end_us = dice.moment(begin_us, end_us) if dies else end_us
            found.append(
                _life(
                    dice,
                    (stream, node, f"host-{replica}"),
                    begin_us,
                    end_us,
                    says_bye=not dies and dice.rng.random() < 0.5,
                )
            )
            begin_us = stop_us if dies else end_us + dice.moment(1, 20 * SECOND_US) + dice.dials.grid_us
    if dice.hit(Fault.YOUNG, 0.5):
        begin_us = dice.moment(start_us, stop_us)
        end_us = begin_us + dice.moment(0, 3 * SECOND_US)
        found.append(_life(dice, (stream, node, "young"), begin_us, end_us, says_bye=False))
        found[-1].flushes_us.clear()
    return found


def _life(dice: Dice, name: tuple[str, str, str], begin_us: int, end_us: int, *, says_bye: bool) -> Life:
    tick_us = max(dice.one((2, 5, 10, 25)) * SECOND_US, dice.dials.grid_us)
    flushes_us = list(range(begin_us + tick_us, end_us, tick_us))
    if says_bye or dice.rng.random() < 0.7:
        flushes_us.append(end_us)
    skew_us = dice.one((-SECOND_US, 3 * SECOND_US, -_HOUR_US, _HOUR_US, _AGES_US)) if dice.hit(Fault.SKEW, 0.25) else 0
    stream, node, probe = name
    home = node
    if dice.hit(Fault.AWKWARD, 0.3):
        probe += dice.one((" [bold]", "/../", "\u2603" * 100, "'\"%41\n"))
    if dice.hit(Fault.MISNAMED, 0.1):
        node = MISNAMED
    life = Life(stream, node, probe, begin_us, end_us, says_bye, skew_us, flushes_us)
    life.home = home
    life.announces = not dice.hit(Fault.UNANNOUNCED, 0.3)
    life.errs = Fault.MISTIMED if dice.hit(Fault.MISTIMED, 0.1) else None
    return life


class Voice:
    """One instance speaks: its numbers, its drops, what it has completed."""

    def __init__(self, dice: Dice, life: Life) -> None:
        """Begin at its epoch."""
        self.dice, self.life = dice, life
        self.sent: list[Sent] = []
        self.complete_through_us = life.start_us + life.skew_us
        self.owed: dict[int, int] = defaultdict(int)
        self.most = dice.one((1, 3, 10, 50))
        self.naming = Naming(dice, has_ids=not life.counts)
        self.counted_at = dice.one(("IN", "OUT", "BOTH"))
        self.is_printed = not dice.hit(Fault.UNPRINTED, 0.5)

    def speak(self) -> list[Sent]:
        """Give all that it sends."""
        if self.life.announces:
            self._say(self.life.start_us, "HEARTBEAT", None, [])
        before_us, spoke_us = -(2**62), self.life.start_us
        for flush_us in self.life.flushes_us:
            pending = [stamped for stamped in self.life.stamped if before_us < stamped.at_us <= flush_us]
            if self.naming.version == 1:
                pending = [_forget_deferral(stamped) for stamped in pending]
            batches = self._batches(self._less_dropped(pending))
            if batches or self.owed or flush_us - spoke_us >= HEARTBEAT_US:
                self._flush(flush_us, batches)
                spoke_us = flush_us
            before_us = flush_us
        if self.life.says_bye:
            self._say(self.life.stop_us, "BYE", None, [])
        return self.sent

    def _less_dropped(self, pending: Sequence[Stamped]) -> list[Stamped]:
        kept = []
        share = self.dice.one((0.2, 1.0)) if self.dice.hit(Fault.DROPS, 0.1) else 0.0
        for stamped in pending:
            if self.dice.rng.random() < share:
                self.owed[stamped.event_us // MINUTE_US * MINUTE_US] += 1
            else:
                kept.append(stamped)
        return kept

    def _batches(self, pending: Iterable[Stamped]) -> list[tuple[int, list[Stamped]]]:
        by_window: dict[tuple[int, str], list[Stamped]] = defaultdict(list)
        for stamped in pending:
            kind = "" if self.naming.version == 1 or self.life.counts else self.naming.kind(stamped.message_id)
            by_window[stamped.event_us // MINUTE_US * MINUTE_US, kind].append(stamped)
        return [
            (start_us, stamped[at : at + self.most])
            for (start_us, _), stamped in by_window.items()
            for at in range(0, len(stamped), self.most)
        ]

    def _flush(self, flush_us: int, batches: list[tuple[int, list[Stamped]]]) -> None:
        """Send all batches of a flush; only the last one carries the new moment."""
        kind = "METRICS" if self.life.counts else "OBSERVATIONS"
        for start_us, stamped in batches[:-1]:
            self._say(flush_us, kind, start_us, stamped)
        self.complete_through_us = flush_us + self.life.skew_us
        if batches:
            self._say(flush_us, kind, *batches[-1])
        else:
            self._say(flush_us, "HEARTBEAT", None, [])

    def _say(self, at_us: int, kind: str, start_us: int | None, stamped: list[Stamped]) -> None:
        sent_at_us = at_us + self.life.skew_us
        if kind == "BYE":
            self.complete_through_us = sent_at_us
        window_us = sent_at_us // MINUTE_US * MINUTE_US if start_us is None else start_us
        drops = [
            {"window_start_ms": window // 1000, "count": count, "cause": "queue full"}
            for window, count in self.owed.items()
        ]
        self.owed.clear()
        body = {
            "probe": self.life.probe,
            "epoch_us": self.life.start_us + self.life.skew_us,
            "seq": len(self.sent),
            "kind": kind,
            "stream": self.life.stream,
            "node": self.life.node,
            "window_start_ms": window_us // 1000,
            "sent_at_us": sent_at_us,
            "complete_through_us": self.complete_through_us,
            "drops": drops,
            "labels": _labels(self.dice.rng.random(), len(self.sent)),
        }
        body["is_set_aside"] = self.life.crosses and kind in {"OBSERVATIONS", "METRICS"}
        metrics = self._count(stamped) if kind == "METRICS" else []
        stamped = [] if kind == "METRICS" else stamped
        body |= self.naming.fields([one.message_id for one in stamped])
        if metrics:
            body["metrics"] = metrics
        if self.naming.version > 1 and any(one.outcome == DEFERRED for one in stamped):
            moments = (one.until_us + self.life.skew_us if one.outcome == DEFERRED else 0 for one in stamped)
            body["until_us"] = struct.pack(f"<{len(stamped)}q", *moments)
        self.sent.append(Sent(at_us, body | pack(self.dice, stamped, window_us, self.life.skew_us)))

    def _count(self, stamped: list[Stamped]) -> list[dict[str, Any]]:
        """Give what it counted; of some packets it tells no lag, which no die decides."""
        chance = blake2b(f"{self.life.probe} {len(self.sent)}".encode(), digest_size=1).digest()[0]
        skew_us = self.life.skew_us if chance % 3 else None
        return count(self.counted_at, stamped, is_printed=self.is_printed, skew_us=skew_us)


def count(
    counted_at: str, stamped: Iterable[Stamped], *, is_printed: bool, skew_us: int | None = None
) -> list[dict[str, Any]]:
    """Give the packets of what was stamped: of one that counts at one side, or of one that counts at both.

    They tell lags by a clock that is `skew_us` ahead, or none.
    """
    found: dict[str, list[tuple[bytes, int]]] = defaultdict(list)
    for one in stamped:
        is_stopped = one.outcome != PASSED
        came = one.message_id, (one.at_us if one.came_us is None else one.came_us) - one.event_us
        if counted_at != "OUT" and (one.came_us is not None or is_stopped):
            found["IN"].append(came)
        if is_stopped:
            # Whatever it counts: nobody else can say of it that it was stopped on purpose.
            found[_STAMPS[one.outcome]].append(came)
        elif counted_at != "IN" and one.left_us is not None:
            found["OUT"].append((one.message_id, one.left_us - one.event_us))
    return [
        {"stamp": stamp, "count": len(told), "bytes": 100 * len(told)}
        | {"lag_histogram": b"" if skew_us is None else write(histogram([lag + skew_us for _, lag in told]))}
        | dict(zip(("id_xor", "id_sum"), fingerprint([one for one, _ in told] if is_printed else ()), strict=True))
        for stamp, told in found.items()
    ]


def _labels(chance: float, number: int) -> dict[str, str]:
    """Give labels for a batch, none most of the time; values change within one instance."""
    if chance > 0.45:
        return {}
    return {"host": "h1"} | ({"version": f"{number % 2}\0", "zone": "<b>\u2603"} if chance < 0.2 else {})


def _forget_deferral(stamped: Stamped) -> Stamped:
    """Give what a probe of version 1 says of a message that is kept: that it came."""
    if stamped.outcome != DEFERRED:
        return stamped
    return replace(stamped, came_us=stamped.at_us, outcome=PASSED, reason="", until_us=0)


def pack(dice: Dice, stamped: Sequence[Stamped], window_us: int, skew_us: int) -> dict[str, Any]:
    """Give the packed fields of observations of one window; what says nothing is left empty now and then."""
    reasons = sorted({one.reason for one in stamped if one.outcome != PASSED})
    lags_in = [NOT_STAMPED if one.came_us is None else one.came_us + skew_us - one.event_us for one in stamped]
    lags_out = [NOT_STAMPED if one.left_us is None else one.left_us + skew_us - one.event_us for one in stamped]
    outcomes = bytes(one.outcome for one in stamped)
    indexes = bytes(
        NO_REASON
        if one.outcome == PASSED or (one.outcome in {FILTERED, DEFERRED} and not one.reason)
        else reasons.index(one.reason)
        for one in stamped
    )
    bare = dice.rng.random() < 0.5
    return {
        "count": len(stamped),
        "message_ids": b"".join(one.message_id for one in stamped),
        "event_offset_us": b""
        if dice.rng.random() < 0.3
        else struct.pack(f"<{len(stamped)}I", *(one.event_us - window_us for one in stamped)),
        "lag_in_us": b"" if bare and set(lags_in) == {NOT_STAMPED} else struct.pack(f"<{len(stamped)}q", *lags_in),
        "lag_out_us": b"" if bare and set(lags_out) == {NOT_STAMPED} else struct.pack(f"<{len(stamped)}q", *lags_out),
        "outcome": b"" if bare and not any(outcomes) else outcomes,
        "reason": b"" if bare and set(indexes) == {NO_REASON} else indexes,
        "reasons": reasons,
    }
