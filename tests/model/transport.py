"""From what probes send to what lies in the spool: segments, their arrival, and what goes wrong on the way."""

import copy
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.model import bad_records
from tests.model.intake import AHEAD_US, Stream
from tests.model.probe_instances import MISNAMED, Sent
from tests.model.random_choices import MINUTE_US, SECOND_US, Dice, Fault
from tests.model.record import Body, encode
from tests.model.wire import MAGIC, frame, write_segment

_HOUR_US = 60 * MINUTE_US
_TWO_DAYS_US = 48 * _HOUR_US


class Framed(NamedTuple):
    """A record in its frame, and whether it must be set aside."""

    data: bytes
    is_broken: bool


@dataclass(slots=True)
class Segment:
    """A file of the spool before it is written."""

    directory: str
    number: int
    arrival_us: int
    bodies: list[Body]
    """What it was cut for."""
    frames: list[Framed] = field(default_factory=list)
    """What it will hold."""
    tail: bytes = b""
    head: bytes = MAGIC

    @property
    def set_aside(self) -> int:
        """Return how many of its records must be set aside: of a file without the magic, one."""
        return sum(one.is_broken for one in self.frames) + bool(self.tail) if self.head == MAGIC else 1

    @property
    def content(self) -> bytes:
        """Return the content of the file."""
        return self.head + b"".join(one.data for one in self.frames) + self.tail


def with_holes(dice: Dice, sent: list[Sent]) -> list[Sent]:
    """Take some batches away: single ones, a run, the first or the last ones."""
    if not dice.hit(Fault.HOLES, 0.5) or not sent:
        return sent
    at, most = dice.rng.randrange(len(sent)), len(sent)
    kept = dice.one(
        (
            range(1, most),
            range(at),
            [n for n in range(most) if n != at],
            [n for n in range(most) if not at <= n < at + 5],
        )
    )
    return [sent[number] for number in kept]


def edged(dice: Dice, sent: list[Sent], stream: Stream, start_us: int) -> None:
    """Move epochs and completions to where a rule about the window changes its mind."""
    if not dice.hit(Fault.EDGES, 0.4) or not sent:
        return
    end_us = start_us + MINUTE_US
    horizon_us = end_us + stream.transit_us
    moments = (
        start_us - 600 * SECOND_US,
        start_us - 10 * SECOND_US,
        start_us,
        end_us - 10 * SECOND_US,
        end_us,
        horizon_us,
    )
    nudge_us = dice.one((-1, 0, 0, 1))
    if dice.rng.random() < 0.3:
        epoch_us = dice.one(moments) + nudge_us
        for one in sent:
            one.body["epoch_us"] = epoch_us
    dice.one((sent[-1], dice.one(sent))).body["complete_through_us"] = dice.one(moments) + nudge_us


def announced(dice: Dice, hello: Sequence[Sent], directory: str) -> list[Segment]:
    """Lay an instance's hello into a segment of its own, which is there within some ms of its start."""
    return [
        Segment(directory, 0, one.at_us + dice.moment(0, 5000), [one.body], [_framed(dice, one.body)]) for one in hello
    ]


def damaged(dice: Dice, segments: Sequence[Segment]) -> None:
    """Make some or all segments of an instance unreadable."""
    if not dice.hit(Fault.UNREADABLE, 0.15):
        return
    share = dice.one((0.3, 1.0))
    for segment in [one for one in segments if dice.rng.random() < share]:
        what = dice.one(("flipped", "newer", "empty"))
        if what == "flipped":
            segment.frames = [Framed(bad_records.bad_crc(dice, one.data), is_broken=True) for one in segment.frames]
        elif what == "newer":
            newer = [frame(bad_records.newer(dice, encode(body))) for body in segment.bodies]
            segment.frames = [Framed(one, is_broken=True) for one in newer]
        else:
            segment.head = b""
            segment.frames = []
        segment.bodies = []


def cut(dice: Dice, sent: Sequence[Sent], directory: str, stream: Stream, first: int) -> list[Segment]:
    """Lay an instance's batches into segments that arrive one after the other, or otherwise."""
    order = list(sent)
    if dice.hit(Fault.REORDERED, 0.5):
        reach_us = dice.one((10, 60, 300)) * SECOND_US
        order.sort(key=lambda one: one.at_us + dice.rng.uniform(0, reach_us))
    found: list[Segment] = []
    while order:
        size = dice.rng.randint(1, dice.one((1, 4, 12)))
        taken, order = order[:size], order[size:]
        arrival_us = max(one.at_us for one in taken) + dice.moment(0, dice.one((1000, SECOND_US, 5 * SECOND_US)))
        segment = Segment(directory, first + len(found), arrival_us, [one.body for one in taken])
        segment.arrival_us += _delay_us(dice, stream)
        segment.frames = [_framed(dice, body) for body in segment.bodies]
        _edge_arrival(dice, segment, stream)
        found.append(segment)
    return found


def _framed(dice: Dice, body: Body) -> Framed:
    return Framed(frame(_record(dice, body)), is_broken=_is_set_aside(body))


def _is_set_aside(body: Body) -> bool:
    return body["node"] == MISNAMED or bool(body.get("is_set_aside"))


def _record(dice: Dice, body: Body) -> bytes:
    return bad_records.in_blocks(dice, body) if dice.hit(Fault.AWKWARD, 0.3) else encode(body)


def _delay_us(dice: Dice, stream: Stream) -> int:
    """Give how much later than usual a segment comes."""
    if dice.hit(Fault.REORDERED, 0.05):
        return dice.moment(0, 200 * SECOND_US)
    if dice.hit(Fault.TOO_LATE, 0.05):
        final_us = MINUTE_US + stream.transit_us + stream.settle_us + stream.amend_for_us
        return min(final_us, stream.max_age_us - 20 * MINUTE_US) + dice.moment(0, 10 * MINUTE_US)
    if dice.hit(Fault.ANCIENT, 0.05):
        return stream.max_age_us + dice.moment(0, _HOUR_US)
    return 0


def _edge_arrival(dice: Dice, segment: Segment, stream: Stream) -> None:
    """Have a segment arrive exactly where its first batch changes from implausible to plausible to too late."""
    if dice.hit(Fault.EDGES, 0.08):
        start_us = segment.bodies[0]["window_start_ms"] * 1000
        final_us = stream.transit_us + stream.settle_us + stream.amend_for_us
        after_us = dice.one((-AHEAD_US, MINUTE_US + final_us, MINUTE_US + final_us, MINUTE_US + stream.max_age_us))
        moved_us = start_us + after_us + dice.one((-1, 0, 1))
        if abs(moved_us - segment.arrival_us) < _TWO_DAYS_US:  # a report has a line for every minute between arrivals
            segment.arrival_us = moved_us


def copied(dice: Dice, segments: list[Segment]) -> None:
    """Have records come again in other segments; or their numbers, with other observations."""
    for segment in [one for one in segments if dice.hit(Fault.COPIES, 0.3)]:
        anywhere = dice.hit(Fault.EDGES, 0.5)
        hosts = [one for one in segments if anywhere or one.arrival_us >= segment.arrival_us]
        copies = dice.rng.sample(segment.frames, dice.rng.randint(0, len(segment.frames)))
        dice.one(hosts).frames.extend(copies)
    for segment in [one for one in segments if dice.hit(Fault.TWINS, 0.2)]:
        later = [one for one in segments if one.arrival_us > segment.arrival_us]
        if later and segment.bodies:
            twin = copy.deepcopy(dice.one(segment.bodies))
            twin.update(message_ids=dice.rng.randbytes(16 * twin["count"]), complete_through_us=2**60, drops=[])
            dice.one(later).frames.append(Framed(frame(encode(twin)), is_broken=_is_set_aside(twin)))


def poisoned(dice: Dice, segments: list[Segment]) -> None:
    """Put broken records among the good ones."""
    whole = [body for one in segments for body in one.bodies if body["count"]]
    if not whole or Fault.POISON not in dice.dials.faults:
        return
    for segment in [one for one in segments if one.frames and dice.rng.random() < 0.03]:
        at = dice.rng.randrange(len(segment.frames))
        segment.frames[at] = Framed(bad_records.bad_crc(dice, segment.frames[at].data), is_broken=True)
    for _ in range(dice.rng.randint(1, 12)):
        _poison(dice, dice.one(segments), dice.one(whole))
    _break_files(dice, segments, frame(encode(dice.one(whole))))


def _poison(dice: Dice, segment: Segment, body: Body) -> None:
    """Insert one broken record that is nobody's batch."""
    if dice.rng.random() < 0.04:
        framed = bad_records.oversized(dice)
    elif dice.rng.random() < 0.7:
        framed = frame(bad_records.broken_body(body, dice.one(list(bad_records.BODIES))))
    else:
        framed = frame(bad_records.RECORDS[dice.one(list(bad_records.RECORDS))][1](dice, encode(body)))
    segment.frames.insert(dice.rng.randint(0, len(segment.frames)), Framed(framed, is_broken=True))


def _break_files(dice: Dice, segments: list[Segment], framed: bytes) -> None:
    for segment in [one for one in segments if dice.rng.random() < 0.1]:
        segment.tail = bad_records.torn_tail(dice, framed)
    for number in range(dice.rng.randint(0, 2)):
        near = dice.one(segments)
        head = bad_records.foreign_file(dice, framed)
        segments.append(Segment(near.directory, 900 + number, near.arrival_us, [], head=head))


def write(dice: Dice, segments: Sequence[Segment], spool_dir: Path) -> None:
    """Write the spool directory, with files in it that nobody may read."""
    spool_dir.mkdir(parents=True, exist_ok=True)
    for one in segments:
        path = spool_dir / one.directory / f"{one.number:010d}.seg"
        write_segment(path, one.content, one.arrival_us, rest_ns=dice.rng.randint(0, 999))
    last_us: dict[str, int] = {}
    for one in segments:
        last_us[one.directory] = max(one.arrival_us, last_us.get(one.directory, one.arrival_us))
    for one in segments[:1]:
        unread = spool_dir / one.directory / f"{one.number + 500:010d}.open"
        write_segment(unread, MAGIC + one.content[len(one.head) :], one.arrival_us)
        write_segment(unread.with_suffix(".txt"), b"notes", one.arrival_us)
    for directory, moment_us in last_us.items():
        os.utime(spool_dir / directory, ns=(moment_us * 1000, moment_us * 1000))
